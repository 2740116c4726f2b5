//! Calls that wait for approval.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tapegate_core::activity::ActivityEvent;
use tapegate_core::decision::LoggedDecision;

use tapegate_core::gate::{Approval, Hold, HoldEnd, HoldId, Verdict};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::Timestamp;

use super::calls::{RequestedItem, refuse};
use super::{GateContext, PolicyGate};
use crate::approval_channel::ApprovalRequest;
use crate::decide::{ApprovalScope, Decision, DecisionOutcome, GateName};
use crate::inspect::TransportKind;
use crate::model::Policy;
use crate::note::{Note, NoteKind};
use crate::refuse::RefusalSubject;

/// The maximum number of held calls that are tracked; more than the relay ever holds.
const HELD_MAX: usize = 2048;

/// A call that waits for approval.
#[derive(Debug)]
pub(super) struct GateHold {
    hold_id: HoldId,
    subject: RefusalSubject,
    method: String,
    id: Option<Vec<u8>>,
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

impl GateHold {
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

impl PolicyGate {
    /// Holds a call for approval.
    pub(super) fn hold(
        &mut self,
        now: &GateContext<'_, '_>,
        policy: &Arc<Policy>,
        item: RequestedItem<'_>,
        decision: &Decision,
        workflow_name: &str,
    ) -> Verdict {
        let subject = self.subject_of(item);
        let Some(workflow) = policy.workflows.get(workflow_name) else {
            return refuse(subject.approval_unavailable("the workflow does not exist"));
        };
        self.last_hold_id += 1;
        let hold_id = HoldId(self.last_hold_id);
        let timeout = match self.settings.client {
            TransportKind::Lines => workflow.timeout,
            TransportKind::Http => workflow.blocking_timeout,
        };
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let drift = decision.approval_scope().and_then(|scope| scope.drift);
        let principal = self.state.callers.caller(now.case.lane.session, now.envelope);
        self.effects.approval_channel.request_approval(
            hold_id,
            &ApprovalRequest {
                at: now.case.at,
                lane: now.case.lane,
                source: &self.settings.source,
                method: item.method,
                subject: &subject,
                params: now.envelope.params,
                id: now.envelope.id,
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
        // The relay keeps this refusal, so a timeout needs no further decision.
        let on_timeout = (!workflow.forward_on_timeout).then(|| subject.timed_out(timeout));
        let kind = NoteKind::HoldOpened { workflow: workflow_name.to_owned(), timeout_ms, hold_id };
        self.note_decision(now, item, decision, false, Some(&subject), kind);
        self.store_held(GateHold {
            hold_id,
            subject,
            method: item.method.to_owned(),
            id: now.envelope.id.map(<[u8]>::to_vec),
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
        Verdict::Hold(Box::new(Hold { hold_id, timeout_ms, on_timeout }))
    }

    /// Handles an approval: the call is sent on, unless it is denied by now or needs approval in a
    /// different scope.
    pub(super) fn apply_approval(
        &mut self,
        now: &GateContext<'_, '_>,
        item: RequestedItem<'_>,
        decision: &Decision,
        approval: &Approval,
    ) -> Verdict {
        let gate_hold = self.take_held(approval.hold_id);
        // An approval applies to the workflow and the definition that the approver saw, and to
        // nothing else.
        let asked_then = gate_hold.as_ref().map(|gate_hold| ApprovalScope {
            workflow: &gate_hold.workflow,
            drift: gate_hold.drift.as_deref(),
        });
        let denied = match decision.approval_scope() {
            // The new policy does not ask any more: an approved call passes unless it is denied
            // now.
            None => decision.outcome == DecisionOutcome::Deny,
            scope => scope != asked_then,
        };
        let subject =
            gate_hold.map_or_else(|| self.subject_of(item), |gate_hold| gate_hold.subject);
        let outcome = if denied { DecisionOutcome::Deny } else { DecisionOutcome::Forward };
        let settled = Decision { strict: outcome.clone(), outcome, ..decision.clone() };
        let (hold_id, by) = (approval.hold_id, approval.by.clone());
        let kind = NoteKind::HoldApproved { hold_id, by };
        self.note_decision(now, item, &settled, !denied, Some(&subject), kind);
        if denied { refuse(subject.policy_changed(decision)) } else { Verdict::Forward }
    }

    /// Handles a hold that ended without a decision by an approver.
    pub(super) fn handle_hold_end(&mut self, at: Timestamp, hold_id: HoldId, how: HoldEnd) {
        self.effects.approval_channel.withdraw_request(at, hold_id, how);
        let Some(gate_hold) = self.take_held(hold_id) else { return };
        let approves = how == HoldEnd::TimedOut && gate_hold.forward_on_timeout;
        let decision = match how {
            HoldEnd::TimedOut if approves => LoggedDecision::Forward,
            HoldEnd::TimedOut => LoggedDecision::ApprovalTimeout,
            HoldEnd::Cancelled => LoggedDecision::Cancelled,
            HoldEnd::Abandoned => LoggedDecision::Abandoned,
            HoldEnd::Unanswered => LoggedDecision::ServiceUnavailable,
            HoldEnd::Closed => LoggedDecision::Closed,
        };
        let decided_by = approves.then(|| format!("timeout of workflow `{}`", gate_hold.workflow));
        let mut note = Note::new(at, gate_hold.lane, Side::Client);
        let workflow = gate_hold.workflow.clone();
        note.kind = NoteKind::HoldEnded { hold_id, how, workflow, decided_by };
        note.event = ActivityEvent {
            governance_decision: Some(decision),
            rule: gate_hold.rule.as_deref().map(Cow::Borrowed),
            policies: Cow::Borrowed(&gate_hold.policies),
            policy_reason: Some(Cow::Owned(gate_hold.end_reason(how))),
            principal: Note::text(&gate_hold.principal),
            tape_seq: Some(gate_hold.n),
            method: Note::text(&gate_hold.method),
            tool: Note::text(&gate_hold.subject.name),
            message_id: Note::truncated_id(gate_hold.id.as_deref()),
            forwarded: Some(approves),
            request_id: Some(Cow::Borrowed(&gate_hold.subject.correlation_id)),
            gate: Some(GateName::Approval),
            ..note.event
        };
        self.effects.note(&self.active_policy, &mut note);
    }

    fn take_held(&mut self, hold_id: HoldId) -> Option<GateHold> {
        let index = self.held.iter().position(|gate_hold| gate_hold.hold_id == hold_id)?;
        self.held.remove(index)
    }

    fn store_held(&mut self, gate_hold: GateHold) {
        if self.held.len() == HELD_MAX {
            self.held.pop_front();
        }
        self.held.push_back(gate_hold);
    }
}
