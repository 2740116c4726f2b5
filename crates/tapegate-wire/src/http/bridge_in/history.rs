//! What was sent on the streams of a session lately, so that it can be sent again.

use std::collections::VecDeque;

use bytes::Bytes;

/// What is kept of a session's events. The last one is kept whatever its size.
const HISTORY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The events of a session that were sent last.
#[derive(Default)]
pub(super) struct History {
    events: VecDeque<Sent>,
    bytes: usize,
}

/// An event that was sent.
pub(super) struct Sent {
    pub(super) id: EventId,
    pub(super) event: Bytes,
}

/// An event's id: its stream's number and its own.
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

impl History {
    /// Events of one stream after `id`.
    pub(super) fn after(&self, id: EventId) -> VecDeque<Bytes> {
        let later = |sent: &&Sent| sent.id.stream == id.stream && sent.id.number > id.number;
        self.events.iter().filter(later).map(|sent| sent.event.clone()).collect()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Remembers an event, and forgets the oldest ones if that is too much.
    pub(super) fn keep(&mut self, sent: Sent) {
        self.bytes += sent.event.len();
        self.events.push_back(sent);
        while self.bytes > HISTORY_BYTES_MAX && self.events.len() > 1 {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.event.len();
        }
    }
}
