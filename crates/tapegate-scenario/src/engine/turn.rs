//! Handles one event of one client.

use std::cell::Cell;
use std::rc::Rc;

use tapegate_core::actor::{Act, Cue, Seat};
use tapegate_core::frame::{Body, Envelope, Frame, Garbage, Kind};
use tapegate_core::lines::Oversize;
use tapegate_core::time::At;

use super::progress::Progress;
use super::script::{Scene, Script};
use super::visit::Visit;
use super::{Note, Setup};
use crate::model::LogLevel;

pub(super) const CODE_PARSE: i32 = -32700;
pub(super) const CODE_INVALID: i32 = -32600;
pub(super) const CODE_NO_METHOD: i32 = -32601;
pub(super) const CODE_PARAMS: i32 = -32602;
pub(super) const CODE_INTERNAL: i32 = -32603;
pub(super) const CODE_FAILED: i32 = -32000;

/// How long a client that has closed its side still receives answers.
const LAST_WORDS_NS: u64 = 5_000_000_000;

/// The handling of one event of one client.
pub(super) struct Turn<'a, 'b> {
    pub(super) script: &'a Rc<Script>,
    pub(super) setup: &'a Setup,
    pub(super) visit: &'a mut Visit,
    pub(super) progress: &'a mut Progress,
    pub(super) tickets: &'a mut u64,
    pub(super) dice: &'a Cell<u64>,
    pub(super) failure: &'a mut Option<String>,
    pub(super) at: At,
    pub(super) seat: Seat,
    pub(super) act: &'a mut (dyn FnMut(Act<'_>) + 'b),
}

impl<'a> Turn<'a, '_> {
    /// Handles the event and everything that follows from it.
    pub(super) fn cue(&mut self, cue: Cue<'_>) {
        match cue {
            Cue::Said(line) => self.said(line),
            Cue::TooLarge { message, bytes_max } => self.too_large(&message, bytes_max),
            Cue::Done { ticket, outcome } => self.handled(ticket, outcome),
            Cue::Due => self.due(),
            Cue::Left => self.left(),
            Cue::Empty => return self.abandoned(),
            Cue::Taken { .. } | Cue::Behind(_) | Cue::BehindGone { .. } => {}
        }
        self.go_on();
    }

    /// The state that the client sees.
    pub(super) fn scene(&self) -> &'a Scene {
        self.script.scene(self.progress.phase)
    }

    /// Reports an event to the observer.
    pub(super) fn note(&self, note: Note<'_>) {
        (self.setup.watch)(self.at, self.seat, note);
    }

    /// Reports a log message to the observer.
    pub(super) fn log(&self, level: LogLevel, words: &str) {
        self.note(Note::Log { level, words });
    }

    fn said(&mut self, line: &[u8]) {
        self.note(Note::Said { bytes: line, phase: self.script.phase_name(self.progress.phase) });
        let frame = Frame::read(line);
        match frame.body() {
            Body::Message(said) => self.message(frame.text(), said, None),
            Body::Batch => self.batch(line),
            Body::Garbage(Garbage::Empty) => {}
            Body::Garbage(garbage) => {
                let (code, reason) = match garbage {
                    Garbage::NotAnObject => (CODE_INVALID, "not an object".to_owned()),
                    garbage => (CODE_PARSE, garbage.reason()),
                };
                let words = format!("not a JSON-RPC message: {reason}");
                self.log(LogLevel::Warn, &format!("the client sent something that is {words}"));
                self.refuse(b"null", code, &words, None);
            }
        }
    }

    /// Handles one message from the client.
    pub(super) fn message(&mut self, text: &[u8], said: &Envelope<'_>, batch: Option<u32>) {
        match said.kind() {
            Kind::Request => {
                self.expect_answer(batch);
                self.request(text, said, batch);
            }
            Kind::Notification => self.notification(said),
            Kind::Response | Kind::Error => self.replied(said),
            Kind::Other => {
                self.expect_answer(batch);
                let id = said.id.filter(|id| is_id(id)).unwrap_or(b"null");
                self.refuse(id, CODE_INVALID, "neither a request nor an answer", batch);
            }
        }
    }

    fn notification(&mut self, said: &Envelope<'_>) {
        if said.is_method("notifications/initialized") {
            self.initialized();
        } else if let (true, Some(id)) =
            (said.is_method("notifications/cancelled"), said.request_id)
        {
            self.cancelled(id);
        }
    }

    fn too_large(&mut self, message: &Oversize, bytes_max: usize) {
        let said = &message.said;
        let words =
            format!("a message of {} bytes is over the limit of {bytes_max}", message.bytes_total);
        self.log(LogLevel::Warn, &words);
        (self.setup.watch)(self.at, self.seat, Note::Unread);
        if !said.answer && said.method.is_some() {
            self.refuse(said.id.as_deref().unwrap_or(b"null"), CODE_INVALID, &words, None);
        }
    }

    fn due(&mut self) {
        self.visit.lose_patience(self.at.mono_ns);
        for method in std::mem::take(&mut self.visit.changed) {
            if self.visit.version.is_some() || self.visit.is_modern {
                self.notify(&self.unasked(), method, None);
            }
        }
        self.play_on();
        self.timers();
        self.visit.looked(self.at.mono_ns);
    }

    fn left(&mut self) {
        self.visit.has_left = true;
        self.visit.patient_until = Some(self.at.mono_ns.saturating_add(LAST_WORDS_NS));
        // A client that has closed its side will not reply.
        self.give_up_on_replies();
    }

    /// Sends what is due, changes phases, and handles the requests that waited for that.
    fn go_on(&mut self) {
        loop {
            let gone = self.visit.courier.run(self.at, self.act);
            self.visit.settled.extend(gone);
            if let Some(ticket) = self.visit.settled.pop_front() {
                self.settle(ticket);
            } else if self.progress.leaving.is_none()
                && let Some(held) = self.visit.next_held(self.at.mono_ns)
            {
                let frame = Frame::read(&held.text);
                if let Some(said) = frame.envelope() {
                    self.request(frame.text(), said, held.batch);
                }
            } else {
                return;
            }
        }
    }
}

/// Whether a JSON text can be an id: a string or a number.
pub(super) fn is_id(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'"' | b'-' | b'0'..=b'9'))
}
