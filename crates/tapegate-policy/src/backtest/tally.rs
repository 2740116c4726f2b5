//! Counts the results of a backtest: identical findings form one group, with their first positions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::{FixedState, RandomState};

use super::TrialOutcome;
use super::finding::{
    FindingDetail, FindingGroup, FindingKind, FindingLocation, PolicyChange, PolicyOutcome,
};
use crate::cases::CaseOutcome;
use crate::decide::GateName;
use crate::note::{Note, NoteKind};
use tapegate_core::decision::LoggedDecision;

/// How many positions are kept per group.
const PLACES_MAX: usize = 5;
/// The maximum number of groups. Further findings are counted in groups without a name.
pub(super) const GROUPS_MAX: usize = if cfg!(test) { 100 } else { 100_000 };

/// Stands in for a name that is left out.
const NAMELESS: &str = "…";
/// How many names of a changed list are shown.
const HIDDEN_MAX: usize = 3;

/// The counted results of a backtest.
#[derive(Debug, Default)]
pub struct BacktestTally {
    /// The number of messages judged.
    pub frames: u64,
    /// How many of them would not have been sent on.
    pub stopped: u64,
    groups: HashMap<u64, FindingGroup, RandomState>,
    changes: HashMap<u64, PolicyChange, RandomState>,
}

/// A finding in borrowed form.
#[derive(Hash)]
struct FindingView<'n> {
    kind: FindingKind,
    word: &'static str,
    method: &'n str,
    name: &'n str,
    gate: Option<GateName>,
    rule: Option<&'n str>,
    detail: &'n str,
}

impl BacktestTally {
    /// Counts the result for one message.
    pub fn count_message(&mut self, outcome: &TrialOutcome, place: FindingLocation) {
        self.frames += 1;
        self.stopped += u64::from(outcome.case_outcome != CaseOutcome::Forward);
        if let Some(method) = &outcome.passed {
            let passed = FindingView { kind: FindingKind::Pass, method, ..FindingView::NONE };
            self.count(&passed, place);
        }
        views(&outcome.notes, &mut |view| self.count(view, place));
    }

    /// Counts a message that two policies treat differently.
    pub fn count_change(&mut self, change: &PolicyChange, place: FindingLocation) {
        let PolicyChange { method, name, before, after, .. } = change;
        let key = FixedState::default().hash_one((
            (method, name),
            (before.word, before.gate, &before.rule),
            (after.word, after.gate, &after.rule),
        ));
        if !self.changes.contains_key(&key) && self.changes.len() >= GROUPS_MAX {
            return;
        }
        let known = self.changes.entry(key).or_insert_with(|| change.clone());
        known.count += 1;
        push_bounded(&mut known.places, place);
    }

    /// Adds the results for a later part of a tape, which `lines` lines precede.
    pub fn add(&mut self, part: Self, tape: usize, lines: u64) {
        self.frames += part.frames;
        self.stopped += part.stopped;
        let moved =
            |place: &FindingLocation| FindingLocation { tape, line: place.line + lines, ..*place };
        for (key, group) in part.groups {
            let known = self.groups.entry(key).or_insert_with(|| FindingGroup {
                finding_detail: group.finding_detail,
                count: 0,
                places: Vec::new(),
            });
            known.count += group.count;
            group.places.iter().for_each(|place| push_bounded(&mut known.places, moved(place)));
        }
        for (key, change) in part.changes {
            let places = change.places.iter().map(moved).collect::<Vec<_>>();
            let count = change.count;
            let empty = PolicyChange { count: 0, places: Vec::new(), ..change };
            let known = self.changes.entry(key).or_insert(empty);
            known.count += count;
            places.into_iter().for_each(|place| push_bounded(&mut known.places, place));
        }
    }

