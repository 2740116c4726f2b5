//! Requests that the recorded client cancelled, and that were therefore never answered.
//!
//! A client that cancels too needs no answer. One that does not would wait indefinitely, so it gets
//! an error some time after the point at which the recorded client cancelled.

use std::io;

use super::scene::Scene;
use super::tape::{Asked, Tape};
use super::turn::Turn;
use super::{Options, Reason};
use crate::frame::{Frame, same_id};
use crate::tape::index::NONE;
use crate::time::At;

/// How much longer than the recorded client a live one may take to cancel. Its reason, such as a
/// timeout of its own, takes the same time by its clock whatever the pace.
const SLACK_NS: u64 = 5_000_000_000;

/// A request that the client is expected to cancel.
#[derive(Debug)]
pub(super) struct Cancellable {
    /// The live request.
    text: Box<[u8]>,
    /// When to answer it if it was not cancelled.
    pub(super) due_ns: u64,
}

impl Tape {
    /// How long after it was made a request was cancelled, in microseconds. A tape of an HTTP
    /// session may not contain the cancellation; then the client's next request marks the time.
    fn cancelled_after_us(&mut self, ask: u32) -> io::Result<u64> {
        let slot = self.slot_of(ask);
        let request = self.request(ask)?.to_vec();
        let frame = Frame::read(&request);
        let id = frame.envelope().and_then(|said| said.id).unwrap_or_default();
        let notes = self.notes_of(slot.session, b"notifications/cancelled")?;
        let first = self.index.ask(ask).slot;
        for number in notes.into_iter().filter(|number| *number > first) {
            let note = self.index.slot(number);
            let frame = Frame::read(self.text(&note)?);
            let cancelled = frame.envelope().and_then(|said| said.request_id);
            if cancelled.is_some_and(|cancelled| same_id(cancelled, id)) {
                return Ok(note.at_us.saturating_sub(slot.at_us));
            }
        }
        let next = Some(ask + 1).filter(|next| *next < self.asks());
        let next = next.map(|next| self.slot_of(next)).filter(|next| next.session == slot.session);
        Ok(next.map_or(0, |next| next.at_us.saturating_sub(slot.at_us)))
    }

    /// If the recorded request `ask` was never answered: when to answer a live request that matches
    /// it.
    pub(super) fn cancellable(
        &mut self,
        ask: u32,
        text: &[u8],
        at: At,
        options: &Options,
    ) -> io::Result<Option<Box<Cancellable>>> {
        if self.slot_of(ask).pair != NONE {
            return Ok(None);
        }
        let after_us = self.cancelled_after_us(ask)? as f64 * options.pace.max(1.0);
        let due_ns = at.mono_ns.saturating_add((after_us * 1000.0) as u64).saturating_add(SLACK_NS);
        Ok(Some(Box::new(Cancellable { text: text.into(), due_ns })))
    }
}

impl Turn<'_, '_> {
    /// Answers a request that the recorded client cancelled and the live client did not.
    pub(super) fn not_cancelled(&mut self, scene: &mut Scene) -> io::Result<()> {
        let Some(Cancellable { text, .. }) = scene.cancellable.take().map(|kept| *kept) else {
            return Ok(());
        };
        let frame = Frame::read(&text);
        let masked = self.context.tape.masked(&text).into_owned();
        let meant = Frame::read(&masked);
        let (Some(said), Some(meant)) = (frame.envelope(), meant.envelope()) else { return Ok(()) };
        let signature = self.context.tape.signer.sign(&masked, meant);
        let asked = Asked { text: &masked, said: meant, signature };
        self.desk.unmatched();
        let reason = (Reason::NotCancelled, Some(scene.ask));
        self.diverge(&text, said, scene.batch, &asked, reason)?;
        self.live.settle(scene.batch, self.act);
        Ok(())
    }
}
