//! Asks people through the approvals folder, and tells the wire what they have decided.
//!
//! The request is a file before the call waits, so that no call waits for a question that was never
//! asked. The folder is looked at whenever it changes. Identical calls share one request: its
//! approval sends the newest of them, once. If no caller waits any more, it lets the same call pass
//! once later.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tapegate_core::gate::{Approval, HoldEnd, Settlement, Ticket};
use tapegate_core::time::At;
use tapegate_policy::people::{Asking, People};
use tapegate_policy::redact::Key;
use tapegate_policy::refuse::Subject;
use tapegate_policy::shown;
use tapegate_policy::warden::Reins;
use tapegate_store::Watcher;
use tapegate_store::activity::Event;
use tapegate_store::approvals::{ApprovalError, Approvals, Decided, Request, Ruling, new_id};
use tapegate_wire::clock::Clock;
use tapegate_wire::port::Port;
use tokio::io::Interest;
use tokio::sync::{Notify, mpsc};

use super::journal::{Journal, connection_of, quoted};
use crate::logs::Level;
use crate::settings::user_state::user_state_dir;

/// How long requests are kept after they could no longer be decided about.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How many decisions may be on their way; more than the relay ever holds.
pub(super) const SETTLEMENTS_MAX: usize = 128;

/// Where decisions go.
pub(super) type Settle = mpsc::Sender<(Ticket, Settlement)>;

/// The desk at which people are asked. Clones are the same desk.
#[derive(Clone)]
pub(super) struct Desk(Arc<Inner>);

struct Inner {
    /// The folder, or why there is none.
    approvals: Result<Approvals, String>,
    open: Mutex<HashMap<Ticket, Open>>,
    settle: Settle,
    journal: Journal,
    reins: Reins,
    key: Key,
    connection_id: String,
    folder: String,
    policy: String,
    clock: Clock,
    /// Wakes whoever looks for decisions.
    news: Notify,
}

/// A call that waits for a decision. Several may wait for the same.
#[derive(Clone)]
struct Open {
    /// What was asked, as this process asked it: the file could have been changed since.
    request: Request,
    subject: Subject,
    method: String,
}

/// What a desk begins with.
pub(super) struct Begin {
    pub(super) settle: Settle,
    pub(super) journal: Journal,
    pub(super) reins: Reins,
    pub(super) key: Key,
    pub(super) connection_id: String,
    /// The folder that the session works in.
    pub(super) folder: String,
    /// The policy's file.
    pub(super) policy: String,
    pub(super) clock: Clock,
}

impl Desk {
    /// A desk over the approvals of the project with this state folder. If there can be none,
    /// whoever asks is refused.
    pub(super) fn open(state: &Path, begin: Begin) -> Self {
        let approvals = user_state_dir().map_err(|failure| failure.words).and_then(|user_state| {
            Approvals::of_project(&user_state, state).map_err(|error| error.to_string())
        });
        if let Ok(approvals) = &approvals {
            // What cannot be removed now is found again later.
            approvals.clean_hourly(begin.clock.now().wall_us, KEPT).ok();
        }
        let Begin { settle, journal, reins, key, connection_id, folder, policy, clock } = begin;
        Self(Arc::new(Inner {
            approvals,
            open: Mutex::default(),
            settle,
            journal,
            reins,
            key,
            connection_id,
            folder,
            policy,
            clock,
            news: Notify::new(),
        }))
    }

    /// Looks for decisions for ever.
    pub(super) async fn watch(&self) {
        let Ok(approvals) = &self.0.approvals else { return std::future::pending().await };
        let watcher = approvals.watch();
        let told = watcher.handle().and_then(|fd| fd.try_clone_to_owned().ok());
        let told = told.and_then(|fd| Port::own(fd, Interest::READABLE).ok());
        loop {
            self.look(approvals);
            if self.0.open().is_empty() {
                // Nothing is waited for; the folder is looked at again when something is.
                self.0.news.notified().await;
                continue;
            }
            changed(&watcher, told.as_ref()).await;
        }
    }

    /// Hands on what was decided since the last look.
    fn look(&self, approvals: &Approvals) {
        let mut open: BTreeMap<String, Vec<(Ticket, Request)>> = BTreeMap::new();
        for (ticket, one) in self.0.open().iter() {
            let same = open.entry(one.request.id.clone()).or_default();
            same.push((*ticket, one.request.clone()));
        }
        for (_, mut same) in open {
            same.sort_by_key(|(ticket, _)| *ticket);
            let tickets: Vec<Ticket> = same.iter().map(|(ticket, _)| *ticket).collect();
            let Some((_, request)) = same.pop() else { continue };
            match self.0.find_decision(approvals, &request) {
                Ok(None) => self.0.release_by_other(approvals, &tickets, &request),
                Ok(Some(decided)) => self.0.decided(approvals, &tickets, &request.id, &decided),
                Err(error) => {
                    tickets.iter().for_each(|ticket| self.0.give_up(*ticket, &error.to_string()));
                }
            }
        }
        self.0.report_refused(approvals);
    }
}

