//! `tapegate policy accept`: lets a person put a changed policy in force.

mod accepted_list;
mod written_files;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel};
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_shim::shim_policy::ShimPolicyLoad;
use tapegate_store::accepted_policies::{Acceptance, AcceptedPolicy};
use tapegate_store::activity::{self, log_event};

use super::backtest::backtest_tape::BacktestTape;
use super::backtest::{self, PolicyImpact};
use super::policy_loader;
use crate::approver_check::{self, KeyArgs, PersonAttempt};
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::{SearchContext, user_state_hint};
use crate::state_folder::now_us;
use crate::terminal_output;
use crate::trust::{self, PolicyTrust};
use crate::views::{plural, unified_diff, visible_text};
pub(super) use written_files::accept_lock;
pub(crate) use written_files::accept_written;

/// Put a changed policy in force
///
/// A policy is trusted on first use. After that, the accepted text stays in force, even if the file
/// changes, until a person accepts the change with this command. It shows the difference, and the
/// calls on the project's tapes that the changed policy treats less strictly.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate policy accept
  tapegate policy accept ci/tapegate.yaml
  tapegate policy accept --list
  tapegate policy accept --forget old/tapegate.yaml
  tapegate policy accept --non-interactive --key-file ~/keys/ci.key      in a script

Asks a person at a terminal, and refuses inside a coding agent. A change that provably permits
nothing more takes effect without this command.

Exit codes: 0 accepted, or nothing to accept; 1 not accepted; 2 the policy does not load; 3 a file
could not be read or written; 64 wrong usage.")]
pub(crate) struct Args {
    /// The policy [default: the nearest]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// List every accepted policy and whether its file has changed
    #[arg(long, conflicts_with_all = ["file", "forget", "non_interactive", "key_file"])]
    list: bool,
    /// Forget the accepted policy; the next start trusts the file as on first use
    #[arg(long)]
    forget: bool,
    #[command(flatten)]
    key: KeyArgs,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let trust = PolicyTrust::new();
    if args.list {
        return accepted_list::run(&trust, out);
    }
    let path = path(args, &trust)?;
    let state = state_of(&path)?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let search = SearchContext { folder, ..SearchContext::current()? };
    user_state_hint::warn_of_difference(&search, &state);
    if args.forget {
        return forget_acceptance(args, &trust, &path, &state, out);
    }
    let (found, texts) = trust::read_file(&path, None);
    let ShimPolicyLoad { active_policy, faults, warnings, .. } = found;
    warnings.iter().for_each(|message| terminal_output::warn(message));
    let Some(active_policy) = active_policy else {
        faults.iter().for_each(|message| terminal_output::error(message, None));
        let message =
            format!("`{}` does not load, so it cannot be accepted", visible_text::path(&path));
        return Err(Failure::new(Exit::Invalid, message).into());
    };
    let accepted = trust.accepted(&path);
    // A policy that was only found on first use still needs a person, even if its text is the same:
    // telemetry stays off until then.
    if let Ok(Some(accepted)) = &accepted
        && accepted.texts == texts
        && accepted.by_person
    {
        let hash = &accepted.hash()[..16];
        writeln!(out, "`{}` is in force already, with hash {hash}", visible_text::path(&path))?;
        return Ok(Exit::Ok);
    }
    let command =
        format!("{} {}", args.key.command_text("policy accept"), visible_text::path(&path));
    let attempt = attempt(&command);
    attempt.log_if_refused(&state, args.key.authorize("accepting a policy", &state))?;
    let accepted = accepted.unwrap_or_else(|reason| {
        terminal_output::warn(&format!("{reason}; replacing it"));
        None
    });
    // A policy that was never accepted may replace another one.
    let before = match accepted.is_some() {
        true => accepted.clone(),
        false => trust.policies_replaced_by(&path).unwrap_or_default().pop(),
    };
    if let (None, Some(other)) = (&accepted, &before) {
        let other = visible_text::inline(&other.path.to_string_lossy(), usize::MAX);
        writeln!(out, "`{}` replaces `{other}` here", visible_text::path(&path))?;
    }
    show(accepted.as_ref(), before.as_ref(), &texts, &active_policy, (&path, &state), out)?;
    // The question goes to the terminal itself, and must come after what it is about.
    out.flush()?;
    let confirm = || attempt.log_if_refused(&state, approver_check::confirm("Accept this policy?"));
    if !args.key.is_given() && !confirm()? {
        writeln!(out, "not accepted; the policy in force stays")?;
        return Ok(Exit::Findings);
    }
    let how = Acceptance::Person;
    // The texts that were shown, not the file: it may have changed while the person read.
    trust.store(&path, &texts, how, true).map_err(|reason| Failure::new(Exit::Io, reason))?;
    let hash = trust.accepted(&path).ok().flatten().map(|one| one.hash()[..16].to_owned());
    let message = format!(
        "`{}` is accepted, with hash {}",
        visible_text::path(&path),
        hash.unwrap_or_default()
    );
    log(&state, "accepted", &message, active_policy.version());
    writeln!(out, "{message}")?;
    Ok(Exit::Ok)
}

