//! Prints findings in YAML files, as text or as JSON.

use std::io::Write;

use tapegate_yaml::finding::{Finding, Severity};
use tapegate_yaml::node::Spot;

use super::quoted;
use crate::views::visible_text;

/// The findings in a file and in the files it includes.
pub(super) struct FindingsReport<'a> {
    /// The key that names the file in JSON: `scenario`, `policy`.
    pub(super) kind: &'static str,
    pub(super) main: &'a str,
    pub(super) list: &'a [Finding],
    pub(super) sources: &'a [String],
}

impl FindingsReport<'_> {
    /// Prints the findings, one per line.
    pub(super) fn print_text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for finding in self.list {
            let Finding { severity, spot: Spot { line, column, .. }, path, message: words } =
                finding;
            let file = visible_text::inline(self.file(finding), usize::MAX);
            let place = if *line == 0 { String::new() } else { format!(":{line}:{column}") };
            let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
            let message = visible_text::inline(&format!("{path}{words}"), usize::MAX);
            writeln!(out, "{file}{place}: {}: {message}", severity_word(*severity))?;
        }
        Ok(())
    }

    /// Prints the findings and the start of the summary object; the caller completes that object.
    pub(super) fn print_json(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let (kind, main) = (self.kind, quoted(self.main));
        for finding in self.list {
            let Finding { severity, spot: Spot { line, column, .. }, path, message } = finding;
            let (file, path, message) = (quoted(self.file(finding)), quoted(path), quoted(message));
            writeln!(
                out,
                "{{\"{kind}\":{main},\"file\":{file},\"line\":{line},\"column\":{column},\
                 \"severity\":\"{}\",\"path\":{path},\"finding\":{message}}}",
                severity_word(*severity)
            )?;
        }
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        write!(out, "{{\"{kind}\":{main},\"errors\":{errors},\"warnings\":{warnings}")
    }

    /// How many findings have this severity.
    pub(super) fn count(&self, severity: Severity) -> usize {
        self.list.iter().filter(|finding| finding.severity == severity).count()
    }

    /// Whether the check failed: on any error, or with `strict` on any finding.
    pub(super) fn is_bad(&self, strict: bool) -> bool {
        self.count(Severity::Error) > 0 || strict && !self.list.is_empty()
    }

    fn file(&self, finding: &Finding) -> &str {
        self.sources.get(usize::from(finding.spot.file)).map_or("", String::as_str)
    }
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