impl Inner {
    fn open(&self) -> MutexGuard<'_, HashMap<Ticket, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, ticket: Ticket, settlement: Settlement) {
        if let Settlement::Refused(_) = &settlement {
            self.journal.forget(ticket);
        }
        // There is room for more than are ever held; and if the wire is gone, nobody waits.
        self.settle.try_send((ticket, settlement)).ok();
    }

    /// What was decided about a request that was asked here. A request that somebody has changed or
    /// removed is put back, so that people decide about what will be sent.
    fn find_decision(
        &self,
        approvals: &Approvals,
        request: &Request,
    ) -> Result<Option<Decided>, ApprovalError> {
        match approvals.request(&request.id) {
            Err(ApprovalError::Unknown { .. }) => {
                approvals.ask(request).or_else(|error| match error {
                    ApprovalError::Exists { .. } => Ok(()),
                    error => Err(error),
                })?;
                approvals.decision_for(request)
            }
            Ok(current) => {
                // It may last longer by now, because the same call was made again.
                let expires_us = current.expires_us.max(request.expires_us);
                approvals.decision_for(&Request { expires_us, ..request.clone() })
            }
            Err(error) => Err(error),
        }
    }

    /// Settles the identical calls that have waited for a decision, oldest first.
    fn decided(&self, approvals: &Approvals, tickets: &[Ticket], id: &str, decided: &Decided) {
        let mut waiting: Vec<(Ticket, Open)> = Vec::new();
        for ticket in tickets {
            let open = self.open().remove(ticket);
            waiting.extend(open.map(|open| (*ticket, open)));
        }
        if decided.ruling != Ruling::Approved {
            for (ticket, open) in waiting {
                self.note(&open, decided.ruling.word(), decided);
                let refusal = open.subject.rejected(decided.reason.as_deref());
                self.settle(ticket, Settlement::Refused(refusal));
            }
            return;
        }
        // One approval sends one call: the newest, since callers that repeat a call have often
        // given up the one before without a word.
        let newest = match approvals.consume(id) {
            Ok(true) => waiting.pop(),
            Ok(false) => None,
            Err(error) => {
                for (ticket, open) in waiting {
                    let refusal = open.subject.unavailable(&error.to_string());
                    self.settle(ticket, Settlement::Unanswered(refusal));
                }
                return;
            }
        };
        for (ticket, open) in waiting {
            self.note(&open, "superseded", decided);
            self.settle(ticket, Settlement::Refused(open.subject.superseded()));
        }
        if let Some((ticket, _)) = newest {
            let approval = Approval { ticket, by: decided.by.clone() };
            self.settle(ticket, Settlement::Approved(approval));
        }
    }

    /// Sends the newest of these calls if an identical one was approved whose caller has given up.
    fn release_by_other(&self, approvals: &Approvals, tickets: &[Ticket], request: &Request) {
        let now_us = self.clock.now().wall_us;
        // An error here shows at the next look, or when the hold ends.
        let Ok(Some((id, decided))) = approvals.approved_before(request, now_us) else { return };
        let Some(ticket) = tickets.last().copied() else { return };
        self.open().remove(&ticket);
        self.journal.asked(ticket, &id);
        self.settle(ticket, Settlement::Approved(Approval { ticket, by: decided.by }));
        if approvals.leave(&request.id, now_us).is_ok_and(|others| others == 0) {
            approvals.withdraw(&request.id, "shim", now_us).ok();
        }
    }

    /// Writes down every approval file that was set aside.
    fn report_refused(&self, approvals: &Approvals) {
        for file in approvals.take_refused() {
            self.journal.keep(Event::refused(&file, self.clock.now().wall_us));
        }
    }

    fn give_up(&self, ticket: Ticket, why: &str) {
        if let Some(open) = self.open().remove(&ticket) {
            self.journal.say(Level::Error, &format!("an approval cannot be looked up: {why}"));
            let refusal = open.subject.unavailable("its approval cannot be looked up");
            self.settle(ticket, Settlement::Unanswered(refusal));
        }
    }

    /// Notes a decision that the gate is not told of, because nothing passes by it.
    fn note(&self, open: &Open, outcome: &str, decided: &Decided) {
        let text = Cow::Borrowed;
        self.journal.keep(Event {
            wall_us: decided.at_us,
            level: "warn",
            kind: "approval",
            direction: Some("agent_to_server"),
            method: Some(text(&open.method)),
            tool: Some(text(&open.subject.name)),
            governance_decision: Some(text("deny")),
            gate: Some("approval"),
            policy_reason: decided.reason.as_deref().map(text),
            forwarded: Some(false),
            approval_id: Some(text(&open.request.id)),
            decided_by: Some(text(&decided.by)),
            request_id: Some(text(&open.subject.correlation_id)),
            extra: format!("\"outcome\":{}", quoted(outcome)).into(),
            ..Event::default()
        });
    }

    fn request(&self, asking: &Asking<'_>) -> Request {
        let created_us = asking.at.wall_us;
        let regime = self.reins.get();
        let params = regime.policy.as_ref().zip(asking.params).map(|(policy, params)| {
            shown::params(&policy.redaction, asking.workflow, &self.key, params)
        });
        let timeout_us = asking.timeout_ms.saturating_mul(1000);
        Request {
            id: String::new(),
            created_us,
            expires_us: created_us.saturating_add(i64::try_from(timeout_us).unwrap_or(i64::MAX)),
            server_id: asking.source.to_owned(),
            method: asking.method.to_owned(),
            tool: self.journal.masked(&asking.subject.name),
            params,
            call_hash: asking.call_hash(),
            principal: asking.principal.name.clone(),
            folder: self.folder.clone(),
            policy: self.policy.clone(),
            workflow: asking.workflow_name.to_owned(),
            reason: self.journal.masked(asking.reason),
            approvers: asking.workflow.approvers.clone(),
            connection_id: connection_of(&self.connection_id, asking.lane).into_owned(),
            request_id: asking.subject.correlation_id.clone(),
            pid: std::process::id(),
            ..Request::default()
        }
    }

    /// Puts the question, or finds that it was answered before.
    fn put(&self, ticket: Ticket, asking: &Asking<'_>) -> Result<(), String> {
        let approvals = self.approvals.as_ref().map_err(Clone::clone)?;
        let request = self.request(asking);
        let words = |error: ApprovalError| error.to_string();
        let before = approvals.approved_before(&request, request.created_us).map_err(words)?;
        self.report_refused(approvals);
        if let Some((id, decided)) = before {
            self.journal.asked(ticket, &id);
            let approval = Approval { ticket, by: decided.by };
            self.settle(ticket, Settlement::Approved(approval));
            return Ok(());
        }
        let id = new_id().map_err(|error| error.to_string())?;
        let asked = approvals.ask_once(&Request { id, ..request }).map_err(words)?;
        let request = asked.into_request();
        self.journal.asked(ticket, &request.id);
        let (subject, method) = (asking.subject.clone(), asking.method.to_owned());
        self.open().insert(ticket, Open { request, subject, method });
        self.news.notify_one();
        Ok(())
    }
}

