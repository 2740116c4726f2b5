//! One live session: who the client is, what it was asked, and which scenes are under way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::behind::Behind;
use super::run::Run;
use super::scene::{Scene, Wait};
use crate::actor::Act;
use crate::frame::same_id;
use crate::json::{self, Edits};
use crate::pending::IdKey;

/// How many tokens and names of past requests are remembered.
const NAMES_MAX: usize = 4096;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// One live session.
#[derive(Default)]
pub(super) struct Live {
    /// From 1.
    pub(super) number: u32,
    /// Whether clients without sessions share it.
    pub(super) shared: bool,
    /// What it has used of the tape; of a shared one, a run for each client that seems to be there.
    pub(super) runs: Vec<Run>,
    pub(super) runs_made: u32,
    /// The run that what was asked last belongs to.
    pub(super) run: u32,
    /// The raw params of its initialize.
    pub(super) initialize: Option<Vec<u8>>,
    pub(super) behind: Behind,
    /// How often each notification came.
    pub(super) notes: Map<Vec<u8>, usize>,
    scenes: Map<u32, Scene>,
    scenes_made: u32,
    /// Which scenes wait for a moment; those that wait no longer are left in.
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    /// Scenes by the id of their request.
    by_id: Map<IdKey, Vec<u32>>,
    /// What the client was asked: in which scene, by which recorded request.
    asked: Map<IdKey, (u32, u32)>,
    /// The names that recorded requests of the server were given, where they had to be.
    renamed: Map<IdKey, Vec<u8>>,
    names_made: u32,
    tokens: Map<IdKey, Vec<u8>>,
    /// The live ids of subscriptions, by run and recorded id.
    subscriptions: Map<(u32, IdKey), Vec<u8>>,
    batches: Map<u32, Batch>,
    batches_made: u32,
    missing: HashSet<String>,
    missing_new: Vec<String>,
}

/// Answers that are given together.
#[derive(Default)]
struct Batch {
    waiting: usize,
    answers: Vec<Vec<u8>>,
}

impl Live {
    pub(super) fn new(number: u32, shared: bool) -> Self {
        Self { number, shared, ..Self::default() }
    }

    pub(super) fn scene_number(&mut self) -> u32 {
        self.scenes_made = self.scenes_made.wrapping_add(1);
        self.scenes_made
    }

    /// Keeps a scene that waits.
    pub(super) fn keep(&mut self, scene: Scene) {
        if let Wait::Until(due) | Wait::Reply(_, due) = scene.wait {
            self.waiting.push(Reverse((due, scene.number)));
        }
        if let (Some(id), false) = (&scene.id, scene.answered) {
            let scenes = self.by_id.entry(IdKey::new(id.bytes())).or_default();
            if !scenes.contains(&scene.number) {
                scenes.push(scene.number);
            }
        }
        self.scenes.insert(scene.number, scene);
    }

    /// Takes a scene out, to play on or to end it.
    pub(super) fn take(&mut self, number: u32) -> Option<Scene> {
        let scene = self.scenes.remove(&number)?;
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

    /// Takes a scene whose moment has come.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<Scene> {
        while let Some(Reverse((due, number))) = self.waiting.peek().copied() {
            if !self.is_waiting(number, due) {
                self.waiting.pop();
            } else if due <= now_ns {
                self.waiting.pop();
                return self.take(number);
            } else {
                return None;
            }
        }
        None
    }

    /// When the next scene goes on by itself.
    pub(super) fn due(&self) -> Option<u64> {
        // A moment that nobody waits for any more costs one look in vain.
        self.waiting.peek().map(|Reverse((due, _))| *due)
    }

    fn is_waiting(&self, number: u32, moment: u64) -> bool {
        self.scenes.get(&number).is_some_and(
            |scene| matches!(scene.wait, Wait::Until(due) | Wait::Reply(_, due) if due == moment),
        )
    }

    /// Whether an answer is to come without the client saying more.
    pub(super) fn is_busy(&self) -> bool {
        let due = |scene: &Scene| matches!(scene.wait, Wait::Until(_)) && !scene.answered;
        self.scenes.values().any(|scene| due(scene) && scene.id.is_some()) || self.behind.is_busy()
    }

    /// The scenes that wait for an answer of the client.
    pub(super) fn take_unreplied(&mut self) -> Vec<Scene> {
        let waits = |scene: &&Scene| matches!(scene.wait, Wait::Reply(..));
        let mut numbers: Vec<u32> =
            self.scenes.values().filter(waits).map(|scene| scene.number).collect();
        numbers.sort_unstable();
        numbers.into_iter().filter_map(|number| self.take(number)).collect()
    }

    /// The newest scene of a request that the client takes back.
    pub(super) fn take_cancelled(&mut self, id: &[u8]) -> Option<Scene> {
        let number = *self.by_id.get(&IdKey::new(id))?.last()?;
        self.take(number)
    }

    /// What the client answers, if it was asked in a scene: which, and by which recorded request.
    pub(super) fn reply(&mut self, id: &[u8]) -> Option<(u32, u32)> {
        self.asked.remove(&IdKey::new(id))
    }

    /// Notes that the client was asked something.
    pub(super) fn ask(&mut self, id: IdKey, scene: u32, request: u32) {
        self.asked.insert(id, (scene, request));
    }

