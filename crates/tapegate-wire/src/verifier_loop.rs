//! Runs a verifier against live servers, one for each session of its tape.
//!
//! A session is one connection: it is opened, all of the verifier's messages are sent, and it is
//! closed; nothing of its server is left when the next one begins. A server that does not read is
//! not read from either.

mod mcp_detection;

use std::io;
use std::time::Duration;

use tapegate_core::verifier::{Verifier, VerifierAction, VerifierEvent};
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;
use crate::link::{LinkError, LinkEvent, LinkOptions, LinkStream, LinkTarget, ServerLink};
use crate::port::{OriginatedBytes, ReceivedLine};
use crate::signals::Signals;
use mcp_detection::McpDetector;

/// While more than this is queued for writing, nothing is read.
const UNWRITTEN_BYTES_MAX: usize = 4 << 20;

/// Why no more messages are sent to a stalled server.
const DEAF: &str = "the MCP server does not read its input";

/// The configuration of a verification.
pub struct VerifyConfig<'a> {
    /// The server, started or connected to for each session.
    pub upstream: &'a LinkTarget,
    /// The options of each link.
    pub link: LinkOptions,
    /// The verifier's source of time.
    pub clock: Clock,
    /// How long a server may read nothing while much is queued for it.
    pub timeout: Duration,
    /// Called with the number of processed messages and the total.
    pub watch: &'a mut dyn FnMut(u64, u64),
}

/// How a verification ended.
#[derive(Debug)]
pub enum VerificationEnd {
    /// Every session was played.
    Played,
    /// A signal asked us to end.
    Signal(i32),
    /// No server ever answered, for this reason.
    Unheard(String),
}

/// Why a verification could not continue.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A server could not be started.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The tape could not be read.
    #[error("cannot continue reading the tape: {0}")]
    Tape(#[from] io::Error),
}

/// Plays every session of the verifier's tape. Needs a `LocalSet`.
pub async fn run(
    verifier: &mut Verifier<'_>,
    mut terms: VerifyConfig<'_>,
    signals: &mut Signals,
) -> Result<VerificationEnd, VerifyError> {
    let mut heard = false;
    while verifier.session().is_some() {
        let mut session = VerifierConnection::open(verifier, &mut terms)?;
        let ended = tokio::select! {
            signal = signals.next() => Err(signal),
            played = session.run() => Ok(played?),
        };
        let (link, ear) = session.close();
        heard |= ear.is_mcp_server();
        let patience = terms.link.patience;
        // A signal leaves less time: its sender may kill us.
        let grace = if ended.is_ok() { patience.grace } else { patience.grace_on_signal };
        let farewell = link.shutdown(grace).await;
        if let Err(signal) = ended {
            return Ok(VerificationEnd::Signal(signal));
        }
        // A bridge answers in place of a server that it never reached.
        let unheard = ear.failure_reason().filter(|_| !heard);
        // The bridge knows that the server was never reached; the answers it gave say less.
        if let Some(reason) = farewell.unreachable.or(unheard) {
            return Ok(VerificationEnd::Unheard(reason));
        }
    }
    Ok(VerificationEnd::Played)
}

/// One connection to a live server.
struct VerifierConnection<'s, 't, 'a> {
    verifier: &'s mut Verifier<'t>,
    terms: &'s mut VerifyConfig<'a>,
    stream: LinkStream,
    unwritten: Vec<u8>,
    /// When the server last read something, or had something to read.
    taken: Instant,
    /// Why the server is no longer read from, if that is our decision.
    deaf: Option<&'static str>,
    over: bool,
    detector: McpDetector,
}

enum ConnectionEvent {
    Link(LinkEvent),
    /// The server reads nothing, although much is queued.
    Stalled,
    /// A deadline has passed.
    Due,
}

impl<'s, 't, 'a> VerifierConnection<'s, 't, 'a> {
    fn open(
        verifier: &'s mut Verifier<'t>,
        terms: &'s mut VerifyConfig<'a>,
    ) -> Result<Self, LinkError> {
        let stream = LinkStream::open(terms.upstream, &terms.link)?;
        Ok(Self {
            verifier,
            terms,
            stream,
            unwritten: Vec::new(),
            taken: Instant::now(),
            deaf: None,
            over: false,
            detector: McpDetector::default(),
        })
    }

    /// Closes the pipes; returns the link and the detector.
    fn close(self) -> (ServerLink, McpDetector) {
        (self.stream.close(), self.detector)
    }

