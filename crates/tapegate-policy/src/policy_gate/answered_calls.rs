//! Answers of a client's user about held calls: those to a request of ours, and those that come
//! with the call itself.

use tapegate_core::frame::Frame;
use tapegate_core::gate::{GateInput, HoldId, UserChoice, Verdict};
use tapegate_core::side::Side;
use tapegate_core::time::Timestamp;

use super::calls::RequestedItem;
use super::{GateContext, PolicyGate};
use crate::approval_channel::{ApprovalRequest, CarriedAnswer, UserAnswer};
use crate::judge::AskMode;
use crate::model::Workflow;
use crate::request_state::{AnsweredCall, CarriedCall, carries_answers};

/// The methods whose result may ask the client's user.
const ASKING_METHODS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// An authentic state, and the choice that came with it.
#[derive(Debug)]
pub(super) struct CarriedState {
    state: CarriedCall,
    choice: Option<UserChoice>,
}

impl CarriedState {
    /// The answer, if it is about this call.
    pub(super) fn about(
        self,
        request: &ApprovalRequest<'_>,
        client: String,
    ) -> Option<CarriedAnswer> {
        let Self { state, choice } = self;
        // The policy may have changed, so that the client's user may not answer any more.
        if request.ask.is_none() || state.call_hash != request.call_hash() {
            return None;
        }
        let choice = choice.filter(|choice| state.may_approve || *choice == UserChoice::Deny);
        let answer = UserAnswer { choice, client };
        Some(CarriedAnswer { approval_id: state.approval_id, answer })
    }
}

impl PolicyGate {
    /// The text of a call without the answer that it carries, and the answer if it is authentic.
    pub(super) fn take_answer(
        &self,
        case: &GateInput<'_>,
    ) -> Option<(Vec<u8>, Option<CarriedState>)> {
        // A call with the usual members alone carries nothing.
        let is_plain = case.frame.envelope().is_none_or(|envelope| envelope.plain);
        if case.from == Side::Server || is_plain || self.active_policy.policy.is_none() {
            return None;
        }
        let states = self.effects.states.as_ref()?;
        let call = states.take_apart(case.frame.bytes(), case.at.wall_us)?;
        let AnsweredCall { text, state, answer } = call;
        let choice = answer.as_deref().and_then(UserChoice::read);
        Some((text, state.map(|state| CarriedState { state, choice })))
    }

    /// Judges a call by its text without the answer; only that text may be sent.
    pub(super) fn judge_answered(
        &mut self,
        case: &GateInput<'_>,
        text: Vec<u8>,
        carried: Option<CarriedState>,
    ) -> Verdict {
        self.carried = carried;
        let verdict = {
            let frame = Frame::read(&text);
            self.judge_case(&GateInput { frame: &frame, ..*case })
        };
        self.carried = None;
        match verdict {
            Verdict::Forward => Verdict::Rewrite(text),
            Verdict::Hold(mut hold) => {
                hold.replacement = Some(text);
                Verdict::Hold(hold)
            }
            verdict => verdict,
        }
    }

    /// How the client's user may be asked about a call: the workflow names the client, and the
    /// client can ask.
    pub(super) fn ask_mode(
        &mut self,
        now: &GateContext<'_, '_>,
        item: RequestedItem<'_>,
        workflow: &Workflow,
    ) -> Option<AskMode> {
        let session = now.case.lane.session;
        if now.case.from != Side::Client || workflow.in_agent.is_empty() {
            return None;
        }
        let client = self.state.callers.caller(session, now.envelope).client.as_deref()?;
        if !workflow.allows_answers_in(client) {
            return None;
        }
        let mode = self.state.callers.ask_mode(session, now.envelope)?;
        // The client would send our state in place of the one that the server has given it.
        let is_free = now.envelope.params.is_none_or(|params| !carries_answers(params));
        let has_results = ASKING_METHODS.contains(&item.method) && is_free;
        (mode == AskMode::Request || has_results).then_some(mode)
    }

    /// Passes an answer on, if the workflow still lets the client's user answer.
    pub(super) fn pass_user_answer(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        choice: Option<UserChoice>,
    ) {
        let Some(gate_hold) = self.effects.holds.get(hold_id) else { return };
        let policy = self.active_policy.policy.as_ref();
        let workflow = policy.and_then(|policy| policy.workflows.get(&gate_hold.workflow));
        let client = gate_hold.client;
        // The policy may have changed while the user was asked.
        let choice =
            choice.filter(|_| workflow.is_some_and(|workflow| workflow.allows_answers_in(&client)));
        let answer = UserAnswer { choice, client };
        self.effects.approval_channel.answer_request(at, hold_id, &answer);
    }
}
