//! Connects the messages of a session: answers to requests, and messages to scenes.

use std::collections::HashMap;

use super::NONE;
use super::open::{Open, Request};
use super::packed::{Flag, Packed};
use super::told::Told;
use crate::frame::Kind;
use crate::side::Side;
use crate::signature::Key;

/// A session while it is being indexed.
#[derive(Debug)]
pub(super) struct Session {
    /// Its number on the tape, from 0.
    pub(super) number: u32,
    of_client: Open,
    of_server: Open,
    /// The slot of the client's `initialize`, and whether the server has accepted it.
    introduced: Option<(u32, bool)>,
    /// The client's latest request.
    latest: Option<Latest>,
    /// The scene that the previous message belongs to; [`NONE`] before the first scene.
    current: u32,
    /// The first scene.
    first: u32,
    /// The first and last of the messages before the first scene.
    early: Option<(u32, u32)>,
}

#[derive(Debug)]
struct Latest {
    slot: u32,
    token: Option<Key>,
}

/// All slots so far, and the ends of scenes.
#[derive(Debug, Default)]
pub(super) struct Scenes {
    pub(super) slots: Vec<Packed>,
    /// The last slot of scenes that do not end with their answer or, without one, with their first
    /// message.
    tails: HashMap<u32, u32, foldhash::fast::RandomState>,
    /// The first slot of this recording.
    start: u32,
    /// Whether the numbers of this recording are not strictly increasing.
    unordered: bool,
}

/// Where a message belongs.
enum Place {
    /// It begins a scene.
    First,
    /// It belongs to the scene that begins with this slot; before all scenes if that is [`NONE`].
    In(u32),
    /// It belongs to no scene.
    Nowhere,
}

impl Session {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            of_client: Open::default(),
            of_server: Open::default(),
            introduced: None,
            latest: None,
            current: NONE,
            first: NONE,
            early: None,
        }
    }

    /// Whether another `initialize` begins another session. One that was refused may be repeated.
    pub(super) fn is_introduced(&self) -> bool {
        self.introduced.is_some_and(|(_, accepted)| accepted)
    }

    /// Puts the last message into its scene, and pairs it.
    pub(super) fn put(&mut self, told: &Told, scenes: &mut Scenes) {
        let slot = scenes.slots.len() as u32 - 1;
        let place = self.place(told, slot, scenes);
        if told.initialize {
            self.introduced = Some((slot, false));
        }
        match place {
            Place::First => self.begin(slot, scenes),
            Place::In(NONE) if self.first == NONE => self.wait(slot, scenes),
            Place::In(scene) => {
                let scene = if scene == NONE { self.first } else { scene };
                scenes.chain(scene, slot);
                self.current = scene;
            }
            Place::Nowhere => {}
        }
        if let (Kind::Request, Some(id)) = (told.kind, told.id) {
            let token = told.token;
            let (asker, scene) = match told.from {
                Side::Client => {
                    self.latest = Some(Latest { slot, token });
                    (&mut self.of_client, if told.ping { NONE } else { slot })
                }
                Side::Server => (&mut self.of_server, self.current),
            };
            asker.ask(id, Request { slot, seq: told.seq, scene, token });
        }
    }

    fn place(&mut self, told: &Told, slot: u32, scenes: &mut Scenes) -> Place {
        match (told.from, told.kind) {
            // Nothing may depend on a ping, since it is never played.
            (Side::Client, Kind::Request) if told.ping => Place::Nowhere,
            (Side::Client, Kind::Request) => Place::First,
            (Side::Client, Kind::Notification) => {
                if let Some(id) = told.cancels {
                    scenes.cancel(self.of_client.with_id(id));
                }
                Place::First
            }
            (_, Kind::Response | Kind::Error) => self.answer(told, slot, scenes),
            (Side::Client, Kind::Other) => Place::Nowhere,
            (Side::Server, Kind::Notification) => {
                Place::In(self.request_of(told).unwrap_or(self.current))
            }
            (Side::Server, Kind::Request | Kind::Other) => Place::In(self.current),
        }
    }

    /// Pairs an answer with its request.
    fn answer(&mut self, told: &Told, slot: u32, scenes: &mut Scenes) -> Place {
        let asker = match told.from {
            Side::Client => &mut self.of_server,
            Side::Server => &mut self.of_client,
        };
        let done = |slot: u32| scenes.slots[slot as usize].pair != NONE;
        let asked = told.id.and_then(|id| asker.answer(id, told.req, done));
        let (asked, scene) = match (asked, told.req) {
            (Some(asked), _) => (asked.slot, asked.scene),
            // An answer may name a request whose id was edited away.
            (None, Some(req)) => match scenes.numbered(req, slot) {
                Some(asked) if told.from == Side::Server => (asked, asked),
                Some(asked) => (asked, self.current),
                None => return Place::Nowhere,
            },
            (None, None) => return Place::Nowhere,
        };
        if let Some((introduction, accepted)) = &mut self.introduced {
            *accepted |= *introduction == asked && told.kind == Kind::Response;
        }
        scenes.slots[asked as usize].pair = slot;
        scenes.slots[slot as usize].pair = asked;
        // Only a ping from the client belongs to no scene.
        if told.from == Side::Server && scene == NONE { Place::Nowhere } else { Place::In(scene) }
    }

    /// The client's request that a progress notification from the server refers to. A notification
    /// on a subscription belongs to the message before it, which is likely to have caused it.
    fn request_of(&self, told: &Told) -> Option<u32> {
        let token = told.token?;
        let latest = self.latest.as_ref().filter(|latest| latest.token == Some(token));
        self.of_client.with_token(token).or_else(|| latest.map(|latest| latest.slot))
    }

    fn begin(&mut self, slot: u32, scenes: &mut Scenes) {
        self.current = slot;
        if self.first == NONE {
            self.first = slot;
        }
        if let Some((head, tail)) = self.early.take() {
            scenes.slots[slot as usize].next = head;
            scenes.tails.insert(slot, tail);
        }
    }

    /// Keeps a message until the first scene begins.
    fn wait(&mut self, slot: u32, scenes: &mut Scenes) {
        match &mut self.early {
            Some((_, tail)) => {
                scenes.slots[*tail as usize].next = slot;
                *tail = slot;
            }
            None => self.early = Some((slot, slot)),
        }
    }
}