    /// Plays the session to its end.
    async fn run(&mut self) -> io::Result<()> {
        self.feed(VerifierEvent::Opened)?;
        while !self.over {
            match self.next_event().await {
                ConnectionEvent::Link(LinkEvent::Read(is_more)) => {
                    // At the end, a line without its ending may be the last answer.
                    self.read_lines(!is_more)?;
                    if !is_more {
                        self.server_gone().await?;
                    }
                }
                ConnectionEvent::Link(LinkEvent::Wrote(count)) => {
                    self.taken = Instant::now();
                    self.unwritten.drain(..count);
                }
                ConnectionEvent::Link(LinkEvent::Deaf) => self.unwritten.clear(),
                ConnectionEvent::Stalled => {
                    self.deaf = Some(DEAF);
                    self.stream.stop_writing();
                    self.unwritten.clear();
                }
                ConnectionEvent::Due => {}
            }
            // A server that never stops writing must not delay what is due.
            if self.is_due() {
                self.feed(VerifierEvent::Due)?;
            }
            let (done, total) = self.verifier.progress();
            (self.terms.watch)(done, total);
        }
        Ok(())
    }

    async fn server_gone(&mut self) -> io::Result<()> {
        let reason = match self.deaf {
            Some(reason) => reason.to_owned(),
            None => self.stream.link.end_reason().await,
        };
        self.feed(VerifierEvent::Gone { reason: &reason })?;
        self.detector.note_end(reason);
        Ok(())
    }

    /// Whether a deadline has passed, and there is room for the resulting messages.
    fn is_due(&self) -> bool {
        let now_ns = self.terms.clock.now().mono_ns;
        !self.over
            && self.has_room()
            && self.verifier.next_wakeup().is_some_and(|due_ns| due_ns <= now_ns)
    }

    fn has_room(&self) -> bool {
        self.unwritten.len() < UNWRITTEN_BYTES_MAX
    }

    async fn next_event(&mut self) -> ConnectionEvent {
        let room = self.has_room();
        // Without room, a due message would only lengthen the queue.
        let due = self.verifier.next_wakeup().filter(|_| room);
        let due = due.map(|due_ns| self.terms.clock.instant_at(due_ns).into());
        // Counted only while the queue is full: a server that is idle has not stalled.
        let stalled = self.taken.checked_add(self.terms.timeout).filter(|_| !room);
        let unwritten = OriginatedBytes::from_endpoint(&self.unwritten);
        let until = |moment: Option<Instant>| sleep_until(moment.unwrap_or_else(Instant::now));
        tokio::select! {
            // What happens on the link is handled before deadlines.
            biased;
            event = self.stream.next_event(unwritten, room) => ConnectionEvent::Link(event),
            () = until(due), if due.is_some() => ConnectionEvent::Due,
            () = until(stalled), if stalled.is_some() => ConnectionEvent::Stalled,
        }
    }

    /// Passes the server's lines to the verifier; at the end also an incomplete one.
    fn read_lines(&mut self, is_over: bool) -> io::Result<()> {
        let bytes_max = self.terms.link.message_bytes_max;
        while !self.over
            && let Some(line) = self.stream.output.next_line(is_over)
        {
            match line {
                ReceivedLine::Line(bytes, _) => {
                    // Copied, because the connection that is fed also holds the buffer.
                    let line = bytes.to_vec();
                    self.detector.note_received(&line);
                    self.feed(VerifierEvent::Said(&line))?;
                }
                ReceivedLine::Oversize(message) => {
                    self.detector.note_oversize();
                    self.feed(VerifierEvent::TooLarge { message, bytes_max })?;
                }
            }
        }
        Ok(())
    }

    fn feed(&mut self, event: VerifierEvent<'_>) -> io::Result<()> {
        let Self { verifier, terms, stream, unwritten, over, detector: ear, .. } = self;
        // The server had nothing to read until now, so the wait counts from here.
        if unwritten.is_empty() {
            self.taken = Instant::now();
        }
        let mut act = |act: VerifierAction<'_>| match act {
            // A server that has stopped reading is sent nothing more.
            VerifierAction::Say(line) if stream.input.is_some() => {
                ear.note_sent(line);
                unwritten.extend_from_slice(line);
                unwritten.push(b'\n');
            }
            VerifierAction::Say(_) => {}
            VerifierAction::Over => *over = true,
        };
        verifier.handle(terms.clock.now(), event, &mut act)
    }
}
