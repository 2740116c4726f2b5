//! Collects what a tape contains: the server's identity, its lists and the requests it received.
//!
//! Only positions are kept; answers are read when the scenario is written.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use tapegate_core::frame::{Envelope, Frame, MessageKind};
use tapegate_core::json;
use tapegate_core::tape::index::NONE;

use super::server_hello::ServerHello;
use super::tape_listings::TapeListings;
use super::{ConversionInput, ConversionOptions};
use crate::model::ItemKind;

/// What a tape contains.
#[derive(Debug, Default)]
pub(super) struct TapeContents {
    pub(super) hello: ServerHello,
    pub(super) listings: TapeListings,
    /// All other operations, in order.
    pub(super) uses: Vec<ClientOperation>,
    /// Indices into `uses`, by what is used.
    places: HashMap<OperationKind, HashMap<Rc<str>, Vec<usize>>>,
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
pub(super) struct ClientOperation {
    pub(super) of: OperationKind,
    /// What is used: a name, a URI or a method.
    pub(super) key: Rc<str>,
    /// The slots of its requests; more than one if the server asked for input first.
    pub(super) asks: Vec<u32>,
    /// For a tool call its number, from 1; otherwise the number of calls before it.
    pub(super) ordinal: u64,
}

/// A range of calls: those after one, up to and including another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallRange {
    pub(super) after: u64,
    pub(super) until: u64,
}

/// The kind of thing that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OperationKind {
    Item(ItemKind),
    Method,
}

impl TapeContents {
    /// All uses of one thing, in order.
    pub(super) fn uses_of(&self, of: OperationKind, key: &str) -> Vec<&ClientOperation> {
        let places = self.places.get(&of).and_then(|keys| keys.get(key));
        places.into_iter().flatten().map(|place| &self.uses[*place]).collect()
    }

    /// The uses of one thing within a range of calls; if there are none, the nearest one.
    pub(super) fn uses_among(
        &self,
        of: OperationKind,
        key: &str,
        calls: CallRange,
    ) -> Vec<&ClientOperation> {
        let all = self.uses_of(of, key);
        let is_start = calls.after == 0;
        if is_start && of != OperationKind::Item(ItemKind::Tool) {
            return all;
        }
        let is_among =
            |used: &&&ClientOperation| used.ordinal > calls.after && used.ordinal <= calls.until;
        let among: Vec<&ClientOperation> = all.iter().filter(is_among).copied().collect();
        if !among.is_empty() {
            return among;
        }
        let earlier = all.iter().rev().find(|used| used.ordinal <= calls.until);
        earlier.or(all.first()).into_iter().copied().collect()
    }

    /// The keys that were used, each once, in order of first use.
    pub(super) fn keys(&self, of: OperationKind) -> Vec<Rc<str>> {
        let mut seen = std::collections::HashSet::new();
        let keys = self.uses.iter().filter(|used| used.of == of).map(|used| used.key.clone());
        keys.filter(|key| seen.insert(key.clone())).collect()
    }
}

/// Collects the contents of a tape in one pass.
pub(super) fn collect(
    tape: &mut ConversionInput<'_>,
    options: &ConversionOptions<'_>,
) -> io::Result<TapeContents> {
    let mut gathering = TapeGatherer::default();
    let wanted = |session: u32| options.session.is_none_or(|number| session + 1 == number);
    let mut slots: Vec<u32> = (0..tape.index.request_count())
        .map(|ask| tape.index.request(ask).entry_number)
        .filter(|slot| wanted(tape.index.entry(*slot).session))
        .collect();
    // The index orders requests by session, but a scenario counts calls over all of them.
    slots.sort_unstable();
    for slot in slots {
        gathering.request(tape, slot)?;
    }
    let mut gathered = gathering.gathered;
    gathered.listings.finish(&mut gathered.warnings);
    gathered.sessions = gathering.sessions.len();
    for &slot in tape.index.client_notifications() {
        let place = tape.index.entry(slot);
        if !wanted(place.session) {
            continue;
        }
        let frame = Frame::read(tape.bodies.body(place.offset, place.length)?);
        if frame.envelope().is_some_and(|envelope| envelope.is_method("notifications/initialized"))
        {
            gathered.ready = Some(slot);
            break;
        }
    }
    Ok(gathered)
}

