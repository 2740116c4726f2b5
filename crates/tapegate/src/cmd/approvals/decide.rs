//! `tapegate approvals approve` and `deny`.

use std::io::Write;
use std::path::Path;

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent};
use tapegate_policy::model::Profile;
use tapegate_store::activity::{self, ActivityError, settled_event, vote_event};
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalEntry, ApprovalError, ApprovalGrant, ApprovalOutcome, ApprovalRecord,
    ApprovalStore, is_id,
};

use super::folder::{Project, waiting_text};
use super::{ApprovalsAction, ApprovalsFormat, Args, failure, grant, request_lookup};
use crate::approver_check::PersonAttempt;
use crate::exit::{Exit, Failure};
use crate::settings::SearchContext;
use crate::state_folder::now_us;
use crate::views::approvals::{self as view, grants_view};
use crate::zone::TimeZone;
use crate::{approver_check, terminal_output};

pub(super) fn run(args: &Args, project: &Project, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let out = &mut args.format.list(out);
    let by = decider_name(args)?;
    let command = command(args);
    let attempt = PersonAttempt {
        kind: ActivityKind::Approval,
        command: &command,
        approval_id: whole_id(args),
    };
    // Before requests are read, so that an agent is refused whatever it names.
    let authorized = args.key.authorize("deciding about a call", &project.state);
    attempt.log_if_refused(&project.state, authorized)?;
    let entries = project.entries()?;
    let meant: Vec<ApprovalEntry> = match args.all {
        true => pending_of_project(args, entries)?,
        // If one of the names is wrong, nothing is decided.
        false => args
            .ids
            .iter()
            .map(|id| find_decidable(&entries, id, project))
            .collect::<Result<_, _>>()?,
    };
    if meant.is_empty() {
        terminal_output::info("nothing waits for a person");
        out.finish()?;
        return Ok(Exit::Ok);
    }
    let deciding = DecisionRun { args, project, attempt, approvals: project.approvals()?, by };
    // Check permission before asking, so that the user is not asked for an answer that cannot
    // count.
    let (meant, mut exit) = deciding.permitted_requests(meant);
    if meant.is_empty() {
        out.finish()?;
        return Ok(exit);
    }
    let plan = args.grant.plan()?;
    // Before the decision, after which the params that patterns are compared with are gone.
    let granted = match (&plan, &meant[..]) {
        (Some(plan), [entry]) => {
            let (approvals, by) = (&deciding.approvals, &deciding.by);
            let granted = plan.grant_for(approvals, &entry.request, by, now_us());
            Some(granted.map_err(grant::refusal)?)
        }
        _ => None,
    };
    let more = granted.as_ref().map(grants_view::covers_for);
    let confirmed = || {
        let confirmed = confirm_requests(args.verb, &meant, more.as_deref());
        attempt.log_if_refused(&project.state, confirmed)
    };
    if !args.key.is_given() && !confirmed()? {
        terminal_output::info("nothing was decided");
        out.finish()?;
        return Ok(Exit::Findings);
    }
    for ApprovalEntry { request, .. } in &meant {
        let decided = deciding.decision(request);
        let log = || project.log(&event(request, &decided));
        // Decided and logged as one step: a command that is killed in between leaves a mark.
        match deciding.approvals.decide_and_log(&request.id, &decided, log) {
            Ok(logged) => {
                logged.err().iter().for_each(warn_of_log);
                print_decision(args.format, request, decided, out)?;
                granted
                    .iter()
                    .try_for_each(|granted| store_grant(project, &deciding.approvals, granted))?;
            }
            Err(error @ ApprovalError::NeedsMore { .. }) => {
                log_vote(project, request, &decided, &error.to_string());
                terminal_output::info(&error.to_string());
            }
            // The others are still decided; each request stands for itself.
            Err(error) => exit = deciding.report(request, error),
        }
    }
    out.finish()?;
    Ok(exit)
}

/// One run of the command: who decides, what, and in which project.
struct DecisionRun<'a> {
    args: &'a Args,
    project: &'a Project,
    attempt: PersonAttempt<'a>,
    approvals: ApprovalStore,
    by: String,
}

