//! Tracks which sides of a session have sent messages, to distinguish a server that never ran from
//! one that ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tapegate_core::frame::{Body, Kind};
use tapegate_core::gate::Case;
use tapegate_core::side::Side;

/// Which messages have been seen in a session. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard(Arc<HeardFlags>);

#[derive(Debug, Default)]
struct HeardFlags {
    /// Whether each side has sent a message.
    sides: [AtomicBool; 2],
    /// The client has sent more than the requests that open a session, or a side has answered.
    opened: AtomicBool,
}

/// The requests that open a session, in old and new protocol versions.
const OPENING: [&str; 2] = ["initialize", "server/discover"];

impl Heard {
    pub(super) fn note(&self, case: &Case<'_>) {
        self.0.sides[case.from as usize].store(true, Ordering::Relaxed);
        if !self.is_opened() && opens(case) {
            self.note_opened();
        }
    }

    pub(super) fn note_opened(&self) {
        self.0.opened.store(true, Ordering::Relaxed);
    }

    pub(super) fn has(&self, side: Side) -> bool {
        self.0.sides[side as usize].load(Ordering::Relaxed)
    }

    pub(super) fn is_opened(&self) -> bool {
        self.0.opened.load(Ordering::Relaxed)
    }
}

/// Whether this message shows that the session is established. Output that is not a message, such
/// as a banner, does not count, nor do notifications.
fn opens(case: &Case<'_>) -> bool {
    let Some(envelope) = case.frame.envelope() else {
        return matches!(case.frame.body(), Body::Batch);
    };
    match (case.from, envelope.kind()) {
        (Side::Client, Kind::Request) => {
            let method = envelope.method.map(|method| method.decode());
            method.is_none_or(|method| !OPENING.contains(&&*method))
        }
        (_, Kind::Response | Kind::Error) => true,
        _ => false,
    }
}
