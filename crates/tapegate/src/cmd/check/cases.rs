//! Checks test files of a policy without running them; `tapegate policy test` does that.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use tapegate_policy::cases::load;
use tapegate_yaml::finding::Severity;

use super::findings::FindingsReport;
use super::{Args, CheckFormat, count_text, verdict};
use crate::local_files::LocalFiles;
use crate::views::visible_text;

/// Whether a file is a test file by its name, whatever its content.
pub(super) fn is_named(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.ends_with(".test.yaml") || name.ends_with(".test.yml")
}

/// Prints the findings for a test file; true if the check failed.
pub(super) fn check(
    args: &Args,
    path: &Path,
    disk: &LocalFiles,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let main = path.to_string_lossy();
    let loaded = load(&main, disk).with_context(|| format!("cannot read `{main}`"))?;
    let (name, sources) = (visible_text::path(path), [main.to_string()]);
    let report =
        FindingsReport { kind: "tests", main: &main, list: &loaded.findings, sources: &sources };
    let cases = loaded.suite.map(|suite| suite.cases.len());
    match args.format {
        CheckFormat::Text => {
            report.print_text(out)?;
            let verdict = verdict(report.count(Severity::Error), report.count(Severity::Warning));
            match cases {
                Some(cases) => writeln!(out, "{name}: {verdict}, {}", count_text(cases, "case"))?,
                None => writeln!(out, "{name}: {verdict}")?,
            }
        }
        CheckFormat::Json | CheckFormat::Jsonl => {
            report.print_json(out)?;
            if let Some(cases) = cases {
                write!(out, ",\"cases\":{cases}")?;
            }
            writeln!(out, "}}")?;
        }
    }
    Ok(report.is_bad(args.strict))
}
