//! Asks for approval through the hub, and passes decisions on to the wire.
//!
//! The gate does not wait for the hub: requests go to a background task, which sends them, waits
//! for the decision and has an approval confirmed before use. An unreachable hub never means
//! approval.

use std::collections::HashMap;
use std::sync::Arc;

use tapegate_core::gate::{Approval, HoldEnd, HoldId, HoldOutcome, Refusal};
use tapegate_core::time::Timestamp;
use tapegate_hub::api::{
    self, GovernanceDecision, GovernanceEvaluateRequest, GovernanceEvaluateResponse, JsonRpcId,
    MessageType, StreamDirection, TaskStatus,
};
use tapegate_hub::client::{ClientError, HubClient};
use tapegate_policy::approval_channel::{ApprovalChannel, ApprovalRequest};
use tapegate_policy::policy_gate::PolicyHandle;
use tapegate_policy::refuse::RefusalSubject;
use tapegate_store::approvals::new_id;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::file_approvals::HoldOutcomeSender;
use super::super::journal::{ShimJournal, connection_of, quoted};
use super::super::plan::ShimPlan;
use crate::logs::VerbosityLevel;

/// How many times the hub is asked about a task before a failure counts.
const TRIES: u32 = 3;

/// The gate's end: queues requests for the background task.
pub(super) struct HubApprovals {
    questions: mpsc::UnboundedSender<ApprovalCommand>,
    policy_handle: PolicyHandle,
    journal: ShimJournal,
    connection_id: String,
    folder: String,
}

/// The background task that sends requests to the hub.
pub(super) struct HubApprovalWorker {
    client: Arc<HubClient>,
    commands: mpsc::UnboundedReceiver<ApprovalCommand>,
    settle: HoldOutcomeSender,
    journal: ShimJournal,
}

/// A job for the background task.
enum ApprovalCommand {
    Ask(Box<ApprovalQuery>),
    /// A call no longer waits; with `cancel`, its request is withdrawn too.
    Withdraw {
        hold_id: HoldId,
        cancel: bool,
    },
}

/// An approval request and the call it is about.
struct ApprovalQuery {
    hold_id: HoldId,
    request: GovernanceEvaluateRequest,
    subject: RefusalSubject,
}

impl HubApprovals {
    pub(super) fn new(
        client: &Arc<HubClient>,
        settle: HoldOutcomeSender,
        journal: &ShimJournal,
        policy_handle: &PolicyHandle,
        plan: &ShimPlan,
    ) -> (Self, HubApprovalWorker) {
        // The gate cannot wait for room. The relay's limit on held calls bounds the queue.
        let (questions, commands) = mpsc::unbounded_channel();
        let (policy_handle, connection_id) = (policy_handle.clone(), plan.connection_id.clone());
        let folder = plan.folder.clone();
        let client = Arc::clone(client);
        let worker = HubApprovalWorker { client, commands, settle, journal: journal.clone() };
        (Self { questions, policy_handle, journal: journal.clone(), connection_id, folder }, worker)
    }
}

impl ApprovalChannel for HubApprovals {
    fn request_approval(&mut self, hold_id: HoldId, approval_request: &ApprovalRequest<'_>) {
        let id = approval_request.id.and_then(|id| std::str::from_utf8(id).ok());
        let who = approval_request.principal;
        // Choose the id here, so that the log can name it from the start.
        let approval_id = new_id().ok();
        approval_id.iter().for_each(|id| self.journal.set_approval_id(hold_id, id));
        let request = GovernanceEvaluateRequest {
            server_id: approval_request.source.to_owned(),
            direction: StreamDirection::AgentToServer,
            method: approval_request.method.to_owned(),
            id: id.and_then(JsonRpcId::from_json),
            params: approval_request.params.and_then(api::raw),
            message_type: MessageType::Request,
            profile: self.policy_handle.get().profile.into(),
            connection_id: Some(
                connection_of(&self.connection_id, approval_request.lane).into_owned(),
            ),
            request_id: Some(approval_request.subject.correlation_id.clone()),
            principal: Some(api::Principal {
                name: who.name.clone(),
                namespace: who.namespace.clone(),
                service_account: who.service_account.clone(),
                roles: who.roles.clone(),
                client: who.client.clone(),
            }),
            drift: None,
            held: true,
            approval_id: approval_id.clone(),
            workflow: Some(approval_request.workflow_name.to_owned()),
            traceparent: None,
            tape_session_id: None,
            tape_seq: None,
            folder: Some(self.folder.clone()),
        };
        let question =
            ApprovalQuery { hold_id, request, subject: approval_request.subject.clone() };
        // The background task lives as long as the session.
        self.questions.send(ApprovalCommand::Ask(Box::new(question))).ok();
    }

    fn withdraw_request(&mut self, _: Timestamp, hold_id: HoldId, how: HoldEnd) {
        // A call that was only abandoned can still be decided; an approval lets the same call pass
        // once.
        let cancel = !matches!(how, HoldEnd::Abandoned | HoldEnd::Unanswered);
        self.questions.send(ApprovalCommand::Withdraw { hold_id, cancel }).ok();
    }
}

