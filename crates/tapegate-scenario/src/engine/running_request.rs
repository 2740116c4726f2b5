//! Runs the actions that precede an answer, or that follow entering a phase, one after another.
//!
//! A client with a session is asked by requests, and the actions wait for its replies. A
//! sessionless client is asked by a result that requires input: the operation is suspended until
//! the client retries with it.

use tapegate_core::actor::ActorAction;
use tapegate_core::frame::{Envelope, same_id};

use super::answer_origin::{AnswerOrigin, ReplyChoice};
use super::engine_turn::{CODE_FAILED, CODE_INTERNAL, EngineTurn};
use super::owned_request::OwnedRequest;
use super::request::EngineRequest;
use super::stateless;
use super::suspended_operation::RequiredInputs;
use crate::model::{LogLevel, OnCancel, ScenarioAction};

/// A list of actions being run.
pub(super) struct RunningRequest {
    pub(super) owned_request: OwnedRequest,
    /// Where the actions come from; `None` if a handler answers.
    source: Option<AnswerOrigin>,
    pick: ReplyChoice,
    /// The index of the next action.
    pub(super) step: usize,
    pub(super) wait: RequestWait,
}

/// What a running list of actions waits for.
pub(super) enum RequestWait {
    /// A point in time.
    Until(u64),
    /// A reply from the client, until a deadline.
    Reply {
        /// The id of the request sent to the client.
        id: Box<[u8]>,
        /// The name under which templates find the reply.
        name: String,
        until: u64,
    },
    /// A handler, until a deadline.
    Handler { ticket: u64, until: u64 },
}

impl RequestWait {
    /// The time at which the wait ends at the latest.
    pub(super) fn deadline_ns(&self) -> Option<u64> {
        match self {
            Self::Until(until) | Self::Reply { until, .. } | Self::Handler { until, .. } => {
                Some(*until)
            }
        }
    }
}

pub(super) enum ActionOutcome {
    /// The next action may follow.
    Yes,
    /// It has to wait.
    Waits(RequestWait),
    /// The client must retry with this input.
    Suspends(RequiredInputs),
    /// The request was refused.
    Refused,
}

impl EngineTurn<'_, '_> {
    /// Starts the actions before an answer, or those on entering a phase.
    pub(super) fn start_actions(
        &mut self,
        request: &EngineRequest<'_>,
        source: AnswerOrigin,
        pick: ReplyChoice,
    ) {
        let mut owned_request = OwnedRequest::new(request);
        if request.modern {
            owned_request.take_responses(source.actions(pick));
        }
        let source = Some(source);
        self.run_actions(RunningRequest {
            owned_request,
            source,
            pick,
            step: 0,
            wait: RequestWait::Until(0),
        });
    }

    /// Waits for a handler to answer.
    pub(super) fn await_handler(&mut self, request: &EngineRequest<'_>, call_id: u64, until: u64) {
        let wait = RequestWait::Handler { ticket: call_id, until };
        let owned_request = OwnedRequest::new(request);
        self.store_play(RunningRequest {
            owned_request,
            source: None,
            pick: ReplyChoice::default(),
            step: 0,
            wait,
        });
    }

    /// Whether another operation may wait; if not, the request is refused.
    pub(super) fn has_room(&mut self, request: &EngineRequest<'_>) -> bool {
        let room = self.engine_session.has_room(request.params.len());
        if !room && !request.id.is_empty() {
            self.error(request, CODE_INTERNAL, "too many requests are under way", None);
        }
        room
    }

    fn store_play(&mut self, play: RunningRequest) {
        if self.has_room(&play.owned_request.as_request()) {
            self.engine_session.plays.push(play);
        }
    }

    /// Runs actions until one has to wait.
    pub(super) fn run_actions(&mut self, mut play: RunningRequest) {
        let source = play.source.clone();
        let actions = source.as_ref().map_or(&[][..], |source| source.actions(play.pick));
        while let Some(action) = actions.get(play.step) {
            let first = play.step;
            // Advanced first, so that a stored play continues after the action that made it wait.
            play.step += 1;
            match self.run_action(action, &actions[play.step..], &play.owned_request) {
                ActionOutcome::Yes => {}
                ActionOutcome::Waits(wait) => {
                    play.wait = wait;
                    return self.store_play(play);
                }
                ActionOutcome::Suspends(wanted) => return self.suspend(play, first, wanted),
                ActionOutcome::Refused => return,
            }
        }
        if let Some(reply) = source.as_ref().and_then(|source| source.reply(play.pick)) {
            self.send_reply(&play.owned_request.as_request(), reply);
        }
    }

