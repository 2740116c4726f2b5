//! Sends the messages of a scene with the ids and tokens of the live session.

use std::io;

use super::super::live::Live;
use super::super::tape::Tape;
use super::super::{Context, Options, ServerMessages};
use super::Scene;
use crate::actor::Act;
use crate::frame::{Frame, Kind, same_id};
use crate::json::{self, Edits};
use crate::pending::{IdKey, Small};
use crate::tape::Provenance;
use crate::tape::index::Slot;

impl Scene {
    /// Sends a recorded message of the server.
    pub(super) fn say(
        &mut self,
        context: &mut Context<'_>,
        live: &mut Live,
        slot: &Slot,
        act: &mut dyn FnMut(Act<'_>),
    ) -> io::Result<()> {
        match slot.kind {
            Kind::Response | Kind::Error if slot.pair == self.anchor => {
                self.answered = true;
                let line = context.tape.line(slot)?;
                let last = slot.repeated.then(|| json::member(&line, "id"));
                let recorded = last.unwrap_or_else(|| json::first_member(&line, "id"));
                let id = self.id.as_ref().map(Small::bytes);
                live.answer((&line, provenance(slot)), recorded, id, self.batch, act);
            }
            Kind::Notification if context.options.server_messages != ServerMessages::None => {
                let line = context.tape.line(slot)?;
                self.notify(live, (&line, provenance(slot)), act);
            }
            Kind::Request => self.ask(context.options, context.tape, live, slot, act)?,
            _ => {}
        }
        Ok(())
    }

    fn notify(
        &self,
        live: &Live,
        (line, provenance): (&[u8], Provenance),
        act: &mut dyn FnMut(Act<'_>),
    ) {
        let frame = Frame::read(line);
        let Some(said) = frame.envelope() else { return };
        let mut edits = Edits::new(line);
        if said.is_method("notifications/progress") {
            let Some(token) = said.progress_token else { return };
            // Do not send progress that the live client did not ask for.
            let Some(meant) = self.live_token(live, token) else { return };
            edits.replace(token, meant);
        }
        if let Some(subscription) = said.subscription_id {
            // Drop notifications for a subscription that the live client does not have.
            let Some(id) = live.subscription(self.run, subscription) else { return };
            edits.replace(subscription, id);
        }
        if let (true, Some(request)) = (said.is_method("notifications/cancelled"), said.request_id)
        {
            match live.sent_as(request) {
                Some(id) => edits.replace(request, id),
                None => return,
            }
        }
        self.tell(&edits.finish(), provenance, act);
    }

    /// Sends a message other than an answer.
    fn tell(&self, line: &[u8], provenance: Provenance, act: &mut dyn FnMut(Act<'_>)) {
        let about = self.id.as_ref().map(Small::bytes);
        act(Act::Play { about, parts: &[line], provenance });
    }

    fn live_token<'a>(&'a self, live: &'a Live, token: &[u8]) -> Option<&'a [u8]> {
        match self.token() {
            Some((recorded, meant)) if same_id(recorded, token) => Some(meant),
            _ => live.token(token),
        }
    }

    /// Sends a recorded request to the client, if the client can answer it.
    fn ask(
        &mut self,
        options: &Options,
        tape: &mut Tape,
        live: &mut Live,
        slot: &Slot,
        act: &mut dyn FnMut(Act<'_>),
    ) -> io::Result<()> {
        let number = self.next;
        if options.server_messages != ServerMessages::All {
            self.asked.push((number, true));
            return Ok(());
        }
        let line = tape.line(slot)?;
        let frame = Frame::read(&line);
        let Some(said) = frame.envelope() else { return Ok(()) };
        let (Some(id), Some(method)) = (said.id, said.method) else { return Ok(()) };
        if !live.can(&method.bytes()) {
            live.missing(&method.decode(), number);
            self.asked.push((number, true));
            return Ok(());
        }
        self.asked.push((number, false));
        let name = live.name_for(id);
        let mut edits = Edits::new(&line);
        edits.replace(id, &name);
        self.tell(&edits.finish(), provenance(slot), act);
        live.ask(IdKey::new(&name), self.number, number);
        Ok(())
    }
}

/// The provenance of a recorded message: one that was not the server's own is recorded as such
/// again.
fn provenance(slot: &Slot) -> Provenance {
    Provenance { ours: slot.ours, latency_us: slot.latency_us }
}