    /// All groups, by kind and then by descending count.
    pub fn groups(&self) -> Vec<&FindingGroup> {
        let mut all: Vec<&FindingGroup> = self.groups.values().collect();
        all.sort_by(|one, two| {
            let place =
                |group: &FindingGroup| (group.finding_detail.kind, std::cmp::Reverse(group.count));
            place(one).cmp(&place(two)).then_with(|| one.finding_detail.cmp(&two.finding_detail))
        });
        all
    }

    /// All differences between two policies, the most frequent first.
    pub fn changes(&self) -> Vec<&PolicyChange> {
        let mut all: Vec<&PolicyChange> = self.changes.values().collect();
        let key = |change: &PolicyChange| {
            let PolicyChange { method, name, before, after, .. } = change.clone();
            (method, name, before, after)
        };
        all.sort_by(|one, two| two.count.cmp(&one.count).then_with(|| key(one).cmp(&key(two))));
        all
    }

    /// The number of findings of a kind.
    pub fn count_kind(&self, sort: FindingKind) -> u64 {
        let of_sort = self.groups.values().filter(|group| group.finding_detail.kind == sort);
        of_sort.map(|group| group.count).sum()
    }

    fn count(&mut self, view: &FindingView<'_>, place: FindingLocation) {
        // A fixed state, since the tallies of parts of a tape are merged by these keys.
        let key = FixedState::default().hash_one(view);
        if !self.groups.contains_key(&key) && self.groups.len() >= GROUPS_MAX && !view.is_unnamed()
        {
            // An agent can invent any number of names. Their findings are still counted, in one
            // group.
            return self.count(&view.without_name(), place);
        }
        let group = self.groups.entry(key).or_insert_with(|| FindingGroup {
            finding_detail: view.to_owned_finding(),
            count: 0,
            places: Vec::new(),
        });
        group.count += 1;
        push_bounded(&mut group.places, place);
    }
}

/// The difference between what two policies do with a message, not counted yet; `None` if there is
/// none.
pub fn differ(before: &TrialOutcome, after: &TrialOutcome) -> Option<PolicyChange> {
    let decision = |outcome| leading_note(outcome).map(|note: &Note<'_>| note.decision());
    let alike = before.case_outcome == after.case_outcome && before.rewritten == after.rewritten;
    if alike && decision(before) == decision(after) {
        return None;
    }
    let (method, name) =
        leading_note(before).or(leading_note(after)).map(subject).unwrap_or_default();
    Some(PolicyChange {
        method,
        name,
        before: PolicyOutcome::of(before),
        after: PolicyOutcome::of(after),
        count: 0,
        places: Vec::new(),
    })
}

/// The findings in a message, one by one.
pub fn findings_of(outcome: &TrialOutcome) -> Vec<FindingDetail> {
    let mut all = Vec::new();
    views(&outcome.notes, &mut |view| all.push(view.to_owned_finding()));
    all
}

impl PolicyOutcome {
    fn of(outcome: &TrialOutcome) -> Self {
        let note = leading_note(outcome);
        let word = match (
            outcome.case_outcome,
            &outcome.rewritten,
            note.map(|note| note.decision().as_str()),
        ) {
            // Development stops nothing, so use the word for what production would have done.
            (CaseOutcome::Forward, None, Some(word)) => word,
            (CaseOutcome::Forward, Some(_), _) => "filter",
            (CaseOutcome::Forward, None, None) => "forward",
            (CaseOutcome::Deny, ..) => "deny",
            (CaseOutcome::Approve, ..) => "hold",
        };
        let (gate, rule) = match note {
            Some(note) => (note.event.gate, note.event.rule.as_deref().map(str::to_owned)),
            None => (None, None),
        };
        Self { word, gate, rule }
    }
}

impl FindingView<'_> {
    const NONE: FindingView<'static> = FindingView {
        kind: FindingKind::Pass,
        word: "pass",
        method: "",
        name: "",
        gate: None,
        rule: None,
        detail: "",
    };

    fn to_owned_finding(&self) -> FindingDetail {
        FindingDetail {
            kind: self.kind,
            word: self.word,
            method: self.method.to_owned(),
            name: self.name.to_owned(),
            gate: self.gate,
            rule: self.rule.map(str::to_owned),
            detail: self.detail.to_owned(),
        }
    }

    /// The same finding without its name.
    fn without_name(&self) -> Self {
        Self { name: NAMELESS, detail: "", rule: None, method: "", ..*self }
    }

    fn is_unnamed(&self) -> bool {
        self.name == NAMELESS
    }
}

