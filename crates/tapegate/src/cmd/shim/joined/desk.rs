//! Asks people through the hub, and tells the wire what they have decided.
//!
//! The gate does not wait for the hub: a question goes to the clerk, who puts it, waits for the
//! answer and has it looked at once more when it is yes. A hub that cannot be asked is no yes.

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

/// How often a question is put again that the hub did not answer.
const TRIES: u32 = 3;

/// Where questions are handed in.
pub(super) struct Counter {
    questions: mpsc::UnboundedSender<Errand>,
    reins: Reins,
    journal: Journal,
    connection_id: String,
    folder: String,
}

/// Who puts them to the hub.
pub(super) struct Clerk {
    client: Arc<Client>,
    errands: mpsc::UnboundedReceiver<Errand>,
    settle: Settle,
    journal: Journal,
}

/// Something for the clerk to do.
enum Errand {
    Ask(Box<Question>),
    /// A call waits no more, and perhaps nobody is to decide about it.
    Withdraw {
        ticket: Ticket,
        cancel: bool,
    },
}

/// A question.
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
        // The name is ours to choose, so that what is logged now can tell it.
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
        // The clerk is there as long as the session is.
        self.questions.send(Errand::Ask(Box::new(question))).ok();
    }

    fn withdraw(&mut self, _: At, ticket: Ticket, how: HoldEnd) {
        // What was only given up can still be decided about; then the same call passes once.
        let cancel = !matches!(how, HoldEnd::Abandoned | HoldEnd::Unanswered);
        self.questions.send(Errand::Withdraw { ticket, cancel }).ok();
    }
}

impl Clerk {
    /// Does errands for ever.
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
                        // A question that was answered meanwhile needs not be taken back.
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

    /// Puts a question and has it settled, unless it is withdrawn.
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

/// Puts a question, and comes back with how it was settled, if it was not withdrawn.
async fn ask(
    client: &Client,
    question: Question,
    journal: &Journal,
    withdrawn: oneshot::Receiver<bool>,
) -> Option<Settlement> {
    let Question { ticket, request, subject } = question;
    let unavailable = |error: ClientError| {
        journal.say(Level::Error, &format!("nobody can be asked: {error}"));
        Some(Settlement::Unanswered(subject.unavailable("nobody can be asked for approval")))
    };
    // Whatever happens meanwhile, it has to be known whether people are asked now.
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
            // An identical call may have asked before; then its request is this call's, too.
            journal.asked(ticket, &id);
            id
        }
        _ => return Some(Settlement::Refused(refusal(&answer, &subject))),
    };
    let decided = tokio::select! {
        Ok(cancel) = withdrawn => {
            // A hub that is gone needs not be told.
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
            Some(Settlement::Unanswered(subject.unavailable("the governance service is ending")))
        }
        TaskStatus::Rejected | TaskStatus::Expired | TaskStatus::Cancelled => {
            Some(Settlement::Refused(subject.rejected(decided.reason.as_deref())))
        }
    }
}

/// Waits until a task is decided about. One question that is not answered is no end.
async fn settled(client: &Client, id: &str) -> Result<api::TaskAnswer, ClientError> {
    let mut tries = 1;
    loop {
        match client.settled(id).await {
            Err(ClientError::TimedOut(_) | ClientError::Broken(_)) if tries < TRIES => tries += 1,
            done => return done,
        }
    }
}

/// What the caller is told, in the hub's words where it has some.
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
