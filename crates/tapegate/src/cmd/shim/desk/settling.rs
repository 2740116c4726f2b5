//! Finds decisions in the approvals folder and passes them on to the wire.

use std::borrow::Cow;
use std::collections::BTreeMap;
use tapegate_core::decision::LoggedDecision;

use tapegate_core::gate::{Approval, Settlement, Ticket};
use tapegate_store::activity::Event;
use tapegate_store::approvals::{ApprovalError, Approvals, Decided, Request, Ruling};

use super::super::journal::quoted;
use super::{Desk, Inner, Open};
use crate::logs::Level;

impl Desk {
    /// Passes on the decisions made since the last look.
    pub(super) fn look(&self, approvals: &Approvals) {
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
                Ok(Some(decided)) => {
                    self.0.decided(approvals, &tickets, &request.id, &decided);
                    self.0.log_unlogged();
                }
                Err(error) => {
                    tickets.iter().for_each(|ticket| self.0.give_up(*ticket, &error.to_string()));
                }
            }
        }
        self.0.report_refused(approvals);
    }
}

impl Inner {
    /// The decision about a request made here. A request file that was changed or removed is
    /// restored, so that people decide about what will be sent.
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
                // The request may expire later by now, because the same call was made again.
                let expires_us = current.expires_us.max(request.expires_us);
                approvals.decision_for(&Request { expires_us, ..request.clone() })
            }
            Err(error) => Err(error),
        }
    }

    /// Settles the identical calls that waited for a decision, oldest first.
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
        // given up the earlier one without cancelling it.
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

    /// Sends the newest of these calls if an identical call was approved after its caller gave up.
    fn release_by_other(&self, approvals: &Approvals, tickets: &[Ticket], request: &Request) {
        let now_us = self.clock.now().wall_us;
        // An error here shows up at the next look, or when the hold ends.
        let Ok(Some((id, decided))) = approvals.approved_before(request, now_us) else { return };
        let Some(ticket) = tickets.last().copied() else { return };
        self.open().remove(&ticket);
        self.journal.asked(ticket, &id);
        self.settle(ticket, Settlement::Approved(Approval { ticket, by: decided.by }));
        if approvals.leave(&request.id, now_us).is_ok_and(|others| others == 0) {
            approvals.withdraw(&request.id, "shim", now_us).ok();
        }
    }

    fn give_up(&self, ticket: Ticket, why: &str) {
        if let Some(open) = self.open().remove(&ticket) {
            self.journal.say(Level::Error, &format!("cannot look up an approval: {why}"));
            let refusal = open.subject.unavailable("its approval cannot be looked up");
            self.settle(ticket, Settlement::Unanswered(refusal));
        }
    }

    /// Logs a decision that the gate never sees, because it lets no call pass.
    fn note(&self, open: &Open, outcome: &str, decided: &Decided) {
        let text = Cow::Borrowed;
        self.journal.keep(Event {
            wall_us: decided.at_us,
            level: "warn",
            kind: "approval",
            direction: Some("agent_to_server"),
            method: Some(text(&open.method)),
            tool: Some(text(&open.subject.name)),
            governance_decision: Some(LoggedDecision::Deny),
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
}
