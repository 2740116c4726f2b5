//! Opens approval requests.

use std::time::Duration;

use tapegate_policy::approval_channel::call_hash;
use tapegate_policy::decide::ApprovalScope;
use tapegate_policy::granted_calls::GrantedCall;
use tapegate_policy::model::{Policy, Workflow};
use tapegate_policy::redacted_arguments;
use tapegate_store::approvals::{ApprovalRecord, Escalation, is_id, new_id};

use super::ApprovalTasks;
use super::poll_interval_ms;
use crate::api::GovernanceEvaluateRequest;
use crate::hub_policy::HubPolicy;
use crate::service::evaluation_query::DecidedCall;

/// A call that needs approval.
pub(in crate::service) struct TaskRequest<'a> {
    pub(in crate::service) governed: &'a HubPolicy,
    pub(in crate::service) request: &'a GovernanceEvaluateRequest,
    pub(in crate::service) principal: &'a str,
    pub(in crate::service) request_id: &'a str,
    pub(in crate::service) wall_us: i64,
    pub(in crate::service) decided: &'a DecidedCall,
    /// The name of what is called, as approvers see it.
    pub(in crate::service) shown: &'a str,
    /// Why approval is needed, as approvers see it.
    pub(in crate::service) reason: &'a str,
    /// The name of the workflow.
    pub(in crate::service) workflow: &'a str,
}

/// The result of asking.
pub(in crate::service) enum OpenedTask {
    /// Approvers are asked.
    Task {
        /// The id of the request.
        id: String,
        /// How long approvers have to answer.
        timeout_ms: u64,
        /// Whether the call is forwarded if no approver answers in time.
        forward_on_timeout: bool,
        /// How often to poll.
        poll_interval_ms: u64,
    },
    /// The call was already approved: the same one after its caller had given up, or by a grant.
    Before {
        /// The id of that request or grant.
        id: String,
        /// Who approved it.
        by: String,
    },
}

/// The hash that identical calls under the same workflow share.
pub(in crate::service) fn hash_of(
    method: &str,
    request: &GovernanceEvaluateRequest,
    scope: ApprovalScope<'_>,
) -> String {
    call_hash(method, params(request), scope)
}

fn params(request: &GovernanceEvaluateRequest) -> Option<&[u8]> {
    request.params.as_ref().map(|params| params.get().as_bytes())
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl ApprovalTasks {
    /// Asks approvers, unless the same call was approved before.
    pub(in crate::service) fn open_task(
        &self,
        task_request: &TaskRequest<'_>,
    ) -> Result<OpenedTask, String> {
        let policy = task_request.governed.policy.as_ref().ok_or("there is no policy")?;
        let workflow = policy.workflows.get(task_request.workflow);
        let workflow =
            workflow.ok_or_else(|| format!("there is no workflow `{}`", task_request.workflow))?;
        let mut request = self.request(task_request, policy, workflow)?;
        // Before approvers are asked: an approval that came after its caller gave up counts once.
        let before = self.approvals.find_earlier_approval(&request, task_request.wall_us);
        if let Some((id, decided)) = before.map_err(|error| error.to_string())? {
            return Ok(OpenedTask::Before { id, by: decided.by });
        }
        let drift = task_request.decided.decision.approval_scope().and_then(|scope| scope.drift);
        let scope = ApprovalScope { workflow: task_request.workflow, drift };
        let whole = params(task_request.request).unwrap_or(b"{}");
        let method = &task_request.decided.method;
        let granted = GrantedCall { method, params: whole, scope };
        let found = self.approvals.find_grant(&request, task_request.wall_us, |patterns, hash| {
            granted.is_covered(patterns, hash)
        });
        if let Some(grant) = found.map_err(|error| error.to_string())? {
            return Ok(OpenedTask::Before { id: grant.id, by: grant.by });
        }
        let params = params(task_request.request);
        request.params = params.map(|params| {
            redacted_arguments::params(&policy.redaction, workflow, &self.key, params)
        });
        // A copy with secrets is kept only for calls that approvers cannot judge without it.
        let is_masked = params != request.params.as_deref().map(str::as_bytes);
        let unmasked = params.filter(|_| is_masked);
        let ask_result = self.approvals.publish_request_once(&request, unmasked);
        let ask_outcome = ask_result.map_err(|error| error.to_string())?;
        let request = ask_outcome.into_request();
        let opened = OpenedTask::Task {
            id: request.id.clone(),
            timeout_ms: workflow.timeout.as_millis() as u64,
            forward_on_timeout: workflow.forward_on_timeout,
            poll_interval_ms: poll_interval_ms(request.expires_us - task_request.wall_us),
        };
        self.open.borrow_mut().insert(request.id.clone(), request);
        Ok(opened)
    }

    fn request(
        &self,
        task_request: &TaskRequest<'_>,
        policy: &Policy,
        workflow: &Workflow,
    ) -> Result<ApprovalRecord, String> {
        let TaskRequest { request, decided, wall_us, .. } = task_request;
        let drift = decided.decision.approval_scope().and_then(|scope| scope.drift);
        let scope = ApprovalScope { workflow: task_request.workflow, drift };
        // The caller may already have published the id. The folder refuses one that is taken.
        let id = match request.approval_id.as_ref().filter(|id| is_id(id)) {
            Some(id) => id.clone(),
            None => new_id().map_err(|error| error.to_string())?,
        };
        Ok(ApprovalRecord {
            id,
            created_us: *wall_us,
            expires_us: wall_us.saturating_add(micros(workflow.timeout)),
            server_id: request.server_id.clone(),
            method: decided.method.clone(),
            tool: task_request.shown.to_owned(),
            params: None,
            call_hash: hash_of(&decided.method, request, scope),
            principal: task_request.principal.to_owned(),
            is_principal_named: !policy.principal.name.is_empty(),
            folder: request.folder.clone().unwrap_or_default(),
            // As a shim without a hub names it, so that both share approvals and grants.
            policy: task_request.governed.path().to_owned(),
            workflow: task_request.workflow.to_owned(),
            reason: task_request.reason.to_owned(),
            approvers: workflow.approvers.clone(),
            quorum: workflow.quorum,
            escalation: policy.escalation_of(workflow).map(|(second, approvers)| Escalation {
                workflow: second.to.clone(),
                at_us: wall_us.saturating_add(micros(second.after)),
                approvers: approvers.to_vec(),
            }),
            connection_id: request.connection_id.clone().unwrap_or_default(),
            request_id: task_request.request_id.to_owned(),
            // The hub waits for the caller, and takes it off the request when it is lost.
            pid: std::process::id(),
            ..ApprovalRecord::default()
        })
    }
}
