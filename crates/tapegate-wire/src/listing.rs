//! Runs a lister against a live server.
//!
//! The server is started or connected to, asked for its lists, and ended. If it does not answer in
//! time, the answers received so far count.

use std::time::Duration;

use tapegate_core::lines::{Cut, Lines};
use tapegate_core::lister::{Listed, Lister, ListingFailure};
use tokio::time::{Instant, timeout_at};

use crate::child::Pipes;
use crate::link::{Link, LinkError, LinkOptions, Upstream};
use crate::port::{Originated, Port};
use crate::signals::Signals;

/// How a listing ended.
#[derive(Debug)]
pub enum End {
    /// What the server offers.
    Listed(Listed),
    /// It is not an MCP server or cannot be reached, for this reason.
    Unheard(String),
    /// A signal asked us to end.
    Signal(i32),
}

/// Lists what a server offers. Each answer may take up to `timeout`. Needs a `LocalSet`.
pub async fn run(
    upstream: &Upstream,
    options: &LinkOptions,
    timeout: Duration,
    signals: &mut Signals,
) -> Result<End, LinkError> {
    let (mut link, pipes) = Link::open(upstream, options)?;
    let mut lister = Lister::default();
    let asked = tokio::select! {
        signal = signals.next() => Err(signal),
        why = ask(&mut lister, pipes, options.message_bytes_max, timeout) => Ok(why),
    };
    let patience = options.patience;
    let grace = if asked.is_ok() { patience.grace } else { patience.grace_on_signal };
    let farewell = match &asked {
        Ok(Some(Silence::Gone)) => Some(link.farewell().await),
        _ => None,
    };
    let ended = link.end(grace).await;
    let silence = match asked {
        Err(signal) => return Ok(End::Signal(signal)),
        Ok(silence) => silence,
    };
    Ok(match (lister.finish(), ended.unreachable) {
        (_, Some(why)) => End::Unheard(why),
        (Ok(listed), None) => End::Listed(listed),
        (Err(ListingFailure::Echo), None) => {
            let words = "this is not an MCP server: it echoes its input";
            End::Unheard(words.to_owned())
        }
        (Err(ListingFailure::Refused(why)), None) => {
            let late = || format!("the MCP server did not answer within {} s", timeout.as_secs());
            let refused = || format!("the MCP server returned an error: {why}");
            End::Unheard(match silence {
                Some(Silence::Gone) => farewell.unwrap_or_else(refused),
                Some(Silence::Late) => late(),
                None => refused(),
            })
        }
    })
}

/// Why a server does not answer.
enum Silence {
    /// It has closed its output.
    Gone,
    /// It took too long.
    Late,
}

/// Sends requests until there are no more, or the server stops answering.
async fn ask(
    lister: &mut Lister,
    Pipes { input, output }: Pipes,
    message_bytes_max: usize,
    timeout: Duration,
) -> Option<Silence> {
    let mut lines = Lines::new(message_bytes_max);
    let mut unwritten = lister.start();
    unwritten.push(b'\n');
    let mut until = Instant::now() + timeout;
    while !lister.is_over() {
        let turn = turn(&input, &output, &mut lines, &mut unwritten);
        match timeout_at(until, turn).await {
            Err(_) => return Some(Silence::Late),
            Ok(false) => return Some(Silence::Gone),
            Ok(true) => {}
        }
        while let Some(cut) = lines.cut() {
            // Skip lists that are too long to be kept.
            let Cut::Line(range) = cut else { continue };
            for said in lister.hear(lines.bytes(range)) {
                unwritten.extend_from_slice(&said);
                unwritten.push(b'\n');
                until = Instant::now() + timeout;
            }
        }
        lines.release();
    }
    None
}

/// Reads or writes once; false if the server's output has ended.
async fn turn(input: &Port, output: &Port, lines: &mut Lines, unwritten: &mut Vec<u8>) -> bool {
    tokio::select! {
        biased;
        count = output.read(lines.room()) => match count {
            Ok(count) if count > 0 => {
                lines.filled(count);
                true
            }
            _ => false,
        },
        written = input.write(Originated::by_endpoint(unwritten)), if !unwritten.is_empty() => {
            match written {
                Ok(count) => drop(unwritten.drain(..count)),
                // If it reads no more, the end of its output will tell.
                Err(_) => unwritten.clear(),
            }
            true
        }
    }
}
