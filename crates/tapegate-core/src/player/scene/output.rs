//! Sends the messages of a scene with the ids and tokens of the live session.

use std::io;

use super::super::live_session::LiveSession;
use super::super::tape::PlayerTape;
use super::super::{PlayContext, PlayerOptions, ServerMessages};
use super::ActiveScene;
use crate::actor::ActorAction;
use crate::frame::{Frame, MessageKind, same_id};
use crate::json::{self, JsonEdits};
use crate::pending::{IdKey, SmallId};
use crate::tape::Provenance;
use crate::tape::index::IndexEntry;

impl ActiveScene {
    /// Sends a recorded message of the server.
    pub(super) fn send_entry(
        &mut self,
        context: &mut PlayContext<'_>,
        live: &mut LiveSession,
        entry: &IndexEntry,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) -> io::Result<()> {
        match entry.kind {
            MessageKind::Response | MessageKind::Error if entry.pair == self.anchor => {
                self.answered = true;
                let line = context.tape.line(entry)?;
                // Of repeated keys most clients use the last, so its value must be the live id.
                let last = entry.repeated.then(|| json::member(&line, "id"));
                let recorded = last.unwrap_or_else(|| json::first_member(&line, "id"));
                let id = self.id.as_ref().map(SmallId::bytes);
                live.answer_from_tape((&line, provenance(entry)), recorded, id, self.batch, act);
            }
            MessageKind::Notification
                if context.options.server_messages != ServerMessages::None =>
            {
                let line = context.tape.line(entry)?;
                self.notify(live, (&line, provenance(entry)), act);
            }
            MessageKind::Request => {
                self.send_request(context.options, context.tape, live, entry, act)?
            }
            _ => {}
        }
        Ok(())
    }

    fn notify(
        &self,
        live: &LiveSession,
        (line, provenance): (&[u8], Provenance),
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let frame = Frame::read(line);
        let Some(envelope) = frame.envelope() else { return };
        let mut edits = JsonEdits::new(line);
        if envelope.is_method("notifications/progress") {
            let Some(token) = envelope.progress_token else { return };
            // Do not send progress that the live client did not ask for.
            let Some(meant) = self.live_token(live, token) else { return };
            edits.replace(token, meant);
        }
        if let Some(subscription) = envelope.subscription_id {
            // Drop notifications for a subscription that the live client does not have.
            let Some(id) = live.subscription(self.run, subscription) else { return };
            edits.replace(subscription, id);
        }
        if let (true, Some(request)) =
            (envelope.is_method("notifications/cancelled"), envelope.request_id)
        {
            match live.live_id_of(request) {
                Some(id) => edits.replace(request, id),
                None => return,
            }
        }
        self.send_notification(&edits.finish(), provenance, act);
    }

    /// Sends a message other than an answer.
    fn send_notification(
        &self,
        line: &[u8],
        provenance: Provenance,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let about = self.id.as_ref().map(SmallId::bytes);
        act(ActorAction::Play { about, parts: &[line], provenance });
    }

    fn live_token<'a>(&'a self, live: &'a LiveSession, token: &[u8]) -> Option<&'a [u8]> {
        match self.token() {
            Some((recorded, meant)) if same_id(recorded, token) => Some(meant),
            _ => live.token(token),
        }
    }

    /// Sends a recorded request to the client, if the client can answer it.
    fn send_request(
        &mut self,
        options: &PlayerOptions,
        tape: &mut PlayerTape,
        live: &mut LiveSession,
        entry: &IndexEntry,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) -> io::Result<()> {
        let number = self.next;
        if options.server_messages != ServerMessages::All {
            // Counted as answered, so that the scene does not wait for an answer to it.
            self.client_requests.push((number, true));
            return Ok(());
        }
        let line = tape.line(entry)?;
        let frame = Frame::read(&line);
        let Some(envelope) = frame.envelope() else { return Ok(()) };
        let (Some(id), Some(method)) = (envelope.id, envelope.method) else { return Ok(()) };
        if !live.client_supports(&method.bytes()) {
            live.note_unsupported(&method.decode(), number);
            self.client_requests.push((number, true));
            return Ok(());
        }
        self.client_requests.push((number, false));
        let name = live.live_id_for(id);
        let mut edits = JsonEdits::new(&line);
        edits.replace(id, &name);
        self.send_notification(&edits.finish(), provenance(entry), act);
        live.note_client_request(IdKey::new(&name), self.number, number);
        Ok(())
    }
}

/// The provenance of a recorded message: one that was not the server's own is recorded as such
/// again.
fn provenance(entry: &IndexEntry) -> Provenance {
    Provenance { ours: entry.ours, latency_us: entry.latency_us }
}
