//! The order in which scenes go on when nothing takes time.
//!
//! With `instant` no recorded delay is kept, but the order of the tape is. A scene waits for its
//! turn while another open scene has something earlier to say, and while a request is missing that
//! the tape's client had made by then. A client that stays silent makes no more requests, so the
//! wait ends some time after its last message: a long time at first, because a starved client on a
//! busy machine needs it, and a short one once this client has not made a request that was waited for.

use std::collections::{BTreeMap, BTreeSet};

use super::live::Live;
use super::run::Run;
use super::scene::{Scene, Wait};
use super::tape::Tape;
use crate::tape::index::NONE;

/// How long after its last message a client is waited for that has so far made every request that was
/// waited for. It costs nothing then: the wait ends with the request.
const TRUSTED_QUIET_NS: u64 = 1_000_000_000;
/// The same for a client that has once not made such a request, or has made one that is not on the tape:
/// it may never make the others.
const QUIET_NS: u64 = 50_000_000;
/// A wake-up that comes this much too late means that the machine is busy, and so may the client be.
const LATE_NS: u64 = 10_000_000;
/// How many requests are looked at on either side of the one that is answered.
const LOOKED_MAX: usize = 256;

/// What is in order together: one conversation, in one session of the tape.
pub(super) type Group = (u32, u32);

/// The scenes of a session that wait, by what they say next.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The next slot and the number of each scene that is not over.
    open: BTreeMap<Group, BTreeSet<(u32, u32)>>,
    /// Those among them that wait for their turn.
    turns: BTreeMap<Group, BTreeSet<(u32, u32)>>,
    /// When the client was heard last.
    heard_ns: u64,
    /// Whether a late wake-up was taken for a busy machine since then.
    excused: bool,
    /// Whether the client has once not made a request that was waited for, or made another one.
    gave_up: bool,
}

impl Queue {
    /// Notes that the client has said something.
    pub(super) fn hear(&mut self, now_ns: u64) {
        (self.heard_ns, self.excused) = (now_ns, false);
    }

    /// Notes that the client does not do as the tape's client did, so that little is worth waiting for.
    pub(super) fn give_up(&mut self) {
        self.gave_up = true;
    }

    /// When scenes no longer wait for their turn, if any does.
    pub(super) fn due(&self) -> Option<u64> {
        (!self.turns.is_empty()).then_some(self.quiet_from_ns())
    }

    /// When the client counts as silent, if it says nothing until then.
    fn quiet_from_ns(&self) -> u64 {
        let quiet_ns = if self.gave_up { QUIET_NS } else { TRUSTED_QUIET_NS };
        self.heard_ns.saturating_add(quiet_ns)
    }

    /// Whether the client has been silent for so long that nothing is waited for. After a late
    /// wake-up it is given the same time again, once: its message may be there already.
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

    /// The next slot of the scene that comes first in its group.
    fn first_open(&self, group: Group) -> u32 {
        self.open.get(&group).and_then(|open| open.first()).map_or(NONE, |(next, _)| *next)
    }

    /// The scene that is first to get its turn.
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
    /// The slot before which a scene, which is not kept, may go on.
    /// With one place for all sessions, `shared` is what they have used of the tape.
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

    /// Takes the scene out that is first to get its turn, if it has come, and the slot before which
    /// it may go on. Once the client is silent, only the order among such scenes counts.
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

/// The first slot that belongs to a request which the tape's client made while this one was open,
/// and the live client has not made yet.
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
