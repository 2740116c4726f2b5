//! Asks for approval through the hub, and passes decisions on to the wire.
//!
//! The gate does not wait for the hub: requests go to a background task, which sends them, waits
//! for the decision and has an approval confirmed before use. An unreachable hub never means
//! approval.

use std::collections::HashMap;
use std::sync::Arc;

use tapegate_core::gate::{HoldEnd, HoldId};
use tapegate_core::time::Timestamp;
use tapegate_hub::api::{self, GovernanceEvaluateRequest, JsonRpcId, MessageType, StreamDirection};
use tapegate_hub::client::HubClient;
use tapegate_policy::approval_channel::{ApprovalChannel, ApprovalRequest, UserAnswer};
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::policy_gate::PolicyHandle;
use tapegate_policy::redact::RedactionKey;
use tapegate_policy::redacted_arguments;
use tapegate_policy::request_state::RequestStateKey;
use tapegate_policy::user_question::QuestionText;
use tapegate_store::approvals::new_id;
use tapegate_store::random;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::approval_session::{ApprovalQuery, ApprovalSession, ClientQuestion, send_answer};
use crate::client_patience::PatienceWarning;
use crate::file_approvals::HoldOutcomeSender;
use crate::journal::{ShimJournal, connection_of};
use crate::plan::ShimPlan;

/// The gate's end: queues requests for the background task.
pub(super) struct HubApprovals {
    questions: mpsc::UnboundedSender<ApprovalCommand>,
    policy_handle: PolicyHandle,
    holds: HoldRegister,
    journal: ShimJournal,
    key: RedactionKey,
    connection_id: String,
    folder: String,
    patience: PatienceWarning,
}

/// The background task that sends requests to the hub.
pub(super) struct HubApprovalWorker {
    client: Arc<HubClient>,
    commands: mpsc::UnboundedReceiver<ApprovalCommand>,
    settle: HoldOutcomeSender,
    holds: HoldRegister,
    journal: ShimJournal,
    /// New in each run: a client whose shim was restarted is asked again.
    states: Option<RequestStateKey>,
}

/// A job for the background task.
enum ApprovalCommand {
    Ask(Box<ApprovalQuery>),
    /// The client's user has answered about a call that waits.
    Answer {
        id: String,
        answer: UserAnswer,
    },
    /// A call no longer waits.
    Withdraw {
        hold_id: HoldId,
        how: HoldEnd,
    },
}

impl HubApprovals {
    pub(super) fn new(
        client: &Arc<HubClient>,
        (settle, holds): (HoldOutcomeSender, &HoldRegister),
        journal: &ShimJournal,
        policy_handle: &PolicyHandle,
        plan: &ShimPlan,
    ) -> (Self, HubApprovalWorker) {
        // The gate cannot wait for room. The relay's limit on held calls bounds the queue.
        let (questions, commands) = mpsc::unbounded_channel();
        let (policy_handle, connection_id) = (policy_handle.clone(), plan.connection_id.clone());
        let folder = plan.folder.clone();
        let client = Arc::clone(client);
        let (journal, holds) = (journal.clone(), holds.clone());
        let channel = Self {
            questions,
            policy_handle,
            holds: holds.clone(),
            journal: journal.clone(),
            key: plan.key.clone(),
            connection_id,
            folder,
            patience: PatienceWarning::default(),
        };
        let states = random::bytes().ok().map(RequestStateKey::new);
        (channel, HubApprovalWorker { client, commands, settle, holds, journal, states })
    }

    /// How to ask the client's user, if the workflow permits it and the client can do it.
    fn question(
        &self,
        approval_request: &ApprovalRequest<'_>,
        approval_id: Option<&str>,
    ) -> Option<ClientQuestion> {
        let mode = approval_request.ask?;
        let active_policy = self.policy_handle.get();
        let policy = active_policy.policy.as_ref()?;
        let (workflow, params) = (approval_request.workflow, approval_request.params);
        let params = params.unwrap_or(b"{}");
        let shown = redacted_arguments::params(&policy.redaction, workflow, &self.key, params);
        let tool = self.journal.masked(&approval_request.subject.name);
        let reason = self.journal.masked(approval_request.reason);
        let text = QuestionText::new(approval_request, &shown, (&tool, &reason), approval_id);
        let timeout_us = i64::try_from(approval_request.timeout_ms.saturating_mul(1000));
        let expires_us = approval_request.at.wall_us.saturating_add(timeout_us.unwrap_or(i64::MAX));
        let call_hash = approval_request.call_hash();
        Some(ClientQuestion { mode, text, call_hash, expires_us })
    }
}

