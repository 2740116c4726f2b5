//! Handles one event of a live session.

mod request;
mod runs;
mod scene_progress;

use std::io;

use super::PlayContext;
use super::client_replies::ReplyChange;
use super::live_session::LiveSession;
use super::replay_stats::ReplayStats;
use super::scene::{ActiveScene, SceneWait};
use super::tape_run::TapeRun;
use crate::actor::ActorAction;
use crate::frame::{self, Envelope, FrameBody, MessageKind, own_error, result_text};
use crate::lines::OversizeMessage;
use crate::signature::Signature;
use crate::tape::Provenance;
use crate::tape::index::NONE;
use crate::time::Timestamp;

const CODE_PARSE: i32 = -32700;
const CODE_INVALID: i32 = -32600;
const CODE_NO_METHOD: i32 = -32601;

/// How long answers keep to the pace of the tape once the client has closed its sending end. It may
/// still read, but must not be kept waiting indefinitely.
const LEFT_NS_MAX: u64 = 5_000_000_000;

/// One event of one session.
pub(super) struct PlayerTurn<'a, 'b> {
    pub(super) context: PlayContext<'a>,
    pub(super) stats: &'a mut ReplayStats,
    pub(super) live: &'a mut LiveSession,
    pub(super) shared_run: Option<&'a mut TapeRun>,
    pub(super) played: &'a mut Vec<u32>,
    pub(super) at: Timestamp,
    pub(super) act: &'a mut (dyn FnMut(ActorAction<'_>) + 'b),
}

impl PlayerTurn<'_, '_> {
    /// Reports failures of the live server. They are collected in the session, because the counts
    /// belong to the player.
    pub(super) fn report_passthrough_failures(&mut self) {
        let failed = self.live.passthrough.take_failed();
        failed.into_iter().for_each(|it| self.stats.report_passthrough_failure(it));
    }

    /// Handles a line from the client.
    pub(super) fn handle_line(&mut self, line: &[u8]) -> io::Result<()> {
        self.live.queue.note_client_activity(self.at.mono_ns);
        let (frame, signature) = self.context.tape.read(line);
        match frame.body() {
            FrameBody::Message(envelope) => {
                self.message(frame.text(), envelope, signature, None)?
            }
            FrameBody::Batch => self.handle_batch(line)?,
            FrameBody::Garbage(frame::FrameError::Empty) => {}
            FrameBody::Garbage(garbage) => {
                let message_text = match garbage {
                    frame::FrameError::NotAnObject => garbage.reason(),
                    _ => format!("not a JSON-RPC message: {}", garbage.reason()),
                };
                self.stats.warn(format!("the client sent something that is {message_text}"));
                let answer = own_error(b"null", CODE_PARSE, &message_text);
                self.live.send_answer((answer, Provenance::OWN), None, self.act);
            }
        }
        self.report_unsupported()
    }

    fn handle_batch(&mut self, line: &[u8]) -> io::Result<()> {
        let parts = frame::elements(line);
        if parts.is_empty() {
            let answer = own_error(b"null", CODE_INVALID, "an empty batch");
            self.live.send_answer((answer, Provenance::OWN), None, self.act);
        }
        // Opened before its elements, because some of them are answered at once.
        let batch = Some(self.live.open_batch());
        for part in &parts {
            match part.envelope() {
                Some(envelope) => self.message(part.text(), envelope, None, batch)?,
                None => self.refuse(b"null", CODE_INVALID, "batch element is not an object", batch),
            }
        }
        // Gives back the count that the batch itself holds.
        self.live.settle(batch, self.act);
        Ok(())
    }

    fn message(
        &mut self,
        text: &[u8],
        envelope: &Envelope<'_>,
        signature: Option<Signature>,
        batch: Option<u32>,
    ) -> io::Result<()> {
        match envelope.kind() {
            MessageKind::Request => self.request(text, envelope, signature, batch),
            MessageKind::Notification => self.handle_notification(text, envelope),
            MessageKind::Response | MessageKind::Error => self.reply(text, envelope),
            MessageKind::Other => {
                let id = envelope.id.unwrap_or(b"null");
                self.refuse(id, CODE_INVALID, "neither a request nor an answer", batch);
                Ok(())
            }
        }
    }

