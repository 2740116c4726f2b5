//! One approval through the hub: sends the request, asks the client's user if that is permitted, waits
//! for the decision, and has an approval confirmed before use.

use std::sync::Arc;

use serde_json::json;
use tapegate_core::activity::EventLevel;
use tapegate_core::gate::{Approval, HoldEnd, HoldId, HoldOutcome, Refusal, UserChoice};
use tapegate_hub::api::{
    self, AnswerRequest, GovernanceDecision, GovernanceEvaluateRequest, GovernanceEvaluateResponse,
    TaskStatus,
};
use tapegate_hub::client::{ClientError, HubClient};
use tapegate_policy::approval_channel::{CarriedAnswer, UserAnswer};
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::judge::AskMode;
use tapegate_policy::refuse::RefusalSubject;
use tapegate_policy::request_state::RequestStateKey;
use tapegate_policy::user_question::QuestionText;
use tokio::sync::oneshot;

use crate::file_approvals::HoldOutcomeSender;
use crate::journal::ShimJournal;
use crate::user_asking::{self, AskedCall};

/// How many times the hub is asked about a task before a failure counts.
const TRIES: u32 = 3;

/// An approval request and the call it is about.
pub(super) struct ApprovalQuery {
    pub(super) hold_id: HoldId,
    pub(super) request: GovernanceEvaluateRequest,
    pub(super) subject: RefusalSubject,
    /// How to ask the client's user, if at all.
    pub(super) ask: Option<ClientQuestion>,
    /// The answer that came with the call.
    pub(super) answer: Option<CarriedAnswer>,
}

/// A question to the client's user.
pub(super) struct ClientQuestion {
    pub(super) mode: AskMode,
    pub(super) text: QuestionText,
    pub(super) call_hash: String,
    pub(super) expires_us: i64,
}

/// What is needed to have a request settled.
pub(super) struct ApprovalSession {
    pub(super) client: Arc<HubClient>,
    pub(super) holds: HoldRegister,
    pub(super) journal: ShimJournal,
    pub(super) states: Option<RequestStateKey>,
    pub(super) settle: HoldOutcomeSender,
}

impl ApprovalSession {
    /// Sends a request and waits for its settlement; `None` if it was withdrawn.
    pub(super) async fn run_approval(
        &self,
        query: ApprovalQuery,
        withdrawn: oneshot::Receiver<HoldEnd>,
    ) -> Option<HoldOutcome> {
        let ApprovalQuery { hold_id, request, subject, ask, answer: carried } = query;
        if let Some(refusal) = self.earlier_denial(carried.as_ref(), &subject).await {
            return Some(HoldOutcome::Refused(refusal));
        }
        // Not cancellable: we must know whether the hub has opened a request that people can see.
        let answer = match self.client.evaluate(&request).await {
            Ok(answer) => answer,
            Err(error) => return self.unavailable(&subject, &error),
        };
        let approved = |by: String| Some(HoldOutcome::Approved(Approval { hold_id, by }));
        let id = match (answer.decision, answer.task_id.clone()) {
            (GovernanceDecision::Forward, id) => {
                id.iter().for_each(|id| self.holds.set_approval_id(hold_id, id));
                return approved(answer.reason.clone().unwrap_or_else(|| "the hub".to_owned()));
            }
            (GovernanceDecision::PendingApproval, Some(id)) => {
                // An identical call may have been made before; its request then covers this call
                // too.
                self.holds.set_approval_id(hold_id, &id);
                id
            }
            _ => return Some(HoldOutcome::Refused(refusal(&answer, &subject))),
        };
        self.answer_or_ask(hold_id, &id, carried, ask).await;
        let decided = tokio::select! {
            Ok(how) = withdrawn => {
                self.withdraw(&id, how).await;
                return None;
            }
            decided = wait_until_settled(&self.client, &id) => decided,
        };
        let decided = match decided {
            Ok(decided) => decided,
            Err(error) => return self.unavailable(&subject, &error),
        };
        match decided.status {
            // Only the hub knows whether the approval is still unused, and its policy may have
            // changed.
            TaskStatus::Approved => match self.client.revalidate(&id, &request).await {
                Ok(answer) if answer.decision == GovernanceDecision::Forward => {
                    approved(decided.decided_by.unwrap_or_default())
                }
                Ok(answer) => Some(HoldOutcome::Refused(refusal(&answer, &subject))),
                // An identical call has used the approval.
                Err(ClientError::Status { status: 409, .. }) => {
                    Some(HoldOutcome::Refused(subject.superseded_by_identical()))
                }
                Err(error) => self.unavailable(&subject, &error),
            },
            TaskStatus::Pending => Some(HoldOutcome::Unanswered(
                subject.approval_unavailable("the governance service has stopped"),
            )),
            TaskStatus::Rejected | TaskStatus::Expired | TaskStatus::Cancelled => {
                Some(HoldOutcome::Refused(subject.approval_rejected(decided.reason.as_deref())))
            }
        }
    }

