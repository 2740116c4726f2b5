//! Asks for approval through the hub, and passes decisions on to the wire.
//!
//! The gate does not wait for the hub: requests go to a background task, which sends them, waits
//! for the decision and has an approval confirmed before use. An unreachable hub never means
//! approval.

use std::collections::HashMap;
use std::sync::Arc;

use tapegate_core::gate::{Approval, HoldEnd, Refusal, Settlement, Ticket};
use tapegate_core::time::At;
use tapegate_hub::api::{
    self, GovernanceDecision, GovernanceEvaluateRequest, GovernanceEvaluateResponse, JsonRpcId,
    MessageType, StreamDirection, TaskStatus,
};
use tapegate_hub::client::{Client, ClientError};
use tapegate_policy::people::{Asking, People};
use tapegate_policy::refuse::Subject;
use tapegate_policy::warden::Reins;
use tapegate_store::approvals::new_id;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::desk::Settle;
use super::super::journal::{Journal, connection_of, quoted};
use super::super::plan::Plan;
use crate::logs::Level;

/// How many times the hub is asked about a task before a failure counts.
const TRIES: u32 = 3;

/// The gate's end: queues requests for the background task.
pub(super) struct Counter {
    questions: mpsc::UnboundedSender<Errand>,
    reins: Reins,
    journal: Journal,
    connection_id: String,
    folder: String,
}

/// The background task that sends requests to the hub.
pub(super) struct Clerk {
    client: Arc<Client>,
    errands: mpsc::UnboundedReceiver<Errand>,
    settle: Settle,
    journal: Journal,
}

/// A job for the background task.
enum Errand {
    Ask(Box<Question>),
    /// A call no longer waits; with `cancel`, its request is withdrawn too.
    Withdraw {
        ticket: Ticket,
        cancel: bool,
    },
}

/// An approval request and the call it is about.
struct Question {
    ticket: Ticket,
    request: GovernanceEvaluateRequest,
    subject: Subject,
}

impl Counter {
    pub(super) fn new(
        client: &Arc<Client>,
        settle: Settle,
        journal: &Journal,
        reins: &Reins,
        plan: &Plan,
    ) -> (Self, Clerk) {
        let (questions, errands) = mpsc::unbounded_channel();
        let (reins, connection_id) = (reins.clone(), plan.connection_id.clone());
        let folder = plan.folder.clone();
        let client = Arc::clone(client);
        let clerk = Clerk { client, errands, settle, journal: journal.clone() };
        (Self { questions, reins, journal: journal.clone(), connection_id, folder }, clerk)
    }
}

impl People for Counter {
    fn ask(&mut self, ticket: Ticket, asking: &Asking<'_>) {
        let id = asking.id.and_then(|id| std::str::from_utf8(id).ok());
        let who = asking.principal;
        // Choose the id here, so that the log can name it from the start.
        let approval_id = new_id().ok();
        approval_id.iter().for_each(|id| self.journal.asked(ticket, id));
        let request = GovernanceEvaluateRequest {
            server_id: asking.source.to_owned(),
            direction: StreamDirection::AgentToServer,
            method: asking.method.to_owned(),
            id: id.and_then(JsonRpcId::from_json),
            params: asking.params.and_then(api::raw),
            message_type: MessageType::Request,
            profile: self.reins.get().profile.into(),
            connection_id: Some(connection_of(&self.connection_id, asking.lane).into_owned()),
            request_id: Some(asking.subject.correlation_id.clone()),
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
            workflow: Some(asking.workflow_name.to_owned()),
            traceparent: None,
            tape_session_id: None,
            tape_seq: None,
            folder: Some(self.folder.clone()),
        };
        let question = Question { ticket, request, subject: asking.subject.clone() };
        // The background task lives as long as the session.
        self.questions.send(Errand::Ask(Box::new(question))).ok();
    }

    fn withdraw(&mut self, _: At, ticket: Ticket, how: HoldEnd) {
        // A call that was only abandoned can still be decided; an approval lets the same call pass
        // once.
        let cancel = !matches!(how, HoldEnd::Abandoned | HoldEnd::Unanswered);
        self.questions.send(Errand::Withdraw { ticket, cancel }).ok();
    }
}