impl HubApprovalWorker {
    /// Handles jobs; never returns.
    pub(super) async fn run(mut self) {
        let mut put: HashMap<HoldId, oneshot::Sender<bool>> = HashMap::new();
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                errand = self.commands.recv() => match errand {
                    None => return std::future::pending().await,
                    Some(ApprovalCommand::Ask(question)) => {
                        let (withdraw, withdrawn) = oneshot::channel();
                        put.insert(question.hold_id, withdraw);
                        running.spawn(self.drive(*question, withdrawn));
                    }
                    Some(ApprovalCommand::Withdraw { hold_id, cancel }) => {
                        // A request that was answered in the meantime need not be withdrawn.
                        put.remove(&hold_id).map(|withdraw| withdraw.send(cancel));
                    }
                },
                Some(done) = running.join_next() => {
                    if let Ok(hold_id) = done {
                        put.remove(&hold_id);
                    }
                }
            }
        }
    }

    /// Sends a request and settles its call, unless it is withdrawn.
    fn drive(
        &self,
        question: ApprovalQuery,
        withdrawn: oneshot::Receiver<bool>,
    ) -> impl Future<Output = HoldId> + use<> {
        let (client, journal) = (Arc::clone(&self.client), self.journal.clone());
        let settle = self.settle.clone();
        async move {
            let hold_id = question.hold_id;
            if let Some(outcome) = run_approval(&client, question, &journal, withdrawn).await {
                if let HoldOutcome::Refused(_) = &outcome {
                    journal.forget_hold(hold_id);
                }
                settle.send((hold_id, outcome)).await.ok();
            }
            hold_id
        }
    }
}

/// Sends a request and waits for its settlement; `None` if it was withdrawn.
async fn run_approval(
    client: &HubClient,
    question: ApprovalQuery,
    journal: &ShimJournal,
    withdrawn: oneshot::Receiver<bool>,
) -> Option<HoldOutcome> {
    let ApprovalQuery { hold_id, request, subject } = question;
    let unavailable = |error: ClientError| {
        journal.print_message(VerbosityLevel::Error, &format!("cannot request approval: {error}"));
        Some(HoldOutcome::Unanswered(subject.approval_unavailable("no approver is reachable")))
    };
    // Not cancellable: we must know whether the hub has opened a request that people can see.
    let answer = match client.evaluate(&request).await {
        Ok(answer) => answer,
        Err(error) => return unavailable(error),
    };
    let approved = |by: String| Some(HoldOutcome::Approved(Approval { hold_id, by }));
    let id = match (answer.decision, answer.task_id.clone()) {
        (GovernanceDecision::Forward, id) => {
            id.iter().for_each(|id| journal.set_approval_id(hold_id, id));
            return approved(answer.reason.clone().unwrap_or_else(|| "the hub".to_owned()));
        }
        (GovernanceDecision::PendingApproval, Some(id)) => {
            // An identical call may have been made before; its request then covers this call too.
            journal.set_approval_id(hold_id, &id);
            id
        }
        _ => return Some(HoldOutcome::Refused(refusal(&answer, &subject))),
    };
    let decided = tokio::select! {
        Ok(cancel) = withdrawn => {
            // If the hub is gone, it does not need to be told.
            match cancel {
                true => client.cancel(&id).await.ok(),
                false => client.abandon_task(&id).await.ok(),
            };
            return None;
        }
        decided = wait_until_settled(client, &id) => decided,
    };
    let decided = match decided {
        Ok(decided) => decided,
        Err(error) => return unavailable(error),
    };
    match decided.status {
        // Only the hub knows whether the approval is still unused, and its policy may have changed.
        TaskStatus::Approved => match client.revalidate(&id, &request).await {
            Ok(answer) if answer.decision == GovernanceDecision::Forward => {
                approved(decided.decided_by.unwrap_or_default())
            }
            Ok(answer) => Some(HoldOutcome::Refused(refusal(&answer, &subject))),
            // An identical call has used the approval.
            Err(ClientError::Status { status: 409, .. }) => {
                Some(HoldOutcome::Refused(subject.superseded_by_identical()))
            }
            Err(error) => unavailable(error),
        },
        TaskStatus::Pending => Some(HoldOutcome::Unanswered(
            subject.approval_unavailable("the governance service has stopped"),
        )),
        TaskStatus::Rejected | TaskStatus::Expired | TaskStatus::Cancelled => {
            Some(HoldOutcome::Refused(subject.approval_rejected(decided.reason.as_deref())))
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
    let data = format!(
        "{{\"gate\":{},\"tool\":{},\"correlation_id\":{},\"error_type\":{}}}",
        quoted(gate),
        quoted(&subject.shown_name()),
        quoted(&subject.correlation_id),
        quoted(&error.error_type)
    );
    let reason = format!("{} (gate: {gate})", error.error_type);
    Refusal { code: error.code, message: error.message.clone(), data, reason }
}