/// A tape being read.
#[derive(Default)]
struct TapeGatherer {
    gathered: TapeContents,
    keys: HashMap<String, Rc<str>>,
    /// Uses for which the server asked for input, with the state that the client must repeat.
    waiting: Vec<OpenOperation>,
    sessions: std::collections::HashSet<u32>,
}

struct OpenOperation {
    used: usize,
    state: Option<Vec<u8>>,
}

/// The relevant parts of a request, owned.
struct ParsedRequest {
    method: String,
    /// What a call, read or get names.
    name: Option<String>,
    cursor: Option<Vec<u8>>,
    /// The protocol version that `initialize` asks for.
    wants: Option<String>,
    retry: Option<Option<Vec<u8>>>,
}

impl ParsedRequest {
    fn read(envelope: &Envelope<'_>) -> Option<Self> {
        let method = envelope.method?.decode().into_owned();
        let member = |name: &str| envelope.params.and_then(|params| json::member(params, name));
        let name = match method.as_str() {
            "tools/call" | "prompts/get" => envelope.name,
            "resources/read" => envelope.uri,
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

impl TapeGatherer {
    fn request(&mut self, tape: &mut ConversionInput<'_>, slot: u32) -> io::Result<()> {
        let place = tape.index.entry(slot);
        let frame = Frame::read(tape.text(&place)?);
        let Some(request) = frame.envelope().and_then(ParsedRequest::read) else { return Ok(()) };
        let answer = (place.pair != NONE).then(|| tape.index.entry(place.pair));
        let frame = match &answer {
            Some(answer) => Frame::read(tape.text(answer)?),
            None => Frame::read(b"{}"),
        };
        let Some(envelope) = frame.envelope() else { return Ok(()) };
        if let Some(result) = envelope.result {
            self.gathered.hello.add_result(result);
        }
        match request.method.as_str() {
            "ping" | "subscriptions/listen" => {}
            "initialize" => self.gathered.hello.add_initialize(request.wants.as_deref(), envelope),
            "server/discover" => self.gathered.hello.add_discover(envelope),
            method => {
                let list = ItemKind::of_list_method(method);
                let of = match method {
                    "tools/call" => OperationKind::Item(ItemKind::Tool),
                    "resources/read" => OperationKind::Item(ItemKind::Resource),
                    "prompts/get" => OperationKind::Item(ItemKind::Prompt),
                    _ => OperationKind::Method,
                };
                // An error in place of a list cannot become a list, so it is kept as the method's
                // answer.
                if let Some(kind) = list.filter(|_| envelope.kind() == MessageKind::Response) {
                    let calls = self.gathered.calls;
                    let list = self.gathered.listings.of(kind);
                    list.page((place.session, request.cursor.as_deref()), envelope.result, calls);
                } else {
                    self.add_use(of, request, slot, place.session, envelope);
                }
            }
        }
        Ok(())
    }

    /// Records a use, or the continuation of one.
    fn add_use(
        &mut self,
        of: OperationKind,
        request: ParsedRequest,
        slot: u32,
        session: u32,
        answer: &Envelope<'_>,
    ) {
        self.sessions.insert(session);
        let key = match (of, request.name) {
            (OperationKind::Method, _) => request.method,
            (OperationKind::Item(_), Some(name)) => name,
            // A call without a name is an error on every server.
            (OperationKind::Item(_), None) => return,
        };
        let wants_more = answer.result.and_then(|result| json::member(result, "resultType"))
            == Some(b"\"input_required\"");
        let state = answer.result.and_then(|result| json::member(result, "requestState"));
        let before = request.retry.as_ref().and_then(|state| {
            let uses = &self.gathered.uses;
            let same = |waiting: &OpenOperation| {
                let used = &uses[waiting.used];
                // A retry has a new id. The state that it repeats ties it to its first request.
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
                let is_call = of == OperationKind::Item(ItemKind::Tool);
                self.gathered.calls += u64::from(is_call);
                let shared = self.keys.entry(key).or_insert_with_key(|key| key.as_str().into());
                let (key, ordinal) = (shared.clone(), self.gathered.calls);
                let place = self.gathered.uses.len();
                let places = self.gathered.places.entry(of).or_default();
                places.entry(key.clone()).or_default().push(place);
                self.gathered.uses.push(ClientOperation { of, key, asks: vec![slot], ordinal });
                place
            }
        };
        if wants_more {
            self.waiting.push(OpenOperation { used: place, state: state.map(<[u8]>::to_vec) });
        }
    }
}
