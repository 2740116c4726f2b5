//! Counts the results of a backtest: identical findings form one group, with their first positions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::{FixedState, RandomState};

use super::Heard;
use super::found::{Change, Group, Place, Sort, Stand, Told};
use crate::cases::Fate;
use crate::decide::GateName;
use crate::gated::Offer;
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
pub struct Tally {
    /// The number of messages judged.
    pub frames: u64,
    /// How many of them would not have been sent on.
    pub stopped: u64,
    groups: HashMap<u64, Group, RandomState>,
    changes: HashMap<u64, Change, RandomState>,
}

/// A finding in borrowed form.
#[derive(Hash)]
struct View<'n> {
    sort: Sort,
    word: &'static str,
    method: &'n str,
    name: &'n str,
    gate: Option<GateName>,
    rule: Option<&'n str>,
    detail: &'n str,
}

impl Tally {
    /// Counts the result for one message.
    pub fn hear(&mut self, heard: &Heard, place: Place) {
        self.frames += 1;
        self.stopped += u64::from(heard.fate != Fate::Forward);
        if let Some(method) = &heard.passed {
            let passed = View { sort: Sort::Pass, method, ..View::NONE };
            self.count(&passed, place);
        }
        views(&heard.notes, &mut |view| self.count(view, place));
    }

    /// Counts a message that two policies treat differently.
    pub fn change(&mut self, change: &Change, place: Place) {
        let Change { method, name, before, after, .. } = change;
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
        keep(&mut known.places, place);
    }

    /// Adds the results for a later part of a tape, which `lines` lines precede.
    pub fn add(&mut self, part: Self, tape: usize, lines: u64) {
        self.frames += part.frames;
        self.stopped += part.stopped;
        let moved = |place: &Place| Place { tape, line: place.line + lines, ..*place };
        for (key, group) in part.groups {
            let known = self.groups.entry(key).or_insert_with(|| Group {
                told: group.told,
                count: 0,
                places: Vec::new(),
            });
            known.count += group.count;
            group.places.iter().for_each(|place| keep(&mut known.places, moved(place)));
        }
        for (key, change) in part.changes {
            let places = change.places.iter().map(moved).collect::<Vec<_>>();
            let count = change.count;
            let empty = Change { count: 0, places: Vec::new(), ..change };
            let known = self.changes.entry(key).or_insert(empty);
            known.count += count;
            places.into_iter().for_each(|place| keep(&mut known.places, place));
        }
    }

    /// All groups, by kind and then by descending count.
    pub fn groups(&self) -> Vec<&Group> {
        let mut all: Vec<&Group> = self.groups.values().collect();
        all.sort_by(|one, two| {
            let place = |group: &Group| (group.told.sort, std::cmp::Reverse(group.count));
            place(one).cmp(&place(two)).then_with(|| one.told.cmp(&two.told))
        });
        all
    }

    /// All differences between two policies, the most frequent first.
    pub fn changes(&self) -> Vec<&Change> {
        let mut all: Vec<&Change> = self.changes.values().collect();
        let key = |change: &Change| {
            let Change { method, name, before, after, .. } = change.clone();
            (method, name, before, after)
        };
        all.sort_by(|one, two| two.count.cmp(&one.count).then_with(|| key(one).cmp(&key(two))));
        all
    }

    /// The number of findings of a kind.
    pub fn count_of(&self, sort: Sort) -> u64 {
        let of_sort = self.groups.values().filter(|group| group.told.sort == sort);
        of_sort.map(|group| group.count).sum()
    }

    fn count(&mut self, view: &View<'_>, place: Place) {
        let key = FixedState::default().hash_one(view);
        if !self.groups.contains_key(&key) && self.groups.len() >= GROUPS_MAX && !view.is_nameless()
        {
            return self.count(&view.nameless(), place);
        }
        let group = self.groups.entry(key).or_insert_with(|| Group {
            told: view.owned(),
            count: 0,
            places: Vec::new(),
        });
        group.count += 1;
        keep(&mut group.places, place);
    }
}

