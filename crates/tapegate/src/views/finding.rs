//! Formats findings in YAML files, with their positions.

use tapegate_yaml::finding::Finding;
use tapegate_yaml::node::Spot;

use super::visible_text;

/// A finding on one line: `file:line:column: path: message`.
pub(crate) fn line(finding: &Finding, sources: &[String], main: &str) -> String {
    let file = file(finding, sources, main);
    format!("{}: {}", position(file, finding.spot), message(finding))
}

/// The file that a finding is about.
pub(crate) fn file<'s>(finding: &Finding, sources: &'s [String], main: &'s str) -> &'s str {
    sources.get(usize::from(finding.spot.file)).map_or(main, String::as_str)
}

/// What is wrong, and where in the document.
pub(crate) fn message(Finding { path, message, .. }: &Finding) -> String {
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    visible_text::inline(&format!("{path}{message}"), usize::MAX)
}

fn position(file: &str, Spot { line, column, .. }: Spot) -> String {
    let file = visible_text::inline(file, usize::MAX);
    if line == 0 { file } else { format!("{file}:{line}:{column}") }
}
