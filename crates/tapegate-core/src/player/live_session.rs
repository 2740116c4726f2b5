//! One live session: who its client is, what the client was asked, and which scenes are active.

mod batches;
mod id_translation;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::order::SceneQueue;
use super::passthrough::PassthroughSession;
use super::scene::{ActiveScene, SceneWait};
use super::tape_run::TapeRun;
use crate::json;
use crate::pending::IdKey;
use batches::ReplyBatch;

/// How many tokens and names of past requests are remembered.
const NAMES_MAX: usize = 4096;

type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

#[derive(Default)]
pub(super) struct LiveSession {
    /// From 1.
    pub(super) number: u32,
    /// Whether sessionless clients share it.
    pub(super) shared: bool,
    /// What it has used of the tape; if it is shared, one run for each client there seems to be.
    pub(super) runs: Vec<TapeRun>,
    pub(super) runs_made: u32,
    /// The run that the last request belongs to.
    pub(super) run: u32,
    /// The raw params of its `initialize` request.
    pub(super) initialize: Option<Vec<u8>>,
    pub(super) passthrough: PassthroughSession,
    /// How often each notification was received.
    pub(super) notes: FastMap<Vec<u8>, usize>,
    /// The order of the active scenes.
    pub(super) queue: SceneQueue,
    scenes: FastMap<u32, ActiveScene>,
    scenes_made: u32,
    /// The scenes that wait for a time. Entries of scenes that no longer wait are left in.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    /// When everything still pending is sent, because the client has closed its sending end.
    hurry_ns: Option<u64>,
    /// Scenes by the id of their request.
    by_id: FastMap<IdKey, Vec<u32>>,
    /// Requests sent to the client, with their scene and the recorded request.
    client_requests: FastMap<IdKey, (u32, u32)>,
    /// The ids given to recorded requests of the server whose own ids were in use.
    renamed: FastMap<IdKey, Vec<u8>>,
    names_made: u64,
    tokens: FastMap<IdKey, Vec<u8>>,
    /// The live ids of subscriptions, by run and recorded id.
    subscriptions: FastMap<(u32, IdKey), Vec<u8>>,
    batches: FastMap<u32, ReplyBatch>,
    batches_made: u32,
    missing: HashSet<String>,
    /// The first recorded request of each method that the client cannot answer, until it is
    /// reported.
    missing_new: Vec<u32>,
}

impl LiveSession {
    pub(super) fn new(number: u32, shared: bool) -> Self {
        Self { number, shared, ..Self::default() }
    }

    pub(super) fn scene_number(&mut self) -> u32 {
        self.scenes_made = self.scenes_made.wrapping_add(1);
        self.scenes_made
    }

    /// Stores a waiting scene.
    pub(super) fn store_scene(&mut self, scene: ActiveScene) {
        if let SceneWait::Until(due) | SceneWait::Reply(_, due) | SceneWait::Cancel(due) =
            scene.wait
        {
            self.waiting.push(Reverse((due, scene.number)));
        }
        // An answered request cannot be cancelled, and its id may be used again.
        if let (Some(id), false) = (&scene.id, scene.answered) {
            let scenes = self.by_id.entry(IdKey::new(id.bytes())).or_default();
            if !scenes.contains(&scene.number) {
                scenes.push(scene.number);
            }
        }
        self.queue.insert(&scene);
        self.scenes.insert(scene.number, scene);
    }

    /// Removes a scene, to continue or to end it.
    pub(super) fn take_scene(&mut self, number: u32) -> Option<ActiveScene> {
        let scene = self.scenes.remove(&number)?;
        self.queue.remove(&scene);
        if let Some(id) = &scene.id {
            let key = IdKey::new(id.bytes());
            if let Some(scenes) = self.by_id.get_mut(&key) {
                scenes.retain(|other| *other != number);
                if scenes.is_empty() {
                    self.by_id.remove(&key);
                }
            }
        }
        Some(scene)
    }