/// The difference between what two policies do with a message, not counted yet; `None` if there is
/// none.
pub fn differ(before: &Heard, after: &Heard) -> Option<Change> {
    let decision = |heard| lead(heard).map(|note: &Note<'_>| note.decision);
    let alike = before.fate == after.fate && before.rewritten == after.rewritten;
    if alike && decision(before) == decision(after) {
        return None;
    }
    let (method, name) = lead(before).or(lead(after)).map(subject).unwrap_or_default();
    Some(Change {
        method,
        name,
        before: Stand::of(before),
        after: Stand::of(after),
        count: 0,
        places: Vec::new(),
    })
}

/// The findings in a message, one by one.
pub fn told(heard: &Heard) -> Vec<Told> {
    let mut all = Vec::new();
    views(&heard.notes, &mut |view| all.push(view.owned()));
    all
}

impl Stand {
    fn of(heard: &Heard) -> Self {
        let note = lead(heard);
        let word = match (heard.fate, &heard.rewritten, note.map(|note| note.decision.word())) {
            // Development stops nothing, so use the word for what production would have done.
            (Fate::Forward, None, Some(word)) => word,
            (Fate::Forward, Some(_), _) => "filter",
            (Fate::Forward, None, None) => "forward",
            (Fate::Deny, ..) => "deny",
            (Fate::Approve, ..) => "hold",
        };
        let (gate, rule) = match note {
            Some(note) => (note.gate, note.rule.as_deref().map(str::to_owned)),
            None => (None, None),
        };
        Self { word, gate, rule }
    }
}

impl View<'_> {
    const NONE: View<'static> = View {
        sort: Sort::Pass,
        word: "pass",
        method: "",
        name: "",
        gate: None,
        rule: None,
        detail: "",
    };

    fn owned(&self) -> Told {
        Told {
            sort: self.sort,
            word: self.word,
            method: self.method.to_owned(),
            name: self.name.to_owned(),
            gate: self.gate,
            rule: self.rule.map(str::to_owned),
            detail: self.detail.to_owned(),
        }
    }

    /// The same finding without its name.
    fn nameless(&self) -> Self {
        Self { name: NAMELESS, detail: "", rule: None, method: "", ..*self }
    }

    fn is_nameless(&self) -> bool {
        self.name == NAMELESS
    }
}

/// The note that tells the outcome of a message: the first one that says it was stopped, or the
/// first.
fn lead(heard: &Heard) -> Option<&Note<'static>> {
    let stopped = |note: &&Note<'static>| note.forwarded == Some(false);
    heard.notes.iter().find(stopped).or_else(|| heard.notes.first())
}

/// The subject of a note: its method and a name.
fn subject(note: &Note<'_>) -> (String, String) {
    match &note.kind {
        NoteKind::Filter { offer, hidden, .. } => {
            let more = if hidden.len() > HIDDEN_MAX { ", …" } else { "" };
            let named = hidden[..hidden.len().min(HIDDEN_MAX)].join(", ");
            (method_of(*offer).to_owned(), format!("{named}{more}"))
        }
        _ => {
            let text = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
            (text(&note.method), text(&note.name))
        }
    }
}

/// Calls `each` with a view of each note.
fn views(notes: &[Note<'_>], each: &mut dyn FnMut(&View<'_>)) {
    for note in notes {
        let view = View {
            sort: sort(note),
            word: note.decision.word(),
            method: note.method.as_deref().unwrap_or_default(),
            name: note.name.as_deref().unwrap_or_default(),
            gate: note.gate,
            rule: note.rule.as_deref(),
            detail: "",
        };
        match &note.kind {
            NoteKind::Filter { offer, hidden, .. } => {
                for name in hidden {
                    each(&View { method: method_of(*offer), name, ..view });
                }
            }
            NoteKind::Drift { offer } => {
                let detail = note.reason.as_deref().unwrap_or_default();
                each(&View { method: method_of(*offer), detail, ..view });
            }
            NoteKind::Framing { faults } => {
                let labels: Vec<&str> = faults.iter().map(|fault| fault.words()).collect();
                each(&View { detail: &labels.join("; "), ..view });
            }
            NoteKind::HoldOpened { workflow, .. } => each(&View { detail: workflow, ..view }),
            _ if view.sort == Sort::Deny => {
                each(&View { detail: note.reason.as_deref().unwrap_or_default(), ..view });
            }
            _ => each(&view),
        }
    }
}

fn sort(note: &Note<'_>) -> Sort {
    match (&note.kind, note.decision) {
        (NoteKind::Framing { .. }, LoggedDecision::Warn) => Sort::Forward,
        (NoteKind::Framing { .. } | NoteKind::Oversized { .. }, _) => Sort::Reject,
        (NoteKind::Drift { .. }, _) => Sort::Drift,
        (NoteKind::Filter { .. }, _) => Sort::Filter,
        (NoteKind::Redaction { .. }, _) => Sort::Redact,
        (NoteKind::HoldOpened { .. }, _) | (_, LoggedDecision::WouldRequireApproval) => Sort::Hold,
        (_, LoggedDecision::Deny | LoggedDecision::WouldBlock) => Sort::Deny,
        _ => Sort::Forward,
    }
}

fn method_of(offer: Offer) -> &'static str {
    match offer {
        Offer::Tool => "tools/list",
        Offer::Prompt => "prompts/list",
        Offer::Resource => "resources/list",
        Offer::Template => "resources/templates/list",
    }
}

fn keep(places: &mut Vec<Place>, place: Place) {
    if places.len() < PLACES_MAX {
        places.push(place);
    }
}
