//! The live server behind the tape, which gets requests that the tape does not have.
//!
//! It is started when it is first needed, initialized as the live client initialized us, and uses
//! ids of our own: nothing from the tape reaches it, and nothing it sends affects the tape.

use std::collections::HashMap;

use super::live_session::LiveSession;
use crate::actor::ActorAction;
use crate::frame::{
    self, Envelope, Frame, FrameBody, MessageKind, own_error, own_error_data, request_text,
};
use crate::json::{self, JsonEdits};
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
pub(super) struct PassthroughSession {
    state: PassthroughState,
    /// Requests that wait until the server is initialized.
    queue: Vec<Vec<u8>>,
    queue_bytes: usize,
    /// Requests by the id they were passed on with.
    waiting: HashMap<u64, ForwardedRequest>,
    passed: u64,
    /// Requests of the server to the client: the id they were forwarded with, and the original id.
    client_requests: HashMap<IdKey, Vec<u8>>,
    /// Whether the client's own `initialize` was passed on.
    greeted_by_client: bool,
    /// How many requests it failed to answer, and why, since that was last taken.
    failed: Option<(u64, String)>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum PassthroughState {
    #[default]
    Off,
    Greeting,
    Ready,
    Gone(String),
}

/// A request that was passed on.
struct ForwardedRequest {
    id: Vec<u8>,
    batch: Option<u32>,
}

impl PassthroughSession {
    /// Whether an answer from it is pending.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many requests it failed to answer, and why, since this was last called.
    pub(super) fn take_failed(&mut self) -> Option<(u64, String)> {
        self.failed.take()
    }

    /// Whether it has sent the client a request with this id.
    pub(super) fn has_client_request(&self, id: &IdKey) -> bool {
        self.client_requests.contains_key(id)
    }
}

impl LiveSession {
    /// Passes a request on to the server.
    pub(super) fn forward_request(
        &mut self,
        text: &[u8],
        envelope: &Envelope<'_>,
        batch: Option<u32>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let Some(id) = envelope.id else { return };
        if let PassthroughState::Gone(reason) = self.passthrough.state.clone() {
            return self.answer_passthrough_gone(id, &reason, batch, act);
        }
        if self.passthrough.queue_bytes + text.len() > QUEUE_BYTES_MAX {
            return self.answer_passthrough_gone(id, "too many requests wait for it", batch, act);
        }
        self.passthrough.passed += 1;
        let number = self.passthrough.passed;
        self.passthrough.waiting.insert(number, ForwardedRequest { id: id.to_vec(), batch });
        let mut edits = JsonEdits::new(text);
        // Clients that share this session may use the same id.
        edits.replace(id, number.to_string().as_bytes());
        let line = edits.finish().into_owned();
        if self.passthrough.state == PassthroughState::Off {
            self.initialize_passthrough(envelope, act);
        }
        match self.passthrough.state {
            PassthroughState::Greeting => {
                self.passthrough.queue_bytes += line.len();
                self.passthrough.queue.push(line);
            }
            _ => act(ActorAction::Ask(&[&line])),
        }
    }

    /// Initializes the server as the client initialized us; a sessionless client needs no
    /// `initialize`.
    fn initialize_passthrough(
        &mut self,
        envelope: &Envelope<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        self.passthrough.state = PassthroughState::Ready;
        if envelope.is_method("initialize") {
            self.passthrough.greeted_by_client = true;
        } else if let Some(params) = &self.initialize {
            self.passthrough.state = PassthroughState::Greeting;
            act(ActorAction::Ask(&[&request_text(GREETING, "initialize", Some(params))]));
        }
    }

    /// Passes a notification of the client on if the server is running.
    pub(super) fn forward_notification(
        &mut self,
        text: &[u8],
        envelope: &Envelope<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        // A server that is not initialized expects no notification.
        if self.passthrough.state != PassthroughState::Ready {
            return;
        }
        // We have sent our own `initialized` with our own `initialize`.
        if envelope.is_method("notifications/initialized") && !self.passthrough.greeted_by_client {
            return;
        }
        let mut edits = JsonEdits::new(text);
        if let (true, Some(id)) =
            (envelope.is_method("notifications/cancelled"), envelope.request_id)
        {
            // The newest request with this id is meant.
            let newest = self.passthrough.waiting.iter().filter(|(_, passed)| passed.id == id);
            let Some(number) = newest.map(|(number, _)| *number).max() else { return };
            edits.replace(id, number.to_string().as_bytes());
            let passed = self.passthrough.waiting.remove(&number);
            // A cancelled request is not answered, so its batch must not wait for it.
            self.settle(passed.and_then(|passed| passed.batch), act);
        }
        act(ActorAction::Ask(&[&edits.finish()]));
    }