    /// Removes and returns a scene that is due.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<ActiveScene> {
        while let Some(Reverse((due, number))) = self.waiting.peek().copied() {
            // A scene that was taken and stored again has a new entry, so this one is stale.
            if !self.is_waiting(number, due) {
                self.waiting.pop();
            } else if due <= now_ns {
                self.waiting.pop();
                return self.take_scene(number);
            } else {
                return None;
            }
        }
        None
    }

    /// When the next scene continues by itself.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        // A stale entry only causes one needless wake-up.
        let moment = self.waiting.peek().map(|Reverse((due, _))| *due);
        moment.into_iter().chain(self.queue.next_deadline()).min()
    }

    fn is_waiting(&self, number: u32, moment: u64) -> bool {
        self.scenes.get(&number).is_some_and(
            |scene| matches!(scene.wait, SceneWait::Until(due) | SceneWait::Reply(_, due) | SceneWait::Cancel(due) if due == moment),
        )
    }

    /// Whether an answer is still to be sent without further client input.
    pub(super) fn is_busy(&self) -> bool {
        let due = |scene: &ActiveScene| {
            // A scene that waits for a reply or a cancellation needs the client, which may have
            // left.
            matches!(scene.wait, SceneWait::Until(_) | SceneWait::Turn) && !scene.answered
        };
        self.scenes.values().any(|scene| due(scene) && scene.id.is_some())
            || self.passthrough.is_busy()
    }

    /// The client has closed its sending end: send everything by `by_ns`. Returns true if the
    /// answer to a request would have been sent later.
    pub(super) fn expedite(&mut self, by_ns: u64) -> bool {
        self.hurry_ns = Some(by_ns);
        let late = |scene: &ActiveScene| matches!(scene.wait, SceneWait::Until(due) if due > by_ns);
        let mut hurried = false;
        for number in self.numbers(late) {
            let Some(mut scene) = self.take_scene(number) else { continue };
            hurried |= scene.id.is_some() && !scene.answered;
            scene.wait = SceneWait::Until(by_ns);
            self.store_scene(scene);
        }
        hurried
    }

    /// Whether the client has closed its sending end.
    pub(super) fn has_left(&self) -> bool {
        self.hurry_ns.is_some()
    }

    /// When to send something that is due at `due_ns`.
    pub(super) fn clamp_due(&self, due_ns: u64) -> u64 {
        self.hurry_ns.map_or(due_ns, |hurry_ns| due_ns.min(hurry_ns))
    }

    /// Removes the scenes that wait for an answer of the client.
    pub(super) fn take_unreplied(&mut self) -> Vec<ActiveScene> {
        let numbers = self.numbers(|scene| matches!(scene.wait, SceneWait::Reply(..)));
        numbers.into_iter().filter_map(|number| self.take_scene(number)).collect()
    }

    /// The numbers of the scenes selected by `is_one`, in order.
    fn numbers(&self, is_one: impl Fn(&ActiveScene) -> bool) -> Vec<u32> {
        let scenes = self.scenes.values().filter(|scene| is_one(scene));
        let mut numbers: Vec<u32> = scenes.map(|scene| scene.number).collect();
        // The map has no order, but scenes continue in the order of their requests.
        numbers.sort_unstable();
        numbers
    }

    /// Removes the newest scene of a request that the client cancels.
    pub(super) fn take_cancelled(&mut self, id: &[u8]) -> Option<ActiveScene> {
        let number = *self.by_id.get(&IdKey::new(id))?.last()?;
        self.take_scene(number)
    }

    /// Whether the client has declared that it can answer this request of a server.
    pub(super) fn client_supports(&self, method: &[u8]) -> bool {
        let capability = match method {
            b"sampling/createMessage" => "sampling",
            b"elicitation/create" => "elicitation",
            b"roots/list" => "roots",
            method if method.starts_with(b"tasks/") => "tasks",
            _ => return true,
        };
        let capabilities =
            self.initialize.as_deref().and_then(|params| json::member(params, "capabilities"));
        capabilities.and_then(|all| json::member(all, capability)).is_some_and(|one| one != b"null")
    }

    /// Notes that the client cannot answer a recorded request of the server.
    pub(super) fn note_unsupported(&mut self, method: &str, request: u32) {
        // Each method is reported once, however often the tape has it.
        if self.missing.len() < NAMES_MAX && self.missing.insert(method.to_owned()) {
            self.missing_new.push(request);
        }
    }

    /// The requests that the client cannot answer, found since this was last called.
    pub(super) fn take_unsupported(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.missing_new)
    }
}
