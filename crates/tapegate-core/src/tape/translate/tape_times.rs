//! Computes latencies from timestamps.

use std::collections::{HashMap, VecDeque};

use super::super::line::{EntryTime, MessageLine};
use crate::frame::{Frame, MessageKind};
use crate::pending::IdKey;
use crate::side::Side;

/// The times of open requests, and of the start and end of the tape.
#[derive(Default)]
pub(super) struct TapeTimes {
    open: HashMap<(Side, Vec<u8>, IdKey), VecDeque<i64>>,
    pub(super) first_us: Option<i64>,
    pub(super) last_us: Option<i64>,
}

impl TapeTimes {
    pub(super) fn note(&mut self, ts: EntryTime<'_>) -> Option<i64> {
        let at_us = ts.micros()?;
        self.first_us.get_or_insert(at_us);
        self.last_us = self.last_us.max(Some(at_us));
        Some(at_us)
    }

    /// The latency of an answer, by the timestamps of the request and the answer.
    pub(super) fn latency_ms(&mut self, message: &MessageLine<'_>, msg: &[u8]) -> Option<u64> {
        let at_us = self.note(message.ts)?;
        let frame = Frame::read(msg);
        let envelope = frame.envelope()?;
        let session = message.session.as_deref().unwrap_or_default().to_vec();
        let id = IdKey::new(envelope.id?);
        match envelope.kind() {
            MessageKind::Request => {
                self.open.entry((message.from, session, id)).or_default().push_back(at_us);
                None
            }
            MessageKind::Response | MessageKind::Error => {
                let key = (message.from.other(), session, id);
                let request_times = self.open.get_mut(&key)?;
                let asked_us = request_times.pop_front();
                if request_times.is_empty() {
                    self.open.remove(&key);
                }
                u64::try_from((at_us - asked_us?) / 1000).ok()
            }
            _ => None,
        }
    }
}