    /// Tells the hub that a call no longer waits. If the hub is gone, it does not need to be told.
    async fn withdraw(&self, id: &str, how: HoldEnd) {
        let told = match how {
            HoldEnd::TimedOut => self.client.expire_task(id).await,
            HoldEnd::Cancelled | HoldEnd::Closed => self.client.cancel(id).await,
            // It can still be decided; an approval lets the same call pass once.
            HoldEnd::Abandoned | HoldEnd::Asked | HoldEnd::Unanswered => {
                self.client.abandon_task(id).await
            }
        };
        told.ok();
    }

    fn unavailable(&self, subject: &RefusalSubject, error: &ClientError) -> Option<HoldOutcome> {
        let message = format!("cannot request approval: {error}");
        self.journal.print_message(EventLevel::Error, &message);
        Some(HoldOutcome::Unanswered(subject.approval_unavailable("no approver is reachable")))
    }

    /// The refusal of a call that comes with an answer, if it was denied before the answer came.
    async fn earlier_denial(
        &self,
        carried: Option<&CarriedAnswer>,
        subject: &RefusalSubject,
    ) -> Option<Refusal> {
        let task = self.client.task(&carried?.approval_id).await.ok()?;
        let is_denied = task.status == TaskStatus::Rejected;
        is_denied.then(|| subject.approval_rejected(task.reason.as_deref()))
    }

    /// Passes the answer that came with a call on, or asks the client's user.
    async fn answer_or_ask(
        &self,
        hold_id: HoldId,
        id: &str,
        carried: Option<CarriedAnswer>,
        ask: Option<ClientQuestion>,
    ) {
        if let Some(carried) = carried.filter(|carried| carried.approval_id == id) {
            return send_answer(&self.client, id, &carried.answer, &self.journal).await;
        }
        let Some(ClientQuestion { mode, text, call_hash, expires_us }) = ask else { return };
        let call = AskedCall { approval_id: id, call_hash: &call_hash, expires_us };
        match user_asking::question(mode, &text, &call, self.states.as_ref()) {
            Ok(outcome) => drop(self.settle.send((hold_id, outcome)).await),
            Err(reason) => {
                let message = format!("cannot ask the client's user: {reason}");
                self.journal.print_message(EventLevel::Error, &message);
            }
        }
    }
}

/// Tells the hub what the client's user has answered. Without a decision, others can still decide.
pub(super) async fn send_answer(
    client: &HubClient,
    id: &str,
    answer: &UserAnswer,
    journal: &ShimJournal,
) {
    let Some(choice) = answer.choice else { return };
    let approve = choice == UserChoice::Approve;
    let request = AnswerRequest { approve, client: answer.client.clone() };
    match client.answer(id, &request).await {
        // Another approver was first.
        Ok(_) | Err(ClientError::Status { status: 409, .. }) => {}
        Err(error) => {
            let message = format!("cannot pass on what the client's user has answered: {error}");
            journal.print_message(EventLevel::Error, &message);
        }
    }
}

/// Waits until a task is decided, retrying after a timeout or a broken connection.
async fn wait_until_settled(client: &HubClient, id: &str) -> Result<api::TaskAnswer, ClientError> {
    let mut tries = 1;
    loop {
        match client.wait_until_settled(id).await {
            // The request outlives the connection, and even the hub: it is a file there.
            Err(ClientError::TimedOut(_) | ClientError::Broken(_)) if tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

/// The refusal for the caller, with the hub's text where it has one.
fn refusal(answer: &GovernanceEvaluateResponse, subject: &RefusalSubject) -> Refusal {
    let Some(error) = &answer.error else { return subject.approval_rejected(None) };
    let gate = answer.gate.as_deref().unwrap_or("approval");
    let data = json!({
        "gate": gate,
        "tool": subject.shown_name(),
        "correlation_id": subject.correlation_id,
        "error_type": error.error_type,
    });
    let reason = format!("{} (gate: {gate})", error.error_type);
    Refusal { code: error.code, message: error.message.clone(), data: data.to_string(), reason }
}
