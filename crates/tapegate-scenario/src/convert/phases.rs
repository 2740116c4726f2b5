//! The phases of a phased scenario: one per change of the tool list, and the attack.

use super::tape_contents::{CallRange, TapeContents};
use super::tape_listings::TapeListing;
use super::{ConversionOptions, ScenarioStyle};
use crate::model::ItemKind;

/// After how many calls the attack begins by default.
const PHASE_AFTER: u64 = 3;

/// The name of the last phase.
pub(super) const ATTACK: &str = "attack";

/// A phase after the first one.
#[derive(Debug)]
pub(super) struct PhaseDraft<'g> {
    pub(super) name: String,
    /// What leads into it.
    pub(super) trigger: PhaseTrigger,
    /// The calls that it answers.
    pub(super) calls: CallRange,
    /// Its tool list, if it is not the first one.
    pub(super) tools: Option<&'g TapeListing>,
    /// Whether its answers are meant to be edited, because no change on the tape is the attack.
    pub(super) to_edit: bool,
}

/// What leads from one phase to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhaseTrigger {
    /// This many calls since the start.
    Calls(u64),
    /// This many list requests: the tools changed before the first call.
    Lists(u64),
}

impl PhaseTrigger {
    fn of(listing: &TapeListing) -> Self {
        match listing.calls_before {
            // Before the first call, only requests for lists can tell how far a client is.
            0 => Self::Lists(listing.asked_before.max(1)),
            calls => Self::Calls(calls),
        }
    }

    fn calls(self) -> u64 {
        match self {
            Self::Calls(calls) => calls,
            Self::Lists(_) => 0,
        }
    }
}

impl TapeContents {
    /// The phases after the benign one; empty if the scenario is not phased.
    pub(super) fn phases(&self, options: &ConversionOptions<'_>) -> Vec<PhaseDraft<'_>> {
        if options.style != ScenarioStyle::Phased {
            return Vec::new();
        }
        let changes = self.listings.changes(ItemKind::Tool);
        let attack = match (options.phase_after, changes.last()) {
            (Some(after), _) => PhaseTrigger::Calls(after),
            (None, Some(change)) => PhaseTrigger::of(change),
            (None, None) => PhaseTrigger::Calls(PHASE_AFTER),
        };
        let (before, after): (Vec<&TapeListing>, Vec<&TapeListing>) =
            changes.iter().partition(|change| change.calls_before < attack.calls());
        let mut starts: Vec<(PhaseTrigger, &TapeListing)> = Vec::new();
        for change in before {
            // Of several changes without a call between them, clients act on the last.
            starts.pop_if(|(trigger, _)| trigger.calls() == change.calls_before);
            starts.push((PhaseTrigger::of(change), change));
        }
        // A change at or after the attack's start is the recorded attack itself.
        let recorded = after.last().copied();
        let tools = recorded.or(starts.last().map(|(_, listing)| *listing));
        let ends = starts.iter().skip(1).map(|(trigger, _)| *trigger).chain([attack]);
        let mut phases: Vec<PhaseDraft<'_>> = (1..)
            .zip(starts.iter().zip(ends))
            .map(|(number, (&(trigger, listing), end))| PhaseDraft {
                name: format!("change-{number}"),
                trigger,
                calls: CallRange { after: trigger.calls(), until: end.calls() },
                tools: Some(listing),
                to_edit: false,
            })
            .collect();
        phases.push(PhaseDraft {
            name: ATTACK.to_owned(),
            trigger: attack,
            calls: CallRange { after: attack.calls(), until: u64::MAX },
            tools,
            to_edit: recorded.is_none(),
        });
        phases
    }

    /// After how many calls the attack begins; `None` if the tools change before the first call,
    /// because then list requests trigger it.
    pub(super) fn attack_after(&self, options: &ConversionOptions<'_>) -> Option<u64> {
        match self.phases(options).last()?.trigger {
            PhaseTrigger::Calls(calls) => Some(calls),
            PhaseTrigger::Lists(_) => None,
        }
    }
}