/// The note that tells the outcome of a message: the first one that says it was stopped, or the
/// first.
fn leading_note(outcome: &TrialOutcome) -> Option<&Note<'static>> {
    let stopped = |note: &&Note<'static>| note.event.forwarded == Some(false);
    outcome.notes.iter().find(stopped).or_else(|| outcome.notes.first())
}

/// The subject of a note: its method and a name.
fn subject(note: &Note<'_>) -> (String, String) {
    match &note.kind {
        NoteKind::Filter { offer, hidden, .. } => {
            let more = if hidden.len() > HIDDEN_MAX { ", …" } else { "" };
            let named = hidden[..hidden.len().min(HIDDEN_MAX)].join(", ");
            (offer.list_method().to_owned(), format!("{named}{more}"))
        }
        _ => {
            let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
            (text(&note.event.method), text(&note.event.tool))
        }
    }
}

/// Calls `each` with a view of each note.
fn views(notes: &[Note<'_>], each: &mut dyn FnMut(&FindingView<'_>)) {
    for note in notes {
        let view = FindingView {
            kind: finding_kind(note),
            word: note.decision().as_str(),
            method: note.event.method.as_deref().unwrap_or_default(),
            name: note.event.tool.as_deref().unwrap_or_default(),
            gate: note.event.gate,
            rule: note.event.rule.as_deref(),
            detail: "",
        };
        match &note.kind {
            NoteKind::Filter { offer, hidden, .. } => {
                for name in hidden {
                    each(&FindingView { method: offer.list_method(), name, ..view });
                }
            }
            NoteKind::Drift { offer } => {
                let detail = note.event.policy_reason.as_deref().unwrap_or_default();
                each(&FindingView { method: offer.list_method(), detail, ..view });
            }
            NoteKind::Framing { faults } => {
                let labels: Vec<&str> = faults.iter().map(|fault| fault.message()).collect();
                each(&FindingView { detail: &labels.join("; "), ..view });
            }
            NoteKind::HoldOpened { workflow, .. } => {
                each(&FindingView { detail: workflow, ..view })
            }
            _ if view.kind == FindingKind::Deny => {
                each(&FindingView {
                    detail: note.event.policy_reason.as_deref().unwrap_or_default(),
                    ..view
                });
            }
            _ => each(&view),
        }
    }
}

fn finding_kind(note: &Note<'_>) -> FindingKind {
    match (&note.kind, note.decision()) {
        (NoteKind::Framing { .. }, LoggedDecision::Warn) => FindingKind::Forward,
        (NoteKind::Framing { .. } | NoteKind::Oversized { .. }, _) => FindingKind::Reject,
        (NoteKind::Drift { .. }, _) => FindingKind::Drift,
        (NoteKind::Filter { .. }, _) => FindingKind::Filter,
        (NoteKind::Redaction { .. }, _) => FindingKind::Redact,
        (NoteKind::HoldOpened { .. }, _) | (_, LoggedDecision::WouldRequireApproval) => {
            FindingKind::Hold
        }
        (_, LoggedDecision::Deny | LoggedDecision::WouldBlock) => FindingKind::Deny,
        _ => FindingKind::Forward,
    }
}

fn push_bounded(places: &mut Vec<FindingLocation>, place: FindingLocation) {
    if places.len() < PLACES_MAX {
        places.push(place);
    }
}