impl Scenes {
    /// Begins another recording with the next slot.
    pub(super) fn part(&mut self) {
        (self.start, self.unordered) = (self.slots.len() as u32, false);
    }

    pub(super) fn push(&mut self, packed: Packed) {
        let before = self.slots[self.start as usize..].last();
        self.unordered |= before.is_some_and(|before| before.number >= packed.number);
        self.slots.push(packed);
    }

    /// Marks unanswered requests as cancelled. If one is marked, all before it are.
    fn cancel(&mut self, requests: impl Iterator<Item = u32>) {
        for request in requests {
            let packed = &mut self.slots[request as usize];
            if packed.has(Flag::Cancelled) {
                break;
            }
            packed.set(Flag::Cancelled, packed.pair == NONE);
        }
    }

    /// The request with this number in the same recording, if the answer in `slot` can be for it.
    fn numbered(&self, number: u64, slot: u32) -> Option<u32> {
        let number = u32::try_from(number).ok().filter(|_| !self.unordered)?;
        let part = &self.slots[self.start as usize..];
        let place = part.binary_search_by_key(&number, |slot| slot.number).ok()?;
        let (asked, answer) = (&part[place], &self.slots[slot as usize]);
        let fits = asked.kind() == Kind::Request
            && asked.from() == answer.from().other()
            && asked.session() == answer.session()
            && asked.pair == NONE;
        fits.then_some(self.start + place as u32)
    }

    /// Appends a slot to a scene.
    fn chain(&mut self, scene: u32, slot: u32) {
        let answer = self.slots[scene as usize].pair;
        let tail = match self.tails.get(&scene) {
            Some(tail) => *tail,
            None if answer == NONE || answer == slot => scene,
            None => answer,
        };
        self.slots[tail as usize].next = slot;
        if answer == slot {
            self.tails.remove(&scene);
        } else {
            self.tails.insert(scene, slot);
        }
    }
}
