//! Sends answers, alone or as a batch.

use super::LiveSession;
use crate::actor::ActorAction;
use crate::json::{self, JsonEdits};
use crate::tape::Provenance;

/// Answers that are sent together.
#[derive(Default)]
pub(super) struct ReplyBatch {
    waiting: usize,
    answers: Vec<Vec<u8>>,
    /// The provenance of the answers.
    provenance: Provenance,
}

impl LiveSession {
    /// Opens a batch of answers.
    pub(in crate::player) fn open_batch(&mut self) -> u32 {
        self.batches_made = self.batches_made.wrapping_add(1);
        // The batch itself counts as one, so that it is not sent before all its requests are seen.
        self.batches.insert(self.batches_made, ReplyBatch { waiting: 1, ..ReplyBatch::default() });
        self.batches_made
    }

    /// Makes a batch wait for one more answer.
    pub(in crate::player) fn expect(&mut self, batch: Option<u32>) {
        if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
            batch.waiting += 1;
        }
    }

    /// Makes a batch wait for one answer fewer, and sends it if that was the last.
    pub(in crate::player) fn settle(
        &mut self,
        number: Option<u32>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let Some(number) = number else { return };
        let Some(batch) = self.batches.get_mut(&number) else { return };
        batch.waiting = batch.waiting.saturating_sub(1);
        if batch.waiting > 0 {
            return;
        }
        let ReplyBatch { answers, provenance, .. } =
            self.batches.remove(&number).unwrap_or_default();
        if !answers.is_empty() {
            let parts: &[&[u8]] = &[b"[", &answers.join(&b","[..]), b"]"];
            act(ActorAction::Play { about: None, parts, provenance });
        }
    }

    /// Sends a recorded answer with its id `recorded` replaced by that of the live request, at once
    /// or with its batch.
    pub(in crate::player) fn answer_from_tape(
        &mut self,
        (line, provenance): (&[u8], Provenance),
        recorded: Option<&[u8]>,
        id: Option<&[u8]>,
        batch: Option<u32>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let (Some(recorded), Some(id)) = (recorded, id) else { return };
        // A batch is joined later, so the answer is copied. A single one is sent without a copy of
        // its body.
        if batch.is_some() {
            let mut edits = JsonEdits::new(line);
            edits.replace(recorded, id);
            return self.send_answer((edits.finish().into_owned(), provenance), batch, act);
        }
        let Some(place) = json::place_of(recorded, line) else { return };
        let parts: &[&[u8]] = &[&line[..place.start], id, &line[place.end..]];
        act(ActorAction::Play { about: None, parts, provenance });
    }

    /// Sends an answer unchanged, at once or with its batch.
    pub(in crate::player) fn send_answer(
        &mut self,
        (answer, provenance): (Vec<u8>, Provenance),
        number: Option<u32>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        match number.and_then(|number| self.batches.get_mut(&number)) {
            Some(batch) => {
                batch.answers.push(answer);
                batch.provenance = batch.provenance.combine(provenance);
                self.settle(number, act);
            }
            None => act(ActorAction::Play { about: None, parts: &[&answer], provenance }),
        }
    }
}
