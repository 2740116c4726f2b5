//! Checks a scenario.

use std::io::Write;
use std::path::Path;

use tapegate_scenario::load::{self, LoadOptions, ScenarioFileKind, ScenarioLoadResult};
use tapegate_scenario::model::Scenario;

use super::report::{CheckReport, FileSummary};
use super::{Args, LIBRARY};
use crate::local_files::{LocalFiles, limits};
use crate::views::plural;

/// Prints the findings for a scenario; true if the check failed.
pub(super) fn check(
    args: &Args,
    path: &Path,
    form: ScenarioFileKind,
    disk: &LocalFiles,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let library = args.library.as_deref().unwrap_or(Path::new(LIBRARY));
    let loading = LoadOptions {
        files: disk,
        library: Some(library.to_string_lossy().into_owned()),
        limits: limits()?,
        form,
    };
    let main = path.to_string_lossy();
    let loaded = match args.strict_001 {
        true => load::load_strict_001(&main, &loading),
        false => load::load(&main, &loading),
    };
    let ScenarioLoadResult { scenario, findings, sources } = &loaded;
    let report = CheckReport::yaml("scenario", &main, findings, sources);
    let summary = scenario.as_ref().map(|scenario| summarize(scenario, &report));
    report.print(args, summary, out)?;
    Ok(report.is_bad(args.strict))
}

/// What a scenario contains.
fn summarize(scenario: &Scenario, report: &CheckReport<'_>) -> FileSummary {
    let state = &scenario.baseline;
    let all = [
        (state.tools.len(), "tool", Some("tools")),
        (state.resources.len(), "resource", Some("resources")),
        (state.templates.len(), "resource template", Some("resource_templates")),
        (state.prompts.len(), "prompt", Some("prompts")),
        (scenario.phases.len(), "phase", Some("phases")),
        (scenario.expect.len(), "expectation", None),
    ];
    let there = all.iter().filter(|(count, ..)| *count > 0);
    let there: Vec<String> = there.map(|(count, word, _)| plural(*count, word)).collect();
    let text = if there.is_empty() { "nothing in it".to_owned() } else { there.join(", ") };
    let mut members = report.counts();
    members.extend(all.iter().filter_map(|(count, _, key)| Some(((*key)?, (*count).into()))));
    FileSummary { text, members }
}
