//! Connects the messages of a session: answers to requests, and messages to scenes.

use std::collections::HashMap;

use super::NONE;
use super::open_requests::{OpenRequests, UnpairedRequest};
use super::packed_entry::{EntryFlag, PackedEntry};
use super::raw_entry::RawEntry;
use crate::frame::MessageKind;
use crate::side::Side;
use crate::signature::HashedKey;

/// A session while it is being indexed.
#[derive(Debug)]
pub(super) struct SessionBuilder {
    /// Its number on the tape, from 0.
    pub(super) number: u32,
    of_client: OpenRequests,
    of_server: OpenRequests,
    /// The entry of the client's `initialize`, and whether the server has accepted it.
    introduced: Option<(u32, bool)>,
    /// The client's latest request.
    latest: Option<LatestRequest>,
    /// The scene that the previous message belongs to; [`NONE`] before the first scene.
    current: u32,
    /// The first scene.
    first: u32,
    /// The first and last of the messages before the first scene.
    early: Option<(u32, u32)>,
}

#[derive(Debug)]
struct LatestRequest {
    entry_number: u32,
    token: Option<HashedKey>,
}

/// All entries so far, and the ends of scenes.
#[derive(Debug, Default)]
pub(super) struct SceneBuilder {
    pub(super) entries: Vec<PackedEntry>,
    /// The last entry of scenes that do not end with their answer or, without one, with their first
    /// message.
    tails: HashMap<u32, u32, foldhash::fast::RandomState>,
    /// The first entry of this recording.
    start: u32,
    /// Whether the numbers of this recording are not strictly increasing.
    unordered: bool,
}

/// Where a message belongs.
enum ScenePosition {
    /// It begins a scene.
    First,
    /// It belongs to the scene that begins with this entry; before all scenes if that is [`NONE`].
    In(u32),
    /// It belongs to no scene.
    Nowhere,
}

impl SessionBuilder {
    pub(super) fn new(number: u32) -> Self {
        Self {
            number,
            of_client: OpenRequests::default(),
            of_server: OpenRequests::default(),
            introduced: None,
            latest: None,
            current: NONE,
            first: NONE,
            early: None,
        }
    }

    /// Whether another `initialize` begins another session. One that was refused may be repeated.
    pub(super) fn is_initialized(&self) -> bool {
        self.introduced.is_some_and(|(_, accepted)| accepted)
    }

    /// Puts the last message into its scene, and pairs it.
    pub(super) fn add(&mut self, raw: &RawEntry, scenes: &mut SceneBuilder) {
        let entry_number = scenes.entries.len() as u32 - 1;
        let place = self.place_of(raw, entry_number, scenes);
        if raw.initialize {
            self.introduced = Some((entry_number, false));
        }
        match place {
            ScenePosition::First => self.begin(entry_number, scenes),
            // Nothing has begun that the message could belong to.
            ScenePosition::In(NONE) if self.first == NONE => self.wait(entry_number, scenes),
            ScenePosition::In(scene) => {
                let scene = if scene == NONE { self.first } else { scene };
                scenes.append_entry(scene, entry_number);
                self.current = scene;
            }
            ScenePosition::Nowhere => {}
        }
        if let (MessageKind::Request, Some(id)) = (raw.kind, raw.id) {
            let token = raw.token;
            let (asker, scene) = match raw.from {
                Side::Client => {
                    self.latest = Some(LatestRequest { entry_number, token });
                    // A ping is answered without the tape, so nothing may wait for its scene.
                    (&mut self.of_client, if raw.ping { NONE } else { entry_number })
                }
                Side::Server => (&mut self.of_server, self.current),
            };
            asker.add(id, UnpairedRequest { entry_number, seq: raw.seq, scene, token });
        }
    }

    fn place_of(
        &mut self,
        raw: &RawEntry,
        entry_number: u32,
        scenes: &mut SceneBuilder,
    ) -> ScenePosition {
        match (raw.from, raw.kind) {
            // Nothing may depend on a ping, since it is never played.
            (Side::Client, MessageKind::Request) if raw.ping => ScenePosition::Nowhere,
            (Side::Client, MessageKind::Request) => ScenePosition::First,
            (Side::Client, MessageKind::Notification) => {
                if let Some(id) = raw.cancels {
                    scenes.cancel(self.of_client.with_id(id));
                }
                ScenePosition::First
            }
            (_, MessageKind::Response | MessageKind::Error) => {
                self.pair_answer(raw, entry_number, scenes)
            }
            (Side::Client, MessageKind::Other) => ScenePosition::Nowhere,
            (Side::Server, MessageKind::Notification) => {
                ScenePosition::In(self.request_of(raw).unwrap_or(self.current))
            }
            (Side::Server, MessageKind::Request | MessageKind::Other) => {
                ScenePosition::In(self.current)
            }
        }
    }

