//! Checks a scenario.

use std::io::Write;
use std::path::Path;

use tapegate_scenario::finding::Severity;
use tapegate_scenario::load::{self, LoadOptions, ScenarioFileKind, ScenarioLoadResult};
use tapegate_scenario::model::Scenario;

use super::findings::FindingsReport;
use super::{Args, CheckFormat, count_text, verdict};
use crate::local_files::{LocalFiles, limits};
use crate::views::visible_text;

/// Prints the findings for a scenario; true if the check failed.
pub(super) fn check(
    args: &Args,
    path: &Path,
    form: ScenarioFileKind,
    disk: &LocalFiles,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let loading = LoadOptions {
        files: disk,
        library: Some(args.library.to_string_lossy().into_owned()),
        limits: limits()?,
        form,
    };
    let main = path.to_string_lossy();
    let loaded = match args.strict_001 {
        true => load::load_strict_001(&main, &loading),
        false => load::load(&main, &loading),
    };
    let ScenarioLoadResult { scenario, findings, sources } = &loaded;
    let report = FindingsReport { kind: "scenario", main: &main, list: findings, sources };
    match args.format {
        CheckFormat::Text => print_text(&report, scenario.as_ref(), out)?,
        CheckFormat::Json | CheckFormat::Jsonl => print_json(&report, scenario.as_ref(), out)?,
    }
    Ok(report.is_bad(args.strict))
}

fn print_text(
    report: &FindingsReport<'_>,
    scenario: Option<&Scenario>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    report.print_text(out)?;
    let main = visible_text::inline(report.main, usize::MAX);
    let verdict = verdict(report.count(Severity::Error), report.count(Severity::Warning));
    match scenario {
        Some(scenario) => writeln!(out, "{main}: {verdict}, {}", summarize(scenario)),
        None => writeln!(out, "{main}: {verdict}"),
    }
}

fn print_json(
    report: &FindingsReport<'_>,
    scenario: Option<&Scenario>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    report.print_json(out)?;
    if let Some(scenario) = scenario {
        let state = &scenario.baseline;
        let (tools, resources) = (state.tools.len(), state.resources.len());
        let (templates, prompts) = (state.templates.len(), state.prompts.len());
        let phases = scenario.phases.len();
        write!(
            out,
            ",\"tools\":{tools},\"resources\":{resources},\"resource_templates\":{templates},\
             \"prompts\":{prompts},\"phases\":{phases}"
        )?;
    }
    writeln!(out, "}}")
}

/// What a scenario contains, in a few words.
fn summarize(scenario: &Scenario) -> String {
    let state = &scenario.baseline;
    let all = [
        (state.tools.len(), "tool"),
        (state.resources.len(), "resource"),
        (state.templates.len(), "resource template"),
        (state.prompts.len(), "prompt"),
        (scenario.phases.len(), "phase"),
        (scenario.expect.len(), "expectation"),
    ];
    let there = all.iter().filter(|(count, _)| *count > 0);
    let there: Vec<String> = there.map(|(count, word)| count_text(*count, word)).collect();
    if there.is_empty() { "nothing in it".to_owned() } else { there.join(", ") }
}
