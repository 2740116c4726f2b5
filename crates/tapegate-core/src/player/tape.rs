//! The tape that is played: its index and bodies, and how requests are compared.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use super::era::ProtocolEra;
use super::likeness::{LikenessCache, RequestLikeness};
use super::repeated_lists::{LISTS, RepeatedLists};
use super::tape_run::RunScope;
use crate::frame::{Envelope, Frame, MessageKind, own_error_data, request_text};
use crate::json::{self, JsonStr};
use crate::signature::{Signature, Signer};
use crate::tape::Mask;
use crate::tape::index::{BodySource, Index, IndexEntry, NONE};

/// Requests about tasks. Clients make them on a timer, so their order is arbitrary.
const TASKS: [&str; 5] =
    ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"];

/// The maximum gap between a request and its answer for reading both at once.
const GAP_MAX: u64 = 4096;

/// The tape that is played.
pub(super) struct PlayerTape {
    pub(super) index: Index,
    bodies: Box<dyn BodySource>,
    pub(super) signer: Signer,
    mask: Option<Box<dyn Mask>>,
    /// All requests in tape order, for a position that all sessions share.
    whole: Vec<u32>,
    ping: Signature,
    discover: Signature,
    initialize: Signature,
    /// The subject hashes of requests about tasks.
    tasks: [u32; TASKS.len()],
    pub(super) relists: RepeatedLists,
    /// The notifications of clients by session and method, once one was needed.
    notes: Option<NotificationIndex>,
    likenesses: LikenessCache,
    /// The protocol era, once it was needed.
    pub(super) era: Option<ProtocolEra>,
}

/// The entries of notifications, by session and method.
type NotificationIndex = HashMap<(u32, Vec<u8>), Vec<u32>>;

/// A live request to match.
pub(super) struct LiveRequest<'a> {
    /// The message, redacted as the tape is.
    pub(super) text: &'a [u8],
    pub(super) envelope: &'a Envelope<'a>,
    pub(super) signature: Signature,
}

impl PlayerTape {
    pub(super) fn new(
        index: Index,
        bodies: Box<dyn BodySource>,
        signer: Signer,
        mask: Option<Box<dyn Mask>>,
        global: bool,
    ) -> Self {
        let count = count_requests(&index);
        let mut whole: Vec<u32> = if global { (0..count).collect() } else { Vec::new() };
        whole.sort_by_key(|request_number| index.request(*request_number).entry_number);
        let of_method = |method: &str| sign(&signer, &request_text(b"0", method, None));
        let (ping, discover) = (of_method("ping"), of_method("server/discover"));
        let initialize = of_method("initialize");
        let tasks = TASKS.map(|method| of_method(method).like);
        let relists = RepeatedLists::of(&index, LISTS.map(of_method));
        let (notes, likenesses) = (None, LikenessCache::default());
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
    pub(super) fn request_count(&self) -> u32 {
        count_requests(&self.index)
    }

    /// The request at a position of a part.
    pub(super) fn request_at(&self, part: RunScope, position: u32) -> Option<u32> {
        match part {
            RunScope::Whole => self.whole.get(position as usize).copied(),
            RunScope::Session(session) => {
                let request_numbers = self.index.sessions().get(session as usize)?;
                request_numbers
                    .start
                    .checked_add(position)
                    .filter(|request_number| *request_number < request_numbers.end)
            }
        }
    }

    /// Whether a request is a ping, which is answered without the tape.
    pub(super) fn is_ping(&self, request_number: u32) -> bool {
        self.index.request(request_number).signature.hash == self.ping.hash
    }

    /// Whether a request is about a task, so that it has no position in an order.
    pub(super) fn is_task_request(&self, signature: Signature) -> bool {
        self.tasks.contains(&signature.like)
    }

    /// Whether a request has no position in the order of the others.
    pub(super) fn is_unordered(&self, request_number: u32) -> bool {
        self.is_ping(request_number)
            || self.relists.contains(request_number)
            || self.is_task_request(self.index.request(request_number).signature)
    }

    /// Whether a request is `server/discover`. Clients that support only one revision do not send
    /// it, and on stdio some send it to another process.
    pub(super) fn is_probe(&self, request_number: u32) -> bool {
        self.index.request(request_number).signature.like == self.discover.like
    }

    /// Whether a request begins a session.
    pub(super) fn is_initialize(&self, request_number: u32) -> bool {
        self.index.request(request_number).signature.like == self.initialize.like
    }

    /// Whether a request only reads what the server offers, without side effects.
    pub(super) fn is_read(&self, signature: Signature) -> bool {
        self.relists.is_list(signature) || signature.like == self.discover.like
    }

    /// Whether clients make a request automatically at startup, whatever they are used for.
    pub(super) fn is_setup(&self, request_number: u32) -> bool {
        let signature = self.index.request(request_number).signature;
        self.is_ping(request_number)
            || self.is_initialize(request_number)
            || self.is_read(signature)
    }

    /// Whether a request was answered by a player whose tape did not have it.
    pub(super) fn is_refused(&mut self, request_entry: &IndexEntry) -> io::Result<bool> {
        let entry = self.index.entry(request_entry.pair);
        if entry.kind != MessageKind::Error {
            return Ok(false);
        }
        let frame = Frame::read(self.text(&entry)?);
        let error = frame.envelope().and_then(|envelope| envelope.error);
        Ok(error.and_then(own_error_data).is_some_and(|data| {
            json::member(data, "mode").is_some() && json::member(data, "nearest").is_some()
        }))
    }

    /// Whether a later request of the same session was answered.
    pub(super) fn has_later_answer(&self, request_number: u32) -> bool {
        let sessions = self.index.sessions();
        let session =
            sessions.get(self.session_of(request_number) as usize).cloned().unwrap_or_default();
        (request_number + 1..session.end).any(|later| self.entry_of(later).pair != NONE)
    }

    /// Whether the tape has a `server/discover`.
    pub(super) fn has_discover(&self) -> bool {
        self.index.first_with_subject(self.discover).is_some()
    }

    pub(super) fn session_of(&self, request_number: u32) -> u32 {
        self.index.entry(self.index.request(request_number).entry_number).session
    }

    pub(super) fn entry_of(&self, request_number: u32) -> IndexEntry {
        self.index.entry(self.index.request(request_number).entry_number)
    }

    /// A message as written on the tape.
    pub(super) fn text(&mut self, entry: &IndexEntry) -> io::Result<&[u8]> {
        self.bodies.body(entry.offset, entry.length)
    }

    /// A message on one line.
    pub(super) fn line(&mut self, entry: &IndexEntry) -> io::Result<Cow<'_, [u8]>> {
        let text = self.bodies.body(entry.offset, entry.length)?;
        Ok(if entry.spread { json::compact(text) } else { Cow::Borrowed(text) })
    }

