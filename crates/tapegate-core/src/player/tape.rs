//! The tape that is played: its index and bodies, and how requests are compared.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use super::era::Era;
use super::likeness::{Likeness, Likenesses};
use super::relists::{LISTS, Relists};
use super::run::Part;
use crate::frame::{Envelope, Frame, Kind};
use crate::json::{self, Str};
use crate::signature::{Signature, Signer};
use crate::tape::Mask;
use crate::tape::index::{Bodies, Index, NONE, Slot};

/// Requests about tasks. Clients make them on a timer, so their order is arbitrary.
const TASKS: [&str; 5] =
    ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"];

/// The maximum gap between a request and its answer for reading both at once.
const GAP_MAX: u64 = 4096;

/// The tape that is played.
pub(super) struct Tape {
    pub(super) index: Index,
    bodies: Box<dyn Bodies>,
    pub(super) signer: Signer,
    mask: Option<Box<dyn Mask>>,
    /// All requests in tape order, for a position that all sessions share.
    whole: Vec<u32>,
    ping: Signature,
    discover: Signature,
    initialize: Signature,
    /// The subject hashes of requests about tasks.
    tasks: [u32; TASKS.len()],
    pub(super) relists: Relists,
    /// The notifications of clients by session and method, once one was needed.
    notes: Option<Notes>,
    likenesses: Likenesses,
    /// The protocol era, once it was needed.
    pub(super) era: Option<Era>,
}

/// The slots of notifications, by session and method.
type Notes = HashMap<(u32, Vec<u8>), Vec<u32>>;

/// A live request to match.
pub(super) struct Asked<'a> {
    /// The message, redacted as the tape is.
    pub(super) text: &'a [u8],
    pub(super) said: &'a Envelope<'a>,
    pub(super) signature: Signature,
}

