//! A message being sent to a client, or waiting for its turn on a pipe.

use tapegate_core::actor::ActorAction;
use tapegate_core::json;
use tapegate_core::time::Timestamp;

use super::PIECE_BYTES;
use super::repeated_bytes::RepeatedBytes;

/// A message that is not sent at once.
#[derive(Debug)]
pub(super) struct DeliveryLine {
    /// The request it belongs to.
    pub(super) about: Option<Box<[u8]>>,
    pub(super) load: DeliveryLoad,
    /// The ticket of the answer, if it is one.
    pub(super) delivery_id: Option<u64>,
    /// How many bytes it takes in the queue.
    pub(super) bytes: usize,
}

#[derive(Debug)]
pub(super) enum DeliveryLoad {
    /// A message sent whole when its turn comes.
    Message(Box<[u8]>),
    /// Bytes sent piece by piece.
    Raw(PacedBytes),
}

/// Bytes sent piece by piece.
#[derive(Debug)]
pub(super) struct PacedBytes {
    pub(super) payload: RepeatedBytes,
    pub(super) pace: DeliveryPace,
    /// When the next piece is due.
    pub(super) due_ns: u64,
    /// Whether the last piece ends the line.
    pub(super) ends: bool,
    /// Whether the first piece was sent.
    pub(super) begun: bool,
}

/// The speed at which pieces are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeliveryPace {
    pub(super) chunk_bytes: usize,
    pub(super) delay_ns: u64,
}

impl DeliveryPace {
    /// As fast as the client reads.
    pub(super) const FULL: Self = Self { chunk_bytes: PIECE_BYTES, delay_ns: 0 };
}

impl DeliveryLine {
    /// When it is due.
    pub(super) fn due_ns(&self) -> u64 {
        match &self.load {
            DeliveryLoad::Message(_) => 0,
            DeliveryLoad::Raw(raw) => raw.due_ns,
        }
    }

    /// Whether part of it was sent.
    pub(super) fn has_begun(&self) -> bool {
        matches!(&self.load, DeliveryLoad::Raw(raw) if raw.begun)
    }

    /// Sends the rest as fast as possible, or with `at_once` drops it.
    pub(super) fn finish_early(&mut self, at_once: bool) {
        if let DeliveryLoad::Raw(raw) = &mut self.load {
            // The client has given up on the answer, so it should not block the pipe.
            (raw.pace, raw.due_ns) = (DeliveryPace::FULL, 0);
            if at_once {
                (raw.payload, raw.ends) = (RepeatedBytes::default(), true);
            }
        }
    }

    /// Sends what is due and fits into `budget`; returns whether the line is finished.
    pub(super) fn send(
        &mut self,
        at: Timestamp,
        budget: &mut usize,
        piece: &mut Vec<u8>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) -> bool {
        let about = self.about.as_deref();
        match &mut self.load {
            DeliveryLoad::Message(text) => {
                *budget = budget.saturating_sub(text.len());
                // An answer is routed by its own id; only other messages need to name their
                // request.
                match about.filter(|_| self.delivery_id.is_none()) {
                    Some(about) => act(ActorAction::Tell { about, parts: &[text] }),
                    None => act(ActorAction::Say(&[text])),
                }
                true
            }
            DeliveryLoad::Raw(raw) => raw.send(at, about, budget, piece, act),
        }
    }
}

impl PacedBytes {
    fn send(
        &mut self,
        at: Timestamp,
        about: Option<&[u8]>,
        budget: &mut usize,
        piece: &mut Vec<u8>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) -> bool {
        while self.due_ns <= at.mono_ns && *budget > 0 {
            // At least one byte, or a pace of zero bytes would never end.
            self.payload.take(self.pace.chunk_bytes.clamp(1, PIECE_BYTES), piece);
            self.begun = true;
            let over = self.payload.remaining_bytes() == 0;
            act(ActorAction::Raw { about, bytes: piece, ends: over && self.ends });
            if over {
                return true;
            }
            *budget = budget.saturating_sub(piece.len());
            if self.pace.delay_ns > 0 {
                // From now rather than from the last due time, so that a late wake-up causes no
                // burst.
                self.due_ns = at.mono_ns.saturating_add(self.pace.delay_ns);
            }
        }
        false
    }
}

/// Bytes sent at this pace, starting now.
pub(super) fn raw(
    at: Timestamp,
    payload: RepeatedBytes,
    pace: DeliveryPace,
    ends: bool,
) -> DeliveryLoad {
    DeliveryLoad::Raw(PacedBytes { payload, pace, due_ns: at.mono_ns, ends, begun: false })
}

/// An answer padded to at least `bytes` bytes.
pub(super) fn padded(parts: &[&[u8]], bytes: usize, padding: char) -> RepeatedBytes {
    let payload = RepeatedBytes::of(parts);
    let missing = bytes.saturating_sub(payload.remaining_bytes());
    // Rounded up: the limit is one that must be exceeded.
    payload.followed_by(padding.to_string().into_bytes(), missing.div_ceil(padding.len_utf8()))
}

/// An answer nested in `depth` objects.
pub(super) fn nest_answer(parts: &[&[u8]], depth: usize, key: &str) -> RepeatedBytes {
    let mut open = b"{".to_vec();
    json::write_str(&mut open, key);
    open.push(b':');
    RepeatedBytes::default()
        .followed_by(open, depth)
        .followed_by(parts.concat(), 1)
        .followed_by(b"}".to_vec(), depth)
}