impl People for Desk {
    fn ask(&mut self, ticket: Ticket, asking: &Asking<'_>) {
        if let Err(why) = self.0.put(ticket, asking) {
            self.0.journal.say(Level::Error, &format!("nobody can be asked: {why}"));
            let refusal = asking.subject.unavailable("nobody can be asked for approval");
            self.0.settle(ticket, Settlement::Unanswered(refusal));
        }
    }

    fn withdraw(&mut self, at: At, ticket: Ticket, how: HoldEnd) {
        let Some(open) = self.0.open().remove(&ticket) else { return };
        let Ok(approvals) = &self.0.approvals else { return };
        let at_us = at.wall_us.max(self.0.clock.now().wall_us);
        // A file that cannot be written leaves a request that expires.
        let others = approvals.leave(&open.request.id, at_us).unwrap_or(0);
        let ruling = match how {
            // It can still be decided about; then the same call passes once.
            HoldEnd::Abandoned | HoldEnd::Unanswered => return,
            _ if others > 0 => return,
            HoldEnd::TimedOut => Ruling::Expired,
            HoldEnd::Cancelled | HoldEnd::Closed => Ruling::Cancelled,
        };
        let decided = Decided { ruling, by: "shim".to_owned(), at_us, reason: None };
        // Somebody may have been quicker; then their decision is kept for the same call.
        approvals.decide(&open.request.id, &decided).ok();
        self.0.report_refused(approvals);
    }
}

/// Waits until something may have changed in the folder.
async fn changed(watcher: &Watcher, told: Option<&Port>) {
    let mut news = [0; 4096];
    match (told, watcher.pause()) {
        (Some(told), None) if told.read(&mut news).await.is_ok_and(|bytes| bytes > 0) => {}
        (_, pause) => tokio::time::sleep(pause.unwrap_or(FALLBACK)).await,
    }
}

/// How often the folder is looked at if the system tells nothing.
const FALLBACK: Duration = Duration::from_millis(200);
