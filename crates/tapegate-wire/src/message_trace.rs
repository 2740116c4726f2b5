//! Reports messages and holds as `tracing` events. Arguments, results and other content never are.

use std::borrow::Cow;

use tapegate_core::frame::{Envelope, Frame, FrameBody, MessageKind};
use tapegate_core::gate::HoldOutcome;
use tapegate_core::relay::RelayEvent;
use tapegate_core::tape::TapeEntry;
use tracing::{debug, trace};

/// The longest method or id that is shown. Both are the peer's own words.
const WORD_CHARS_MAX: usize = 64;

/// Reports a message that is being recorded.
pub(crate) fn report_message(entry: &TapeEntry<'_>) {
    // The content is scanned once more, so check the level first.
    if !tracing::enabled!(tracing::Level::TRACE) {
        return;
    }
    let frame = Frame::read(&entry.bytes);
    let envelope = frame.envelope();
    let kind = match (frame.body(), envelope) {
        (FrameBody::Batch, _) => "batch",
        (_, Some(envelope)) => kind_name(envelope),
        (_, None) => "not a message",
    };
    let method = envelope.and_then(|envelope| envelope.method).map(|method| method.decode());
    let id = envelope.and_then(|envelope| envelope.id).map(String::from_utf8_lossy);
    trace!(
        from = ?entry.from,
        session = entry.lane.session,
        kind,
        method = method.map(shortened),
        id = id.map(shortened),
        bytes = entry.bytes.len(),
        ours = entry.ours,
        "message"
    );
}

/// Reports an event that ends holds.
pub(crate) fn report_hold_event(event: &RelayEvent<'_>) {
    match event {
        RelayEvent::HoldSettled { hold_id, outcome } => {
            let outcome = match outcome {
                HoldOutcome::Approved(_) => "approved",
                HoldOutcome::Refused(_) => "refused",
                HoldOutcome::Unanswered(_) => "unanswered",
                HoldOutcome::AskUser(_) | HoldOutcome::AskInResult(_) => "user asked",
            };
            debug!(hold = hold_id.0, outcome, "hold decided");
        }
        RelayEvent::HoldWithdrawn { hold_id } => debug!(hold = hold_id.0, "hold withdrawn"),
        RelayEvent::HoldsEnded { reason, .. } => debug!(reason, "holds ended"),
        _ => {}
    }
}

fn kind_name(envelope: &Envelope<'_>) -> &'static str {
    match envelope.kind() {
        MessageKind::Request => "request",
        MessageKind::Notification => "notification",
        MessageKind::Response => "response",
        MessageKind::Error => "error",
        MessageKind::Other => "other object",
    }
}

fn shortened(word: Cow<'_, str>) -> String {
    word.chars().take(WORD_CHARS_MAX).collect()
}
