//! Asking clients without sessions: by a result that wants more input.
//!
//! The operation is suspended until the client comes back with it, by a request with a new id and the
//! state it was given. The state is good once, and only for the method that it was made for.

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

/// The code of the error for clients that cannot do what they would be asked.
const CODE_CAPABILITY: i32 = -32021;
/// What a request brings along that goes on with an operation.
const STATE: &str = "requestState";
/// How many operations may wait for a client to come back, and how much room they may take.
const SUSPENDED_MAX: usize = 256;
const SUSPENDED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An operation that waits for its client to come back.
pub(super) struct Suspended {
    state: String,
    /// What the client was asked for.
    names: Vec<String>,
    /// Where it was asked.
    step: usize,
    play: Play,
}

/// What a client has to come back with.
#[derive(Default)]
pub(super) struct Wanted {
    names: Vec<String>,
    /// The members of `inputRequests`.
    requests: Vec<u8>,
    /// What it is not asked because it cannot, and what it would have to be able to do.
    beyond: Vec<Named<&'static str>>,
}

impl Turn<'_, '_> {
    /// Wants what the client has to come back with: this, and what is asked right after it without
    /// a need to know the answer. What it cannot do it is not asked, as long as there is something else.
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
            // What the client cannot do is left out, if there is something else to ask it for.
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

    /// Refuses a request whose client cannot do what it would be asked.
    fn cannot(&mut self, asked: &Asked<'_>, missing: &str) -> Done {
        let data = format!("{{\"requiredCapabilities\":{{\"{missing}\":{{}}}}}}");
        self.error(asked, CODE_CAPABILITY, &without(missing), Some(data.as_bytes()));
        Done::Refused
    }

    /// Answers that more is wanted, and keeps the operation until it comes.
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

    /// Goes on with an operation whose client has come back; false if the request is none of these.
    pub(super) fn resume(&mut self, asked: &Asked<'_>) -> bool {
        // Nearly no request has one, and an escaped key is no reason to look twice at the others.
        let may = memmem::find(asked.params, STATE.as_bytes()).is_some()
            || memchr(b'\\', asked.params).is_some();
        let state = may.then(|| json::member(asked.params, STATE)).flatten();
        let Some(state) = state.and_then(json::string) else { return false };
        let is_it = |one: &Suspended| one.state == state && *one.play.kept.method == *asked.method;
        let place = self.visit.suspended.iter().position(is_it);
        let Some(mut one) = place.and_then(|place| self.visit.suspended.remove(place)) else {
            self.error(asked, CODE_PARAMS, "the requestState is not known", None);
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
    /// Takes what the client has answered before it was asked.
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

/// What the client has answered under this name. What is no object is no answer.
fn response<'a>(responses: &'a [u8], name: &str) -> Option<&'a [u8]> {
    json::member(responses, name).filter(|response| response.starts_with(b"{"))
}

impl Wanted {
    /// Adds something; returns its name as JSON.
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

/// What a client would have to be able to do, and is not.
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
