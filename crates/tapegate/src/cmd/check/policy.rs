//! Checks a policy.

use std::io::Write;
use std::path::Path;

use tapegate_policy::load::{PolicyLoadResult, load};
use tapegate_policy::model::Policy;
use tapegate_yaml::finding::{Finding, Severity};
use tapegate_yaml::node::Spot;

use super::findings::FindingsReport;
use super::{Args, CheckFormat, count_text, verdict};
use crate::local_files::LocalFiles;
use crate::program_name;
use crate::settings::{HUB_VARIABLES, SearchContext};
use crate::trust;
use crate::views::visible_text;

/// The file names of policies.
const NAMES: [&str; 4] = ["tapegate.yaml", "tapegate.yml", "thoughtgate.yaml", "thoughtgate.yml"];

/// Whether a file is a policy by its name, whatever its content.
pub(super) fn is_named(path: &Path) -> bool {
    path.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known))
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
    let report = FindingsReport { kind: "policy", main: &main, list: &findings, sources: &sources };
    if path != Path::new("-") {
        // A valid file may still not be what sessions use.
        trust::warn_if_not_in_force(path);
    }
    match args.format {
        CheckFormat::Text => print_text(&report, policy.as_ref(), out)?,
        CheckFormat::Json | CheckFormat::Jsonl => print_json(&report, policy.as_ref(), out)?,
    }
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

/// Warns of telemetry if no hub is configured to send it.
fn find_unsent_telemetry(policy: &Policy) -> Option<Finding> {
    let has_hub =
        SearchContext::current().is_ok_and(|search| search.first(&HUB_VARIABLES).is_some());
    let message = || {
        let line = program_name::command("hub");
        format!(
            "only a hub sends telemetry; a shim without one sends nothing (`{line}` starts one)"
        )
    };
    (policy.telemetry.enabled && !has_hub).then(|| Finding {
        severity: Severity::Warning,
        spot: Spot::default(),
        path: "telemetry".to_owned(),
        message: message(),
    })
}

fn print_text(
    report: &FindingsReport<'_>,
    policy: Option<&Policy>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    report.print_text(out)?;
    let main = visible_text::inline(report.main, usize::MAX);
    let verdict = verdict(report.count(Severity::Error), report.count(Severity::Warning));
    match policy {
        Some(policy) => writeln!(out, "{main}: {verdict}, {}", summarize(policy)),
        None => writeln!(out, "{main}: {verdict}"),
    }
}

fn print_json(
    report: &FindingsReport<'_>,
    policy: Option<&Policy>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    report.print_json(out)?;
    if let Some(policy) = policy {
        let (sources, rules) = (policy.sources.len(), policy.rules.len());
        let (workflows, cedar) = (policy.workflows.len(), cedar_policies(policy));
        let version = &policy.version;
        write!(
            out,
            ",\"sources\":{sources},\"rules\":{rules},\"workflows\":{workflows},\
             \"cedar_policies\":{cedar},\"version\":\"{version}\""
        )?;
    }
    writeln!(out, "}}")
}

/// What a policy contains, in a few words.
fn summarize(policy: &Policy) -> String {
    let mut there = vec![
        count_text(policy.sources.len(), "source"),
        count_text(policy.rules.len(), "rule"),
        count_text(policy.workflows.len(), "workflow"),
    ];
    if policy.cedar.is_some() {
        there.push(match cedar_policies(policy) {
            1 => "1 Cedar policy".to_owned(),
            count => format!("{count} Cedar policies"),
        });
    }
    format!("{}; version {}", there.join(", "), policy.version)
}

fn cedar_policies(policy: &Policy) -> usize {
    policy.cedar.as_ref().map_or(0, |cedar| cedar.len())
}