/// The attempt that is logged if the command is refused.
fn attempt(command: &str) -> PersonAttempt<'_> {
    PersonAttempt { kind: ActivityKind::Policy, command, approval_id: None }
}

/// The policy to accept or forget. A policy whose file is gone can still be forgotten.
fn path(args: &Args, trust: &PolicyTrust) -> anyhow::Result<PathBuf> {
    let search = SearchContext::current()?;
    if let Some(file) = &args.file {
        return Ok(search.folder.join(file));
    }
    if args.forget
        && let Some(path) = trust.locate(&search, None)?
    {
        return Ok(path);
    }
    let way = format!("`{}`", program_name::command("policy accept FILE"));
    Ok(search.folder.join(policy_loader::nearest_path(None, &way)?))
}

/// The state folder of the project that contains a policy.
fn state_of(path: &Path) -> anyhow::Result<PathBuf> {
    let search = SearchContext::current()?;
    Ok(search.state_folder_of(path.parent().unwrap_or(&search.folder))?)
}

fn forget_acceptance(
    args: &Args,
    trust: &PolicyTrust,
    path: &Path,
    state: &Path,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let command =
        format!("{} {}", args.key.command_text("policy accept --forget"), visible_text::path(path));
    let attempt = attempt(&command);
    // Forgetting loosens too: the next start would trust whatever the file says.
    attempt.log_if_refused(state, args.key.authorize("forgetting a policy", state))?;
    let question = format!("Forget the accepted version of `{}`?", visible_text::path(path));
    let confirm = || attempt.log_if_refused(state, approver_check::confirm(&question));
    if !args.key.is_given() && !confirm()? {
        return Ok(Exit::Findings);
    }
    match trust.forget(path).map_err(|reason| Failure::new(Exit::Io, reason))? {
        true => {
            let message = format!("forgot the accepted version of `{}`", visible_text::path(path));
            log(state, "forgotten", &message, "");
            writeln!(out, "{message}")?;
        }
        false => writeln!(out, "`{}` was never accepted", visible_text::path(path))?,
    }
    Ok(Exit::Ok)
}

/// Shows what would change: the texts since they were accepted, and how calls on tape would be
/// decided compared with the policy now in force.
fn show(
    accepted: Option<&AcceptedPolicy>,
    before: Option<&AcceptedPolicy>,
    texts: &std::collections::BTreeMap<String, String>,
    active_policy: &ActivePolicy,
    (path, state): (&Path, &Path),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let palette = terminal_output::palette_of_output();
    // If no person has reviewed the accepted policy, show all of it.
    let seen = accepted.filter(|accepted| accepted.by_person);
    let old = seen.map(|accepted| accepted.texts.clone()).unwrap_or_default();
    let folder = path.parent().unwrap_or(path);
    out.write_all(unified_diff::diffs(folder, &old, texts, palette).as_bytes())?;
    let Some(before) = before.and_then(|one| trust::read_accepted(one, None).active_policy) else {
        return Ok(());
    };
    // Projects may share a state folder. A tape that does not name its project belongs to the
    // project whose own state folder it is in.
    let is_own = path.parent().is_some_and(|project| state.parent() == Some(project));
    let meant = |tape: &BacktestTape| tape.is_governed_by(path).unwrap_or(is_own);
    let folder = state.join("tapes");
    let found = backtest::find_loosened(&before, active_policy, &folder, meant)?;
    let PolicyImpact { changes, tapes, left_out } = found;
    if left_out > 0 {
        let (tapes, are) =
            (plural(left_out as u64, "tape"), if left_out == 1 { "is" } else { "are" });
        writeln!(out, "\n{tapes} {are} skipped: not known to belong to this project")?;
    }
    if tapes == 0 {
        writeln!(out, "\nno tapes to try it on")?;
        return Ok(());
    }
    let total: u64 = changes.iter().map(|change| change.count).sum();
    writeln!(
        out,
        "\ncalls on {} that it treats less strictly: {total}",
        plural(tapes as u64, "tape")
    )?;
    for change in &changes {
        let name = visible_text::inline(&change.name, 100);
        let (was, is) = (change.before.word, change.after.word);
        writeln!(out, "  {}× {} {name}: {was} → {is}", change.count, change.method)?;
    }
    Ok(())
}

/// Logs what a person did. The action is valid without it, so a failure is only a warning.
fn log(state: &Path, event: &str, message: &str, version: &str) {
    let event = ActivityEvent {
        wall_us: now_us(),
        level: EventLevel::Warn,
        kind: ActivityKind::Policy,
        component: Some(EventComponent::Cli),
        policy_reason: Some(message.into()),
        policy_version: (!version.is_empty()).then(|| version.into()),
        extra: activity::extra(&json!({ "event": event })),
        ..ActivityEvent::default()
    };
    if let Err(error) = log_event(state, &event) {
        terminal_output::warn(&format!("this is not in the activity log: {error}"));
    }
}
