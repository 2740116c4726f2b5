//! What is wrong with a text, and where.
//!
//! Reading goes on after a fault as far as it makes sense, so that a person sees all of them at once.

use crate::node::Spot;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It can be used, though perhaps not as was meant.
    Warning,
    /// It cannot be used.
    Error,
}

/// One thing that a person should know about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is.
    pub spot: Spot,
    /// The way to it from the top: `phases[0].advance.on`; empty for the whole file.
    pub path: String,
    /// What is wrong, and the way out.
    pub words: String,
}

/// The findings of one reading, in the order they were made.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    path: Vec<String>,
    errors: usize,
    warnings: usize,
}

/// After this many errors, or warnings, nobody reads on.
const LISTED_MAX: usize = 1_000;
/// Words and paths are cut here: what they quote may be of any length.
const WORDS_BYTES_MAX: usize = 1_000;

impl Finding {
    /// It on one line: place, severity, path, words. `sources` are the files by their numbers, of which the
    /// first goes without saying.
    pub fn line(&self, sources: &[String]) -> String {
        let Self { severity, spot, path, words } = self;
        let severity = if *severity == Severity::Error { "error" } else { "warning" };
        let file = match spot.file {
            0 => String::new(),
            file => {
                sources.get(usize::from(file)).map_or_else(String::new, |one| format!("{one}:"))
            }
        };
        let path = if path.is_empty() { String::new() } else { format!(" {path}:") };
        format!("{file}{}:{} {severity}:{path} {words}", spot.line, spot.column)
    }
}

impl Findings {
    /// Notes something that keeps it from being used.
    pub fn error(&mut self, spot: Spot, words: impl Into<String>) {
        self.add(Severity::Error, spot, words.into());
    }

    /// Notes something that may not be as was meant.
    pub fn warning(&mut self, spot: Spot, words: impl Into<String>) {
        self.add(Severity::Warning, spot, words.into());
    }

    /// Goes a step down while `work` is done: `advance`, or `[0]`.
    pub fn within<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        self.enter(step);
        let done = work(self);
        self.leave();
        done
    }

    /// Goes a step down.
    pub fn enter(&mut self, step: &str) {
        self.path.push(step.to_owned());
    }

    /// Goes back up.
    pub fn leave(&mut self) {
        self.path.pop();
    }

    /// Whether something keeps it from being used.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether more errors would only be counted, so that their words are not worth any work.
    pub fn is_full(&self) -> bool {
        self.errors >= LISTED_MAX
    }

    /// Whether something that stands there is known to be wrong, so that it need not be said twice.
    pub fn has_error_at(&self, spot: Spot) -> bool {
        let is_it = |one: &Finding| one.severity == Severity::Error && one.spot == spot;
        spot.line > 0 && self.list.iter().any(is_it)
    }

    /// The findings, in the order of the text.
    pub fn into_list(mut self) -> Vec<Finding> {
        self.list.sort_by_key(|finding| finding.spot);
        let more = self.errors.saturating_sub(LISTED_MAX);
        if more > 0 {
            let words = format!("there are {more} more errors, which are not listed");
            let (spot, path) = (Spot::default(), String::new());
            self.list.push(Finding { severity: Severity::Error, spot, path, words });
        }
        self.list
    }

    fn add(&mut self, severity: Severity, spot: Spot, mut words: String) {
        let count = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
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
        cut(&mut path);
        cut(&mut words);
        self.list.push(Finding { severity, spot, path, words });
    }
}

/// Cuts a text that is too long to be read.
fn cut(text: &mut String) {
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
        assert_eq!(list[2_000].words, "there are 4000 more errors, which are not listed");
        assert!(list.iter().all(|finding| finding.words.len() <= 1_003));
    }
}
