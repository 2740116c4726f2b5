//! Problems found in a text, with their positions.
//!
//! Parsing continues after an error as far as possible, so that the user sees all of them at once.

use tapegate_core::visible_text;

use crate::node::Spot;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The text can be used, though perhaps not as intended.
    Warning,
    /// The text cannot be used.
    Error,
}

/// A problem found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    /// Its position.
    pub spot: Spot,
    /// The path from the root: `phases[0].advance.on`; empty for the whole file.
    pub path: String,
    /// The message: the problem, and how to fix it.
    pub message: String,
}

/// The findings of one parse, in the order in which they were made.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    path: Vec<String>,
    errors: usize,
    warnings: usize,
}

/// How many errors, and how many warnings, are listed.
const LISTED_MAX: usize = 1_000;
/// The length limit of messages and paths, which may quote text of any length.
const WORDS_BYTES_MAX: usize = 1_000;

impl Finding {
    /// It on one line: `file:line:column: path: message`. `sources` are the files by number; `main`
    /// is the name of a file that is not among them.
    pub fn line(&self, sources: &[String], main: &str) -> String {
        let place = (u64::from(self.spot.line), Some(self.spot.column));
        finding_line(self.file(sources, main), place, &self.text())
    }

    /// The file that it is about.
    pub fn file<'s>(&self, sources: &'s [String], main: &'s str) -> &'s str {
        sources.get(usize::from(self.spot.file)).map_or(main, String::as_str)
    }

    /// What is wrong, and where in the document.
    pub fn text(&self) -> String {
        let Self { path, message, .. } = self;
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        // Both may quote the document, which can hold control characters.
        visible_text::inline(&format!("{path}{message}"), usize::MAX)
    }
}

/// A message about a place in a file, on one line. A message about the file as a whole has line 0.
pub fn finding_line(file: &str, place: (u64, Option<u32>), message: &str) -> String {
    let file = visible_text::inline(file, usize::MAX);
    match place {
        (0, _) => format!("{file}: {message}"),
        (line, Some(column)) => format!("{file}:{line}:{column}: {message}"),
        (line, None) => format!("{file}:{line}: {message}"),
    }
}

impl Findings {
    /// Reports an error, which makes the text unusable.
    pub fn error(&mut self, spot: Spot, message: impl Into<String>) {
        self.add(Severity::Error, spot, message.into());
    }

    /// Reports a warning.
    pub fn warning(&mut self, spot: Spot, message: impl Into<String>) {
        self.add(Severity::Warning, spot, message.into());
    }

    /// Adds a step to the path while `work` runs: `advance`, or `[0]`.
    pub fn with_step<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        self.push_step(step);
        let done = work(self);
        self.pop_step();
        done
    }

    /// Adds a step to the path.
    pub fn push_step(&mut self, step: &str) {
        self.path.push(step.to_owned());
    }

    /// Removes the last step from the path.
    pub fn pop_step(&mut self) {
        self.path.pop();
    }

    /// Whether there are errors.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether further errors would only be counted, so that their messages need not be built.
    pub fn is_full(&self) -> bool {
        self.errors >= LISTED_MAX
    }

    /// Whether an error was reported at this position, so that it need not be reported again.
    pub fn has_error_at(&self, spot: Spot) -> bool {
        let is_it = |one: &Finding| one.severity == Severity::Error && one.spot == spot;
        // Line 0 is shared by all findings without a position.
        spot.line > 0 && self.list.iter().any(is_it)
    }

    /// The findings, in the order of the text.
    pub fn into_list(mut self) -> Vec<Finding> {
        // Checks come in several passes, but people read from top to bottom.
        self.list.sort_by_key(|finding| finding.spot);
        let more = self.errors.saturating_sub(LISTED_MAX);
        if more > 0 {
            let message = format!("there are {more} more errors, which are not listed");
            let (spot, path) = (Spot::default(), String::new());
            self.list.push(Finding { severity: Severity::Error, spot, path, message });
        }
        self.list
    }

    fn add(&mut self, severity: Severity, spot: Spot, mut message: String) {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        // Counted but not stored: a hostile file could otherwise fill memory with messages.
        if *count > LISTED_MAX {
            return;
        }
        let mut path = String::new();
        for step in &self.path {
            if !path.is_empty() && !step.starts_with('[') {
                path.push('.');
            }
            path.push_str(step);
        }
        // Keys and values are quoted, and may be megabytes long.
        truncate(&mut path);
        truncate(&mut message);
        self.list.push(Finding { severity, spot, path, message });
    }
}

/// Truncates a text that is too long to be read.
fn truncate(text: &mut String) {
    if text.len() > WORDS_BYTES_MAX {
        text.truncate(text.floor_char_boundary(WORDS_BYTES_MAX));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_end_to_what_is_listed() {
        let mut findings = Findings::default();
        for line in 0..5_000 {
            let spot = Spot { line, ..Spot::default() };
            findings.warning(spot, "w");
            findings.error(spot, "é".repeat(5_000));
        }
        assert!(findings.has_errors() && findings.is_full());
        let list = findings.into_list();
        assert_eq!(list.len(), 2_001);
        assert_eq!(list[2_000].message, "there are 4000 more errors, which are not listed");
        assert!(list.iter().all(|finding| finding.message.len() <= 1_003));
    }
}