    fn run_action(
        &mut self,
        action: &ScenarioAction,
        next: &[ScenarioAction],
        owned_request: &OwnedRequest,
    ) -> ActionOutcome {
        let request = owned_request.as_request();
        match action {
            ScenarioAction::Notify { method, params } => {
                let params = params.as_ref().map(|params| self.fill(&request, params));
                self.notify(&request, method, params.as_deref());
            }
            ScenarioAction::Ask { .. } if request.modern => {
                return self.require_input(action, next, &request);
            }
            ScenarioAction::Ask { method, id, params, name, timeout_ns } => {
                let params = params.as_ref().map(|params| self.fill(&request, params));
                let id =
                    self.send_client_request(&request, method, id.as_deref(), params.as_deref());
                if !request.id.is_empty() && !self.engine_session.has_left {
                    let name = name.as_ref().unwrap_or(method).clone();
                    let until = self.at.mono_ns.saturating_add(*timeout_ns);
                    return ActionOutcome::Waits(RequestWait::Reply { id, name, until });
                }
            }
            ScenarioAction::Progress(form) => {
                if let Some(token) = request.token {
                    let form = self.fill(&request, form);
                    let params = stateless::with_first_member(&form, "progressToken", token);
                    self.notify(&request, "notifications/progress", Some(&params));
                }
            }
            ScenarioAction::Message { level, params } => {
                if self.wants_log_level(&request, level) {
                    let params = self.fill(&request, params);
                    self.notify(&request, "notifications/message", Some(&params));
                }
            }
            ScenarioAction::Log(template) => {
                let message = template.fill(&self.context(&request));
                self.log(LogLevel::Info, &message);
            }
            ScenarioAction::EndStream
                if self.engine_session.streams && !request.modern && !request.id.is_empty() =>
            {
                (self.act)(ActorAction::Part(request.id));
            }
            ScenarioAction::EndStream | ScenarioAction::Wait(0) => {}
            ScenarioAction::Wait(wait_ns) => {
                return ActionOutcome::Waits(RequestWait::Until(
                    self.at.mono_ns.saturating_add(*wait_ns),
                ));
            }
        }
        ActionOutcome::Yes
    }

    /// Handles a reply from the client.
    pub(super) fn handle_reply(&mut self, envelope: &Envelope<'_>) {
        let Some(id) = envelope.id else { return };
        let waits = |play: &RunningRequest| matches!(&play.wait, RequestWait::Reply { id: request, .. } if same_id(request, id));
        let Some(index) = self.engine_session.plays.iter().position(waits) else {
            return self
                .log(LogLevel::Debug, "the client sent an answer that no request waits for");
        };
        let mut play = self.engine_session.plays.remove(index);
        let reply = match (envelope.result, envelope.error) {
            (Some(result), _) => result.to_vec(),
            (None, error) => [b"{\"error\":", error.unwrap_or(b"null"), b"}"].concat(),
        };
        if let RequestWait::Reply { name, .. } = &play.wait {
            play.owned_request.replies.push((name.clone(), reply));
        }
        self.run_actions(play);
    }

    /// Resumes operations whose wait is over.
    pub(super) fn resume_waiting(&mut self) {
        let now = self.at.mono_ns;
        let is_over =
            |play: &mut RunningRequest| play.wait.deadline_ns().is_some_and(|until| until <= now);
        let mut over: Vec<RunningRequest> =
            self.engine_session.plays.extract_if(.., is_over).collect();
        // By deadline, so that the order does not depend on when the engine was woken.
        over.sort_by_key(|play| play.wait.deadline_ns());
        over.into_iter().for_each(|play| self.resume_now(play));
    }

    /// Resumes without replies, because the client has closed its side.
    pub(super) fn resume_without_replies(&mut self) {
        let waits = |play: &mut RunningRequest| matches!(play.wait, RequestWait::Reply { .. });
        let over: Vec<RunningRequest> = self.engine_session.plays.extract_if(.., waits).collect();
        over.into_iter().for_each(|play| self.resume_now(play));
    }

    fn resume_now(&mut self, play: RunningRequest) {
        match &play.wait {
            RequestWait::Until(_) => self.run_actions(play),
            RequestWait::Reply { name, .. } => {
                self.log(LogLevel::Warn, &format!("the client did not answer `{name}` in time"));
                self.run_actions(play);
            }
            RequestWait::Handler { .. } => {
                let request = play.owned_request.as_request();
                self.error(&request, CODE_FAILED, "the handler did not answer in time", None);
            }
        }
    }

    pub(super) fn handle_handler_result(&mut self, done: u64, outcome: Result<&[u8], &str>) {
        let waits = |play: &RunningRequest| matches!(play.wait, RequestWait::Handler { ticket, .. } if ticket == done);
        if let Some(index) = self.engine_session.plays.iter().position(waits) {
            let play = self.engine_session.plays.remove(index);
            self.send_handler_reply(&play.owned_request.as_request(), outcome);
        }
    }

    /// Handles a cancellation by the client.
    pub(super) fn cancelled(&mut self, id: &[u8]) {
        // A subscription is an open request, and cancelling that request is how a client ends it.
        self.engine_session.listens.retain(|listen| !same_id(&listen.id, id));
        let index =
            self.engine_session.plays.iter().position(|play| same_id(&play.owned_request.id, id));
        if let Some(held) = self.engine_session.forget_waiting(id) {
            // Otherwise the batch would wait forever for this answer.
            held.batch.into_iter().for_each(|batch| self.add_to_batch(batch, &[]));
            return;
        }
        let Some(place) = index else {
            // Nothing runs for it any more, so its answer is being delivered.
            if !self.engine_session.is_uncancellable(id) {
                self.engine_session.delivery.cancel(id);
            }
            return;
        };
        let behavior = self.engine_session.plays[place].owned_request.behavior.as_ref();
        if behavior.is_none_or(|behavior| behavior.on_cancel == OnCancel::Stop) {
            let play = self.engine_session.plays.remove(place);
            self.leave_unanswered(&play.owned_request.as_request());
        }
    }
}
