//! Runs a lister against a live server.
//!
//! The server is started or connected to, asked for its lists, and ended. If it does not answer in
//! time, the answers received so far count.

use std::time::Duration;

use tapegate_core::lister::{Lister, ListingFailure, ServerListing};
use tokio::time::{Instant, timeout_at};

use crate::link::{LinkError, LinkEvent, LinkOptions, LinkStream, LinkTarget};
use crate::port::{OriginatedBytes, ReceivedLine};
use crate::signals::Signals;

/// How a listing ended.
#[derive(Debug)]
pub enum ListingEnd {
    /// What the server offers.
    Listed(ServerListing),
    /// It is not an MCP server or cannot be reached, for this reason.
    Unheard(String),
    /// A signal asked us to end.
    Signal(i32),
}

/// Lists what a server offers. Each answer may take up to `timeout`. Needs a `LocalSet`.
pub async fn run(
    upstream: &LinkTarget,
    options: &LinkOptions,
    timeout: Duration,
    signals: &mut Signals,
) -> Result<ListingEnd, LinkError> {
    let mut stream = LinkStream::open(upstream, options)?;
    let mut lister = Lister::default();
    let outcome = tokio::select! {
        signal = signals.next() => Err(signal),
        reason = run_lister(&mut lister, &mut stream, timeout) => Ok(reason),
    };
    let patience = options.patience;
    // A signal leaves less time: its sender may kill us.
    let grace = if outcome.is_ok() { patience.grace } else { patience.grace_on_signal };
    let farewell = match &outcome {
        Ok(Some(SilenceReason::Gone)) => {
            stream.stop_writing();
            Some(stream.link.end_reason().await)
        }
        _ => None,
    };
    let ended = stream.drain_and_shutdown(grace).await;
    let silence = match outcome {
        Err(signal) => return Ok(ListingEnd::Signal(signal)),
        Ok(silence) => silence,
    };
    Ok(match (lister.finish(), ended.unreachable) {
        // First: the bridge has answered in place of the server.
        (_, Some(reason)) => ListingEnd::Unheard(reason),
        (Ok(listed), None) => ListingEnd::Listed(listed),
        (Err(ListingFailure::Echo), None) => {
            let message = "this is not an MCP server: it echoes its input";
            ListingEnd::Unheard(message.to_owned())
        }
        (Err(ListingFailure::Refused(reason)), None) => {
            let late = || format!("the MCP server did not answer within {} s", timeout.as_secs());
            let refused = || format!("the MCP server returned an error: {reason}");
            ListingEnd::Unheard(match silence {
                Some(SilenceReason::Gone) => farewell.unwrap_or_else(refused),
                Some(SilenceReason::Late) => late(),
                None => refused(),
            })
        }
    })
}

/// Why a server does not answer.
enum SilenceReason {
    /// It has closed its output.
    Gone,
    /// It took too long.
    Late,
}

/// Sends requests until there are no more, or the server stops answering.
async fn run_lister(
    lister: &mut Lister,
    stream: &mut LinkStream,
    timeout: Duration,
) -> Option<SilenceReason> {
    let mut unwritten = lister.start();
    unwritten.push(b'\n');
    // The limit is for each answer, so it starts again with every request.
    let mut until = Instant::now() + timeout;
    while !lister.is_finished() {
        let event = stream.next_event(OriginatedBytes::from_endpoint(&unwritten), true);
        match timeout_at(until, event).await {
            Err(_) => return Some(SilenceReason::Late),
            Ok(LinkEvent::Read(false)) => return Some(SilenceReason::Gone),
            Ok(LinkEvent::Read(true)) => {}
            Ok(LinkEvent::Wrote(count)) => drop(unwritten.drain(..count)),
            // The end of its output will tell why.
            Ok(LinkEvent::Deaf) => unwritten.clear(),
        }
        while let Some(line) = stream.output.next_line(false) {
            // Skip lists that are too long to be kept.
            let ReceivedLine::Line(line, _) = line else { continue };
            for line in lister.receive(line) {
                unwritten.extend_from_slice(&line);
                unwritten.push(b'\n');
                until = Instant::now() + timeout;
            }
        }
    }
    None
}
