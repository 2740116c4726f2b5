//! Asking sessionless clients for input, by a result that requires it.
//!
//! The operation is suspended until the client retries with the input, in a request with a new id
//! and the state it was given. A state is valid once, and only for the method it was made for.

use memchr::{memchr, memmem};
use tapegate_core::frame::error_object;
use tapegate_core::json::{self, JsonObject};

use super::EngineNote;
use super::engine_turn::{CODE_PARAMS, EngineTurn};
use super::owned_request::OwnedRequest;
use super::request::EngineRequest;
use super::running_request::{ActionOutcome, RunningRequest};
use super::stateless;
use crate::model::ScenarioAction;
use crate::template::{JsonTemplate, NamedValue};

/// The error code for clients that lack a required capability.
const CODE_CAPABILITY: i32 = -32021;
/// The parameter with which a request resumes a suspended operation.
const STATE: &str = "requestState";
/// How many operations may be suspended, and how many bytes they may take.
const SUSPENDED_MAX: usize = 256;
const SUSPENDED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// An operation that waits for its client to retry.
pub(super) struct SuspendedOperation {
    state: String,
    /// The names of the inputs that were requested.
    names: Vec<String>,
    /// The index of the action that requested them.
    step: usize,
    play: RunningRequest,
}

/// The inputs that a client must supply.
#[derive(Default)]
pub(super) struct RequiredInputs {
    names: Vec<String>,
    /// The `inputRequests`.
    requests: JsonObject,
    /// Inputs that are not requested, with the capability that the client lacks for each.
    beyond: Vec<NamedValue<&'static str>>,
}

impl EngineTurn<'_, '_> {
    /// Collects the inputs to request: this action's, and those of the actions right after it that
    /// do not depend on a reply. Inputs the client does not support are skipped if others remain.
    pub(super) fn require_input(
        &mut self,
        action: &ScenarioAction,
        next: &[ScenarioAction],
        request: &EngineRequest<'_>,
    ) -> ActionOutcome {
        let mut wanted = RequiredInputs::default();
        for (index, action) in std::iter::once(action).chain(next).enumerate() {
            let ScenarioAction::Ask { method, params, name, .. } = action else { break };
            if index > 0 && params.as_ref().is_some_and(JsonTemplate::needs_replies) {
                break;
            }
            let name = name.as_ref().unwrap_or(method);
            let known = request.replies.iter().any(|(known, _)| known == name);
            if known || wanted.names.contains(name) {
                continue;
            }
            // Skip what the client does not support, as long as there is something else to request.
            if let Some(missing) = missing_capability(request, method) {
                wanted.beyond.push((name.clone(), missing));
                continue;
            }
            let params = params.as_ref().map(|params| self.fill(request, params));
            let id = wanted.add(name, method, params.as_deref());
            self.note(EngineNote::Asked { id: &id, method });
        }
        match (wanted.names.is_empty(), wanted.beyond.first()) {
            (false, _) => ActionOutcome::Suspends(wanted),
            (true, Some((_, missing))) => self.refuse_unsupported_client(request, missing),
            (true, None) => ActionOutcome::Yes,
        }
    }

    /// Refuses a request whose client lacks a required capability.
    fn refuse_unsupported_client(
        &mut self,
        request: &EngineRequest<'_>,
        missing: &str,
    ) -> ActionOutcome {
        let required = JsonObject::new().raw(missing, "{}");
        let data = JsonObject::new().object("requiredCapabilities", required).finish();
        let message = missing_capability_message(missing);
        self.error(request, CODE_CAPABILITY, &message, Some(&data));
        ActionOutcome::Refused
    }

