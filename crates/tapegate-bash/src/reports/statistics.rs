//! Counts over many sessions. Memory grows with the number of different commands, not of entries.

use std::collections::BTreeMap;

use super::command_label::label;
use crate::recording::session_reader::EntrySummary;

/// How many different names are counted one by one; the rest is counted together.
const LABELS_MAX: usize = 100_000;

/// Counts over commands.
#[derive(Debug, Default)]
pub struct CommandStatistics {
    /// How many sessions they were in.
    pub sessions: u64,
    /// How many commands.
    pub commands: u64,
    /// How long they took together.
    pub duration_ms: u64,
    /// How many succeeded, exited with 1, and ended in another way.
    pub exits: ExitCounts,
    /// The command that took longest, and how long.
    pub longest: Option<(String, u64)>,
    labels: BTreeMap<String, u64>,
}

/// How commands ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExitCounts {
    /// With 0.
    pub success: u64,
    /// With 1.
    pub error: u64,
    /// With another code, by a signal or a timeout.
    pub other: u64,
    /// How many of these timed out.
    pub timed_out: u64,
}

impl CommandStatistics {
    /// Counts for one session.
    pub fn of_session() -> Self {
        Self { sessions: 1, ..Self::default() }
    }

    /// Counts a command.
    pub fn add(&mut self, entry: &EntrySummary<'_>) {
        self.commands += 1;
        self.duration_ms += entry.duration_ms;
        match entry.exit_code {
            Some(0) => self.exits.success += 1,
            Some(1) => self.exits.error += 1,
            _ => self.exits.other += 1,
        }
        self.exits.timed_out += u64::from(entry.timed_out);
        if self.longest.as_ref().is_none_or(|(_, longest)| entry.duration_ms > *longest) {
            self.longest = Some((entry.command.clone().into_owned(), entry.duration_ms));
        }
        let label = label(&entry.command);
        if let Some(count) = self.labels.get_mut(&label) {
            *count += 1;
        // New names beyond the limit are in the totals only.
        } else if self.labels.len() < LABELS_MAX {
            self.labels.insert(label, 1);
        }
    }

    /// The names by frequency, most frequent first.
    pub fn frequencies(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<(&str, u64)> =
            self.labels.iter().map(|(label, count)| (label.as_str(), *count)).collect();
        // Then by name, so that equal counts have the same order in every run.
        all.sort_by(|one, two| two.1.cmp(&one.1).then(one.0.cmp(two.0)));
        all
    }

    /// The mean duration.
    pub fn average_ms(&self) -> u64 {
        self.duration_ms.checked_div(self.commands).unwrap_or(0)
    }
}
