//! Calls that wait for approval.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tapegate_core::decision::LoggedDecision;

use tapegate_core::gate::{Approval, Hold, HoldEnd, Ticket, Verdict};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::At;

use super::calls::{Asked, refuse};
use super::{Now, Warden};
use crate::decide::{ApprovalScope, Decision, GateName, Outcome};
use crate::inspect::Carrier;
use crate::model::Policy;
use crate::note::{Note, NoteKind};
use crate::people::Asking;
use crate::refuse::Subject;

/// The maximum number of held calls that are tracked; more than the relay ever holds.
const HELD_MAX: usize = 2048;

/// A call that waits for approval.
#[derive(Debug)]
pub(super) struct Held {
    ticket: Ticket,
    subject: Subject,
    method: String,
    id: Option<String>,
    lane: Lane,
    /// Its number on the tape.
    n: u64,
    /// The workflow that asks for approval.
    workflow: String,
    /// How the definition differed from the accepted one, if it did.
    drift: Option<String>,
    /// Whether it is sent on if no approver answers in time.
    forward_on_timeout: bool,
    /// How long it may wait.
    timeout: Duration,
    /// The rule and the Cedar policies that required approval.
    rule: Option<String>,
    policies: Vec<String>,
    /// The caller.
    principal: String,
}

impl Held {
    /// Why the hold ended without a decision by an approver.
    fn end_reason(&self, how: HoldEnd) -> String {
        let workflow = &self.workflow;
        let waited = || format!("no person decided within {} s", self.timeout.as_secs_f64());
        match how {
            HoldEnd::TimedOut if self.forward_on_timeout => {
                format!("{}, and workflow `{workflow}` has `on_timeout: approve`", waited())
            }
            HoldEnd::TimedOut => format!("{} (workflow `{workflow}`)", waited()),
            HoldEnd::Cancelled => "the caller cancelled the call".to_owned(),
            HoldEnd::Abandoned => "the caller stopped waiting".to_owned(),
            HoldEnd::Unanswered => "no approver is reachable".to_owned(),
            HoldEnd::Closed => "the session ended".to_owned(),
        }
    }
}

impl Warden {
    /// Holds a call for approval.
    pub(super) fn hold(
        &mut self,
        now: &Now<'_, '_>,
        policy: &Arc<Policy>,
        asked: Asked<'_>,
        decision: &Decision,
        workflow_name: &str,
    ) -> Verdict {
        let subject = self.subject_of(asked);
        let Some(workflow) = policy.workflows.get(workflow_name) else {
            return refuse(subject.unavailable("the workflow does not exist"));
        };
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let timeout = match self.settings.client {
            Carrier::Lines => workflow.timeout,
            Carrier::Http => workflow.blocking_timeout,
        };
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let drift = decision.approval_scope().and_then(|scope| scope.drift);
        let principal = self.state.callers.caller(now.case.lane.session, now.said);
        self.hands.people.ask(
            ticket,
            &Asking {
                at: now.case.at,
                lane: now.case.lane,
                source: &self.settings.source,
                method: asked.method,
                subject: &subject,
                params: now.said.params,
                id: now.said.id,
                message: now.frame.bytes(),
                principal,
                workflow_name,
                workflow,
                reason: &decision.reason,
                drift,
                policy_version: &policy.version,
                timeout_ms,
            },
        );
        let caller = principal.name.clone();
        let on_timeout = (!workflow.forward_on_timeout).then(|| subject.timed_out(timeout));
        let kind = NoteKind::HoldOpened { workflow: workflow_name.to_owned(), timeout_ms, ticket };
        self.decided(now, asked, decision, false, Some(&subject), kind);
        self.keep_held(Held {
            ticket,
            subject,
            method: asked.method.to_owned(),
            id: now.said.id.map(|id| String::from_utf8_lossy(id).into_owned()),
            lane: now.case.lane,
            n: now.case.n,
            workflow: workflow_name.to_owned(),
            drift: drift.map(str::to_owned),
            forward_on_timeout: workflow.forward_on_timeout,
            timeout,
            rule: decision.rule.as_deref().map(str::to_owned),
            policies: decision.policies.clone(),
            principal: caller,
        });
        Verdict::Hold(Box::new(Hold { ticket, timeout_ms, on_timeout }))
    }

    /// Handles an approval: the call is sent on, unless it is denied by now or needs approval in a
    /// different scope.
    pub(super) fn approved(
        &mut self,
        now: &Now<'_, '_>,
        asked: Asked<'_>,
        decision: &Decision,
        approval: &Approval,
    ) -> Verdict {
        let held = self.take_held(approval.ticket);
        let asked_then = held
            .as_ref()
            .map(|held| ApprovalScope { workflow: &held.workflow, drift: held.drift.as_deref() });
        let denied = match decision.approval_scope() {
            None => decision.outcome == Outcome::Deny,
            scope => scope != asked_then,
        };
        let subject = held.map_or_else(|| self.subject_of(asked), |held| held.subject);
        let outcome = if denied { Outcome::Deny } else { Outcome::Forward };
        let settled = Decision { strict: outcome.clone(), outcome, ..decision.clone() };
        let (ticket, by) = (approval.ticket, approval.by.clone());
        let kind = NoteKind::HoldApproved { ticket, by };
        self.decided(now, asked, &settled, !denied, Some(&subject), kind);
        if denied { refuse(subject.changed(decision)) } else { Verdict::Forward }
    }

    /// Handles a hold that ended without a decision by an approver.
    pub(super) fn unheld(&mut self, at: At, ticket: Ticket, how: HoldEnd) {
        self.hands.people.withdraw(at, ticket, how);
        let Some(held) = self.take_held(ticket) else { return };
        let approves = how == HoldEnd::TimedOut && held.forward_on_timeout;
        let decision = match how {
            HoldEnd::TimedOut if approves => LoggedDecision::Forward,
            HoldEnd::TimedOut => LoggedDecision::ApprovalTimeout,
            HoldEnd::Cancelled => LoggedDecision::Cancelled,
            HoldEnd::Abandoned => LoggedDecision::Abandoned,
            HoldEnd::Unanswered => LoggedDecision::ServiceUnavailable,
            HoldEnd::Closed => LoggedDecision::Closed,
        };
        let decided_by = approves.then(|| format!("timeout of workflow `{}`", held.workflow));
        let mut note = Note {
            kind: NoteKind::HoldEnded { ticket, how, workflow: held.workflow.clone(), decided_by },
            decision,
            rule: held.rule.as_deref().map(Cow::Borrowed),
            policies: Cow::Borrowed(&held.policies),
            reason: Some(Cow::Owned(held.end_reason(how))),
            principal: Note::text(&held.principal),
            n: Some(held.n),
            method: Note::text(&held.method),
            name: Note::text(&held.subject.name),
            id: held.id.as_deref().and_then(Note::text),
            forwarded: Some(approves),
            correlation_id: Some(Cow::Borrowed(&held.subject.correlation_id)),
            gate: Some(GateName::Approval),
            ..Note::new(at, held.lane, Side::Client)
        };
        self.hands.note(&self.regime, &mut note);
    }

    fn take_held(&mut self, ticket: Ticket) -> Option<Held> {
        let place = self.held.iter().position(|held| held.ticket == ticket)?;
        self.held.remove(place)
    }

    fn keep_held(&mut self, held: Held) {
        if self.held.len() == HELD_MAX {
            self.held.pop_front();
        }
        self.held.push_back(held);
    }
}
