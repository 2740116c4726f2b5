//! A client's position in a scenario: the phase, and the event counts so far.

use tapegate_core::actor::ActorSessionId;

use super::EngineMap;
use super::prepared_scenario::PreparedScenario;
use crate::model::{EventKind, OnSequenceEnd, PhaseEvent, ReplySequence};

/// How many names unknown to the scenario are counted.
const NAMES_MAX: usize = 10_000;
/// How long such a name may be.
const NAME_BYTES_MAX: usize = 1024;

/// A client's position in a scenario.
#[derive(Debug, Default)]
pub(super) struct PhaseProgress {
    /// The index of the phase; one past the last means the baseline.
    pub(super) phase: usize,
    /// When the phase was entered, or for the first phase when the first request came.
    pub(super) entered_ns: Option<u64>,
    /// Whether the entry actions of the first phase have run.
    pub(super) begun: bool,
    /// The answer after which the phase changes.
    pub(super) leaving: Option<PendingAdvance>,
    counts: [u64; EventKind::COUNT],
    keyed: EngineMap<EventKind, EngineMap<Box<str>, u64>>,
    names: usize,
    /// How many answers each sequence has given, by its number.
    places: EngineMap<u32, u64>,
}

/// A phase change that waits for an answer to be delivered.
#[derive(Debug, Clone)]
pub(super) struct PendingAdvance {
    /// The client that is answered.
    pub(super) session: ActorSessionId,
    /// The ticket of the answer.
    pub(super) delivery_id: u64,
    /// The trigger.
    pub(super) reason: &'static str,
}

impl PhaseProgress {
    /// Counts an event and returns how often it has come with this key. Names unknown to the
    /// scenario are counted up to a limit.
    pub(super) fn count(&mut self, kind: EventKind, key: Option<&str>, known: bool) -> u64 {
        let count = &mut self.counts[kind as usize];
        *count = count.saturating_add(1);
        let Some(key) = key else { return *count };
        let keyed = self.keyed.entry(kind).or_default();
        if let Some(count) = keyed.get_mut(key) {
            *count = count.saturating_add(1);
            return *count;
        }
        // A client can make up any number of names, so only known ones are counted without a limit.
        if !known {
            if self.names >= NAMES_MAX || key.len() > NAME_BYTES_MAX {
                return 1;
            }
            self.names += 1;
        }
        keyed.insert(key.into(), 1);
        1
    }

    /// How often an event has come.
    pub(super) fn count_of(&self, event: &PhaseEvent) -> u64 {
        match &event.key {
            None => self.counts[event.kind as usize],
            Some(key) => {
                let keyed = self.keyed.get(&event.kind);
                keyed.and_then(|keyed| keyed.get(key.as_str())).copied().unwrap_or(0)
            }
        }
    }

    /// The index of a sequence's next answer; `None` if it is exhausted.
    pub(super) fn next_index(&mut self, sequence: &ReplySequence) -> Option<usize> {
        let count = sequence.replies.len();
        let place = self.places.entry(sequence.number).or_default();
        let index = usize::try_from(*place).unwrap_or(usize::MAX);
        // Counted even when exhausted, so that `cycle` continues where it is.
        *place = place.saturating_add(1);
        match sequence.exhausted {
            _ if index < count => Some(index),
            OnSequenceEnd::Last => count.checked_sub(1),
            OnSequenceEnd::Cycle => index.checked_rem(count),
            OnSequenceEnd::Error => None,
        }
    }

    /// Resets all sequences, because a reload has replaced them.
    pub(super) fn restart_sequences(&mut self) {
        self.places.clear();
    }

    /// When the phase is left even if nothing happens.
    pub(super) fn next_deadline(&self, script: &PreparedScenario) -> Option<u64> {
        // The delivery of the answer decides, not the clock.
        if self.leaving.is_some() {
            return None;
        }
        let entered = self.entered_ns?;
        let advance = script.scenario.phases.get(self.phase)?.advance.as_ref()?;
        let waits = [advance.after_ns, advance.timeout_ns];
        waits.into_iter().flatten().map(|wait| entered.saturating_add(wait)).min()
    }
}
