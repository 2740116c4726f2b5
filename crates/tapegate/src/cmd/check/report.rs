//! The result of checking one file, as text or as JSON.

use std::io::{self, Write};

use serde_json::{Map, Value};
use tapegate_core::tape::TapeSeverity;
use tapegate_yaml::finding::{Finding, Severity, finding_line};

use super::{Args, CheckFormat, verdict};
use crate::views::visible_text;

/// What was found in a file, and in the files that belong to it.
pub(super) struct CheckReport<'a> {
    /// The key that names the file in JSON: `tape`, `policy`.
    pub(super) kind: &'static str,
    pub(super) main: &'a str,
    pub(super) findings: Vec<ReportFinding<'a>>,
}

/// One finding.
pub(super) struct ReportFinding<'a> {
    /// Its file, if it may be another one than the main file.
    pub(super) file: Option<&'a str>,
    /// Its line, or 0.
    pub(super) line: u64,
    pub(super) severity: TapeSeverity,
    pub(super) message: &'a str,
    pub(super) detail: FindingContext<'a>,
}

/// What else is known about a finding.
pub(super) enum FindingContext<'a> {
    /// Nothing.
    Plain,
    /// The kind of fault in a log.
    Fault(&'static str),
    /// The finding in a YAML document.
    Yaml(&'a Finding),
}

/// What a file contains: in a few words, and as members of a JSON object.
pub(super) struct FileSummary {
    pub(super) text: String,
    pub(super) members: Vec<(&'static str, Value)>,
}

impl<'a> CheckReport<'a> {
    /// A report about YAML files.
    pub(super) fn yaml(
        kind: &'static str,
        main: &'a str,
        findings: &'a [Finding],
        sources: &'a [String],
    ) -> Self {
        let convert = |found: &'a Finding| ReportFinding {
            file: Some(found.file(sources, "")),
            line: u64::from(found.spot.line),
            severity: match found.severity {
                Severity::Warning => TapeSeverity::Warning,
                Severity::Error => TapeSeverity::Error,
            },
            message: &found.message,
            detail: FindingContext::Yaml(found),
        };
        Self { kind, main, findings: findings.iter().map(convert).collect() }
    }

    /// Prints the findings, one per line, and then the summary of a file that could be read.
    pub(super) fn print(
        &self,
        args: &Args,
        summary: Option<FileSummary>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match args.format {
            CheckFormat::Text => {
                self.findings.iter().try_for_each(|found| writeln!(out, "{}", self.text(found)))?;
                let (main, verdict) =
                    (visible_text::inline(self.main, usize::MAX), self.verdict(args.strict));
                let summary = summary.map(|summary| format!(", {}", summary.text));
                writeln!(out, "{main}: {verdict}{}", summary.unwrap_or_default())
            }
            CheckFormat::Json | CheckFormat::Jsonl => {
                self.findings.iter().try_for_each(|found| writeln!(out, "{}", self.json(found)))?;
                let members = summary.map_or_else(|| self.counts(), |summary| summary.members);
                writeln!(out, "{}", self.object(members))
            }
        }
    }

    /// How many errors and warnings there are, as members of the summary.
    pub(super) fn counts(&self) -> Vec<(&'static str, Value)> {
        let count = |severity| Value::from(self.count(severity));
        vec![("errors", count(TapeSeverity::Error)), ("warnings", count(TapeSeverity::Warning))]
    }

    /// Whether the check failed: on any error, or with `strict` on any warning.
    pub(super) fn is_bad(&self, strict: bool) -> bool {
        self.count(TapeSeverity::Error) > 0 || strict && self.count(TapeSeverity::Warning) > 0
    }

    fn count(&self, severity: TapeSeverity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    fn verdict(&self, strict: bool) -> String {
        verdict(self.count(TapeSeverity::Error), self.count(TapeSeverity::Warning), strict)
    }

    fn text(&self, found: &ReportFinding<'_>) -> String {
        let (column, message) = match found.detail {
            FindingContext::Yaml(yaml) => (Some(yaml.spot.column), yaml.text()),
            _ => (None, found.message.to_owned()),
        };
        let message = format!("{}: {message}", severity_name(found.severity));
        finding_line(found.file.unwrap_or(self.main), (found.line, column), &message)
    }

    fn json(&self, found: &ReportFinding<'_>) -> Value {
        let mut members: Vec<(&'static str, Value)> = Vec::new();
        members.extend(found.file.map(|file| ("file", file.into())));
        members.push(("line", found.line.into()));
        if let FindingContext::Yaml(yaml) = found.detail {
            members.push(("column", yaml.spot.column.into()));
        }
        members.push(("severity", severity_name(found.severity).into()));
        match found.detail {
            FindingContext::Plain => {}
            FindingContext::Fault(fault) => members.push(("fault", fault.into())),
            FindingContext::Yaml(yaml) => members.push(("path", yaml.path.as_str().into())),
        }
        members.push(("finding", found.message.into()));
        self.object(members)
    }

    /// An object that begins with the name of the file.
    fn object(&self, members: Vec<(&'static str, Value)>) -> Value {
        let all = [(self.kind, Value::from(self.main))].into_iter().chain(members);
        Value::Object(all.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
    }
}

fn severity_name(severity: TapeSeverity) -> &'static str {
    match severity {
        TapeSeverity::Note => "note",
        TapeSeverity::Warning => "warning",
        TapeSeverity::Error => "error",
    }
}
