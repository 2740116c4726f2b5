//! Checks a lock file.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use tapegate_policy::pins::PinLock;
use tapegate_store::input;
use tapegate_yaml::finding::{Finding, Severity};
use tapegate_yaml::node::Spot;

use super::Args;
use super::report::{CheckReport, FileSummary};
use crate::cmd::policy::policy_loader::LOCK_BYTES_MAX;
use crate::views::plural;

/// Prints the findings for a lock file; true if the check failed.
pub(super) fn check(args: &Args, path: &Path, out: &mut dyn Write) -> anyhow::Result<bool> {
    let main = path.to_string_lossy();
    let text =
        input::read(path, LOCK_BYTES_MAX).with_context(|| format!("cannot read `{main}`"))?;
    let lock = PinLock::parse(&String::from_utf8_lossy(&text));
    let list: Vec<Finding> = lock
        .as_ref()
        .err()
        .into_iter()
        .map(|error| Finding {
            severity: Severity::Error,
            spot: Spot { file: 0, line: u32::try_from(error.line).unwrap_or_default(), column: 1 },
            path: String::new(),
            message: error.what.clone(),
        })
        .collect();
    let sources = [main.to_string()];
    let report = CheckReport::yaml("lock", &main, &list, &sources);
    let summary = lock.as_ref().ok().map(|lock| {
        let (servers, pins) = (lock.servers.len(), pins(lock));
        let text = format!("{}, {}", plural(servers, "server"), plural(pins, "definition"));
        let mut members = report.counts();
        members.extend([("servers", servers.into()), ("definitions", pins.into())]);
        FileSummary { text, members }
    });
    report.print(args, summary, out)?;
    Ok(!list.is_empty())
}

/// How many definitions were accepted.
fn pins(lock: &PinLock) -> usize {
    let offers = lock.servers.values().flat_map(|server| server.offers.values());
    offers.map(|pins| pins.len()).sum()
}
