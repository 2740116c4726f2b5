//! Runs a verifier against live servers, one for each session of its tape.
//!
//! A session is one connection: it is opened, all of the verifier's messages are sent, and it is
//! closed; nothing of its server is left when the next one begins. A server that does not read is
//! not read from either.

mod ear;

use std::io;
use std::time::Duration;

use tapegate_core::lines::{Cut, Lines};
use tapegate_core::verifier::{Act, Cue, Verifier};
use tokio::time::{Instant, sleep_until};

use crate::child::Pipes;
use crate::clock::Clock;
use crate::link::{Link, LinkError, LinkOptions, Upstream};
use crate::port::{Originated, Port};
use crate::signals::Signals;
use crate::stdio::LINGER;
use ear::Ear;

/// While more than this is queued for writing, nothing is read.
const UNWRITTEN_BYTES_MAX: usize = 4 << 20;

/// Why no more messages are sent to a stalled server.
const DEAF: &str = "the MCP server does not read its input";

/// The configuration of a verification.
pub struct Terms<'a> {
    /// The server, started or connected to for each session.
    pub upstream: &'a Upstream,
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
pub enum End {
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
    mut terms: Terms<'_>,
    signals: &mut Signals,
) -> Result<End, VerifyError> {
    let mut heard = false;
    while verifier.session().is_some() {
        let mut session = Session::open(verifier, &mut terms)?;
        let ended = tokio::select! {
            signal = signals.next() => Err(signal),
            played = session.play() => Ok(played?),
        };
        let (link, ear) = session.close();
        heard |= ear.has_heard();
        let patience = terms.link.patience;
        let grace = if ended.is_ok() { patience.grace } else { patience.grace_on_signal };
        let farewell = link.end(grace).await;
        if let Err(signal) = ended {
            return Ok(End::Signal(signal));
        }
        // A bridge answers in place of a server that it never reached.
        let unheard = ear.why_not().filter(|_| !heard);
        if let Some(why) = farewell.unreachable.or(unheard) {
            return Ok(End::Unheard(why));
        }
    }
    Ok(End::Played)
}

/// One connection to a live server.
struct Session<'s, 't, 'a> {
    verifier: &'s mut Verifier<'t>,
    terms: &'s mut Terms<'a>,
    link: Link,
    /// The server's input, until it stops reading.
    input: Option<Port>,
    output: Port,
    lines: Lines,
    unwritten: Vec<u8>,
    /// When the server last read something, or had something to read.
    taken: Instant,
    /// Why the server is no longer read from, if that is our decision.
    deaf: Option<&'static str>,
    /// When to stop reading from the server, because it has exited or stopped reading.
    deadline: Option<Instant>,
    over: bool,
    ear: Ear,
}

/// An event on a connection.
enum Turn {
    /// The server has written this many bytes; 0 means the end.
    Read(usize),
    /// The server has read this many bytes.
    Wrote(usize),
    /// The server has stopped reading.
    Deaf,
    /// The server reads nothing, although much is queued.
    Stalled,
    /// The server process has exited.
    Exited,
    /// A deadline has passed.
    Due,
}

impl<'s, 't, 'a> Session<'s, 't, 'a> {
    fn open(verifier: &'s mut Verifier<'t>, terms: &'s mut Terms<'a>) -> Result<Self, LinkError> {
        let (link, Pipes { input, output }) = Link::open(terms.upstream, &terms.link)?;
        let lines = Lines::new(terms.link.message_bytes_max);
        Ok(Self {
            verifier,
            terms,
            link,
            input: Some(input),
            output,
            lines,
            unwritten: Vec::new(),
            taken: Instant::now(),
            deaf: None,
            deadline: None,
            over: false,
            ear: Ear::default(),
        })
    }

    /// Closes the pipes; returns the link and the detector.
    fn close(self) -> (Link, Ear) {
        (self.link, self.ear)
    }

