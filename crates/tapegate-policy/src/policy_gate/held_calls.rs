//! Calls that wait for approval.

use std::borrow::Cow;
use std::sync::Arc;
use tapegate_core::activity::ActivityEvent;
use tapegate_core::decision::LoggedDecision;

use tapegate_core::gate::{Approval, Hold, HoldEnd, HoldId, Verdict};
use tapegate_core::side::Side;
use tapegate_core::time::Timestamp;

use super::calls::{RequestedItem, refuse};
use super::{GateContext, PolicyGate};
use crate::approval_channel::ApprovalRequest;
use crate::decide::{ApprovalScope, Decision, DecisionOutcome, GateName};
use crate::hold_register::GateHold;
use crate::inspect::TransportKind;
use crate::model::Policy;
use crate::note::{Note, NoteKind};

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
        let session = now.case.lane.session;
        let ask = self.ask_mode(now, item, workflow);
        let carried = self.carried.take();
        let principal = self.state.callers.caller(session, now.envelope);
        let client = principal.client.clone().unwrap_or_default();
        // Before the request, which names it in the register.
        let gate_hold = GateHold {
            subject: subject.clone(),
            method: item.method.to_owned(),
            approval_id: None,
            is_settled: false,
            id: now.envelope.id.map(<[u8]>::to_vec),
            lane: now.case.lane,
            n: now.case.n,
            workflow: workflow_name.to_owned(),
            drift: drift.map(str::to_owned),
            forward_on_timeout: workflow.forward_on_timeout,
            timeout,
            rule: decision.rule.as_deref().map(str::to_owned),
            policies: decision.policies.clone(),
            principal: principal.name.clone(),
            client: client.clone(),
        };
        self.effects.holds.insert(hold_id, gate_hold);
        let request = ApprovalRequest {
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
            ask,
            answer: None,
        };
        let answer = carried.and_then(|carried| carried.about(&request, client));
        let request = ApprovalRequest { answer, ..request };
        self.effects.approval_channel.request_approval(hold_id, &request);
        // The relay keeps this refusal, so a timeout needs no further decision.
        let on_timeout = (!workflow.forward_on_timeout).then(|| subject.timed_out(timeout));
        let kind = NoteKind::HoldOpened { workflow: workflow_name.to_owned(), timeout_ms, hold_id };
        self.note_decision(now, item, decision, false, Some(&subject), kind);
        let progress = format!("waiting for approval (workflow `{workflow_name}`)");
        Verdict::Hold(Box::new(Hold {
            hold_id,
            timeout_ms,
            on_timeout,
            progress,
            replacement: None,
            task: self.task_handle(now, item, timeout_ms),
        }))
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
        let gate_hold = self.effects.holds.get(approval.hold_id);
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
        self.effects.holds.remove(hold_id);
        if denied { refuse(subject.policy_changed(decision)) } else { Verdict::Forward }
    }

    /// Handles a hold that ended without a decision by an approver.
    pub(super) fn handle_hold_end(&mut self, at: Timestamp, hold_id: HoldId, how: HoldEnd) {
        self.effects.approval_channel.withdraw_request(at, hold_id, how);
        let Some(gate_hold) = self.effects.holds.get(hold_id) else { return };
        let approves = how == HoldEnd::TimedOut && gate_hold.forward_on_timeout;
        let decision = match how {
            HoldEnd::TimedOut if approves => LoggedDecision::Forward,
            HoldEnd::TimedOut => LoggedDecision::ApprovalTimeout,
            HoldEnd::Cancelled => LoggedDecision::Cancelled,
            HoldEnd::Abandoned => LoggedDecision::Abandoned,
            HoldEnd::Asked => LoggedDecision::PendingApproval,
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
        self.effects.holds.remove(hold_id);
    }
}
