//! Checks a policy.

use std::io::Write;
use std::path::{Path, PathBuf};

use tapegate_policy::load::{PolicyLoadResult, load};
use tapegate_policy::model::Policy;
use tapegate_yaml::finding::{Finding, Severity};
use tapegate_yaml::node::Spot;

use super::Args;
use super::report::{CheckReport, FileSummary};
use crate::local_files::LocalFiles;
use crate::program_name;
use crate::settings::{HUB_VARIABLES, SearchContext};
use crate::trust;
use crate::views::plural;

/// The file names of policies.
const NAMES: [&str; 4] = ["tapegate.yaml", "tapegate.yml", "thoughtgate.yaml", "thoughtgate.yml"];

/// Whether a file is a policy by its name, whatever its content.
pub(super) fn is_named(path: &Path) -> bool {
    path.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known))
}

/// The policies in a folder, but not below it.
pub(super) fn files_in(folder: &Path) -> Vec<PathBuf> {
    NAMES.iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect()
}

/// Prints the findings for a policy; true if the check failed.
pub(super) fn check(
    args: &Args,
    path: &Path,
    disk: &LocalFiles,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let main = path.to_string_lossy();
    let PolicyLoadResult { policy, mut findings, sources, .. } = load(&main, disk);
    findings.extend(policy.iter().flat_map(|policy| find_unapprovable(policy, &caller(policy))));
    findings.extend(policy.as_ref().and_then(find_unsent_telemetry));
    findings.extend(policy.as_ref().and_then(find_unused_channels));
    let report = CheckReport::yaml("policy", &main, &findings, &sources);
    // Standard input has no place where sessions would look for it.
    if path != Path::new("-") {
        // A valid file may still not be what sessions use.
        trust::warn_if_not_in_force(path);
    }
    let summary = policy.as_ref().map(|policy| summarize(policy, &report));
    report.print(args, summary, out)?;
    Ok(report.is_bad(args.strict))
}

/// The principal's name in a shim started by this user.
fn caller(policy: &Policy) -> String {
    let user = || Some(SearchContext::current().ok()?.user());
    let named = Some(policy.principal.name.clone()).filter(|name| !name.is_empty());
    named.or_else(user).unwrap_or_default()
}

/// Workflows in which only the caller may approve, so that no call can ever be approved.
fn find_unapprovable(policy: &Policy, caller: &str) -> Vec<Finding> {
    let is_alone = |approvers: &[String]| {
        !approvers.is_empty() && approvers.iter().all(|approver| approver == caller)
    };
    let alone = policy.workflows.iter().filter(|(_, workflow)| is_alone(&workflow.approvers));
    let finding = |name: &String| Finding {
        severity: Severity::Warning,
        spot: Spot::default(),
        path: format!("approval.{name}.approvers"),
        message: format!(
            "the only approver is `{caller}`, who also makes the calls, and callers cannot \
             approve their own calls; add an approver, name the agent with `principal: {{ name: \
             agent }}`, or leave `approvers` out"
        ),
    };
    alone.map(|(name, _)| finding(name)).collect()
}

fn has_hub() -> bool {
    SearchContext::current().is_ok_and(|search| search.first(&HUB_VARIABLES).is_some())
}

/// Warns of channels if no hub is configured to use them.
fn find_unused_channels(policy: &Policy) -> Option<Finding> {
    let message = || {
        format!(
            "only a hub tells channels of calls; without one, people see them with `{}` (`{}` \
             starts a hub)",
            program_name::command("approvals"),
            program_name::command("hub")
        )
    };
    (!policy.channels.is_empty() && !has_hub()).then(|| Finding {
        severity: Severity::Warning,
        spot: Spot::default(),
        path: "channels".to_owned(),
        message: message(),
    })
}

/// Warns of telemetry if no hub is configured to send it.
fn find_unsent_telemetry(policy: &Policy) -> Option<Finding> {
    let message = || {
        let line = program_name::command("hub");
        format!(
            "only a hub sends telemetry; a shim without one sends nothing (`{line}` starts one)"
        )
    };
    (policy.telemetry.enabled && !has_hub()).then(|| Finding {
        severity: Severity::Warning,
        spot: Spot::default(),
        path: "telemetry".to_owned(),
        message: message(),
    })
}

/// What a policy contains.
fn summarize(policy: &Policy, report: &CheckReport<'_>) -> FileSummary {
    let mut there = vec![
        plural(policy.sources.len(), "source"),
        plural(policy.rules.len(), "rule"),
        plural(policy.workflows.len(), "workflow"),
    ];
    if policy.cedar.is_some() {
        there.push(match cedar_policies(policy) {
            1 => "1 Cedar policy".to_owned(),
            count => format!("{count} Cedar policies"),
        });
    }
    let text = format!("{}; version {}", there.join(", "), policy.version);
    let mut members = report.counts();
    members.extend([
        ("sources", policy.sources.len().into()),
        ("rules", policy.rules.len().into()),
        ("workflows", policy.workflows.len().into()),
        ("cedar_policies", cedar_policies(policy).into()),
        ("version", policy.version.to_string().into()),
    ]);
    FileSummary { text, members }
}

fn cedar_policies(policy: &Policy) -> usize {
    policy.cedar.as_ref().map_or(0, |cedar| cedar.len())
}