    /// Plays the session to its end.
    async fn play(&mut self) -> io::Result<()> {
        self.feed(Cue::Opened)?;
        while !self.over {
            match self.turn().await {
                Turn::Read(0) => {
                    self.rest()?;
                    let why = match self.deaf {
                        Some(why) => why.to_owned(),
                        None => self.link.farewell().await,
                    };
                    self.feed(Cue::Gone { why: &why })?;
                    self.ear.end(why);
                }
                Turn::Read(count) => {
                    self.lines.filled(count);
                    self.hear()?;
                }
                Turn::Wrote(count) => {
                    self.taken = Instant::now();
                    self.unwritten.drain(..count);
                }
                Turn::Deaf => self.hang_up(),
                Turn::Stalled => {
                    self.deaf = Some(DEAF);
                    self.hang_up();
                }
                Turn::Exited => self.linger(),
                Turn::Due => {}
            }
            // A server that never stops writing must not delay what is due.
            if self.is_due() {
                self.feed(Cue::Due)?;
            }
            let (done, total) = self.verifier.progress();
            (self.terms.watch)(done, total);
        }
        Ok(())
    }

    /// Whether a deadline has passed, and there is room for the resulting messages.
    fn is_due(&self) -> bool {
        let now_ns = self.terms.clock.now().mono_ns;
        !self.over && self.has_room() && self.verifier.due().is_some_and(|due_ns| due_ns <= now_ns)
    }

    fn has_room(&self) -> bool {
        self.unwritten.len() < UNWRITTEN_BYTES_MAX
    }

    async fn turn(&mut self) -> Turn {
        let room = self.has_room();
        let due = self.verifier.due().filter(|_| room);
        let due = due.map(|due_ns| self.terms.clock.moment(due_ns).into());
        let stalled = self.taken.checked_add(self.terms.timeout).filter(|_| !room);
        let Self { link, input, output, lines, unwritten, deadline, .. } = self;
        let write = async {
            match input {
                Some(input) => input.write(Originated::by_endpoint(unwritten)).await,
                None => std::future::pending().await,
            }
        };
        let until = |moment: Option<Instant>| sleep_until(moment.unwrap_or_else(Instant::now));
        tokio::select! {
            // Received data is handled before deadlines.
            biased;
            count = async { output.read(lines.room()).await }, if room => {
                Turn::Read(count.unwrap_or(0))
            }
            written = write, if !unwritten.is_empty() => written.map_or(Turn::Deaf, Turn::Wrote),
            () = link.exited(), if deadline.is_none() => Turn::Exited,
            () = until(*deadline), if deadline.is_some() => Turn::Read(0),
            () = until(due), if due.is_some() => Turn::Due,
            () = until(stalled), if stalled.is_some() => Turn::Stalled,
        }
    }

    /// Passes the server's lines to the verifier.
    fn hear(&mut self) -> io::Result<()> {
        while !self.over
            && let Some(cut) = self.lines.cut()
        {
            self.tell(cut)?;
        }
        self.lines.release();
        Ok(())
    }

    /// Passes the rest of the server's output to the verifier.
    fn rest(&mut self) -> io::Result<()> {
        match self.lines.finish() {
            Some(cut) if !self.over => self.tell(cut),
            _ => Ok(()),
        }
    }

    fn tell(&mut self, cut: Cut) -> io::Result<()> {
        let bytes_max = self.terms.link.message_bytes_max;
        match cut {
            Cut::Line(range) | Cut::Unterminated(range) => {
                let line = self.lines.bytes(range).to_vec();
                self.ear.hear(&line);
                self.feed(Cue::Said(&line))
            }
            Cut::Oversize(message) => {
                self.ear.hear_much();
                self.feed(Cue::TooLarge { message, bytes_max })
            }
        }
    }

    fn feed(&mut self, cue: Cue<'_>) -> io::Result<()> {
        let Self { verifier, terms, input, unwritten, over, ear, .. } = self;
        if unwritten.is_empty() {
            self.taken = Instant::now();
        }
        let mut act = |act: Act<'_>| match act {
            // A server that has stopped reading is sent nothing more.
            Act::Say(line) if input.is_some() => {
                ear.tell(line);
                unwritten.extend_from_slice(line);
                unwritten.push(b'\n');
            }
            Act::Say(_) => {}
            Act::Over => *over = true,
        };
        verifier.handle(terms.clock.now(), cue, &mut act)
    }

    /// Stops sending to a server that does not read.
    fn hang_up(&mut self) {
        self.input = None;
        self.unwritten.clear();
        self.linger();
    }

    fn linger(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + LINGER);
    }
}
