//! A tape in the role of the client: recorded requests are sent to a live server, and its answers
//! are compared with the tape.
//!
//! The verifier does no I/O and reads no clock. The wire opens a connection for each session of the
//! tape, passes in the server's messages and the time, and sends what the verifier asks it to. Two
//! invariants live here and nowhere else: nothing is sent that the user has not allowed
//! ([`CallSelection`]), and a message is sent only when everything before it on the tape has arrived or
//! been given up on.

mod ambiguity;
mod answer_comparer;
mod call_selection;
mod finding;
mod json_shape;
mod masked_parts;
mod minted_values;
mod notice_matcher;
mod paged_lists;
mod report;
mod server_questions;
mod session;
mod tape;
mod tool_hints;

use std::io;
use std::time::Duration;

use crate::json::path::JsonPath;
use crate::lines::OversizeMessage;
use crate::signature::Signer;
use crate::tape::Mask;
use crate::tape::index::{BodySource, Index};
use crate::time::Timestamp;

use answer_comparer::AnswerComparer;
use session::{VerifyContext, VerifySession};
use tape::VerifierTape;

pub use call_selection::CallSelection;
pub use finding::{
    Discrepancy, ItemChange, ListKind, MessageRef, RecordedChange, RecordedChanges, SkipReason,
    SkippedMessage, VerifyFinding, VerifyNote, VerifyNoteKind,
};
pub use minted_values::MintedKind;
pub use report::VerifyReport;

/// How a tape is verified.
pub struct VerifierOptions {
    /// Which calls may be sent.
    pub calls: CallSelection,
    /// Paths that are not compared; they start at the message.
    pub ignored: Vec<JsonPath>,
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
pub enum VerifierEvent<'a> {
    /// The connection is open.
    Opened,
    /// The server sent a message: one line, without its line ending.
    Said(&'a [u8]),
    /// The server sent a message over the size limit, whose bytes were not kept.
    TooLarge {
        /// The parts of it that were kept.
        message: OversizeMessage,
        bytes_max: usize,
    },
    /// The server is gone.
    Gone {
        /// Why.
        reason: &'a str,
    },
    /// The time that [`Verifier::next_wakeup`] returned has come.
    Due,
}

/// What the verifier wants done.
#[derive(Debug)]
pub enum VerifierAction<'a> {
    /// Send this to the server: one line, without its line ending.
    Say(&'a [u8]),
    /// The session is finished: close the connection. If [`Verifier::session`] names another
    /// session, open a connection for it.
    Over,
}

/// A tape in the role of the client.
pub struct Verifier<'t> {
    tape: VerifierTape<'t>,
    judge: AnswerComparer,
    calls: CallSelection,
    timeout_ns: u64,
    /// The current session, or the next one to play.
    session: usize,
    play: Option<VerifySession>,
    /// How many messages the previous sessions have.
    done: usize,
    total: usize,
    report: VerifyReport,
}

impl<'t> Verifier<'t> {
    /// A verifier for the tape of `index`.
    pub fn new(
        index: &'t Index,
        bodies: Box<dyn BodySource + 't>,
        options: VerifierOptions,
    ) -> Self {
        let VerifierOptions { calls, ignored, shape_only, timeout, mask, signer } = options;
        let tape = VerifierTape::new(index, bodies, signer);
        let total = tape.messages();
        Self {
            tape,
            judge: AnswerComparer::new(&ignored, shape_only, mask),
            calls,
            // Leaves room for sums of times, which must not overflow.
            timeout_ns: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).min(u64::MAX / 4),
            session: 0,
            play: None,
            done: 0,
            total,
            report: VerifyReport::default(),
        }
    }

    /// The current session, or the next one to play, from 1; `None` when all are finished.
    pub fn session(&self) -> Option<u32> {
        let entry_numbers = self.tape.session(self.session);
        entry_numbers.first().map(|entry| self.tape.entry(*entry).session + 1)
    }

    /// Handles an event and emits the resulting actions. Fails if the tape cannot be read.
    pub fn handle(
        &mut self,
        at: Timestamp,
        event: VerifierEvent<'_>,
        act: &mut dyn FnMut(VerifierAction<'_>),
    ) -> io::Result<()> {
        // Events of a session that is over may still arrive until the wire has closed its
        // connection.
        if self.play.is_none() {
            if !matches!(event, VerifierEvent::Opened) || self.session().is_none() {
                return Ok(());
            }
            self.play = Some(VerifySession::new(&mut self.tape, self.session, self.calls)?);
        }
        let Some(play) = &mut self.play else { return Ok(()) };
        let mut context = VerifyContext {
            tape: &mut self.tape,
            judge: &self.judge,
            calls: self.calls,
            timeout_ns: self.timeout_ns,
            report: &mut self.report,
            now_ns: at.mono_ns,
            act,
            said_bytes: 0,
        };
        if play.handle(&mut context, event)? {
            self.done += play.progress();
            self.play = None;
            self.session += 1;
            self.report.sessions += 1;
            act(VerifierAction::Over);
        }
        Ok(())
    }

    /// When it wants to be woken, by the monotonic clock in nanoseconds.
    pub fn next_wakeup(&self) -> Option<u64> {
        self.play.as_ref().and_then(VerifySession::next_deadline)
    }

    /// How many messages are finished, and how many there are.
    pub fn progress(&self) -> (u64, u64) {
        let done = self.done + self.play.as_ref().map_or(0, VerifySession::progress);
        (done as u64, self.total as u64)
    }

    /// The findings.
    pub fn finish(self) -> VerifyReport {
        self.report
    }
}
