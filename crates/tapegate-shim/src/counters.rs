//! Counts messages and decisions for the hub's metrics. Labels are bounded, so that a peer cannot
//! make them grow without limit.

use std::collections::BTreeMap;

use tapegate_core::activity::Profile;
use tapegate_core::side::Side;
use tapegate_hub::api::{
    ApiProfile, Counters, DecisionCount, FramingCount, MessageCount, StreamDirection,
};
use tapegate_policy::note::{Note, NoteKind};

/// How many methods are counted separately; the rest share one label.
const METHODS_MAX: usize = 64;
/// The longest method that is counted separately.
const METHOD_BYTES_MAX: usize = 64;
/// The label for the rest.
const OTHER: &str = "__other__";

/// The counts so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionCounters {
    messages: BTreeMap<(StreamDirection, String), u64>,
    framing: BTreeMap<&'static str, u64>,
    decisions: BTreeMap<(&'static str, bool), u64>,
}

impl SessionCounters {
    /// Counts a message; a response has no method.
    pub(crate) fn message(&mut self, from: Side, method: Option<&str>) {
        let direction = StreamDirection::from(from);
        let key = (direction, method.unwrap_or_default().to_owned());
        if let Some(count) = self.messages.get_mut(&key) {
            *count += 1;
            return;
        }
        // The peer chooses the method. Each new one would be another time series at the hub.
        let known = self.messages.len() < METHODS_MAX && key.1.len() <= METHOD_BYTES_MAX;
        let key = if known { key } else { (direction, OTHER.to_owned()) };
        *self.messages.entry(key).or_default() += 1;
    }

    /// Counts a decision about a message.
    pub(crate) fn note(&mut self, note: &Note<'_>) {
        match &note.kind {
            NoteKind::Framing { faults } => {
                for fault in faults {
                    *self.framing.entry(fault.label()).or_default() += 1;
                }
            }
            NoteKind::Oversized { .. } => {
                *self.framing.entry("message_too_large").or_default() += 1
            }
            NoteKind::Decision | NoteKind::HoldOpened { .. } => {
                let development = note.event.profile == Some(Profile::Development);
                *self.decisions.entry((note.decision().as_str(), development)).or_default() += 1;
            }
            _ => {}
        }
    }

    /// The counts in the form of a heartbeat.
    pub(crate) fn counters(&self) -> Counters {
        // These are totals since the start, so a lost heartbeat loses no count.
        let messages = self.messages.iter().map(|((direction, method), count)| MessageCount {
            direction: *direction,
            method: method.clone(),
            count: *count,
        });
        let framing = self.framing.iter().map(|(error_type, count)| FramingCount {
            error_type: (*error_type).to_owned(),
            count: *count,
        });
        let decisions = self.decisions.iter().map(|((decision, development), count)| {
            let profile = match development {
                true => ApiProfile::Development,
                false => ApiProfile::Production,
            };
            DecisionCount { decision: (*decision).to_owned(), profile, count: *count }
        });
        Counters {
            messages: messages.collect(),
            framing_errors: framing.collect(),
            decisions: decisions.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_without_end_are_counted_as_one() {
        let mut session_counters = SessionCounters::default();
        for n in 0..10_000 {
            session_counters.message(Side::Client, Some(&format!("m{n}")));
        }
        session_counters.message(Side::Server, Some(&"x".repeat(1000)));
        let counters = session_counters.counters();
        assert!(counters.messages.len() <= METHODS_MAX + 2);
        assert_eq!(counters.messages.iter().map(|one| one.count).sum::<u64>(), 10_001);
    }
}