    /// Passes an answer of the client on, if the server behind the tape made the request.
    pub(super) fn forward_reply(
        &mut self,
        text: &[u8],
        id: &[u8],
        act: &mut dyn FnMut(ActorAction<'_>),
    ) -> bool {
        let Some(theirs) = self.passthrough.client_requests.remove(&IdKey::new(id)) else {
            return false;
        };
        let mut edits = JsonEdits::new(text);
        edits.replace(id, &theirs);
        act(ActorAction::Ask(&[&edits.finish()]));
        true
    }

    /// Forwards a message from the server to the client.
    pub(super) fn handle_passthrough_line(
        &mut self,
        line: &[u8],
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let frame = Frame::read(line);
        match frame.body() {
            // A nested batch is not a message, and the server chooses how deep it is.
            FrameBody::Batch => {
                for part in frame::elements(line) {
                    if let Some(envelope) = part.envelope() {
                        self.handle_passthrough_message(part.text(), envelope, act);
                    }
                }
            }
            FrameBody::Message(envelope) => {
                self.handle_passthrough_message(frame.text(), envelope, act)
            }
            FrameBody::Garbage(_) => {}
        }
    }

    fn handle_passthrough_message(
        &mut self,
        text: &[u8],
        envelope: &Envelope<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        match (envelope.kind(), envelope.id) {
            (MessageKind::Response | MessageKind::Error, Some(GREETING)) => {
                self.passthrough_initialized(envelope, act)
            }
            (MessageKind::Response | MessageKind::Error, Some(id)) => {
                self.forward_passthrough_answer(text, id, act)
            }
            (MessageKind::Request, Some(id)) => self.forward_passthrough_request(text, id, act),
            (MessageKind::Notification, _) => act(ActorAction::Say(&[text])),
            _ => {}
        }
    }

    fn passthrough_initialized(
        &mut self,
        envelope: &Envelope<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        if envelope.kind() == MessageKind::Error {
            let error = String::from_utf8_lossy(envelope.error.unwrap_or_default()).into_owned();
            return self.handle_passthrough_gone(&format!("it refused `initialize`: {error}"), act);
        }
        self.passthrough.state = PassthroughState::Ready;
        // Requests were queued until now, because a server may refuse them before this
        // notification.
        act(ActorAction::Ask(&[br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#]));
        self.passthrough.queue_bytes = 0;
        std::mem::take(&mut self.passthrough.queue)
            .iter()
            .for_each(|line| act(ActorAction::Ask(&[line])));
    }

    fn forward_passthrough_answer(
        &mut self,
        text: &[u8],
        id: &[u8],
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let number = std::str::from_utf8(id).ok().and_then(|digits| digits.parse::<u64>().ok());
        let passed = number.and_then(|number| self.passthrough.waiting.remove(&number));
        let Some(ForwardedRequest { id: theirs, batch }) = passed else { return };
        let mut provenance = Provenance::default();
        // Our HTTP client answers for a server that it cannot reach. That must not pass for the
        // server's answer.
        if let Some(reason) = http_error_message(text) {
            self.passthrough.failed.get_or_insert((0, reason)).0 += 1;
            provenance = Provenance::OWN;
        }
        let mut edits = JsonEdits::new(text);
        edits.replace(id, &theirs);
        self.send_answer((edits.finish().into_owned(), provenance), batch, act);
    }

    fn forward_passthrough_request(
        &mut self,
        text: &[u8],
        id: &[u8],
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let free = !self.is_in_use(&IdKey::new(id));
        let name = if free { id.to_vec() } else { self.fresh_id() };
        self.passthrough.client_requests.insert(IdKey::new(&name), id.to_vec());
        let mut edits = JsonEdits::new(text);
        edits.replace(id, &name);
        act(ActorAction::Say(&[&edits.finish()]));
    }

    /// Answers every pending request for a server that is gone or could not be started.
    pub(super) fn handle_passthrough_gone(
        &mut self,
        reason: &str,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        // Later requests are refused with the same reason.
        self.passthrough.state = PassthroughState::Gone(reason.to_owned());
        self.passthrough.queue.clear();
        self.passthrough.client_requests.clear();
        let mut waiting: Vec<_> = self.passthrough.waiting.drain().collect();
        // The map has no order, but errors go out in the order of the requests.
        waiting.sort_by_key(|(number, _)| *number);
        for (_, ForwardedRequest { id, batch }) in waiting {
            self.answer_passthrough_gone(&id, reason, batch, act);
        }
    }

    fn answer_passthrough_gone(
        &mut self,
        id: &[u8],
        reason: &str,
        batch: Option<u32>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        self.passthrough.failed.get_or_insert_with(|| (0, reason.to_owned())).0 += 1;
        self.send_answer((gone_error(id, reason), Provenance::OWN), batch, act);
    }
}

/// The reason in an error that our own HTTP client answered because the server was unreachable.
fn http_error_message(answer: &[u8]) -> Option<String> {
    let error = json::member(answer, "error")?;
    own_error_data(error)?;
    let is_own = json::member(error, "code") == Some(b"-32000");
    let message = json::member(error, "message").and_then(json::string);
    message.filter(|_| is_own).map(std::borrow::Cow::into_owned)
}

fn gone_error(id: &[u8], reason: &str) -> Vec<u8> {
    let message_text = format!("not on the tape, and the live server is unavailable: {reason}");
    own_error(id, CODE_GONE, &message_text)
}
