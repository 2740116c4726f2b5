//! Handles one event of one client.

use std::cell::Cell;
use std::rc::Rc;

use tapegate_core::actor::{ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::frame::{Envelope, Frame, FrameBody, FrameError, MessageKind};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::time::Timestamp;

use super::phase_progress::PhaseProgress;
use super::prepared_scenario::{PreparedScenario, PreparedState};
use super::session::EngineSession;
use super::{EngineNote, EngineSetup};
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
pub(super) struct EngineTurn<'a, 'b> {
    pub(super) script: &'a Rc<PreparedScenario>,
    pub(super) setup: &'a EngineSetup,
    pub(super) engine_session: &'a mut EngineSession,
    pub(super) progress: &'a mut PhaseProgress,
    pub(super) last_id: &'a mut u64,
    pub(super) dice: &'a Cell<u64>,
    pub(super) failure: &'a mut Option<String>,
    pub(super) at: Timestamp,
    pub(super) session: ActorSessionId,
    pub(super) act: &'a mut (dyn FnMut(ActorAction<'_>) + 'b),
}

impl<'a> EngineTurn<'a, '_> {
    /// Handles the event and everything that follows from it.
    pub(super) fn handle_event(&mut self, event: ActorEvent<'_>) {
        match event {
            ActorEvent::Said(line) => self.handle_line(line),
            ActorEvent::TooLarge { message, bytes_max } => {
                self.handle_oversize(&message, bytes_max)
            }
            ActorEvent::Done { call_id, outcome } => self.handle_handler_result(call_id, outcome),
            ActorEvent::Due => self.handle_due(),
            ActorEvent::Left => self.handle_client_end(),
            ActorEvent::Empty => return self.handle_abandoned(),
            ActorEvent::Taken { .. } | ActorEvent::Behind(_) | ActorEvent::BehindGone { .. } => {}
        }
        // After every event, because each may deliver the answer that a phase change waits for.
        self.advance();
    }

    /// The state that the client sees.
    pub(super) fn scene(&self) -> &'a PreparedState {
        self.script.scene(self.progress.phase)
    }

    /// Reports an event to the observer.
    pub(super) fn note(&self, note: EngineNote<'_>) {
        (self.setup.watch)(self.at, self.session, note);
    }

    /// Reports a log message to the observer.
    pub(super) fn log(&self, level: LogLevel, message_text: &str) {
        self.note(EngineNote::Log { level, message: message_text });
    }

    fn handle_line(&mut self, line: &[u8]) {
        // Before the line is handled, since handling it may change the phase.
        self.note(EngineNote::Said {
            bytes: line,
            phase: self.script.phase_name(self.progress.phase),
        });
        let frame = Frame::read(line);
        match frame.body() {
            FrameBody::Message(envelope) => self.message(frame.text(), envelope, None),
            FrameBody::Batch => self.handle_batch(line),
            FrameBody::Garbage(FrameError::Empty) => {}
            FrameBody::Garbage(garbage) => {
                let (code, reason) = match garbage {
                    FrameError::NotAnObject => (CODE_INVALID, "not an object".to_owned()),
                    garbage => (CODE_PARSE, garbage.reason()),
                };
                let message_text = format!("not a JSON-RPC message: {reason}");
                self.log(
                    LogLevel::Warn,
                    &format!("the client sent something that is {message_text}"),
                );
                self.refuse(b"null", code, &message_text, None);
            }
        }
    }

    /// Handles one message from the client.
    pub(super) fn message(&mut self, text: &[u8], envelope: &Envelope<'_>, batch: Option<u32>) {
        match envelope.kind() {
            MessageKind::Request => {
                // Before the request is handled: its answer may come at once and must not end the
                // batch early.
                self.expect_answer(batch);
                self.request(text, envelope, batch);
            }
            MessageKind::Notification => self.handle_notification(envelope),
            MessageKind::Response | MessageKind::Error => self.handle_reply(envelope),
            MessageKind::Other => {
                self.expect_answer(batch);
                // JSON-RPC wants `null` where the id cannot be determined.
                let id = envelope.id.filter(|id| is_id(id)).unwrap_or(b"null");
                self.refuse(id, CODE_INVALID, "neither a request nor an answer", batch);
            }
        }
    }

    fn handle_notification(&mut self, envelope: &Envelope<'_>) {
        if envelope.is_method("notifications/initialized") {
            self.handle_initialized();
        } else if let (true, Some(id)) =
            (envelope.is_method("notifications/cancelled"), envelope.request_id)
        {
            self.cancelled(id);
        }
    }

    fn handle_oversize(&mut self, message: &OversizeMessage, bytes_max: usize) {
        let envelope = &message.envelope;
        let message_text =
            format!("a message of {} bytes is over the limit of {bytes_max}", message.bytes_total);
        self.log(LogLevel::Warn, &message_text);
        (self.setup.watch)(self.at, self.session, EngineNote::Unread);
        // A reply must not be answered, or two peers could answer each other's errors forever.
        if !envelope.answer && envelope.method.is_some() {
            self.refuse(
                envelope.id.as_deref().unwrap_or(b"null"),
                CODE_INVALID,
                &message_text,
                None,
            );
        }
    }

    fn handle_due(&mut self) {
        self.engine_session.expire_requests(self.at.mono_ns);
        for method in std::mem::take(&mut self.engine_session.changed) {
            // A client must not get notifications before the handshake.
            if self.engine_session.version.is_some() || self.engine_session.is_modern {
                self.notify(&self.placeholder_request(), method, None);
            }
        }
        self.resume_waiting();
        self.check_phase_timer();
        self.engine_session.mark_checked(self.at.mono_ns);
    }

    fn handle_client_end(&mut self) {
        self.engine_session.has_left = true;
        self.engine_session.patient_until = Some(self.at.mono_ns.saturating_add(LAST_WORDS_NS));
        // A client that has closed its side will not reply.
        self.resume_without_replies();
    }

    /// Sends what is due, changes phases, and handles the requests that waited for that.
    fn advance(&mut self) {
        loop {
            // In this order: a phase changes only once its answer is out, and held requests are
            // answered by the state after that.
            let gone = self.engine_session.delivery.run(self.at, self.act);
            self.engine_session.settled.extend(gone);
            if let Some(delivery_id) = self.engine_session.settled.pop_front() {
                self.settle(delivery_id);
            } else if self.progress.leaving.is_none()
                && let Some(held) = self.engine_session.next_waiting(self.at.mono_ns)
            {
                let frame = Frame::read(&held.text);
                if let Some(envelope) = frame.envelope() {
                    self.request(frame.text(), envelope, held.batch);
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