impl Tape {
    pub(super) fn new(
        index: Index,
        bodies: Box<dyn Bodies>,
        signer: Signer,
        mask: Option<Box<dyn Mask>>,
        global: bool,
    ) -> Self {
        let count = asks(&index);
        let mut whole: Vec<u32> = if global { (0..count).collect() } else { Vec::new() };
        whole.sort_by_key(|ask| index.ask(*ask).slot);
        let of_method = |method: &str| {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"{method}\"}}");
            sign(&signer, text.as_bytes())
        };
        let (ping, discover) = (of_method("ping"), of_method("server/discover"));
        let initialize = of_method("initialize");
        let tasks = TASKS.map(|method| of_method(method).like);
        let relists = Relists::of(&index, LISTS.map(of_method));
        let (notes, likenesses) = (None, Likenesses::default());
        Self {
            index,
            bodies,
            signer,
            mask,
            whole,
            ping,
            discover,
            initialize,
            tasks,
            relists,
            notes,
            likenesses,
            era: None,
        }
    }

    /// How many requests clients made.
    pub(super) fn asks(&self) -> u32 {
        asks(&self.index)
    }

    /// The request at a position of a part.
    pub(super) fn in_order(&self, part: Part, place: u32) -> Option<u32> {
        match part {
            Part::Whole => self.whole.get(place as usize).copied(),
            Part::Session(session) => {
                let asks = self.index.sessions().get(session as usize)?;
                asks.start.checked_add(place).filter(|ask| *ask < asks.end)
            }
        }
    }

    /// Whether a request is a ping, which is answered without the tape.
    pub(super) fn is_ping(&self, ask: u32) -> bool {
        self.index.ask(ask).signature.hash == self.ping.hash
    }

    /// Whether a request is about a task, so that it has no position in an order.
    pub(super) fn is_of_tasks(&self, signature: Signature) -> bool {
        self.tasks.contains(&signature.like)
    }

    /// Whether a request has no position in the order of the others.
    pub(super) fn is_unordered(&self, ask: u32) -> bool {
        self.is_ping(ask)
            || self.relists.has(ask)
            || self.is_of_tasks(self.index.ask(ask).signature)
    }

    /// Whether a request is `server/discover`. Clients that support only one revision do not send
    /// it, and on stdio some send it to another process.
    pub(super) fn is_probe(&self, ask: u32) -> bool {
        self.index.ask(ask).signature.like == self.discover.like
    }

    /// Whether a request begins a session.
    pub(super) fn is_initialize(&self, ask: u32) -> bool {
        self.index.ask(ask).signature.like == self.initialize.like
    }

    /// Whether a request only reads what the server offers, without side effects.
    pub(super) fn is_read(&self, signature: Signature) -> bool {
        self.relists.is_list(signature) || signature.like == self.discover.like
    }

    /// Whether clients make a request automatically at startup, whatever they are used for.
    pub(super) fn is_setup(&self, ask: u32) -> bool {
        let signature = self.index.ask(ask).signature;
        self.is_ping(ask) || self.is_initialize(ask) || self.is_read(signature)
    }

    /// Whether a request was answered by a player whose tape did not have it.
    pub(super) fn is_refused(&mut self, asked: &Slot) -> io::Result<bool> {
        let slot = self.index.slot(asked.pair);
        if slot.kind != Kind::Error {
            return Ok(false);
        }
        let frame = Frame::read(self.text(&slot)?);
        let error = frame.envelope().and_then(|said| said.error);
        let data = error.and_then(|error| json::member(error, "data"));
        Ok(data.is_some_and(|data| {
            let ours = json::member(data, "by") == Some(b"\"tapegate\"");
            ours && json::member(data, "mode").is_some() && json::member(data, "nearest").is_some()
        }))
    }

    /// Whether a later request of the same session was answered.
    pub(super) fn is_outlived(&self, ask: u32) -> bool {
        let sessions = self.index.sessions();
        let session = sessions.get(self.session_of(ask) as usize).cloned().unwrap_or_default();
        (ask + 1..session.end).any(|later| self.slot_of(later).pair != NONE)
    }

    /// Whether the tape has a `server/discover`.
    pub(super) fn has_discover(&self) -> bool {
        self.index.first_like(self.discover).is_some()
    }

    pub(super) fn session_of(&self, ask: u32) -> u32 {
        self.index.slot(self.index.ask(ask).slot).session
    }

    /// The index entry of a request.
    pub(super) fn slot_of(&self, ask: u32) -> Slot {
        self.index.slot(self.index.ask(ask).slot)
    }

    /// A message as written on the tape.
    pub(super) fn text(&mut self, slot: &Slot) -> io::Result<&[u8]> {
        self.bodies.body(slot.offset, slot.length)
    }

    /// A message on one line.
    pub(super) fn line(&mut self, slot: &Slot) -> io::Result<Cow<'_, [u8]>> {
        let text = self.bodies.body(slot.offset, slot.length)?;
        Ok(if slot.spread { json::compact(text) } else { Cow::Borrowed(text) })
    }

    /// A request as written on the tape.
    pub(super) fn request(&mut self, ask: u32) -> io::Result<&[u8]> {
        let slot = self.slot_of(ask);
        self.text(&slot)
    }

    /// The features of a request for fuzzy matching.
    pub(super) fn likeness(&mut self, ask: u32) -> io::Result<&Likeness> {
        let slot = self.index.slot(self.index.ask(ask).slot);
        let Self { bodies, signer, likenesses, .. } = self;
        likenesses.find(ask, || Ok(Likeness::of(bodies.body(slot.offset, slot.length)?, signer)))
    }

    /// The params of a request in canonical form.
    pub(super) fn canonical(&mut self, ask: u32) -> io::Result<Vec<u8>> {
        let slot = self.slot_of(ask);
        Ok(self.signer.canonical(self.bodies.body(slot.offset, slot.length)?))
    }

    /// Reads a message of the client. If it is a request and the tape is not redacted, its
    /// signature is computed in the same pass.
    pub(super) fn read<'a>(&self, line: &'a [u8]) -> (Frame<'a>, Option<Signature>) {
        match self.mask {
            Some(_) => (Frame::read(line), None),
            None => self.signer.read(line),
        }
    }

    /// Redacts a message of the client as the tape is redacted.
    pub(super) fn masked<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        match &self.mask {
            Some(mask) => mask.message(text).text,
            None => Cow::Borrowed(text),
        }
    }

    /// Whether a recorded request asks for exactly the same thing.
    pub(super) fn is_same(&mut self, ask: u32, asked: &Asked<'_>) -> io::Result<bool> {
        if self.index.ask(ask).signature.hash != asked.signature.hash {
            return Ok(false);
        }
        let slot = self.slot_of(ask);
        if slot.pair != NONE {
            // It is nearly always the same, and its answer will be needed.
            let answer = self.index.slot(slot.pair);
            let gap = answer.offset.saturating_sub(slot.offset + u64::from(slot.length));
            let length = answer.offset.saturating_sub(slot.offset) + u64::from(answer.length);
            self.bodies.expect(slot.offset, if gap <= GAP_MAX { length } else { 0 });
        }
        let text = self.bodies.body(slot.offset, slot.length)?;
        Ok(self.signer.same_as(text, asked.text, asked.said)
            && !self.was_refused_on_other_terms(ask, asked)?)
    }

    /// Whether a recorded request has the same subject, possibly with other params.
    pub(super) fn is_like(&mut self, ask: u32, asked: &Asked<'_>) -> io::Result<bool> {
        if self.index.ask(ask).signature.like != asked.signature.like {
            return Ok(false);
        }
        let frame = Frame::read(self.request(ask)?);
        let Some(said) = frame.envelope() else { return Ok(false) };
        Ok(means_same(said.method, asked.said.method)
            && means_same(named(said), named(asked.said))
            && !self.was_refused_on_other_terms(ask, asked)?)
    }

    /// Whether a recorded request has exactly the same `cursor`.
    pub(super) fn has_cursor(&mut self, ask: u32, cursor: Option<&[u8]>) -> io::Result<bool> {
        let frame = Frame::read(self.request(ask)?);
        let params = frame.envelope().and_then(|said| said.params);
        Ok(params.and_then(|params| json::member(params, "cursor")) == cursor)
    }

    /// The `nth` notification with this method that the client of a session sent.
    pub(super) fn note(
        &mut self,
        session: u32,
        method: Str<'_>,
        nth: usize,
    ) -> io::Result<Option<u32>> {
        Ok(self.notes(session, &method.bytes())?.get(nth).copied())
    }

    /// The notifications with this method that the client of a session sent.
    pub(super) fn notes_of(&mut self, session: u32, method: &[u8]) -> io::Result<Vec<u32>> {
        self.notes(session, method).map(<[u32]>::to_vec)
    }

    fn notes(&mut self, session: u32, method: &[u8]) -> io::Result<&[u32]> {
        if self.notes.is_none() {
            self.notes = Some(self.read_notes()?);
        }
        let notes = self.notes.as_ref().and_then(|notes| notes.get(&(session, method.to_vec())));
        Ok(notes.map_or(&[], Vec::as_slice))
    }

    fn read_notes(&mut self) -> io::Result<Notes> {
        let mut notes = Notes::new();
        for number in self.index.client_notifications().to_vec() {
            let slot = self.index.slot(number);
            let frame = Frame::read(self.bodies.body(slot.offset, slot.length)?);
            if let Some(method) = frame.envelope().and_then(|said| said.method) {
                notes.entry((slot.session, method.bytes().into_owned())).or_default().push(number);
            }
        }
        Ok(notes)
    }
}

fn asks(index: &Index) -> u32 {
    index.sessions().last().map_or(0, |asks| asks.end)
}

/// The subject of a request: a tool, a prompt or a resource.
pub(super) fn named<'a>(said: &Envelope<'a>) -> Option<Str<'a>> {
    match &*said.method?.bytes() {
        b"tools/call" | b"prompts/get" => said.name,
        b"resources/read" | b"resources/subscribe" | b"resources/unsubscribe" => said.uri,
        _ => None,
    }
}

/// The member of params that names the subject.
pub(super) fn naming(said: &Envelope<'_>) -> Option<&'static str> {
    named(said)?;
    Some(if said.method.is_some_and(|method| method.bytes().starts_with(b"resources/")) {
        "uri"
    } else {
        "name"
    })
}

fn means_same(one: Option<Str<'_>>, two: Option<Str<'_>>) -> bool {
    match (one, two) {
        (Some(one), Some(two)) => one.bytes() == two.bytes(),
        (None, None) => true,
        _ => false,
    }
}

fn sign(signer: &Signer, text: &[u8]) -> Signature {
    let frame = Frame::read(text);
    let default = Envelope::default();
    signer.sign(text, frame.envelope().unwrap_or(&default))
}
