//! The live server behind the tape, which gets requests that the tape does not have.
//!
//! It is started when it is first needed, initialized as the live client initialized us, and uses
//! ids of our own: nothing from the tape reaches it, and nothing it sends affects the tape.

use std::collections::HashMap;

use super::live::Live;
use crate::actor::Act;
use crate::frame::{self, Body, Envelope, Frame, Kind, error_reply};
use crate::json::{self, Edits};
use crate::pending::IdKey;
use crate::tape::Provenance;

/// The maximum size of the requests that wait for its answer to `initialize`.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The id of our own `initialize` request.
const GREETING: &[u8] = b"\"tapegate-initialize\"";
/// The code of errors sent in place of an answer of this server.
const CODE_GONE: i32 = -32000;

/// The server behind the tape, as seen by one session.
#[derive(Default)]
pub(super) struct Behind {
    state: State,
    /// Requests that wait until the server is initialized.
    queue: Vec<Vec<u8>>,
    queue_bytes: usize,
    /// Requests by the id they were passed on with.
    waiting: HashMap<u64, Passed>,
    passed: u64,
    /// Requests of the server to the client: the id they were forwarded with, and the original id.
    asked: HashMap<IdKey, Vec<u8>>,
    /// Whether the client's own `initialize` was passed on.
    greeted_by_client: bool,
    /// How many requests it failed to answer, and why, since that was last taken.
    failed: Option<(u64, String)>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum State {
    #[default]
    Off,
    Greeting,
    Ready,
    Gone(String),
}

/// A request that was passed on.
struct Passed {
    id: Vec<u8>,
    batch: Option<u32>,
}

impl Behind {
    /// Whether an answer from it is pending.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many requests it failed to answer, and why, since this was last called.
    pub(super) fn take_failed(&mut self) -> Option<(u64, String)> {
        self.failed.take()
    }

    /// Whether it has sent the client a request with this id.
    pub(super) fn has_asked(&self, id: &IdKey) -> bool {
        self.asked.contains_key(id)
    }
}

impl Live {
    /// Passes a request on to the server.
    pub(super) fn pass_on(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        batch: Option<u32>,
        act: &mut dyn FnMut(Act<'_>),
    ) {
        let Some(id) = said.id else { return };
        if let State::Gone(why) = self.behind.state.clone() {
            return self.answer_for_gone(id, &why, batch, act);
        }
        if self.behind.queue_bytes + text.len() > QUEUE_BYTES_MAX {
            return self.answer_for_gone(id, "too many requests wait for it", batch, act);
        }
        self.behind.passed += 1;
        let number = self.behind.passed;
        self.behind.waiting.insert(number, Passed { id: id.to_vec(), batch });
        let mut edits = Edits::new(text);
        edits.replace(id, number.to_string().as_bytes());
        let line = edits.finish().into_owned();
        if self.behind.state == State::Off {
            self.greet(said, act);
        }
        match self.behind.state {
            State::Greeting => {
                self.behind.queue_bytes += line.len();
                self.behind.queue.push(line);
            }
            _ => act(Act::Ask(&[&line])),
        }
    }

    /// Initializes the server as the client initialized us; a sessionless client needs no
    /// `initialize`.
    fn greet(&mut self, said: &Envelope<'_>, act: &mut dyn FnMut(Act<'_>)) {
        self.behind.state = State::Ready;
        if said.is_method("initialize") {
            self.behind.greeted_by_client = true;
        } else if let Some(params) = &self.initialize {
            self.behind.state = State::Greeting;
            let head = br#"{"jsonrpc":"2.0","id":"#;
            let method = br#","method":"initialize","params":"#;
            act(Act::Ask(&[head, GREETING, method, params, b"}"]));
        }
    }

