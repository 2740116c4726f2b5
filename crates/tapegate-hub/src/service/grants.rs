//! Grants through the API: given with an approval, listed, revoked and reported when they expire.

use std::time::Duration;

use http::StatusCode;
use tapegate_core::activity::{ActivityEvent, EventComponent};
use tapegate_store::approvals::{ApprovalError, ApprovalGrant};

use super::response::ApiRefusal;
use super::tasks::time_text;
use super::{Hub, NoticeLevel};
use crate::api::{GrantItem, GrantsAnswer, SettleRequest, TaskAnswer, TaskStatus};
use crate::grant_plan::{GrantPlan, GrantRefusal, covers, grant_event};

impl Hub {
    /// Approves a call, and grants more if that is asked for.
    pub(super) fn approve(&self, id: &str, who: SettleRequest) -> Result<TaskAnswer, ApiRefusal> {
        let Some(wanted) = &who.grant else { return self.settle(id, true, who) };
        let plan = GrantPlan::try_from(wanted).map_err(refusal)?;
        let approvals = &self.tasks.approvals;
        let request = approvals.request(id)?;
        // Before the decision, after which the params that patterns are compared with are gone.
        let now_us = self.clock.now().wall_us;
        let grant = plan.grant_for(approvals, &request, &who.by, now_us).map_err(refusal)?;
        let mut answer = self.settle(id, true, who)?;
        if answer.status == TaskStatus::Approved {
            let grant = approvals.create_grant(grant)?;
            self.log_grant(&grant, &grant.by, "granted");
            answer.grant_id = Some(grant.id);
        }
        Ok(answer)
    }

    /// All grants.
    pub(super) fn grants(&self) -> Result<GrantsAnswer, ApiRefusal> {
        let now_us = self.clock.now().wall_us;
        let grants = self.tasks.approvals.grants()?;
        Ok(GrantsAnswer { grants: grants.iter().map(|grant| item(grant, now_us)).collect() })
    }

    pub(super) fn revoke_grant(
        &self,
        id: &str,
        who: &SettleRequest,
    ) -> Result<GrantItem, ApiRefusal> {
        if who.by.trim().is_empty() {
            return Err(ApiRefusal::bad_request("`by` must name who revokes"));
        }
        let now_us = self.clock.now().wall_us;
        if !self.tasks.approvals.revoke_grant(id, &who.by, now_us)? {
            let message = format!("`{id}` has ended before");
            return Err(ApiRefusal::new(StatusCode::CONFLICT, "conflict", &message));
        }
        let grants = self.tasks.approvals.grants()?;
        let grant = grants.iter().find(|grant| grant.id == id);
        let unknown = || ApprovalError::Unknown { id: id.to_owned() };
        let grant = grant.ok_or_else(unknown)?;
        self.log_grant(grant, &who.by, "revoked");
        Ok(item(grant, now_us))
    }

    /// Logs grants whose time is over, once for all processes. Returns how long it takes until the
    /// next one expires.
    pub(super) fn log_expired_grants(&self) -> Duration {
        let now_us = self.clock.now().wall_us;
        match self.tasks.approvals.take_expired_grants(now_us) {
            Ok((expired, next)) => {
                expired.iter().for_each(|grant| self.log_grant(grant, "time", "expired"));
                next
            }
            Err(error) => {
                (self.options.notice)(NoticeLevel::Error, &error.to_string());
                Duration::MAX
            }
        }
    }

    fn log_grant(&self, grant: &ApprovalGrant, by: &str, word: &str) {
        let (component, profile) = (Some(EventComponent::Hub), Some(self.active_policy().profile));
        let event = grant_event(grant, by, word, self.clock.now().wall_us);
        if let Err(reason) = self.journal.write(&[ActivityEvent { component, profile, ..event }]) {
            (self.options.notice)(NoticeLevel::Error, &reason);
        }
    }
}

fn refusal(error: GrantRefusal) -> ApiRefusal {
    match error {
        GrantRefusal::Invalid(message) => ApiRefusal::bad_request(&message),
        GrantRefusal::Unfit(message) => ApiRefusal::new(StatusCode::CONFLICT, "conflict", &message),
        GrantRefusal::Store(error) => error.into(),
    }
}

fn item(grant: &ApprovalGrant, now_us: i64) -> GrantItem {
    GrantItem {
        id: grant.id.clone(),
        state: grant.state(now_us).as_str().to_owned(),
        covers: covers(grant),
        request: grant.request_id.clone(),
        granted_by: grant.by.clone(),
        server_id: grant.server_id.clone(),
        tool: grant.tool.clone(),
        workflow: grant.workflow.clone(),
        created_at: time_text(grant.created_us),
        expires_at: time_text(grant.expires_us),
    }
}
