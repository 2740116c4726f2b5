//! Checks a scenario.

use std::io::Write;
use std::path::Path;

use tapegate_scenario::finding::Severity;
use tapegate_scenario::load::{self, Form, Loaded, Loading};
use tapegate_scenario::model::Scenario;

use super::findings::Found;
use super::{Args, Format, counted, verdict};
use crate::disk::{Disk, limits};
use crate::views::visible;

/// Prints the findings for a scenario; true if the check failed.
pub(super) fn check(
    args: &Args,
    path: &Path,
    form: Form,
    disk: &Disk,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let loading = Loading {
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
    let Loaded { scenario, findings, sources } = &loaded;
    let found = Found { kind: "scenario", main: &main, list: findings, sources };
    match args.format {
        Format::Text => print_text(&found, scenario.as_ref(), out)?,
        Format::Json | Format::Jsonl => print_json(&found, scenario.as_ref(), out)?,
    }
    Ok(found.is_bad(args.strict))
}

fn print_text(
    found: &Found<'_>,
    scenario: Option<&Scenario>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    found.print_text(out)?;
    let main = visible::inline(found.main, usize::MAX);
    let verdict = verdict(found.count(Severity::Error), found.count(Severity::Warning));
    match scenario {
        Some(scenario) => writeln!(out, "{main}: {verdict}, {}", holds(scenario)),
        None => writeln!(out, "{main}: {verdict}"),
    }
}

fn print_json(
    found: &Found<'_>,
    scenario: Option<&Scenario>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    found.print_json(out)?;
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
fn holds(scenario: &Scenario) -> String {
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
    let there: Vec<String> = there.map(|(count, word)| counted(*count, word)).collect();
    if there.is_empty() { "nothing in it".to_owned() } else { there.join(", ") }
}
