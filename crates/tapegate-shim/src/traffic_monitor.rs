//! Tracks which sides of a session have sent messages, to distinguish a server that never ran from
//! one that ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tapegate_core::frame::{FrameBody, MessageKind};
use tapegate_core::gate::GateInput;
use tapegate_core::side::Side;

/// Which messages have been seen in a session. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrafficMonitor(Arc<TrafficFlags>);

#[derive(Debug, Default)]
struct TrafficFlags {
    /// Whether each side has sent a message.
    sides: [AtomicBool; 2],
    /// The client has sent more than the requests that open a session, or a side has answered.
    opened: AtomicBool,
}

/// The requests that open a session, in old and new protocol versions.
const OPENING: [&str; 2] = ["initialize", "server/discover"];

impl TrafficMonitor {
    pub(crate) fn note_message(&self, case: &GateInput<'_>) {
        self.0.sides[case.from as usize].store(true, Ordering::Relaxed);
        if !self.is_session_open() && opens_session(case) {
            self.note_session_open();
        }
    }

    pub(crate) fn note_session_open(&self) {
        self.0.opened.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_sent(&self, side: Side) -> bool {
        self.0.sides[side as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn is_session_open(&self) -> bool {
        self.0.opened.load(Ordering::Relaxed)
    }
}

/// Whether this message shows that the session is established. Output that is not a message, such
/// as a banner, does not count, nor do notifications.
fn opens_session(case: &GateInput<'_>) -> bool {
    let Some(envelope) = case.frame.envelope() else {
        return matches!(case.frame.body(), FrameBody::Batch);
    };
    match (case.from, envelope.kind()) {
        (Side::Client, MessageKind::Request) => {
            let method = envelope.method.map(|method| method.decode());
            // A client may send both of these before the first answer, so neither proves a session.
            method.is_none_or(|method| !OPENING.contains(&&*method))
        }
        (_, MessageKind::Response | MessageKind::Error) => true,
        _ => false,
    }
}
