//! Collects what a tape contains: the server's identity, its lists and the requests it received.
//!
//! Only positions are kept; answers are read when the scenario is written.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use tapegate_core::frame::{Envelope, Frame, Kind};
use tapegate_core::json;
use tapegate_core::tape::index::NONE;

use super::hello::Hello;
use super::listing::{ItemKind, Listings};
use super::{Options, Tape};

/// What a tape contains.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) hello: Hello,
    pub(super) listings: Listings,
    /// All other operations, in order.
    pub(super) uses: Vec<Use>,
    /// Indices into `uses`, by what is used.
    places: HashMap<Of, HashMap<Rc<str>, Vec<usize>>>,
    /// How many tool calls there are.
    pub(super) calls: u64,
    /// The slot of the first client's `initialized` notification.
    pub(super) ready: Option<u32>,
    /// How many sessions contain operations.
    pub(super) sessions: usize,
    pub(super) warnings: Vec<String>,
}

/// One operation of a client.
#[derive(Debug, Clone)]
pub(super) struct Use {
    pub(super) of: Of,
    /// What is used: a name, a URI or a method.
    pub(super) key: Rc<str>,
    /// The slots of its requests; more than one if the server asked for input first.
    pub(super) asks: Vec<u32>,
    /// For a tool call its number, from 1; otherwise the number of calls before it.
    pub(super) ordinal: u64,
}

/// A range of calls: those after one, up to and including another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calls {
    pub(super) after: u64,
    pub(super) until: u64,
}

/// The kind of thing that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Of {
    Item(ItemKind),
    Method,
}

impl Gathered {
    /// All uses of one thing, in order.
    pub(super) fn uses_of(&self, of: Of, key: &str) -> Vec<&Use> {
        let places = self.places.get(&of).and_then(|keys| keys.get(key));
        places.into_iter().flatten().map(|place| &self.uses[*place]).collect()
    }

    /// The uses of one thing within a range of calls; if there are none, the nearest one.
    pub(super) fn uses_among(&self, of: Of, key: &str, calls: Calls) -> Vec<&Use> {
        let all = self.uses_of(of, key);
        let is_start = calls.after == 0;
        if is_start && of != Of::Item(ItemKind::Tool) {
            return all;
        }
        let is_among = |used: &&&Use| used.ordinal > calls.after && used.ordinal <= calls.until;
        let among: Vec<&Use> = all.iter().filter(is_among).copied().collect();
        if !among.is_empty() {
            return among;
        }
        let earlier = all.iter().rev().find(|used| used.ordinal <= calls.until);
        earlier.or(all.first()).into_iter().copied().collect()
    }

    /// The keys that were used, each once, in order of first use.
    pub(super) fn keys(&self, of: Of) -> Vec<Rc<str>> {
        let mut seen = std::collections::HashSet::new();
        let keys = self.uses.iter().filter(|used| used.of == of).map(|used| used.key.clone());
        keys.filter(|key| seen.insert(key.clone())).collect()
    }
}

/// Collects the contents of a tape in one pass.
pub(super) fn gather(tape: &mut Tape<'_>, options: &Options<'_>) -> io::Result<Gathered> {
    let mut gathering = Gathering::default();
    let wanted = |session: u32| options.session.is_none_or(|number| session + 1 == number);
    let mut slots: Vec<u32> = (0..tape.index.asks())
        .map(|ask| tape.index.ask(ask).slot)
        .filter(|slot| wanted(tape.index.slot(*slot).session))
        .collect();
    slots.sort_unstable();
    for slot in slots {
        gathering.request(tape, slot)?;
    }
    let mut gathered = gathering.gathered;
    gathered.listings.finish(&mut gathered.warnings);
    gathered.sessions = gathering.sessions.len();
    for &slot in tape.index.client_notifications() {
        let place = tape.index.slot(slot);
        if !wanted(place.session) {
            continue;
        }
        let frame = Frame::read(tape.bodies.body(place.offset, place.length)?);
        if frame.envelope().is_some_and(|said| said.is_method("notifications/initialized")) {
            gathered.ready = Some(slot);
            break;
        }
    }
    Ok(gathered)
}

/// A tape being read.
#[derive(Default)]
struct Gathering {
    gathered: Gathered,
    keys: HashMap<String, Rc<str>>,
    /// Uses for which the server asked for input, with the state that the client must repeat.
    waiting: Vec<Waiting>,
    sessions: std::collections::HashSet<u32>,
}

struct Waiting {
    used: usize,
    state: Option<Vec<u8>>,
}

