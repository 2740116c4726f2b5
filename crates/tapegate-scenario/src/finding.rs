//! What is wrong with a scenario, and where.
//!
//! Reading goes on after a fault as far as it makes sense, so that a person sees all of them at once.

use crate::node::Spot;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The scenario runs, though perhaps not as was meant.
    Warning,
    /// The scenario does not run.
    Error,
}

/// One thing that a person should know about a scenario.
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
}

impl Findings {
    /// Notes something that keeps the scenario from running.
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

    /// Whether something keeps the scenario from running.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Whether something that stands there is known to be wrong, so that it need not be said twice.
    pub fn has_error_at(&self, spot: Spot) -> bool {
        let is_it = |one: &Finding| one.severity == Severity::Error && one.spot == spot;
        spot.line > 0 && self.list.iter().any(is_it)
    }

    /// The findings, in the order of the text.
    pub fn into_list(mut self) -> Vec<Finding> {
        self.list.sort_by_key(|finding| finding.spot);
        self.list
    }

    fn add(&mut self, severity: Severity, spot: Spot, words: String) {
        let mut path = String::new();
        for step in &self.path {
            if !path.is_empty() && !step.starts_with('[') {
                path.push('.');
            }
            path.push_str(step);
        }
        self.list.push(Finding { severity, spot, path, words });
    }
}