impl DecisionRun<'_> {
    fn decision(&self, request: &ApprovalRecord) -> ApprovalDecision {
        let approves = self.args.verb == ApprovalsAction::Approve;
        let ruling = if approves { ApprovalOutcome::Approved } else { ApprovalOutcome::Denied };
        // Use the clock of the waiting process, since ours may be off.
        let at_us = self.approvals.asker_now_us(request, now_us());
        ApprovalDecision { ruling, by: self.by.clone(), at_us, reason: self.args.reason.clone() }
    }

    /// The requests that this person may decide. The others are reported.
    fn permitted_requests(&self, mut meant: Vec<ApprovalEntry>) -> (Vec<ApprovalEntry>, Exit) {
        let mut exit = Exit::Ok;
        meant.retain(|ApprovalEntry { request, .. }| {
            let permitted = self.approvals.check_decision(request, &self.decision(request));
            permitted.map_err(|error| exit = self.report(request, error)).is_ok()
        });
        (meant, exit)
    }

    /// Reports a refused decision, and logs an attempt to decide a request that belongs to someone
    /// else.
    fn report(&self, request: &ApprovalRecord, error: ApprovalError) -> Exit {
        let is_theirs = is_for_other_approver(&error);
        let failed = failure(error);
        if is_theirs {
            let attempt = PersonAttempt { approval_id: Some(&request.id), ..self.attempt };
            attempt.log_refusal(&self.project.state, &failed.message);
        }
        terminal_output::error(&failed.message, None);
        failed.exit
    }
}

/// The named request, or an error if it can no longer be decided.
pub(super) fn find_decidable(
    entries: &[ApprovalEntry],
    id: &str,
    project: &Project,
) -> Result<ApprovalEntry, Failure> {
    let entry = request_lookup::find_request(entries, id, &project.state)?;
    let id = entry.request.id.clone();
    match &entry.decided {
        Some(decided) => {
            let decided = Box::new(decided.clone());
            Err(failure(ApprovalError::AlreadyDecided { id, decided }))
        }
        None if !view::is_pending(&entry, now_us()) => Err(failure(ApprovalError::Expired { id })),
        None => Ok(entry),
    }
}

/// All pending requests of this project. Projects without a state folder of their own share the
/// user's folder, and `--all` must not decide requests of projects the user has not looked at.
fn pending_of_project(
    args: &Args,
    entries: Vec<ApprovalEntry>,
) -> anyhow::Result<Vec<ApprovalEntry>> {
    let pending = entries.into_iter().filter(|entry| view::is_pending(entry, now_us()));
    if args.state.is_named() {
        return Ok(pending.collect());
    }
    let here = SearchContext::current()?.folder;
    let (ours, others): (Vec<_>, Vec<_>) =
        pending.partition(|entry| is_of_project(&entry.request, &here));
    if !others.is_empty() {
        terminal_output::warn(&format!(
            "{} too, and {} left out; name what you want to decide about",
            waiting_text(others.len(), "other projects"),
            if others.len() == 1 { "is" } else { "are" }
        ));
    }
    Ok(ours)
}

/// Whether a call was made below this folder, or under a policy located below or above it.
pub(super) fn is_of_project(request: &ApprovalRecord, current_dir: &Path) -> bool {
    let policy = Path::new(&request.policy).parent().filter(|path| path.is_absolute());
    request.folder.is_empty()
        || Path::new(&request.folder).starts_with(current_dir)
        || policy.is_some_and(|folder| {
            folder.starts_with(current_dir) || current_dir.starts_with(folder)
        })
}

/// The command with the key that was used, as it is logged. The ids come last: a long command is truncated.
fn command(args: &Args) -> String {
    let verb = if args.verb == ApprovalsAction::Approve { "approve" } else { "deny" };
    let command = args.key.command_text(&format!("approvals {verb}"));
    match args.all {
        true => format!("{command} --all"),
        false => format!("{command} {}", args.ids.join(" ")),
    }
}

/// The id, if exactly one request is named and by its full id.
fn whole_id(args: &Args) -> Option<&str> {
    match &args.ids[..] {
        [id] if is_id(id) => Some(id),
        _ => None,
    }
}

