//! Makes approval requests and withdraws them.

use tapegate_core::gate::{Approval, HoldEnd, Settlement, Ticket};
use tapegate_core::time::At;
use tapegate_policy::people::{Asking, People};
use tapegate_policy::shown;
use tapegate_store::approvals::{ApprovalError, Decided, Request, Ruling, new_id};

use super::super::journal::connection_of;
use super::{Desk, Inner, Open};
use crate::logs::Level;

impl Inner {
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

    /// Makes the request, or uses an approval that was given before.
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
        let is_masked = asking.params != request.params.as_deref().map(str::as_bytes);
        let unmasked = asking.params.filter(|_| is_masked);
        let asked = approvals.ask_once(&Request { id, ..request }, unmasked).map_err(words)?;
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
            self.0.journal.say(Level::Error, &format!("cannot request approval: {why}"));
            let refusal = asking.subject.unavailable("no approver is reachable");
            self.0.settle(ticket, Settlement::Unanswered(refusal));
        }
    }

    fn withdraw(&mut self, at: At, ticket: Ticket, how: HoldEnd) {
        let Some(open) = self.0.open().remove(&ticket) else { return };
        let Ok(approvals) = &self.0.approvals else { return };
        let at_us = at.wall_us.max(self.0.clock.now().wall_us);
        // If the file cannot be written, the request stays until it expires.
        let others = approvals.leave(&open.request.id, at_us).unwrap_or(0);
        let ruling = match how {
            // The request can still be decided; an approval then lets the same call pass once.
            HoldEnd::Abandoned | HoldEnd::Unanswered => return,
            _ if others > 0 => return,
            HoldEnd::TimedOut => Ruling::Expired,
            HoldEnd::Cancelled | HoldEnd::Closed => Ruling::Cancelled,
        };
        let decided = Decided { ruling, by: "shim".to_owned(), at_us, reason: None };
        // A person may have decided first; that decision is then kept for the same call.
        approvals.decide(&open.request.id, &decided).ok();
        self.0.report_refused(approvals);
    }
}
