//! `tapegate approvals show --reveal`: shows the masked values to the person who decides.
//!
//! They are written only to the terminal, and the reveal is logged before they are shown.

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel, GateName};
use tapegate_store::activity;
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalEntry, ApprovalOutcome, ApprovalRecord, ApprovalStore, UnmaskedParams,
};

use super::folder::Project;
use super::{Args, decide, failure};
use crate::approver_check::{self, PersonAttempt};
use crate::exit::{Exit, Failure};
use crate::state_folder::now_us;
use crate::terminal_output;
use crate::views::approvals as view;

/// The hint does not offer `--key-file`: a script has no need to see masked values.
const WAY_OUT: &str = "run it in a terminal that you opened, not an agent";

pub(super) fn run(args: &Args, project: &Project) -> anyhow::Result<Exit> {
    let by = decide::decider_name(args)?;
    let command = format!("approvals show {} --reveal", args.ids.join(" "));
    let attempt =
        PersonAttempt { kind: ActivityKind::Approval, command: &command, approval_id: None };
    let required = approver_check::require_person("revealing masked values", WAY_OUT);
    attempt.log_if_refused(&project.state, required)?;
    let entries = project.entries()?;
    let approvals = project.approvals()?;
    for id in &args.ids {
        let ApprovalEntry { request, .. } = decide::find_decidable(&entries, id, project)?;
        let attempt = PersonAttempt { approval_id: Some(&request.id), ..attempt };
        attempt.log_if_refused(&project.state, check_may_see(&approvals, &request, &by))?;
        let params = match unmasked_params(&approvals, &request) {
            Ok(params) => params,
            Err(RevealError::Altered(failure)) => {
                attempt.log_refusal(&project.state, &failure.message);
                return Err(failure.into());
            }
            Err(RevealError::NotKept(failure)) => return Err(failure.into()),
        };
        let question = format!(
            "{}: {}\nshow the masked values of this call on this terminal?",
            request.id,
            view::call(&request, 100)
        );
        if !attempt.log_if_refused(&project.state, approver_check::confirm(&question))? {
            terminal_output::info("nothing was shown");
            return Ok(Exit::Findings);
        }
        // Logged first: masked values are never shown without a trace.
        project.log(&event(&request, &by)).map_err(|error| {
            let message = format!("nothing is shown, because this cannot be logged: {error}");
            Failure::new(Exit::Io, message)
        })?;
        approver_check::show(&view::revealed_request(&request, &params))?;
    }
    Ok(Exit::Ok)
}

/// Only a person who may decide a request may see its masked values.
fn check_may_see(
    approvals: &ApprovalStore,
    request: &ApprovalRecord,
    by: &str,
) -> Result<(), Failure> {
    let at_us = approvals.asker_now_us(request, now_us());
    let decided = ApprovalDecision {
        // The caller cannot approve their own call, but may deny it, and so may see it.
        ruling: ApprovalOutcome::Denied,
        by: by.to_owned(),
        at_us,
        reason: None,
    };
    approvals.check_decision(request, &decided).map_err(failure)
}

/// Why params are not shown.
enum RevealError {
    NotKept(Failure),
    Altered(Failure),
}

/// The complete params, if they are those that the request was made with.
fn unmasked_params(
    approvals: &ApprovalStore,
    request: &ApprovalRecord,
) -> Result<Vec<u8>, RevealError> {
    let id = &request.id;
    let found =
        approvals.unmasked(request).map_err(|error| RevealError::NotKept(failure(error)))?;
    match found {
        UnmaskedParams::Params(params) => Ok(params),
        UnmaskedParams::NotKept if !view::is_masked(request) => {
            // Nothing is masked, so the request's own params are complete.
            Ok(request.params.clone().unwrap_or_default().into_bytes())
        }
        UnmaskedParams::NotKept => {
            let message =
                format!("the masked values of `{id}` were not stored and cannot be shown");
            let hint = "deny a call that you cannot judge; it can be made again";
            Err(RevealError::NotKept(Failure::new(Exit::Findings, message).hint(hint)))
        }
        UnmaskedParams::Altered => {
            let message = format!(
                "the stored values of `{id}` do not match its request: they were altered, and have \
                 been removed"
            );
            let hint = "deny it; the call can be made again";
            Err(RevealError::Altered(Failure::new(Exit::Findings, message).hint(hint)))
        }
    }
}

fn event<'a>(request: &'a ApprovalRecord, by: &'a str) -> ActivityEvent<'a> {
    let message = format!("the masked values of the call were shown to {by} on a terminal");
    ActivityEvent {
        wall_us: now_us(),
        level: EventLevel::Warn,
        kind: ActivityKind::Approval,
        component: Some(EventComponent::Cli),
        server_id: request.server_id.as_str().into(),
        method: Some(request.method.as_str().into()),
        tool: Some(request.tool.as_str().into()),
        gate: Some(GateName::Approval),
        policy_reason: Some(message.into()),
        approval_id: Some(request.id.as_str().into()),
        extra: activity::extra(&json!({ "event": "revealed", "revealed_to": by })),
        ..ActivityEvent::default()
    }
}