/// The relevant parts of a request, owned.
struct Asked {
    method: String,
    /// What a call, read or get names.
    name: Option<String>,
    cursor: Option<Vec<u8>>,
    /// The protocol version that `initialize` asks for.
    wants: Option<String>,
    retry: Option<Option<Vec<u8>>>,
}

impl Asked {
    fn read(said: &Envelope<'_>) -> Option<Self> {
        let method = said.method?.decode().into_owned();
        let member = |name: &str| said.params.and_then(|params| json::member(params, name));
        let name = match method.as_str() {
            "tools/call" | "prompts/get" => said.name,
            "resources/read" => said.uri,
            _ => None,
        };
        let state = member("requestState").map(<[u8]>::to_vec);
        let retry = (state.is_some() || member("inputResponses").is_some()).then_some(state);
        Some(Self {
            name: name.map(|name| name.decode().into_owned()),
            cursor: member("cursor").filter(|cursor| *cursor != b"null").map(<[u8]>::to_vec),
            wants: member("protocolVersion").and_then(json::string).map(|it| it.to_string()),
            retry,
            method,
        })
    }
}

impl Gathering {
    fn request(&mut self, tape: &mut Tape<'_>, slot: u32) -> io::Result<()> {
        let place = tape.index.slot(slot);
        let frame = Frame::read(tape.text(&place)?);
        let Some(asked) = frame.envelope().and_then(Asked::read) else { return Ok(()) };
        let answer = (place.pair != NONE).then(|| tape.index.slot(place.pair));
        let frame = match &answer {
            Some(answer) => Frame::read(tape.text(answer)?),
            None => Frame::read(b"{}"),
        };
        let Some(said) = frame.envelope() else { return Ok(()) };
        if let Some(result) = said.result {
            self.gathered.hello.meet(result);
        }
        match asked.method.as_str() {
            "ping" | "subscriptions/listen" => {}
            "initialize" => self.gathered.hello.initialize(asked.wants.as_deref(), said),
            "server/discover" => self.gathered.hello.discover(said),
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                let kind = ItemKind::of_list(&asked.method);
                let calls = self.gathered.calls;
                if said.kind() == Kind::Response {
                    let list = self.gathered.listings.of(kind);
                    list.page((place.session, asked.cursor.as_deref()), said.result, calls);
                } else {
                    self.used(Of::Method, asked, slot, place.session, said);
                }
            }
            "tools/call" => self.used(Of::Item(ItemKind::Tool), asked, slot, place.session, said),
            "resources/read" => {
                self.used(Of::Item(ItemKind::Resource), asked, slot, place.session, said);
            }
            "prompts/get" => {
                self.used(Of::Item(ItemKind::Prompt), asked, slot, place.session, said);
            }
            _ => self.used(Of::Method, asked, slot, place.session, said),
        }
        Ok(())
    }

    /// Records a use, or the continuation of one.
    fn used(&mut self, of: Of, asked: Asked, slot: u32, session: u32, answer: &Envelope<'_>) {
        self.sessions.insert(session);
        let key = match (of, asked.name) {
            (Of::Method, _) => asked.method,
            (Of::Item(_), Some(name)) => name,
            // A call without a name is an error on every server.
            (Of::Item(_), None) => return,
        };
        let wants_more = answer.result.and_then(|result| json::member(result, "resultType"))
            == Some(b"\"input_required\"");
        let state = answer.result.and_then(|result| json::member(result, "requestState"));
        let before = asked.retry.as_ref().and_then(|state| {
            let uses = &self.gathered.uses;
            let same = |waiting: &Waiting| {
                let used = &uses[waiting.used];
                used.of == of && *used.key == *key && waiting.state == *state
            };
            self.waiting.iter().position(same)
        });
        let place = match before {
            Some(before) => {
                let place = self.waiting.swap_remove(before).used;
                self.gathered.uses[place].asks.push(slot);
                place
            }
            None => {
                let is_call = of == Of::Item(ItemKind::Tool);
                self.gathered.calls += u64::from(is_call);
                let shared = self.keys.entry(key).or_insert_with_key(|key| key.as_str().into());
                let (key, ordinal) = (shared.clone(), self.gathered.calls);
                let place = self.gathered.uses.len();
                let places = self.gathered.places.entry(of).or_default();
                places.entry(key.clone()).or_default().push(place);
                self.gathered.uses.push(Use { of, key, asks: vec![slot], ordinal });
                place
            }
        };
        if wants_more {
            self.waiting.push(Waiting { used: place, state: state.map(<[u8]>::to_vec) });
        }
    }
}
