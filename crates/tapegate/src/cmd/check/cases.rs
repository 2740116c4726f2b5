//! Checks test files of a policy without running them; `tapegate policy test` does that.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use tapegate_policy::cases::load;

use super::Args;
use super::report::{CheckReport, FileSummary};
use crate::local_files::LocalFiles;
use crate::views::plural;

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
    let sources = [main.to_string()];
    let report = CheckReport::yaml("tests", &main, &loaded.findings, &sources);
    let summary = loaded.suite.map(|suite| {
        let cases = suite.cases.len();
        let members = [report.counts(), vec![("cases", cases.into())]].concat();
        FileSummary { text: plural(cases, "case"), members }
    });
    report.print(args, summary, out)?;
    Ok(report.is_bad(args.strict))
}