impl ApprovalChannel for HubApprovals {
    fn request_approval(&mut self, hold_id: HoldId, approval_request: &ApprovalRequest<'_>) {
        self.patience.check(approval_request, &self.journal);
        let id = approval_request.id.and_then(|id| std::str::from_utf8(id).ok());
        let who = approval_request.principal;
        // Choose the id here, so that the log can name it from the start.
        let approval_id = new_id().ok();
        approval_id.iter().for_each(|id| self.holds.set_approval_id(hold_id, id));
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
            // The hub sees no lists, so only this shim knows that the tool is not what was accepted.
            drift: approval_request.drift.map(|drift| self.journal.masked(drift)),
            held: true,
            approval_id: approval_id.clone(),
            workflow: Some(approval_request.workflow_name.to_owned()),
            traceparent: None,
            tape_session_id: None,
            tape_seq: None,
            folder: Some(self.folder.clone()),
        };
        let question = ApprovalQuery {
            hold_id,
            request,
            subject: approval_request.subject.clone(),
            ask: self.question(approval_request, approval_id.as_deref()),
            answer: approval_request.answer.clone(),
        };
        // The background task lives as long as the session.
        self.questions.send(ApprovalCommand::Ask(Box::new(question))).ok();
    }

    fn withdraw_request(&mut self, _: Timestamp, hold_id: HoldId, how: HoldEnd) {
        self.questions.send(ApprovalCommand::Withdraw { hold_id, how }).ok();
    }

    fn answer_request(&mut self, _: Timestamp, hold_id: HoldId, answer: &UserAnswer) {
        if let Some(id) = self.holds.approval_id(hold_id) {
            self.questions.send(ApprovalCommand::Answer { id, answer: answer.clone() }).ok();
        }
    }
}

impl HubApprovalWorker {
    /// Authenticates what clients carry between a question and its answer.
    pub(super) fn states(&self) -> Option<RequestStateKey> {
        self.states.clone()
    }

    /// Handles jobs. Once the session is over, withdraws the requests that are still open, and returns.
    pub(super) async fn run(mut self) {
        let mut put: HashMap<HoldId, oneshot::Sender<HoldEnd>> = HashMap::new();
        let mut running = JoinSet::new();
        let mut answers = JoinSet::new();
        loop {
            tokio::select! {
                errand = self.commands.recv() => match errand {
                    None => break,
                    Some(ApprovalCommand::Ask(question)) => {
                        let (withdraw, withdrawn) = oneshot::channel();
                        put.insert(question.hold_id, withdraw);
                        running.spawn(self.drive(*question, withdrawn));
                    }
                    Some(ApprovalCommand::Answer { id, answer }) => {
                        let (client, journal) = (Arc::clone(&self.client), self.journal.clone());
                        answers.spawn(async move {
                            send_answer(&client, &id, &answer, &journal).await;
                        });
                    }
                    Some(ApprovalCommand::Withdraw { hold_id, how }) => {
                        // A request that was answered in the meantime need not be withdrawn.
                        put.remove(&hold_id).map(|withdraw| withdraw.send(how));
                    }
                },
                Some(_) = answers.join_next() => {}
                Some(done) = running.join_next() => {
                    if let Ok(hold_id) = done {
                        put.remove(&hold_id);
                    }
                }
            }
        }
        put.into_values().for_each(|withdraw| _ = withdraw.send(HoldEnd::Closed));
        while running.join_next().await.is_some() {}
    }

    /// Sends a request and settles its call, unless it is withdrawn.
    fn drive(
        &self,
        question: ApprovalQuery,
        withdrawn: oneshot::Receiver<HoldEnd>,
    ) -> impl Future<Output = HoldId> + use<> {
        let (client, journal) = (Arc::clone(&self.client), self.journal.clone());
        let (settle, holds) = (self.settle.clone(), self.holds.clone());
        let states = self.states.clone();
        async move {
            let hold_id = question.hold_id;
            let session =
                ApprovalSession { client, holds, journal, states, settle: settle.clone() };
            if let Some(outcome) = session.run_approval(question, withdrawn).await {
                settle.send((hold_id, outcome)).await.ok();
            }
            hold_id
        }
    }
}
