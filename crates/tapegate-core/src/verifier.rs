//! A tape in the role of the client: what was said once is said to a live server, and what the
//! server says is compared with the tape.
//!
//! The verifier does no I/O and reads no clock. The wire opens a connection for each session of
//! the tape, tells the verifier what the server says and what time it is, and says what the
//! verifier wants said. Two things hold here and nowhere else: nothing is sent that the user has
//! not asked for ([`Calls`]), and a message goes out only when everything that came before it on
//! the tape has come, or has been given up.

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

/// How a tape is played, and what is compared.
pub struct Options {
    /// What may be sent.
    pub calls: Calls,
    /// What is not compared; paths start at the message.
    pub ignored: Vec<Path>,
    /// Whether shapes are compared, and not values.
    pub shape_only: bool,
    /// How long an answer may take; one that took more than half of it on the tape may take twice
    /// as long as it did.
    pub timeout: Duration,
    /// What the tape was redacted with.
    pub mask: Option<Box<dyn Mask>>,
    /// What the index was signed with.
    pub signer: Signer,
}

/// What happened on the connection of the session that is played.
#[derive(Debug)]
pub enum Cue<'a> {
    /// The connection is there.
    Opened,
    /// The server has said something: one line, without its end.
    Said(&'a [u8]),
    /// The server has said something over the limit, which nobody has kept.
    TooLarge {
        /// What is known of it.
        message: Oversize,
        /// The limit.
        bytes_max: usize,
    },
    /// The server is gone.
    Gone {
        /// Why.
        why: &'a str,
    },
    /// The moment that [`Verifier::due`] named has come.
    Due,
}

/// What the verifier wants done.
#[derive(Debug)]
pub enum Act<'a> {
    /// Say this to the server: one line, without its end.
    Say(&'a [u8]),
    /// The session has been played: close the connection. If [`Verifier::session`] names another
    /// one, open the next.
    Over,
}

/// A tape in the role of the client.
pub struct Verifier<'t> {
    tape: Tape<'t>,
    judge: Judge,
    calls: Calls,
    timeout_ns: u64,
    /// The session that is played, or is to be played next.
    session: usize,
    play: Option<Play>,
    /// How many messages the sessions before have.
    done: usize,
    total: usize,
    report: Report,
}

impl<'t> Verifier<'t> {
    /// A verifier of the tape that `index` was made of.
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

    /// The session that is played, or is to be played next, from 1; none when all are over.
    pub fn session(&self) -> Option<u32> {
        let slots = self.tape.session(self.session);
        slots.first().map(|slot| self.tape.slot(*slot).session + 1)
    }

    /// Takes what happened and says what is to be done. An error means that the tape cannot be
    /// read.
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

    /// How many messages of how many are done with.
    pub fn progress(&self) -> (u64, u64) {
        let done = self.done + self.play.as_ref().map_or(0, Play::progress);
        (done as u64, self.total as u64)
    }

    /// What was found.
    pub fn finish(self) -> Report {
        self.report
    }
}