    /// The id for a request of the server: the recorded one, unless it is in use.
    pub(super) fn name_for(&mut self, recorded: &[u8]) -> Vec<u8> {
        let key = IdKey::new(recorded);
        if !self.is_in_use(&key) {
            self.renamed.remove(&key);
            return recorded.to_vec();
        }
        let name = self.fresh_name();
        if self.renamed.len() < NAMES_MAX {
            self.renamed.insert(key, name.clone());
        }
        name
    }

    /// An id that nothing in the session has.
    pub(super) fn fresh_name(&mut self) -> Vec<u8> {
        loop {
            self.names_made += 1;
            let name = format!("\"tapegate-{}\"", self.names_made).into_bytes();
            if !self.is_in_use(&IdKey::new(&name)) {
                return name;
            }
        }
    }

    pub(super) fn is_in_use(&self, id: &IdKey) -> bool {
        self.asked.contains_key(id) || self.behind.has_asked(id)
    }

    /// The id that a recorded request of the server, which waits for its answer, went out with.
    pub(super) fn sent_as<'a>(&'a self, recorded: &'a [u8]) -> Option<&'a [u8]> {
        let key = IdKey::new(recorded);
        match self.renamed.get(&key) {
            Some(name) => Some(name),
            None => self.asked.contains_key(&key).then_some(recorded),
        }
    }

    /// Remembers which live token stands for a recorded one.
    pub(super) fn learn_token(&mut self, recorded: &[u8], token: &[u8]) {
        if self.tokens.len() >= NAMES_MAX {
            self.tokens.clear();
        }
        self.tokens.insert(IdKey::new(recorded), token.to_vec());
    }

    /// The live token that stands for a recorded one.
    pub(super) fn token(&self, recorded: &[u8]) -> Option<&[u8]> {
        self.tokens.get(&IdKey::new(recorded)).map(Vec::as_slice)
    }

    /// Remembers which live subscription stands for a recorded one.
    pub(super) fn subscribe(&mut self, run: u32, recorded: &[u8], id: &[u8]) {
        if self.subscriptions.len() >= NAMES_MAX {
            self.subscriptions.clear();
        }
        self.subscriptions.insert((run, IdKey::new(recorded)), id.to_vec());
    }

    /// Forgets a subscription that the client has ended.
    pub(super) fn unsubscribe(&mut self, id: &[u8]) {
        self.subscriptions.retain(|_, subscription| !same_id(subscription, id));
    }

    /// The id of the live subscription that stands for a recorded one.
    pub(super) fn subscription(&self, run: u32, recorded: &[u8]) -> Option<&[u8]> {
        self.subscriptions.get(&(run, IdKey::new(recorded))).map(Vec::as_slice)
    }

    /// Whether the client has said that it can answer this request of a server.
    pub(super) fn can(&self, method: &[u8]) -> bool {
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

    /// Notes that the client cannot answer a request of the server.
    pub(super) fn missing(&mut self, method: &str) {
        if self.missing.len() < NAMES_MAX && self.missing.insert(method.to_owned()) {
            self.missing_new.push(method.to_owned());
        }
    }

    /// What the client turned out not to be able to answer since the last look.
    pub(super) fn take_missing(&mut self) -> Vec<String> {
        std::mem::take(&mut self.missing_new)
    }

    /// Begins a batch of answers.
    pub(super) fn open_batch(&mut self) -> u32 {
        self.batches_made = self.batches_made.wrapping_add(1);
        self.batches.insert(self.batches_made, Batch { waiting: 1, answers: Vec::new() });
        self.batches_made
    }

    /// Has a batch wait for one more answer.
    pub(super) fn expect(&mut self, batch: Option<u32>) {
        if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
            batch.waiting += 1;
        }
    }

    /// Has a batch wait for one answer less, and gives the answers if that was the last.
    pub(super) fn settle(&mut self, number: Option<u32>, act: &mut dyn FnMut(Act<'_>)) {
        let Some(number) = number else { return };
        let Some(batch) = self.batches.get_mut(&number) else { return };
        batch.waiting = batch.waiting.saturating_sub(1);
        if batch.waiting > 0 {
            return;
        }
        let answers = self.batches.remove(&number).unwrap_or_default().answers;
        if !answers.is_empty() {
            act(Act::Say(&[b"[", &answers.join(&b","[..]), b"]"]));
        }
    }

    /// Gives an answer, in which `recorded` is the id, with the id of the live request, now or
    /// with its batch.
    pub(super) fn answer(
        &mut self,
        line: &[u8],
        recorded: Option<&[u8]>,
        id: Option<&[u8]>,
        batch: Option<u32>,
        act: &mut dyn FnMut(Act<'_>),
    ) {
        let (Some(recorded), Some(id)) = (recorded, id) else { return };
        if batch.is_some() {
            let mut edits = Edits::new(line);
            edits.replace(recorded, id);
            return self.give(edits.finish().into_owned(), batch, act);
        }
        let Some(place) = json::place_of(recorded, line) else { return };
        act(Act::Say(&[&line[..place.start], id, &line[place.end..]]));
    }

    /// Gives an answer as it is, now or with its batch.
    pub(super) fn give(
        &mut self,
        answer: Vec<u8>,
        number: Option<u32>,
        act: &mut dyn FnMut(Act<'_>),
    ) {
        match number.and_then(|number| self.batches.get_mut(&number)) {
            Some(batch) => {
                batch.answers.push(answer);
                self.settle(number, act);
            }
            None => act(Act::Say(&[&answer])),
        }
    }
}