    /// Answers that input is required, and keeps the operation until the client retries.
    pub(super) fn suspend(
        &mut self,
        mut play: RunningRequest,
        step: usize,
        wanted: RequiredInputs,
    ) {
        let context = self.context(&play.owned_request.as_request());
        // From the seeded generator, so that a run can be repeated exactly.
        let state = format!("{:016x}{:016x}", context.next_random(), context.next_random());
        let result = JsonObject::new()
            .text("resultType", "input_required")
            .object("inputRequests", wanted.requests)
            .text("requestState", &state);
        self.result(&play.owned_request.as_request(), &result.finish());
        // The ticket belongs to the answer that was just sent, not to the one after the retry.
        play.owned_request.delivery_id = 0;
        for (name, missing) in wanted.beyond {
            let error = error_object(CODE_CAPABILITY, &missing_capability_message(missing), None);
            let reply = JsonObject::new().raw("error", error).finish();
            play.owned_request.replies.push((name, reply));
        }
        let suspended = &mut self.engine_session.suspended;
        let taken = |one: &SuspendedOperation| one.play.owned_request.bytes();
        while suspended.len() >= SUSPENDED_MAX
            || (!suspended.is_empty()
                && suspended.iter().map(taken).sum::<usize>() > SUSPENDED_BYTES_MAX)
        {
            // A sessionless client may never come back, so the oldest operations give way.
            suspended.pop_front();
        }
        suspended.push_back(SuspendedOperation { state, names: wanted.names, step, play });
    }

    /// Resumes a suspended operation; false if the request does not resume one.
    pub(super) fn resume(&mut self, request: &EngineRequest<'_>) -> bool {
        // Few requests carry a state, so a byte search comes before parsing. An escaped key needs
        // parsing.
        let may = memmem::find(request.params, STATE.as_bytes()).is_some()
            || memchr(b'\\', request.params).is_some();
        let state = may.then(|| json::member(request.params, STATE)).flatten();
        let Some(state) = state.and_then(json::string) else { return false };
        let is_it = |one: &SuspendedOperation| {
            // A state of one method must not resume an operation of another.
            one.state == state && *one.play.owned_request.method == *request.method
        };
        let index = self.engine_session.suspended.iter().position(is_it);
        let Some(mut one) = index.and_then(|index| self.engine_session.suspended.remove(index))
        else {
            self.error(request, CODE_PARAMS, "unknown requestState", None);
            return true;
        };
        let responses = json::member(request.params, "inputResponses").unwrap_or(b"{}");
        let owned_request = &mut one.play.owned_request;
        for name in one.names {
            if let Some(response) = response(responses, &name) {
                owned_request.replies.push((name, response.to_vec()));
            }
        }
        // The retry is a new request: the answer must carry its id, not that of the first one.
        owned_request.id = request.id.into();
        owned_request.params = request.params.into();
        owned_request.token = request.token.map(Into::into);
        // The action that asked runs again. It now finds the replies and asks only for what is
        // missing.
        one.play.step = one.step;
        self.run_actions(one.play);
        true
    }
}

impl OwnedRequest {
    /// Takes inputs that the client supplied without being asked.
    pub(super) fn take_responses(&mut self, actions: &[ScenarioAction]) {
        let Some(responses) = json::member(&self.params, "inputResponses") else { return };
        let mut taken = Vec::new();
        for action in actions {
            let ScenarioAction::Ask { method, name, .. } = action else { continue };
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

impl RequiredInputs {
    /// Adds an input request; returns its name as JSON.
    fn add(&mut self, name: &str, method: &str, params: Option<&[u8]>) -> Vec<u8> {
        self.names.push(name.to_owned());
        let request = JsonObject::new().text("method", method).raw_opt("params", params);
        self.requests = std::mem::take(&mut self.requests).object(name, request);
        json::quoted(name)
    }
}

fn missing_capability_message(missing: &str) -> String {
    format!("Missing required client capabilities: {missing}")
}

/// The capability that a method needs and the client lacks, if any.
fn missing_capability(request: &EngineRequest<'_>, method: &str) -> Option<&'static str> {
    let needed = match method {
        "sampling/createMessage" => "sampling",
        "elicitation/create" => "elicitation",
        "roots/list" => "roots",
        _ => return None,
    };
    let meta = json::member(request.params, "_meta");
    let can = meta.and_then(|meta| json::member(meta, stateless::CAPABILITIES));
    can.and_then(|can| json::member(can, needed)).is_none().then_some(needed)
}