    /// Pairs an answer with its request.
    fn pair_answer(
        &mut self,
        raw: &RawEntry,
        entry_number: u32,
        scenes: &mut SceneBuilder,
    ) -> ScenePosition {
        let asker = match raw.from {
            Side::Client => &mut self.of_server,
            Side::Server => &mut self.of_client,
        };
        let done = |entry_number: u32| scenes.entries[entry_number as usize].pair != NONE;
        let unpaired_request = raw.id.and_then(|id| asker.take_answered(id, raw.req, done));
        let (request_entry_number, scene) = match (unpaired_request, raw.req) {
            (Some(unpaired_request), _) => (unpaired_request.entry_number, unpaired_request.scene),
            // An answer may name a request whose id was edited away.
            (None, Some(req)) => match scenes.find_numbered(req, entry_number) {
                Some(request_entry_number) if raw.from == Side::Server => {
                    (request_entry_number, request_entry_number)
                }
                Some(request_entry_number) => (request_entry_number, self.current),
                None => return ScenePosition::Nowhere,
            },
            (None, None) => return ScenePosition::Nowhere,
        };
        if let Some((introduction, accepted)) = &mut self.introduced {
            // Only a result opens the session; after an error the client may try again.
            *accepted |= *introduction == request_entry_number && raw.kind == MessageKind::Response;
        }
        scenes.entries[request_entry_number as usize].pair = entry_number;
        scenes.entries[entry_number as usize].pair = request_entry_number;
        // Only a ping from the client belongs to no scene.
        if raw.from == Side::Server && scene == NONE {
            ScenePosition::Nowhere
        } else {
            ScenePosition::In(scene)
        }
    }

    /// The client's request that a progress notification from the server refers to. A notification
    /// on a subscription belongs to the message before it, which is likely to have caused it.
    fn request_of(&self, raw: &RawEntry) -> Option<u32> {
        let token = raw.token?;
        let latest = self.latest.as_ref().filter(|latest| latest.token == Some(token));
        // The request may be answered already: some servers report progress late.
        self.of_client.with_token(token).or_else(|| latest.map(|latest| latest.entry_number))
    }

    fn begin(&mut self, entry_number: u32, scenes: &mut SceneBuilder) {
        self.current = entry_number;
        if self.first == NONE {
            self.first = entry_number;
        }
        // Messages before the first request are played with it, or they would never be sent.
        if let Some((head, tail)) = self.early.take() {
            scenes.entries[entry_number as usize].next = head;
            scenes.tails.insert(entry_number, tail);
        }
    }

    /// Keeps a message until the first scene begins.
    fn wait(&mut self, entry_number: u32, scenes: &mut SceneBuilder) {
        match &mut self.early {
            Some((_, tail)) => {
                scenes.entries[*tail as usize].next = entry_number;
                *tail = entry_number;
            }
            None => self.early = Some((entry_number, entry_number)),
        }
    }
}

impl SceneBuilder {
    /// Begins another recording with the next entry.
    pub(super) fn begin_recording(&mut self) {
        (self.start, self.unordered) = (self.entries.len() as u32, false);
    }

    pub(super) fn push(&mut self, packed: PackedEntry) {
        let before = self.entries[self.start as usize..].last();
        // The search by number is a binary search, which needs rising numbers.
        self.unordered |= before.is_some_and(|before| before.number >= packed.number);
        self.entries.push(packed);
    }

    /// Marks unanswered requests as cancelled. If one is marked, all before it are.
    fn cancel(&mut self, requests: impl Iterator<Item = u32>) {
        for request in requests {
            let packed = &mut self.entries[request as usize];
            // An earlier cancellation has marked this one and all before it.
            if packed.has_flag(EntryFlag::Cancelled) {
                break;
            }
            packed.set(EntryFlag::Cancelled, packed.pair == NONE);
        }
    }

    /// The request with this number in the same recording, if the answer at `entry_number` can be
    /// for it.
    fn find_numbered(&self, number: u64, entry_number: u32) -> Option<u32> {
        let number = u32::try_from(number).ok().filter(|_| !self.unordered)?;
        let part = &self.entries[self.start as usize..];
        let index = part.binary_search_by_key(&number, |entry_number| entry_number.number).ok()?;
        let (request, answer) = (&part[index], &self.entries[entry_number as usize]);
        // The id does not match, so everything else must.
        let fits = request.kind() == MessageKind::Request
            && request.from() == answer.from().other()
            && request.session() == answer.session()
            && request.pair == NONE;
        fits.then_some(self.start + index as u32)
    }

    /// Appends an entry to a scene.
    fn append_entry(&mut self, scene: u32, entry_number: u32) {
        let answer = self.entries[scene as usize].pair;
        let tail = match self.tails.get(&scene) {
            Some(tail) => *tail,
            None if answer == NONE || answer == entry_number => scene,
            None => answer,
        };
        self.entries[tail as usize].next = entry_number;
        if answer == entry_number {
            // The answer is the tail by default, so most scenes need no entry in the map.
            self.tails.remove(&scene);
        } else {
            self.tails.insert(scene, entry_number);
        }
    }
}
