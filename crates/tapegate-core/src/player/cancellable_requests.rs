//! Requests that the recorded client cancelled, and that were therefore never answered.
//!
//! A client that cancels too needs no answer. One that does not would wait indefinitely, so it gets
//! an error some time after the point at which the recorded client cancelled.

use std::io;

use super::player_turn::PlayerTurn;
use super::scene::ActiveScene;
use super::tape::{LiveRequest, PlayerTape};
use super::{DivergenceReason, PlayerOptions};
use crate::frame::{Frame, same_id};
use crate::tape::index::NONE;
use crate::time::Timestamp;

/// How much longer than the recorded client a live one may take to cancel. Its reason, such as a
/// timeout of its own, takes the same time by its clock whatever the pace.
const SLACK_NS: u64 = 5_000_000_000;

/// A request that the client is expected to cancel.
#[derive(Debug)]
pub(super) struct CancellableRequest {
    /// The live request.
    text: Box<[u8]>,
    /// When to answer it if it was not cancelled.
    pub(super) due_ns: u64,
}

impl PlayerTape {
    /// How long after it was made a request was cancelled, in microseconds. A tape of an HTTP
    /// session may not contain the cancellation; then the client's next request marks the time.
    fn cancelled_after_us(&mut self, request_number: u32) -> io::Result<u64> {
        let entry = self.entry_of(request_number);
        let request = self.request(request_number)?.to_vec();
        let frame = Frame::read(&request);
        let id = frame.envelope().and_then(|envelope| envelope.id).unwrap_or_default();
        let notes = self.notes_of(entry.session, b"notifications/cancelled")?;
        // A cancellation before the request belongs to an earlier request with the same id.
        let first = self.index.request(request_number).entry_number;
        for number in notes.into_iter().filter(|number| *number > first) {
            let note = self.index.entry(number);
            let frame = Frame::read(self.text(&note)?);
            let cancelled = frame.envelope().and_then(|envelope| envelope.request_id);
            if cancelled.is_some_and(|cancelled| same_id(cancelled, id)) {
                return Ok(note.at_us.saturating_sub(entry.at_us));
            }
        }
        // Over HTTP, a closed connection is the cancellation, and the tape does not show it.
        let next = Some(request_number + 1).filter(|next| *next < self.request_count());
        let next =
            next.map(|next| self.entry_of(next)).filter(|next| next.session == entry.session);
        Ok(next.map_or(0, |next| next.at_us.saturating_sub(entry.at_us)))
    }

    /// If the recorded request was never answered: when to answer a live request that matches
    /// it.
    pub(super) fn cancellable(
        &mut self,
        request_number: u32,
        text: &[u8],
        at: Timestamp,
        options: &PlayerOptions,
    ) -> io::Result<Option<Box<CancellableRequest>>> {
        if self.entry_of(request_number).pair != NONE {
            return Ok(None);
        }
        // Recorded delays may be shortened by the pace, but not this one: clients cancel by their
        // own clock.
        let after_us = self.cancelled_after_us(request_number)? as f64 * options.pace.max(1.0);
        let due_ns = at.mono_ns.saturating_add((after_us * 1000.0) as u64).saturating_add(SLACK_NS);
        Ok(Some(Box::new(CancellableRequest { text: text.into(), due_ns })))
    }
}

impl PlayerTurn<'_, '_> {
    /// Answers a request that the recorded client cancelled and the live client did not.
    pub(super) fn answer_uncancelled(&mut self, scene: &mut ActiveScene) -> io::Result<()> {
        let Some(CancellableRequest { text, .. }) = scene.cancellable.take().map(|kept| *kept)
        else {
            return Ok(());
        };
        let frame = Frame::read(&text);
        // The tape is redacted, so the report compares the masked request; the answer needs the
        // real one.
        let masked = self.context.tape.masked(&text).into_owned();
        let meant = Frame::read(&masked);
        let (Some(envelope), Some(meant)) = (frame.envelope(), meant.envelope()) else {
            return Ok(());
        };
        let signature = self.context.tape.signer.sign(&masked, meant);
        let live_request = LiveRequest { text: &masked, envelope: meant, signature };
        // It was counted as matched when the scene began.
        self.stats.count_unmatched();
        let reason = (DivergenceReason::NotCancelled, Some(scene.ask));
        self.handle_divergence(&text, envelope, scene.batch, &live_request, reason)?;
        self.live.settle(scene.batch, self.act);
        Ok(())
    }
}
