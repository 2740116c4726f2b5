//! Checks a policy.

use std::io::Write;
use std::path::Path;

use tapegate_policy::load::{Loaded, load};
use tapegate_policy::model::Policy;
use tapegate_yaml::finding::{Finding, Severity};
use tapegate_yaml::node::Spot;

use super::findings::Found;
use super::{Args, Format, counted, verdict};
use crate::called;
use crate::disk::Disk;
use crate::settings::{HUB_VARIABLES, Surroundings};
use crate::trust;
use crate::views::visible;

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
    disk: &Disk,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let main = path.to_string_lossy();
    let Loaded { policy, mut findings, sources, .. } = load(&main, disk);
    findings.extend(policy.iter().flat_map(|policy| unapprovable(policy, &caller(policy))));
    findings.extend(policy.as_ref().and_then(unsent_telemetry));
    let found = Found { kind: "policy", main: &main, list: &findings, sources: &sources };
    if path != Path::new("-") {
        trust::warn_if_not_in_force(path);
    }
    match args.format {
        Format::Text => print_text(&found, policy.as_ref(), out)?,
        Format::Json | Format::Jsonl => print_json(&found, policy.as_ref(), out)?,
    }
    Ok(found.is_bad(args.strict))
}

/// The principal's name in a shim started by this user.
fn caller(policy: &Policy) -> String {
    let user = || Some(Surroundings::ours().ok()?.user());
    let named = Some(policy.principal.name.clone()).filter(|name| !name.is_empty());
    named.or_else(user).unwrap_or_default()
}

/// Workflows in which only the caller may approve, so that no call can ever be approved.
fn unapprovable(policy: &Policy, caller: &str) -> Vec<Finding> {
    let is_alone = |approvers: &[String]| {
        !approvers.is_empty() && approvers.iter().all(|approver| approver == caller)
    };
    let alone = policy.workflows.iter().filter(|(_, workflow)| is_alone(&workflow.approvers));
    let finding = |name: &String| Finding {
        severity: Severity::Warning,
        spot: Spot::default(),
        path: format!("approval.{name}.approvers"),
        words: format!(
            "the only approver is `{caller}`, who also makes the calls, and callers cannot \
             approve their own calls; add an approver, name the agent with `principal: {{ name: \
             agent }}`, or leave `approvers` out"
        ),
    };
    alone.map(|(name, _)| finding(name)).collect()
}

/// Warns of telemetry if no hub is configured to send it.
fn unsent_telemetry(policy: &Policy) -> Option<Finding> {
    let has_hub = Surroundings::ours().is_ok_and(|around| around.first(&HUB_VARIABLES).is_some());
    let words = || {
        let line = called::command("hub");
        format!(
            "only a hub sends telemetry; a shim without one sends nothing (`{line}` starts one)"
        )
    };
    (policy.telemetry.enabled && !has_hub).then(|| Finding {
        severity: Severity::Warning,
        spot: Spot::default(),
        path: "telemetry".to_owned(),
        words: words(),
    })
}

fn print_text(
    found: &Found<'_>,
    policy: Option<&Policy>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    found.print_text(out)?;
    let main = visible::inline(found.main, usize::MAX);
    let verdict = verdict(found.count(Severity::Error), found.count(Severity::Warning));
    match policy {
        Some(policy) => writeln!(out, "{main}: {verdict}, {}", holds(policy)),
        None => writeln!(out, "{main}: {verdict}"),
    }
}

fn print_json(
    found: &Found<'_>,
    policy: Option<&Policy>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    found.print_json(out)?;
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
fn holds(policy: &Policy) -> String {
    let mut there = vec![
        counted(policy.sources.len(), "source"),
        counted(policy.rules.len(), "rule"),
        counted(policy.workflows.len(), "workflow"),
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
