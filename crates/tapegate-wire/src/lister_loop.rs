//! Runs a lister against a live server.
//!
//! The server is started or connected to, asked for its lists, and ended. If it does not answer in
//! time, the answers received so far count.

use std::time::Duration;

use tapegate_core::lister::{Lister, ListingFailure, ServerListing};
use tokio::time::{Instant, timeout_at};

use crate::child::ServerPipes;
use crate::link::{LinkError, LinkOptions, LinkTarget, ServerLink};
use crate::port::{LineReader, OriginatedBytes, ReceivedLine, StreamPort};
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
    let (mut link, pipes) = ServerLink::open(upstream, options)?;
    let mut lister = Lister::default();
    let outcome = tokio::select! {
        signal = signals.next() => Err(signal),
        reason = run_lister(&mut lister, pipes, options.message_bytes_max, timeout) => Ok(reason),
    };
    let patience = options.patience;
    // A signal leaves less time: its sender may kill us.
    let grace = if outcome.is_ok() { patience.grace } else { patience.grace_on_signal };
    let farewell = match &outcome {
        Ok(Some(SilenceReason::Gone)) => Some(link.end_reason().await),
        _ => None,
    };
    let ended = link.shutdown(grace).await;
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
    ServerPipes { input, output }: ServerPipes,
    message_bytes_max: usize,
    timeout: Duration,
) -> Option<SilenceReason> {
    let mut output = LineReader::new(output, message_bytes_max);
    let mut unwritten = lister.start();
    unwritten.push(b'\n');
    // The limit is for each answer, so it starts again with every request.
    let mut until = Instant::now() + timeout;
    while !lister.is_finished() {
        let turn = read_or_write(&input, &mut output, &mut unwritten);
        match timeout_at(until, turn).await {
            Err(_) => return Some(SilenceReason::Late),
            Ok(false) => return Some(SilenceReason::Gone),
            Ok(true) => {}
        }
        while let Some(line) = output.next_line(false) {
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

/// Reads or writes once; false if the server's output has ended.
async fn read_or_write(
    input: &StreamPort,
    output: &mut LineReader,
    unwritten: &mut Vec<u8>,
) -> bool {
    tokio::select! {
        // Read first: a server that is blocked on its output cannot read.
        biased;
        is_more = output.read() => is_more,
        written = input.write(OriginatedBytes::from_endpoint(unwritten)), if !unwritten.is_empty() => {
            match written {
                Ok(count) => drop(unwritten.drain(..count)),
                // If it reads no more, the end of its output will tell.
                Err(_) => unwritten.clear(),
            }
            true
        }
    }
}
