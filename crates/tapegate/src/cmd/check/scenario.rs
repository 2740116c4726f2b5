//! Looking over a scenario.

use std::io::Write;
use std::path::Path;

use tapegate_scenario::finding::{Finding, Severity};
use tapegate_scenario::load::{self, Form, Loaded, Loading};
use tapegate_scenario::model::Scenario;
use tapegate_scenario::node::Spot;

use super::{Args, Format, counted, quoted, verdict};
use crate::disk::{self, Disk};
use crate::views::visible;

/// Prints what is found in a scenario; true if it is bad.
pub(super) fn check(
    args: &Args,
    path: &Path,
    form: Form,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let loading = Loading {
        files: &Disk::default(),
        library: Some(args.library.to_string_lossy().into_owned()),
        limits: disk::limits()?,
        form,
    };
    let main = path.to_string_lossy();
    let loaded = match args.strict_001 {
        true => load::load_strict_001(&main, &loading),
        false => load::load(&main, &loading),
    };
    match args.format {
        Format::Text => print_text(&main, &loaded, out)?,
        Format::Json => print_json(&main, &loaded, out)?,
    }
    Ok(count(&loaded, Severity::Error) > 0 || args.strict && !loaded.findings.is_empty())
}

fn print_text(main: &str, loaded: &Loaded, out: &mut dyn Write) -> std::io::Result<()> {
    for finding in &loaded.findings {
        let Finding { severity, spot: Spot { line, column, .. }, path, words } = finding;
        let file = file(loaded, finding);
        let place = if *line == 0 { String::new() } else { format!(":{line}:{column}") };
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        let words = visible::inline(&format!("{path}{words}"), usize::MAX);
        writeln!(out, "{file}{place}: {}: {words}", word(*severity))?;
    }
    let verdict = verdict(count(loaded, Severity::Error), count(loaded, Severity::Warning));
    match &loaded.scenario {
        Some(scenario) => writeln!(out, "{main}: {verdict}, {}", holds(scenario)),
        None => writeln!(out, "{main}: {verdict}"),
    }
}

fn print_json(main: &str, loaded: &Loaded, out: &mut dyn Write) -> std::io::Result<()> {
    let main = quoted(main);
    for finding in &loaded.findings {
        let Finding { severity, spot: Spot { line, column, .. }, path, words } = finding;
        let (file, path, words) = (quoted(file(loaded, finding)), quoted(path), quoted(words));
        writeln!(
            out,
            "{{\"scenario\":{main},\"file\":{file},\"line\":{line},\"column\":{column},\
             \"severity\":\"{}\",\"path\":{path},\"finding\":{words}}}",
            word(*severity)
        )?;
    }
    let (errors, warnings) = (count(loaded, Severity::Error), count(loaded, Severity::Warning));
    write!(out, "{{\"scenario\":{main},\"errors\":{errors},\"warnings\":{warnings}")?;
    if let Some(scenario) = &loaded.scenario {
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

/// What a scenario has, in a few words.
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

fn file<'l>(loaded: &'l Loaded, finding: &Finding) -> &'l str {
    loaded.sources.get(usize::from(finding.spot.file)).map_or("", String::as_str)
}

fn count(loaded: &Loaded, severity: Severity) -> usize {
    loaded.findings.iter().filter(|finding| finding.severity == severity).count()
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
