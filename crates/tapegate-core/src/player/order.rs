//! The order in which scenes continue when there are no delays.
//!
//! With `instant`, recorded delays are dropped but the order of the tape is kept. A scene waits for its
//! turn while another open scene has an earlier message, and while a request is missing that the
//! recorded client had made by then. A silent client makes no more requests, so the wait ends some time
//! after its last message: a long time at first, for a slow client on a busy machine, and a short one
//! once the client has failed to make an expected request.

use std::collections::{BTreeMap, BTreeSet};

use super::live_session::LiveSession;
use super::scene::{ActiveScene, SceneWait};
use super::tape::PlayerTape;
use super::tape_run::TapeRun;
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
pub(super) type OrderGroup = (u32, u32);

/// The waiting scenes of a session, by their next message.
#[derive(Debug, Default)]
pub(super) struct SceneQueue {
    /// The next entry and the number of each unfinished scene.
    open: BTreeMap<OrderGroup, BTreeSet<(u32, u32)>>,
    /// Those of them that wait for their turn.
    turns: BTreeMap<OrderGroup, BTreeSet<(u32, u32)>>,
    /// When the last message of the client arrived.
    heard_ns: u64,
    /// Whether a late wake-up was excused by a busy machine since then.
    excused: bool,
    /// Whether the client has failed to make an expected request, or made another one.
    gave_up: bool,
}

impl SceneQueue {
    /// Notes that a message of the client arrived.
    pub(super) fn note_client_activity(&mut self, now_ns: u64) {
        (self.heard_ns, self.excused) = (now_ns, false);
    }

    /// Notes that the client deviates from the recorded one, so that long waits are pointless.
    pub(super) fn shorten_waits(&mut self) {
        self.gave_up = true;
    }

    /// When scenes stop waiting for their turn, if any does.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        (!self.turns.is_empty()).then_some(self.quiet_from_ns())
    }

    /// When the client counts as silent, unless a message arrives before.
    fn quiet_from_ns(&self) -> u64 {
        let quiet_ns = if self.gave_up { QUIET_NS } else { TRUSTED_QUIET_NS };
        self.heard_ns.saturating_add(quiet_ns)
    }

    /// Whether the client has been silent long enough to stop waiting. After a late wake-up it gets the
    /// same time again, once: its message may already have arrived.
    pub(super) fn is_client_silent(&mut self, now_ns: u64) -> bool {
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

    /// The next entry of the first scene in its group.
    fn first_pending_entry(&self, group: OrderGroup) -> u32 {
        self.open.get(&group).and_then(|open| open.first()).map_or(NONE, |(next, _)| *next)
    }

    /// The first scene that waits for its turn.
    fn first_in_turn(&self, group: OrderGroup) -> Option<(u32, u32)> {
        self.turns.get(&group)?.first().copied()
    }

    /// The groups in which scenes wait for their turn.
    pub(super) fn groups(&self) -> Vec<OrderGroup> {
        self.turns.keys().copied().collect()
    }

    pub(super) fn insert(&mut self, scene: &ActiveScene) {
        let (group, entry) = (scene.group, (scene.next, scene.number));
        if scene.next != NONE {
            self.open.entry(group).or_default().insert(entry);
        }
        if scene.wait == SceneWait::Turn {
            self.turns.entry(group).or_default().insert(entry);
        }
    }

    pub(super) fn remove(&mut self, scene: &ActiveScene) {
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

impl LiveSession {
    /// The entry before which a scene, which must not be stored, may continue. If all sessions share one
    /// position, `shared` is their run.
    pub(super) fn limit(
        &self,
        scene: &mut ActiveScene,
        tape: &PlayerTape,
        shared: Option<&TapeRun>,
    ) -> u32 {
        // A client that has left makes no more requests, so there is nothing to wait for.
        if self.has_left() {
            return NONE;
        }
        let others = self.queue.first_pending_entry(scene.group);
        // Nearly always the answer follows its request, and nothing follows the answer.
        if scene.next == scene.anchor + 1 && tape.index.entry(scene.next).next == NONE {
            return others;
        }
        let own = || self.runs.iter().find(|run| run.number == scene.group.0);
        let run = shared.or_else(own);
        others.min(run.map_or(NONE, |run| first_missing_entry(scene, tape, run)))
    }

    /// Removes and returns the first scene whose turn has come, and the entry before which it may
    /// continue. Once the client is silent, only the order among waiting scenes counts.
    pub(super) fn take_scene_in_turn(
        &mut self,
        group: OrderGroup,
        quiet: bool,
        tape: &PlayerTape,
        shared: Option<&TapeRun>,
    ) -> Option<(ActiveScene, u32)> {
        let (next, number) = self.queue.first_in_turn(group)?;
        // Another open scene has an earlier message, and the tape sends that one first.
        if !quiet && self.queue.first_pending_entry(group) < next {
            return None;
        }
        let mut scene = self.take_scene(number)?;
        let limit = match quiet {
            true => self.queue.first_in_turn(group).map_or(NONE, |(next, _)| next),
            false => self.limit(&mut scene, tape, shared),
        };
        // It would send nothing, so it goes back to wait.
        if limit <= next {
            self.store_scene(scene);
            return None;
        }
        Some((scene, limit))
    }
}

/// The first entry that belongs to a request that the recorded client made while this one was open, and
/// that the live client has not made yet.
fn first_missing_entry(scene: &mut ActiveScene, tape: &PlayerTape, run: &TapeRun) -> u32 {
    let index = &tape.index;
    let session = index.sessions().get(scene.group.1 as usize).cloned().unwrap_or_default();
    // A request found in another session of the tape has no order in this run.
    let is_other_session = run.session().is_some_and(|own| own != scene.group.1);
    if scene.ask == NONE || is_other_session {
        return NONE;
    }
    // Requests without a place in the order, and probes, may never come.
    let is_awaited = |request_number: u32| {
        !run.is_used(request_number)
            && !tape.is_unordered(request_number)
            && !tape.is_probe(request_number)
    };
    // Computed once: requests that come later are only removed from the list.
    let earlier = scene.earlier.get_or_insert_with(|| {
        let first = scene.ask.saturating_sub(LOOKED_MAX as u32).max(session.start);
        (first..scene.ask).filter(|request_number| is_awaited(*request_number)).collect()
    });
    // The live client may have made some of them meanwhile.
    earlier.retain(|request_number| is_awaited(*request_number));
    let mut limit = NONE;
    for request_number in earlier.iter() {
        let entry = tape.entry_of(*request_number);
        let first = if entry.next > scene.anchor { entry.next } else { entry.pair };
        if first > scene.anchor {
            limit = limit.min(first);
        }
    }
    while scene.asked_until < session.end && !is_awaited(scene.asked_until) {
        scene.asked_until += 1;
    }
    let later = (scene.asked_until..session.end).take(LOOKED_MAX);
    for request_number in later {
        // Nothing after the limit can lower it.
        if index.request(request_number).entry_number >= limit {
            break;
        }
        if is_awaited(request_number) {
            limit = limit.min(tape.entry_of(request_number).next);
        }
    }
    limit
}
