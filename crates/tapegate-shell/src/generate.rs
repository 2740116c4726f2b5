//! Groups recorded commands into patterns that a policy can permit.
//!
//! A pattern never permits more than the class of what was recorded, and programs that run anything
//! they are given are never widened. For equal input the result is equal, byte by byte.

mod categories;
mod patterns;
mod programs;
mod render;

use std::collections::{BTreeMap, BTreeSet};

use crate::classifier::CommandClass;
use crate::command_use::{CommandUse, LineReport, read_line};
use categories::EffectCategory;
pub use patterns::quoted;
pub use programs::is_never_widened;
pub use render::{render_json, render_yaml};

/// How commands become patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenerationStrategy {
    /// Whole command lines.
    Exact,
    /// Programs and subcommands.
    Pattern,
    /// The same, grouped by what the commands do.
    Semantic,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandGroup {
    pub name: String,
    /// What the commands have in common.
    pub description: String,
    /// Its patterns, the most frequent first.
    pub commands: Vec<CommandPattern>,
}

/// A pattern, and how often it occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    /// The pattern, or a whole line.
    pub pattern: String,
    /// How often it occurred.
    pub frequency: u64,
    /// Whether it is a whole line.
    pub exact: bool,
    /// The most that its commands did; `None` for whole lines.
    pub class: Option<CommandClass>,
    /// Whether a person should be asked before such a command runs.
    pub review: bool,
    /// What the semantic strategy says about it: the risk, and why.
    pub meaning: Option<(&'static str, String)>,
}

/// The recorded commands, each with how often it occurred.
#[derive(Debug, Clone, Default)]
pub struct RecordedCommands {
    lines: BTreeMap<String, u64>,
}

impl RecordedCommands {
    /// Adds a command line.
    pub fn add(&mut self, line: &str) {
        // Sorted by text, so that the order of recordings does not change the result.
        *self.lines.entry(line.trim().to_owned()).or_default() += 1;
    }

    /// The lines with their frequencies, sorted by text.
    pub fn lines(&self) -> impl Iterator<Item = (&str, u64)> {
        self.lines.iter().map(|(line, count)| (line.as_str(), *count))
    }

    /// How many commands there are.
    pub fn count(&self) -> u64 {
        self.lines.values().sum()
    }

    /// The groups of the commands that occurred at least `frequency_min` times.
    pub fn groups(&self, strategy: GenerationStrategy, frequency_min: u64) -> Vec<CommandGroup> {
        let mut found: BTreeMap<(String, String), Vec<CommandPattern>> = BTreeMap::new();
        let mut add = |one: &CommandUse, pattern: CommandPattern| {
            let key = match strategy {
                GenerationStrategy::Semantic => EffectCategory::of(one).group(),
                _ => programs::group(one.program().unwrap_or_default()),
            };
            found.entry(key).or_default().push(pattern);
        };
        match strategy {
            GenerationStrategy::Exact => {
                for (line, frequency) in self.lines().filter(|(_, count)| *count >= frequency_min) {
                    let report = read_line(line);
                    if let Some(first) = main_use(&report) {
                        add(first, exact(line, frequency, &report));
                    }
                }
            }
            GenerationStrategy::Pattern | GenerationStrategy::Semantic => {
                for (one, pattern) in patterns::of(self.lines(), frequency_min) {
                    let meaning = (strategy == GenerationStrategy::Semantic)
                        .then(|| EffectCategory::of(&one).meaning(&pattern.arguments));
                    add(&one, CommandPattern { meaning, ..pattern.pattern });
                }
            }
        }
        sorted(found)
    }
}

/// The first command of a line that has an effect; otherwise the first one.
fn main_use(report: &LineReport) -> Option<&CommandUse> {
    let effective = report.uses.iter().find(|one| !one.is_inert());
    // `cd src && make` belongs to the group of `make`.
    effective.or(report.uses.first())
}

/// A line as its own pattern.
fn exact(line: &str, frequency: u64, report: &LineReport) -> CommandPattern {
    let review = report.uses.iter().any(|one| one.problem.is_some() || is_never_widened(one));
    CommandPattern {
        pattern: line.to_owned(),
        frequency,
        exact: true,
        class: None,
        review,
        meaning: None,
    }
}

/// The groups, the most frequent first, then by name.
fn sorted(found: BTreeMap<(String, String), Vec<CommandPattern>>) -> Vec<CommandGroup> {
    let total =
        |group: &CommandGroup| -> u64 { group.commands.iter().map(|one| one.frequency).sum() };
    let mut groups: Vec<CommandGroup> = found
        .into_iter()
        .map(|((name, description), mut commands)| {
            commands.sort_by(|one, two| {
                two.frequency.cmp(&one.frequency).then_with(|| one.pattern.cmp(&two.pattern))
            });
            CommandGroup { name, description, commands }
        })
        .collect();
    groups.sort_by(|one, two| total(two).cmp(&total(one)).then_with(|| one.name.cmp(&two.name)));
    groups
}

/// Marks the patterns of these programs for review.
pub fn review_programs(groups: &mut [CommandGroup], line: &str) {
    let report = read_line(line);
    let programs: BTreeSet<&str> = report.uses.iter().filter_map(CommandUse::program).collect();
    for command in groups.iter_mut().flat_map(|group| &mut group.commands) {
        let first = command.pattern.split_whitespace().next().unwrap_or_default();
        // A whole line may run several programs, which its first word does not show.
        command.review |= command.exact || programs.contains(first);
    }
}

#[cfg(test)]
mod tests;