    fn handle_notification(&mut self, text: &[u8], envelope: &Envelope<'_>) -> io::Result<()> {
        if let (true, Some(id)) =
            (envelope.is_method("notifications/cancelled"), envelope.request_id)
            && let Some(scene) = self.live.take_cancelled(id)
        {
            // The answer that the batch waits for will not come.
            self.live.settle(scene.batch.filter(|_| !scene.answered), self.act);
            self.live.unsubscribe(id);
        }
        self.live.forward_notification(text, envelope, self.act);
        let Some(method) = envelope.method else { return Ok(()) };
        let key = method.bytes();
        let nth = self.live.notes.get(&*key).copied().unwrap_or_default();
        let session = self.live.runs.first().and_then(TapeRun::session).unwrap_or(0);
        let Some(anchor) = self.context.tape.find_notification(session, method, nth)? else {
            return Ok(());
        };
        // Count only notifications that are on the tape: a client could send any number of others.
        self.live.notes.insert(key.into_owned(), nth + 1);
        let entry = self.context.tape.index.entry(anchor);
        if entry.next == NONE {
            return Ok(());
        }
        let number = self.live.scene_number();
        self.advance_scene(ActiveScene::new((number, self.live.run), anchor, &entry, self.at))
    }

    fn reply(&mut self, text: &[u8], envelope: &Envelope<'_>) -> io::Result<()> {
        let Some(id) = envelope.id else { return Ok(()) };
        // An id belongs either to the live server or to the tape, never to both.
        if self.live.forward_reply(text, id, self.act) {
            return Ok(());
        }
        let Some((number, request)) = self.live.reply(id) else {
            let id = String::from_utf8_lossy(id).into_owned();
            self.stats.debug(format!("the client answers {id}, which was not requested"));
            return Ok(());
        };
        self.compare_reply(request, text, envelope)?;
        let Some(mut scene) = self.live.take_scene(number) else { return Ok(()) };
        if scene.note_reply(request, self.at, self.context.tape) {
            self.advance_scene(scene)
        } else {
            self.live.store_scene(scene);
            Ok(())
        }
    }

    /// The client has closed its sending end: scenes that wait for its answers continue without
    /// them, and long delays are cut short.
    pub(super) fn handle_client_end(&mut self) -> io::Result<()> {
        if self.live.expedite(self.at.mono_ns.saturating_add(LEFT_NS_MAX)) {
            self.stats.warn(format!(
                "the client has stopped sending; answers due later are sent after {} s",
                LEFT_NS_MAX / 1_000_000_000
            ));
        }
        for mut scene in self.live.take_unreplied() {
            if let SceneWait::Reply(request, _) = scene.wait {
                self.report_reply_change(request, ReplyChange::LeftBefore, Default::default())?;
            }
            scene.stop_waiting(self.at, self.context.tape);
            self.advance_scene(scene)?;
        }
        self.advance_waiting()
    }

    pub(super) fn handle_oversize(
        &mut self,
        message: &OversizeMessage,
        bytes_max: usize,
    ) -> io::Result<()> {
        let message_text =
            format!("a message of {} bytes is over the limit of {bytes_max}", message.bytes_total);
        self.stats.warn(message_text.clone());
        if let (Some(id), Some(_)) = (&message.envelope.id, &message.envelope.method) {
            self.refuse(id, CODE_INVALID, &message_text, None);
        }
        Ok(())
    }

    fn report_unsupported(&mut self) -> io::Result<()> {
        for request in self.live.take_unsupported() {
            self.report_reply_change(request, ReplyChange::CannotAnswer, Default::default())?;
        }
        Ok(())
    }

    fn result(&mut self, id: &[u8], result: &[u8], batch: Option<u32>) {
        let answer = result_text(id, result);
        self.live.expect(batch);
        self.live.send_answer((answer, Provenance::OWN), batch, self.act);
    }

    fn refuse(&mut self, id: &[u8], code: i32, message_text: &str, batch: Option<u32>) {
        let answer = own_error(id, code, message_text);
        self.live.expect(batch);
        self.live.send_answer((answer, Provenance::OWN), batch, self.act);
    }
}