    /// A request as written on the tape.
    pub(super) fn request(&mut self, request_number: u32) -> io::Result<&[u8]> {
        let entry = self.entry_of(request_number);
        self.text(&entry)
    }

    /// The features of a request for fuzzy matching.
    pub(super) fn likeness(&mut self, request_number: u32) -> io::Result<&RequestLikeness> {
        let entry = self.index.entry(self.index.request(request_number).entry_number);
        let Self { bodies, signer, likenesses, .. } = self;
        likenesses.find(request_number, || {
            Ok(RequestLikeness::of(bodies.body(entry.offset, entry.length)?, signer))
        })
    }

    /// The params of a request in canonical form.
    pub(super) fn canonical(&mut self, request_number: u32) -> io::Result<Vec<u8>> {
        let entry = self.entry_of(request_number);
        Ok(self.signer.canonical(self.bodies.body(entry.offset, entry.length)?))
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
    pub(super) fn is_same(
        &mut self,
        request_number: u32,
        request: &LiveRequest<'_>,
    ) -> io::Result<bool> {
        // The hash decides quickly; the texts are compared because hashes may collide.
        if self.index.request(request_number).signature.hash != request.signature.hash {
            return Ok(false);
        }
        let entry = self.entry_of(request_number);
        if entry.pair != NONE {
            // It is nearly always the same, and its answer will be needed.
            let answer = self.index.entry(entry.pair);
            let gap = answer.offset.saturating_sub(entry.offset + u64::from(entry.length));
            let length = answer.offset.saturating_sub(entry.offset) + u64::from(answer.length);
            self.bodies.expect(entry.offset, if gap <= GAP_MAX { length } else { 0 });
        }
        let text = self.bodies.body(entry.offset, entry.length)?;
        Ok(self.signer.asks_for_same_as(text, request.text, request.envelope)
            && !self.was_refused_for_other_protocol(request_number, request)?)
    }

    /// Whether a recorded request has the same subject, possibly with other params.
    pub(super) fn has_same_subject(
        &mut self,
        request_number: u32,
        request: &LiveRequest<'_>,
    ) -> io::Result<bool> {
        if self.index.request(request_number).signature.like != request.signature.like {
            return Ok(false);
        }
        let frame = Frame::read(self.request(request_number)?);
        let Some(envelope) = frame.envelope() else { return Ok(false) };
        Ok(have_same_value(envelope.method, request.envelope.method)
            && have_same_value(request_subject(envelope), request_subject(request.envelope))
            && !self.was_refused_for_other_protocol(request_number, request)?)
    }

    /// Whether a recorded request has exactly the same `cursor`.
    pub(super) fn has_cursor(
        &mut self,
        request_number: u32,
        cursor: Option<&[u8]>,
    ) -> io::Result<bool> {
        let frame = Frame::read(self.request(request_number)?);
        let params = frame.envelope().and_then(|envelope| envelope.params);
        Ok(params.and_then(|params| json::member(params, "cursor")) == cursor)
    }

    /// The `nth` notification with this method that the client of a session sent.
    pub(super) fn find_notification(
        &mut self,
        session: u32,
        method: JsonStr<'_>,
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

    // The index has no methods of notifications, so the bodies are read once.
    fn read_notes(&mut self) -> io::Result<NotificationIndex> {
        let mut notes = NotificationIndex::new();
        for number in self.index.client_notifications().to_vec() {
            let entry = self.index.entry(number);
            let frame = Frame::read(self.bodies.body(entry.offset, entry.length)?);
            if let Some(method) = frame.envelope().and_then(|envelope| envelope.method) {
                notes.entry((entry.session, method.bytes().into_owned())).or_default().push(number);
            }
        }
        Ok(notes)
    }
}

fn count_requests(index: &Index) -> u32 {
    index.sessions().last().map_or(0, |request_numbers| request_numbers.end)
}

/// The subject of a request: a tool, a prompt or a resource.
pub(super) fn request_subject<'a>(envelope: &Envelope<'a>) -> Option<JsonStr<'a>> {
    match &*envelope.method?.bytes() {
        b"tools/call" | b"prompts/get" => envelope.name,
        b"resources/read" | b"resources/subscribe" | b"resources/unsubscribe" => envelope.uri,
        _ => None,
    }
}

/// The member of params that names the subject.
pub(super) fn subject_key(envelope: &Envelope<'_>) -> Option<&'static str> {
    request_subject(envelope)?;
    Some(if envelope.method.is_some_and(|method| method.bytes().starts_with(b"resources/")) {
        "uri"
    } else {
        "name"
    })
}

fn have_same_value(one: Option<JsonStr<'_>>, two: Option<JsonStr<'_>>) -> bool {
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