impl Clerk {
    /// Handles jobs; never returns.
    pub(super) async fn run(mut self) {
        let mut put: HashMap<Ticket, oneshot::Sender<bool>> = HashMap::new();
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                errand = self.errands.recv() => match errand {
                    None => return std::future::pending().await,
                    Some(Errand::Ask(question)) => {
                        let (withdraw, withdrawn) = oneshot::channel();
                        put.insert(question.ticket, withdraw);
                        running.spawn(self.see_to(*question, withdrawn));
                    }
                    Some(Errand::Withdraw { ticket, cancel }) => {
                        // A request that was answered in the meantime need not be withdrawn.
                        put.remove(&ticket).map(|withdraw| withdraw.send(cancel));
                    }
                },
                Some(done) = running.join_next() => {
                    if let Ok(ticket) = done {
                        put.remove(&ticket);
                    }
                }
            }
        }
    }

    /// Sends a request and settles its call, unless it is withdrawn.
    fn see_to(
        &self,
        question: Question,
        withdrawn: oneshot::Receiver<bool>,
    ) -> impl Future<Output = Ticket> + use<> {
        let (client, journal) = (Arc::clone(&self.client), self.journal.clone());
        let settle = self.settle.clone();
        async move {
            let ticket = question.ticket;
            if let Some(settlement) = ask(&client, question, &journal, withdrawn).await {
                if let Settlement::Refused(_) = &settlement {
                    journal.forget(ticket);
                }
                settle.send((ticket, settlement)).await.ok();
            }
            ticket
        }
    }
}

/// Sends a request and waits for its settlement; `None` if it was withdrawn.
async fn ask(
    client: &Client,
    question: Question,
    journal: &Journal,
    withdrawn: oneshot::Receiver<bool>,
) -> Option<Settlement> {
    let Question { ticket, request, subject } = question;
    let unavailable = |error: ClientError| {
        journal.say(Level::Error, &format!("cannot request approval: {error}"));
        Some(Settlement::Unanswered(subject.unavailable("no approver is reachable")))
    };
    // Not cancellable: we must know whether the hub has opened a request that people can see.
    let answer = match client.evaluate(&request).await {
        Ok(answer) => answer,
        Err(error) => return unavailable(error),
    };
    let approved = |by: String| Some(Settlement::Approved(Approval { ticket, by }));
    let id = match (answer.decision, answer.task_id.clone()) {
        (GovernanceDecision::Forward, id) => {
            id.iter().for_each(|id| journal.asked(ticket, id));
            return approved(answer.reason.clone().unwrap_or_else(|| "the hub".to_owned()));
        }
        (GovernanceDecision::PendingApproval, Some(id)) => {
            // An identical call may have been made before; its request then covers this call too.
            journal.asked(ticket, &id);
            id
        }
        _ => return Some(Settlement::Refused(refusal(&answer, &subject))),
    };
    let decided = tokio::select! {
        Ok(cancel) = withdrawn => {
            // If the hub is gone, it does not need to be told.
            match cancel {
                true => client.cancel(&id).await.ok(),
                false => client.abandon(&id).await.ok(),
            };
            return None;
        }
        decided = settled(client, &id) => decided,
    };
    let decided = match decided {
        Ok(decided) => decided,
        Err(error) => return unavailable(error),
    };
    match decided.status {
        TaskStatus::Approved => match client.revalidate(&id, &request).await {
            Ok(answer) if answer.decision == GovernanceDecision::Forward => {
                approved(decided.decided_by.unwrap_or_default())
            }
            Ok(answer) => Some(Settlement::Refused(refusal(&answer, &subject))),
            // An identical call has used the approval.
            Err(ClientError::Status { status: 409, .. }) => {
                Some(Settlement::Refused(subject.superseded()))
            }
            Err(error) => unavailable(error),
        },
        TaskStatus::Pending => {
            Some(Settlement::Unanswered(subject.unavailable("the governance service has stopped")))
        }
        TaskStatus::Rejected | TaskStatus::Expired | TaskStatus::Cancelled => {
            Some(Settlement::Refused(subject.rejected(decided.reason.as_deref())))
        }
    }
}

/// Waits until a task is decided, retrying after a timeout or a broken connection.
async fn settled(client: &Client, id: &str) -> Result<api::TaskAnswer, ClientError> {
    let mut tries = 1;
    loop {
        match client.settled(id).await {
            Err(ClientError::TimedOut(_) | ClientError::Broken(_)) if tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

/// The refusal for the caller, with the hub's text where it has one.
fn refusal(answer: &GovernanceEvaluateResponse, subject: &Subject) -> Refusal {
    let Some(error) = &answer.error else { return subject.rejected(None) };
    let gate = answer.gate.as_deref().unwrap_or("approval");
    let data = format!(
        "{{\"gate\":{},\"tool\":{},\"correlation_id\":{},\"error_type\":{}}}",
        quoted(gate),
        quoted(&subject.shown_name()),
        quoted(&subject.correlation_id),
        quoted(&error.error_type)
    );
    let why = format!("{} (gate: {gate})", error.error_type);
    Refusal { code: error.code, message: error.message.clone(), data, why }
}
