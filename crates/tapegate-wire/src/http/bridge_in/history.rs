//! Recently sent events of a session, kept so that they can be resent.

use std::collections::VecDeque;

use super::super::OutboundBytes;

/// How large the latest event may be and still be kept beyond the bound. Larger ones would occupy
/// memory as long as the session lives, so they cannot be resent.
const LAST_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The most recently sent events of a session.
pub(super) struct EventHistory {
    events: VecDeque<SentEvent>,
    bytes: usize,
    bytes_max: usize,
}

pub(super) struct SentEvent {
    pub(super) id: EventId,
    pub(super) event: OutboundBytes,
}

/// An event's id: the stream's number and the event's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) number: u64,
}

impl EventId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, number) = text.split_once('-')?;
        Some(Self { stream: stream.parse().ok()?, number: number.parse().ok()? })
    }
}

impl EventHistory {
    /// A history of at most `bytes_max` bytes; the latest event may exceed it, up to
    /// [`LAST_BYTES_MAX`].
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { events: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Events of one stream after `id`.
    pub(super) fn events_after(&self, id: EventId) -> VecDeque<OutboundBytes> {
        let later = |sent: &&SentEvent| sent.id.stream == id.stream && sent.id.number > id.number;
        self.events.iter().filter(later).map(|sent| sent.event.clone()).collect()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.bytes_max);
    }

    /// Remembers an event, and drops the oldest ones beyond the bound.
    pub(super) fn push(&mut self, sent: SentEvent) {
        let last_bytes = sent.event.bytes().len();
        self.bytes += last_bytes;
        self.events.push_back(sent);
        // The latest event is kept even beyond the bound: it is the one a broken connection is
        // likely to lose.
        let kept_min = usize::from(last_bytes <= LAST_BYTES_MAX);
        while self.bytes > self.bytes_max && self.events.len() > kept_min {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.event.bytes().len();
        }
    }
}
