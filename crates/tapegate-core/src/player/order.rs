//! The order in which scenes continue when there are no delays.
//!
//! With `instant`, recorded delays are dropped but the order of the tape is kept. A scene waits for its
//! turn while another open scene has an earlier message, and while a request is missing that the
//! recorded client had made by then. A silent client makes no more requests, so the wait ends some time
//! after its last message: a long time at first, for a slow client on a busy machine, and a short one
//! once the client has failed to make an expected request.

use std::collections::{BTreeMap, BTreeSet};

use super::live::Live;
use super::run::Run;
use super::scene::{Scene, Wait};
use super::tape::Tape;
use crate::tape::index::NONE;

/// How long to wait after the last message of a client that has made every expected request so far. This
/// costs nothing in practice, since the wait ends with the request.
const TRUSTED_QUIET_NS: u64 = 1_000_000_000;
/// The same for a client that has failed to make an expected request, or has made one that is not on the
/// tape: it may never make the others.
const QUIET_NS: u64 = 50_000_000;
/// A wake-up that is late by this much means that the machine is busy, and possibly the client too.
const LATE_NS: u64 = 10_000_000;
/// How many requests before and after the answered one are considered.
const LOOKED_MAX: usize = 256;

/// The scope of an order: one conversation, in one recorded session.
pub(super) type Group = (u32, u32);

/// The waiting scenes of a session, by their next message.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The next slot and the number of each unfinished scene.
    open: BTreeMap<Group, BTreeSet<(u32, u32)>>,
    /// Those of them that wait for their turn.
    turns: BTreeMap<Group, BTreeSet<(u32, u32)>>,
    /// When the last message of the client arrived.
    heard_ns: u64,
    /// Whether a late wake-up was excused by a busy machine since then.
    excused: bool,
    /// Whether the client has failed to make an expected request, or made another one.
    gave_up: bool,
}

impl Queue {
    /// Notes that a message of the client arrived.
    pub(super) fn hear(&mut self, now_ns: u64) {
        (self.heard_ns, self.excused) = (now_ns, false);
    }

    /// Notes that the client deviates from the recorded one, so that long waits are pointless.
    pub(super) fn give_up(&mut self) {
        self.gave_up = true;
    }

    /// When scenes stop waiting for their turn, if any does.
    pub(super) fn due(&self) -> Option<u64> {
        (!self.turns.is_empty()).then_some(self.quiet_from_ns())
    }

    /// When the client counts as silent, unless a message arrives before.
    fn quiet_from_ns(&self) -> u64 {
        let quiet_ns = if self.gave_up { QUIET_NS } else { TRUSTED_QUIET_NS };
        self.heard_ns.saturating_add(quiet_ns)
    }

    /// Whether the client has been silent long enough to stop waiting. After a late wake-up it gets the
    /// same time again, once: its message may already have arrived.
    pub(super) fn is_quiet(&mut self, now_ns: u64) -> bool {
        let due = self.quiet_from_ns();
        if now_ns < due {
            return false;
        }
        if now_ns - due > LATE_NS && !self.excused {
            (self.heard_ns, self.excused) = (now_ns, true);
            return false;
        }
        self.gave_up = true;
        true
    }

    /// The next slot of the first scene in its group.
    fn first_open(&self, group: Group) -> u32 {
        self.open.get(&group).and_then(|open| open.first()).map_or(NONE, |(next, _)| *next)
    }

    /// The first scene that waits for its turn.
    fn first_turn(&self, group: Group) -> Option<(u32, u32)> {
        self.turns.get(&group)?.first().copied()
    }

    /// The groups in which scenes wait for their turn.
    pub(super) fn groups(&self) -> Vec<Group> {
        self.turns.keys().copied().collect()
    }

    pub(super) fn keep(&mut self, scene: &Scene) {
        let (group, entry) = (scene.group, (scene.next, scene.number));
        if scene.next != NONE {
            self.open.entry(group).or_default().insert(entry);
        }
        if scene.wait == Wait::Turn {
            self.turns.entry(group).or_default().insert(entry);
        }
    }

    pub(super) fn take(&mut self, scene: &Scene) {
        let (group, entry) = (scene.group, (scene.next, scene.number));
        for set in [&mut self.open, &mut self.turns] {
            if let Some(scenes) = set.get_mut(&group) {
                scenes.remove(&entry);
                if scenes.is_empty() {
                    set.remove(&group);
                }
            }
        }
    }
}

impl Live {
    /// The slot before which a scene, which must not be stored, may continue. If all sessions share one
    /// position, `shared` is their run.
    pub(super) fn limit(&self, scene: &mut Scene, tape: &Tape, shared: Option<&Run>) -> u32 {
        if self.has_left() {
            return NONE;
        }
        let others = self.queue.first_open(scene.group);
        // Nearly always the answer follows its request, and nothing follows the answer.
        if scene.next == scene.anchor + 1 && tape.index.slot(scene.next).next == NONE {
            return others;
        }
        let own = || self.runs.iter().find(|run| run.number == scene.group.0);
        let run = shared.or_else(own);
        others.min(run.map_or(NONE, |run| missing(scene, tape, run)))
    }

    /// Removes and returns the first scene whose turn has come, and the slot before which it may
    /// continue. Once the client is silent, only the order among waiting scenes counts.
    pub(super) fn take_turn(
        &mut self,
        group: Group,
        quiet: bool,
        tape: &Tape,
        shared: Option<&Run>,
    ) -> Option<(Scene, u32)> {
        let (next, number) = self.queue.first_turn(group)?;
        if !quiet && self.queue.first_open(group) < next {
            return None;
        }
        let mut scene = self.take(number)?;
        let limit = match quiet {
            true => self.queue.first_turn(group).map_or(NONE, |(next, _)| next),
            false => self.limit(&mut scene, tape, shared),
        };
        if limit <= next {
            self.keep(scene);
            return None;
        }
        Some((scene, limit))
    }
}

/// The first slot that belongs to a request that the recorded client made while this one was open, and
/// that the live client has not made yet.
fn missing(scene: &mut Scene, tape: &Tape, run: &Run) -> u32 {
    let index = &tape.index;
    let session = index.sessions().get(scene.group.1 as usize).cloned().unwrap_or_default();
    let is_other_session = run.session().is_some_and(|own| own != scene.group.1);
    if scene.ask == NONE || is_other_session {
        return NONE;
    }
    let is_awaited = |ask: u32| !run.is_used(ask) && !tape.is_unordered(ask) && !tape.is_probe(ask);
    let earlier = scene.earlier.get_or_insert_with(|| {
        let first = scene.ask.saturating_sub(LOOKED_MAX as u32).max(session.start);
        (first..scene.ask).filter(|ask| is_awaited(*ask)).collect()
    });
    earlier.retain(|ask| is_awaited(*ask));
    let mut limit = NONE;
    for ask in earlier.iter() {
        let slot = tape.slot_of(*ask);
        let first = if slot.next > scene.anchor { slot.next } else { slot.pair };
        if first > scene.anchor {
            limit = limit.min(first);
        }
    }
    while scene.asked_until < session.end && !is_awaited(scene.asked_until) {
        scene.asked_until += 1;
    }
    let later = (scene.asked_until..session.end).take(LOOKED_MAX);
    for ask in later {
        if index.ask(ask).slot >= limit {
            break;
        }
        if is_awaited(ask) {
            limit = limit.min(tape.slot_of(ask).next);
        }
    }
    limit
}
