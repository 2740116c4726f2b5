//! Asking sessionless clients for input, by a result that requires it.
//!
//! The operation is suspended until the client retries with the input, in a request with a new id
//! and the state it was given. A state is valid once, and only for the method it was made for.

use memchr::{memchr, memmem};
use tapegate_core::json;

use super::Note;
use super::answer::error;
use super::kept::Kept;
use super::modern;
use super::play::{Done, Play};
use super::request::Asked;
use super::tell::write_call;
use super::turn::{CODE_PARAMS, Turn};
use crate::form::{Form, Named};
use crate::model::Action;

/// The error code for clients that lack a required capability.
const CODE_CAPABILITY: i32 = -32021;
/// The parameter with which a request resumes a suspended operation.
const STATE: &str = "requestState";
/// How many operations may be suspended, and how many bytes they may take.
const SUSPENDED_MAX: usize = 256;
const SUSPENDED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An operation that waits for its client to retry.
pub(super) struct Suspended {
    state: String,
    /// The names of the inputs that were requested.
    names: Vec<String>,
    /// The index of the action that requested them.
    step: usize,
    play: Play,
}

/// The inputs that a client must supply.
#[derive(Default)]
pub(super) struct Wanted {
    names: Vec<String>,
    /// The members of `inputRequests`.
    requests: Vec<u8>,
    /// Inputs that are not requested, with the capability that the client lacks for each.
    beyond: Vec<Named<&'static str>>,
}

impl Turn<'_, '_> {
    /// Collects the inputs to request: this action's, and those of the actions right after it that
    /// do not depend on a reply. Inputs the client does not support are skipped if others remain.
    pub(super) fn want(&mut self, action: &Action, next: &[Action], asked: &Asked<'_>) -> Done {
        let mut wanted = Wanted::default();
        for (place, action) in std::iter::once(action).chain(next).enumerate() {
            let Action::Ask { method, params, name, .. } = action else { break };
            if place > 0 && params.as_ref().is_some_and(Form::needs_replies) {
                break;
            }
            let name = name.as_ref().unwrap_or(method);
            let known = asked.replies.iter().any(|(known, _)| known == name);
            if known || wanted.names.contains(name) {
                continue;
            }
            // Skip what the client does not support, as long as there is something else to request.
            if let Some(missing) = missing(asked, method) {
                wanted.beyond.push((name.clone(), missing));
                continue;
            }
            let params = params.as_ref().map(|params| self.fill(asked, params));
            let id = wanted.add(name, method, params.as_deref());
            self.note(Note::Asked { id: &id, method });
        }
        match (wanted.names.is_empty(), wanted.beyond.first()) {
            (false, _) => Done::Suspends(wanted),
            (true, Some((_, missing))) => self.cannot(asked, missing),
            (true, None) => Done::Yes,
        }
    }

    /// Refuses a request whose client lacks a required capability.
    fn cannot(&mut self, asked: &Asked<'_>, missing: &str) -> Done {
        let data = format!("{{\"requiredCapabilities\":{{\"{missing}\":{{}}}}}}");
        self.error(asked, CODE_CAPABILITY, &without(missing), Some(data.as_bytes()));
        Done::Refused
    }

    /// Answers that input is required, and keeps the operation until the client retries.
    pub(super) fn suspend(&mut self, mut play: Play, step: usize, wanted: Wanted) {
        let context = self.context(&play.kept.asked());
        let state = format!("{:016x}{:016x}", context.roll(), context.roll());
        let mut result = b"{\"resultType\":\"input_required\",\"inputRequests\":{".to_vec();
        result.extend_from_slice(&wanted.requests);
        result.extend_from_slice(format!("}},\"requestState\":\"{state}\"}}").as_bytes());
        self.result(&play.kept.asked(), &result);
        play.kept.ticket = 0;
        for (name, missing) in wanted.beyond {
            let error = error(CODE_CAPABILITY, &without(missing), None);
            play.kept.replies.push((name, [b"{\"error\":", &error[..], b"}"].concat()));
        }
        let suspended = &mut self.visit.suspended;
        let taken = |one: &Suspended| one.play.kept.bytes();
        while suspended.len() >= SUSPENDED_MAX
            || (!suspended.is_empty()
                && suspended.iter().map(taken).sum::<usize>() > SUSPENDED_BYTES_MAX)
        {
            suspended.pop_front();
        }
        suspended.push_back(Suspended { state, names: wanted.names, step, play });
    }

    /// Resumes a suspended operation; false if the request does not resume one.
    pub(super) fn resume(&mut self, asked: &Asked<'_>) -> bool {
        // Few requests carry a state, so a byte search comes before parsing. An escaped key needs
        // parsing.
        let may = memmem::find(asked.params, STATE.as_bytes()).is_some()
            || memchr(b'\\', asked.params).is_some();
        let state = may.then(|| json::member(asked.params, STATE)).flatten();
        let Some(state) = state.and_then(json::string) else { return false };
        let is_it = |one: &Suspended| one.state == state && *one.play.kept.method == *asked.method;
        let place = self.visit.suspended.iter().position(is_it);
        let Some(mut one) = place.and_then(|place| self.visit.suspended.remove(place)) else {
            self.error(asked, CODE_PARAMS, "unknown requestState", None);
            return true;
        };
        let responses = json::member(asked.params, "inputResponses").unwrap_or(b"{}");
        let kept = &mut one.play.kept;
        for name in one.names {
            if let Some(response) = response(responses, &name) {
                kept.replies.push((name, response.to_vec()));
            }
        }
        kept.id = asked.id.into();
        kept.params = asked.params.into();
        kept.token = asked.token.map(Into::into);
        one.play.step = one.step;
        self.perform(one.play);
        true
    }
}

impl Kept {
    /// Takes inputs that the client supplied without being asked.
    pub(super) fn take_responses(&mut self, actions: &[Action]) {
        let Some(responses) = json::member(&self.params, "inputResponses") else { return };
        let mut taken = Vec::new();
        for action in actions {
            let Action::Ask { method, name, .. } = action else { continue };
            let name = name.as_ref().unwrap_or(method);
            let response = response(responses, name);
            taken.extend(response.map(|response| (name.clone(), response.to_vec())));
        }
        self.replies.extend(taken);
    }
}

/// The client's input of this name. Anything but an object is ignored.
fn response<'a>(responses: &'a [u8], name: &str) -> Option<&'a [u8]> {
    json::member(responses, name).filter(|response| response.starts_with(b"{"))
}

impl Wanted {
    /// Adds an input request; returns its name as JSON.
    fn add(&mut self, name: &str, method: &str, params: Option<&[u8]>) -> Vec<u8> {
        if !self.names.is_empty() {
            self.requests.push(b',');
        }
        self.names.push(name.to_owned());
        let mut id = Vec::new();
        json::write_str(&mut id, name);
        self.requests.extend_from_slice(&id);
        self.requests.extend_from_slice(b":{\"method\":");
        write_call(&mut self.requests, method, params);
        id
    }
}

fn without(missing: &str) -> String {
    format!("Missing required client capabilities: {missing}")
}

/// The capability that a method needs and the client lacks, if any.
fn missing(asked: &Asked<'_>, method: &str) -> Option<&'static str> {
    let needed = match method {
        "sampling/createMessage" => "sampling",
        "elicitation/create" => "elicitation",
        "roots/list" => "roots",
        _ => return None,
    };
    let meta = json::member(asked.params, "_meta");
    let can = meta.and_then(|meta| json::member(meta, modern::CAPABILITIES));
    can.and_then(|can| json::member(can, needed)).is_none().then_some(needed)
}
