//! Checks a lock file.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use tapegate_policy::pins::PinLock;
use tapegate_store::input;
use tapegate_yaml::finding::{Finding, Severity};
use tapegate_yaml::node::Spot;

use super::findings::FindingsReport;
use super::{Args, CheckFormat, count_text, verdict};
use crate::cmd::policy::policy_loader::LOCK_BYTES_MAX;
use crate::views::visible_text;

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
    let (name, sources) = (visible_text::path(path), [main.to_string()]);
    let report = FindingsReport { kind: "lock", main: &main, list: &list, sources: &sources };
    let counts = lock.as_ref().ok().map(|lock| (lock.servers.len(), pins(lock)));
    match args.format {
        CheckFormat::Text => {
            report.print_text(out)?;
            let verdict = verdict(list.len(), 0);
            match counts {
                Some((servers, pins)) => {
                    let (servers, pins) =
                        (count_text(servers, "server"), count_text(pins, "definition"));
                    writeln!(out, "{name}: {verdict}, {servers}, {pins}")?;
                }
                None => writeln!(out, "{name}: {verdict}")?,
            }
        }
        CheckFormat::Json | CheckFormat::Jsonl => {
            report.print_json(out)?;
            if let Some((servers, pins)) = counts {
                write!(out, ",\"servers\":{servers},\"definitions\":{pins}")?;
            }
            writeln!(out, "}}")?;
        }
    }
    Ok(!list.is_empty())
}

/// How many definitions were accepted.
fn pins(lock: &PinLock) -> usize {
    let offers = lock.servers.values().flat_map(|server| server.offers.values());
    offers.map(|pins| pins.len()).sum()
}
