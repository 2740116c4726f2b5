//! A tape in the role of the client: recorded requests are sent to a live server, and its answers
//! are compared with the tape.
//!
//! The verifier does no I/O and reads no clock. The wire opens a connection for each session of the
//! tape, passes in the server's messages and the time, and sends what the verifier asks it to. Two
//! invariants live here and nowhere else: nothing is sent that the user has not allowed
//! ([`Calls`]), and a message is sent only when everything before it on the tape has arrived or
//! been given up on.

mod calls;
mod doubt;
mod finding;
mod judge;
mod listing;
mod masked;
mod minted;
mod notices;
mod play;
mod questions;
mod report;
mod shape;
mod tape;
mod tools;

use std::io;
use std::time::Duration;

use crate::json::path::Path;
use crate::lines::Oversize;
use crate::signature::Signer;
use crate::tape::Mask;
use crate::tape::index::{Bodies, Index};
use crate::time::At;

use judge::Judge;
use play::{Kit, Play};
use tape::Tape;

pub use calls::Calls;
pub use finding::{
    About, Became, Change, Changes, Finding, List, Note, NoteSort, Skipped, What, Why,
};
pub use minted::Token;
pub use report::Report;

/// How a tape is verified.
pub struct Options {
    /// Which calls may be sent.
    pub calls: Calls,
    /// Paths that are not compared; they start at the message.
    pub ignored: Vec<Path>,
    /// Whether only shapes are compared, not values.
    pub shape_only: bool,
    /// How long an answer may take. If it took more than half of that on the tape, the limit is
    /// twice the recorded time.
    pub timeout: Duration,
    /// The redaction that was applied to the tape.
    pub mask: Option<Box<dyn Mask>>,
    /// The signer that the index was built with.
    pub signer: Signer,
}

/// What happened on the connection of the current session.
#[derive(Debug)]
pub enum Cue<'a> {
    /// The connection is open.
    Opened,
    /// The server sent a message: one line, without its line ending.
    Said(&'a [u8]),
    /// The server sent a message over the size limit, whose bytes were not kept.
    TooLarge {
        /// The parts of it that were kept.
        message: Oversize,
        /// The limit.
        bytes_max: usize,
    },
    /// The server is gone.
    Gone {
        /// Why.
        why: &'a str,
    },
    /// The time that [`Verifier::due`] returned has come.
    Due,
}

/// What the verifier wants done.
#[derive(Debug)]
pub enum Act<'a> {
    /// Send this to the server: one line, without its line ending.
    Say(&'a [u8]),
    /// The session is finished: close the connection. If [`Verifier::session`] names another
    /// session, open a connection for it.
    Over,
}

/// A tape in the role of the client.
pub struct Verifier<'t> {
    tape: Tape<'t>,
    judge: Judge,
    calls: Calls,
    timeout_ns: u64,
    /// The current session, or the next one to play.
    session: usize,
    play: Option<Play>,
    /// How many messages the previous sessions have.
    done: usize,
    total: usize,
    report: Report,
}

impl<'t> Verifier<'t> {
    /// A verifier for the tape of `index`.
    pub fn new(index: &'t Index, bodies: Box<dyn Bodies + 't>, options: Options) -> Self {
        let Options { calls, ignored, shape_only, timeout, mask, signer } = options;
        let tape = Tape::new(index, bodies, signer);
        let total = tape.messages();
        Self {
            tape,
            judge: Judge::new(&ignored, shape_only, mask),
            calls,
            timeout_ns: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX / 4),
            session: 0,
            play: None,
            done: 0,
            total,
            report: Report::default(),
        }
    }

    /// The current session, or the next one to play, from 1; `None` when all are finished.
    pub fn session(&self) -> Option<u32> {
        let slots = self.tape.session(self.session);
        slots.first().map(|slot| self.tape.slot(*slot).session + 1)
    }

    /// Handles an event and emits the resulting actions. Fails if the tape cannot be read.
    pub fn handle(&mut self, at: At, cue: Cue<'_>, act: &mut dyn FnMut(Act<'_>)) -> io::Result<()> {
        if self.play.is_none() {
            if !matches!(cue, Cue::Opened) || self.session().is_none() {
                return Ok(());
            }
            self.play = Some(Play::new(&mut self.tape, self.session, self.calls)?);
        }
        let Some(play) = &mut self.play else { return Ok(()) };
        let mut kit = Kit {
            tape: &mut self.tape,
            judge: &self.judge,
            calls: self.calls,
            timeout_ns: self.timeout_ns,
            report: &mut self.report,
            now_ns: at.mono_ns,
            act,
            said_bytes: 0,
        };
        if play.handle(&mut kit, cue)? {
            self.done += play.progress();
            self.play = None;
            self.session += 1;
            self.report.sessions += 1;
            act(Act::Over);
        }
        Ok(())
    }

    /// When it wants to be woken, by the monotonic clock in nanoseconds.
    pub fn due(&self) -> Option<u64> {
        self.play.as_ref().and_then(Play::due)
    }

    /// How many messages are finished, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        let done = self.done + self.play.as_ref().map_or(0, Play::progress);
        (done as u64, self.total as u64)
    }

    /// The findings.
    pub fn finish(self) -> Report {
        self.report
    }
}