    /// Passes a notification of the client on if the server is running.
    pub(super) fn pass_note(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        act: &mut dyn FnMut(Act<'_>),
    ) {
        if self.behind.state != State::Ready {
            return;
        }
        if said.is_method("notifications/initialized") && !self.behind.greeted_by_client {
            return;
        }
        let mut edits = Edits::new(text);
        if let (true, Some(id)) = (said.is_method("notifications/cancelled"), said.request_id) {
            // The newest request with this id is meant.
            let newest = self.behind.waiting.iter().filter(|(_, passed)| passed.id == id);
            let Some(number) = newest.map(|(number, _)| *number).max() else { return };
            edits.replace(id, number.to_string().as_bytes());
            let passed = self.behind.waiting.remove(&number);
            self.settle(passed.and_then(|passed| passed.batch), act);
        }
        act(Act::Ask(&[&edits.finish()]));
    }

    /// Passes an answer of the client on, if the server behind the tape made the request.
    pub(super) fn pass_reply(
        &mut self,
        text: &[u8],
        id: &[u8],
        act: &mut dyn FnMut(Act<'_>),
    ) -> bool {
        let Some(theirs) = self.behind.asked.remove(&IdKey::new(id)) else { return false };
        let mut edits = Edits::new(text);
        edits.replace(id, &theirs);
        act(Act::Ask(&[&edits.finish()]));
        true
    }

    /// Forwards a message from the server to the client.
    pub(super) fn hear_behind(&mut self, line: &[u8], act: &mut dyn FnMut(Act<'_>)) {
        let frame = Frame::read(line);
        match frame.body() {
            // A nested batch is not a message, and the server chooses how deep it is.
            Body::Batch => {
                for part in frame::elements(line) {
                    if let Some(said) = part.envelope() {
                        self.hear_message(part.text(), said, act);
                    }
                }
            }
            Body::Message(said) => self.hear_message(frame.text(), said, act),
            Body::Garbage(_) => {}
        }
    }

    fn hear_message(&mut self, text: &[u8], said: &Envelope<'_>, act: &mut dyn FnMut(Act<'_>)) {
        match (said.kind(), said.id) {
            (Kind::Response | Kind::Error, Some(GREETING)) => self.greeted(said, act),
            (Kind::Response | Kind::Error, Some(id)) => self.answer_from_behind(text, id, act),
            (Kind::Request, Some(id)) => self.ask_from_behind(text, id, act),
            (Kind::Notification, _) => act(Act::Say(&[text])),
            _ => {}
        }
    }

    fn greeted(&mut self, said: &Envelope<'_>, act: &mut dyn FnMut(Act<'_>)) {
        if said.kind() == Kind::Error {
            let error = String::from_utf8_lossy(said.error.unwrap_or_default()).into_owned();
            return self.behind_gone(&format!("it refused `initialize`: {error}"), act);
        }
        self.behind.state = State::Ready;
        act(Act::Ask(&[br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#]));
        self.behind.queue_bytes = 0;
        std::mem::take(&mut self.behind.queue).iter().for_each(|line| act(Act::Ask(&[line])));
    }

    fn answer_from_behind(&mut self, text: &[u8], id: &[u8], act: &mut dyn FnMut(Act<'_>)) {
        let number = std::str::from_utf8(id).ok().and_then(|digits| digits.parse::<u64>().ok());
        let passed = number.and_then(|number| self.behind.waiting.remove(&number));
        let Some(Passed { id: theirs, batch }) = passed else { return };
        let mut provenance = Provenance::default();
        if let Some(why) = own_error(text) {
            self.behind.failed.get_or_insert((0, why)).0 += 1;
            provenance = Provenance::OWN;
        }
        let mut edits = Edits::new(text);
        edits.replace(id, &theirs);
        self.give((edits.finish().into_owned(), provenance), batch, act);
    }

    fn ask_from_behind(&mut self, text: &[u8], id: &[u8], act: &mut dyn FnMut(Act<'_>)) {
        let free = !self.is_in_use(&IdKey::new(id));
        let name = if free { id.to_vec() } else { self.fresh_name() };
        self.behind.asked.insert(IdKey::new(&name), id.to_vec());
        let mut edits = Edits::new(text);
        edits.replace(id, &name);
        act(Act::Say(&[&edits.finish()]));
    }

    /// Answers every pending request for a server that is gone or could not be started.
    pub(super) fn behind_gone(&mut self, why: &str, act: &mut dyn FnMut(Act<'_>)) {
        self.behind.state = State::Gone(why.to_owned());
        self.behind.queue.clear();
        self.behind.asked.clear();
        let mut waiting: Vec<_> = self.behind.waiting.drain().collect();
        waiting.sort_by_key(|(number, _)| *number);
        for (_, Passed { id, batch }) in waiting {
            self.answer_for_gone(&id, why, batch, act);
        }
    }

    fn answer_for_gone(
        &mut self,
        id: &[u8],
        why: &str,
        batch: Option<u32>,
        act: &mut dyn FnMut(Act<'_>),
    ) {
        self.behind.failed.get_or_insert_with(|| (0, why.to_owned())).0 += 1;
        self.give((gone(id, why), Provenance::OWN), batch, act);
    }
}

/// The reason in an error that our own HTTP client answered because the server was unreachable.
fn own_error(answer: &[u8]) -> Option<String> {
    let error = json::member(answer, "error")?;
    let by = json::member(json::member(error, "data")?, "by")?;
    let is_own = by == b"\"tapegate\"" && json::member(error, "code") == Some(b"-32000");
    let message = json::member(error, "message").and_then(json::string);
    message.filter(|_| is_own).map(std::borrow::Cow::into_owned)
}

fn gone(id: &[u8], why: &str) -> Vec<u8> {
    let words = format!("not on the tape, and the live server is unavailable: {why}");
    error_reply(id, CODE_GONE, &words, "{\"by\":\"tapegate\"}")
}
