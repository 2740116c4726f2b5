//! Handles one event of a live session.

mod playing;
mod request;
mod runs;

use std::io;

use super::Context;
use super::desk::Desk;
use super::live::Live;
use super::replies::ReplyChange;
use super::run::Run;
use super::scene::{Scene, Wait};
use crate::actor::Act;
use crate::frame::{self, Body, Envelope, Kind, error_reply};
use crate::lines::Oversize;
use crate::signature::Signature;
use crate::tape::Provenance;
use crate::tape::index::NONE;
use crate::time::At;

const CODE_PARSE: i32 = -32700;
const CODE_INVALID: i32 = -32600;
const CODE_NO_METHOD: i32 = -32601;

/// How long answers keep to the pace of the tape once the client has closed its sending end. It may
/// still read, but must not be kept waiting indefinitely.
const LEFT_NS_MAX: u64 = 5_000_000_000;

/// One event of one session.
pub(super) struct Turn<'a, 'b> {
    pub(super) context: Context<'a>,
    pub(super) desk: &'a mut Desk,
    pub(super) live: &'a mut Live,
    pub(super) shared_run: Option<&'a mut Run>,
    pub(super) played: &'a mut Vec<u32>,
    pub(super) at: At,
    pub(super) act: &'a mut (dyn FnMut(Act<'_>) + 'b),
}

impl Turn<'_, '_> {
    /// Handles a line from the client.
    pub(super) fn said(&mut self, line: &[u8]) -> io::Result<()> {
        self.live.queue.hear(self.at.mono_ns);
        let (frame, signature) = self.context.tape.read(line);
        match frame.body() {
            Body::Message(said) => self.message(frame.text(), said, signature, None)?,
            Body::Batch => self.batch(line)?,
            Body::Garbage(frame::Garbage::Empty) => {}
            Body::Garbage(garbage) => {
                let words = match garbage {
                    frame::Garbage::NotAnObject => garbage.reason(),
                    _ => format!("not a JSON-RPC message: {}", garbage.reason()),
                };
                self.desk.warn(format!("the client sent something that is {words}"));
                let answer = error_reply(b"null", CODE_PARSE, &words, "{\"by\":\"tapegate\"}");
                self.live.give((answer, Provenance::OWN), None, self.act);
            }
        }
        self.tell_missing()
    }

    fn batch(&mut self, line: &[u8]) -> io::Result<()> {
        let parts = frame::elements(line);
        if parts.is_empty() {
            let answer =
                error_reply(b"null", CODE_INVALID, "an empty batch", "{\"by\":\"tapegate\"}");
            self.live.give((answer, Provenance::OWN), None, self.act);
        }
        let batch = Some(self.live.open_batch());
        for part in &parts {
            match part.envelope() {
                Some(said) => self.message(part.text(), said, None, batch)?,
                None => self.refuse(b"null", CODE_INVALID, "batch element is not an object", batch),
            }
        }
        self.live.settle(batch, self.act);
        Ok(())
    }

    fn message(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        signature: Option<Signature>,
        batch: Option<u32>,
    ) -> io::Result<()> {
        match said.kind() {
            Kind::Request => self.request(text, said, signature, batch),
            Kind::Notification => self.notification(text, said),
            Kind::Response | Kind::Error => self.reply(text, said),
            Kind::Other => {
                let id = said.id.unwrap_or(b"null");
                self.refuse(id, CODE_INVALID, "neither a request nor an answer", batch);
                Ok(())
            }
        }
    }

    fn notification(&mut self, text: &[u8], said: &Envelope<'_>) -> io::Result<()> {
        if let (true, Some(id)) = (said.is_method("notifications/cancelled"), said.request_id)
            && let Some(scene) = self.live.take_cancelled(id)
        {
            self.live.settle(scene.batch.filter(|_| !scene.answered), self.act);
            self.live.unsubscribe(id);
        }
        self.live.pass_note(text, said, self.act);
        let Some(method) = said.method else { return Ok(()) };
        let key = method.bytes();
        let nth = self.live.notes.get(&*key).copied().unwrap_or_default();
        let session = self.live.runs.first().and_then(Run::session).unwrap_or(0);
        let Some(anchor) = self.context.tape.note(session, method, nth)? else { return Ok(()) };
        // Count only notifications that are on the tape: a client could send any number of others.
        self.live.notes.insert(key.into_owned(), nth + 1);
        let slot = self.context.tape.index.slot(anchor);
        if slot.next == NONE {
            return Ok(());
        }
        let number = self.live.scene_number();
        self.play_on(Scene::new((number, self.live.run), anchor, &slot, self.at))
    }

    fn reply(&mut self, text: &[u8], said: &Envelope<'_>) -> io::Result<()> {
        let Some(id) = said.id else { return Ok(()) };
        if self.live.pass_reply(text, id, self.act) {
            return Ok(());
        }
        let Some((number, request)) = self.live.reply(id) else {
            let id = String::from_utf8_lossy(id).into_owned();
            self.desk.debug(format!("the client answers {id}, which was not requested"));
            return Ok(());
        };
        self.compare_reply(request, text, said)?;
        let Some(mut scene) = self.live.take(number) else { return Ok(()) };
        if scene.replied(request, self.at, self.context.tape) {
            self.play_on(scene)
        } else {
            self.live.keep(scene);
            Ok(())
        }
    }

    /// The client has closed its sending end: scenes that wait for its answers continue without
    /// them, and long delays are cut short.
    pub(super) fn left(&mut self) -> io::Result<()> {
        if self.live.hurry(self.at.mono_ns.saturating_add(LEFT_NS_MAX)) {
            self.desk.warn(format!(
                "the client has stopped sending; answers due later are sent after {} s",
                LEFT_NS_MAX / 1_000_000_000
            ));
        }
        for mut scene in self.live.take_unreplied() {
            if let Wait::Reply(request, _) = scene.wait {
                self.reply_changed(request, ReplyChange::LeftBefore, Default::default())?;
            }
            scene.wait_no_longer(self.at, self.context.tape);
            self.play_on(scene)?;
        }
        self.play_turns()
    }

    pub(super) fn too_large(&mut self, message: &Oversize, bytes_max: usize) -> io::Result<()> {
        let words =
            format!("a message of {} bytes is over the limit of {bytes_max}", message.bytes_total);
        self.desk.warn(words.clone());
        if let (Some(id), Some(_)) = (&message.said.id, &message.said.method) {
            self.refuse(id, CODE_INVALID, &words, None);
        }
        Ok(())
    }

    fn tell_missing(&mut self) -> io::Result<()> {
        for request in self.live.take_missing() {
            self.reply_changed(request, ReplyChange::CannotAnswer, Default::default())?;
        }
        Ok(())
    }

    fn result(&mut self, id: &[u8], result: &[u8], batch: Option<u32>) {
        let parts: [&[u8]; 5] =
            [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"result\":", result, b"}"];
        self.live.expect(batch);
        self.live.give((parts.concat(), Provenance::OWN), batch, self.act);
    }

    fn refuse(&mut self, id: &[u8], code: i32, words: &str, batch: Option<u32>) {
        let answer = error_reply(id, code, words, "{\"by\":\"tapegate\"}");
        self.live.expect(batch);
        self.live.give((answer, Provenance::OWN), batch, self.act);
    }
}