/// Whether a decision was refused because someone else has to make it.
pub(super) fn is_for_other_approver(error: &ApprovalError) -> bool {
    matches!(error, ApprovalError::NotAnApprover { .. } | ApprovalError::OwnRequest { .. })
}

/// Shows every request in full, and asks once.
fn confirm_requests(
    verb: ApprovalsAction,
    meant: &[ApprovalEntry],
    granted: Option<&str>,
) -> Result<bool, Failure> {
    let zone = TimeZone::system();
    let display_text =
        |entry: &ApprovalEntry| format!("{}\n", view::details(entry, now_us(), &zone));
    let mut text: String = meant.iter().map(display_text).collect();
    if let Some(granted) = granted {
        text.push_str(&format!("grants      {granted}\n"));
    }
    let word = if verb == ApprovalsAction::Approve { "approve" } else { "deny" };
    text.push_str(&match meant.len() {
        1 if granted.is_some() => format!("{word} this call and these further ones?"),
        1 => format!("{word} this call?"),
        count => format!("{word} these {count} calls?"),
    });
    approver_check::confirm(&text)
}

/// Logs an approval of a request that needs others.
pub(super) fn log_vote(
    project: &Project,
    request: &ApprovalRecord,
    decided: &ApprovalDecision,
    text: &str,
) {
    let component = Some(EventComponent::Cli);
    let event = ActivityEvent { component, ..vote_event(request, decided, text) };
    project.log(&event).err().iter().for_each(warn_of_log);
}

/// Stores a grant once its call is approved, and logs it.
pub(super) fn store_grant(
    project: &Project,
    approvals: &ApprovalStore,
    granted: &ApprovalGrant,
) -> Result<(), Failure> {
    let granted = approvals.create_grant(granted.clone()).map_err(failure)?;
    if let Err(error) = project.log(&grant::event(&granted, &granted.by, "granted")) {
        warn_of_log(&error);
    }
    terminal_output::info(&format!(
        "granted {}: {}",
        granted.id,
        grants_view::covers_for(&granted)
    ));
    Ok(())
}

fn print_decision(
    format: ApprovalsFormat,
    request: &ApprovalRecord,
    decided: ApprovalDecision,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match format {
        ApprovalsFormat::Text => {
            let message = view::call(request, 100);
            writeln!(out, "{} {}: {message}", decided.ruling.as_str(), request.id)
        }
        ApprovalsFormat::Json | ApprovalsFormat::Jsonl => {
            let entry = ApprovalEntry {
                request: request.clone(),
                decided: Some(decided),
                ..ApprovalEntry::default()
            };
            out.write_all(&view::json(&entry, now_us()))
        }
    }
}

/// A decision is valid without its line in the activity log, so a failure is only reported.
pub(super) fn warn_of_log(error: &ActivityError) {
    terminal_output::warn(&format!("the decision holds, but is not in the activity log: {error}"));
    error.hint().into_iter().for_each(terminal_output::hint);
}

/// The activity log event for a decision.
pub(super) fn event<'a>(
    request: &'a ApprovalRecord,
    decided: &'a ApprovalDecision,
) -> ActivityEvent<'a> {
    let extra = activity::extra(&json!({ "workflow": request.workflow }));
    // Only production holds calls; development forwards them.
    let profile = Some(Profile::Production);
    ActivityEvent {
        component: Some(EventComponent::Cli),
        profile,
        extra,
        ..settled_event(request, decided)
    }
}

/// The same event, for a decider that was killed before it could log its decision.
pub(super) fn recovered_event<'a>(
    request: &'a ApprovalRecord,
    decided: &'a ApprovalDecision,
) -> ActivityEvent<'a> {
    let extra = activity::extra(&json!({ "workflow": request.workflow, "recovered": true }));
    ActivityEvent { extra, ..event(request, decided) }
}

/// The name of the person who decides.
pub(super) fn decider_name(args: &Args) -> anyhow::Result<String> {
    let user = || {
        let search = SearchContext::current().ok()?;
        search.first(&["USER", "LOGNAME"])?.into_string().ok()
    };
    let name = args.by.clone().or_else(user);
    let name = name.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Err(Failure::new(Exit::Usage, "--by needs a name").into());
    }
    Ok(name)
}
