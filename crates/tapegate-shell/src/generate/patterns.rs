//! Commands that differ only in their arguments.

use std::collections::BTreeMap;

use super::CommandPattern;
use super::categories::argument_kind;
use super::programs::{is_never_widened, subcommand_depth};
use crate::classifier::{CommandClass, CommandEffects};
use crate::command_use::{CommandArgument, CommandUse, read_line};

/// A pattern, and the kinds of arguments that were seen.
pub(super) struct SeenPattern {
    pub(super) pattern: CommandPattern,
    pub(super) arguments: Vec<&'static str>,
}

/// The commands with one beginning.
struct CommandCluster {
    one: CommandUse,
    frequency: u64,
    effects: CommandEffects,
    /// The text that all of them have, unless they differ.
    literal: Option<String>,
    arguments: Vec<&'static str>,
}

/// The patterns of the commands in these lines, with a command of each.
pub(super) fn of<'l>(
    lines: impl Iterator<Item = (&'l str, u64)>,
    frequency_min: u64,
) -> Vec<(CommandUse, SeenPattern)> {
    let mut clusters: BTreeMap<String, CommandCluster> = BTreeMap::new();
    for (line, count) in lines {
        for one in read_line(line).uses {
            if one.is_inert() || one.problem.is_some() || one.words.is_empty() {
                continue;
            }
            add(&mut clusters, one, count);
        }
    }
    let frequent = clusters.into_iter().filter(|(_, cluster)| cluster.frequency >= frequency_min);
    frequent.map(|(prefix, cluster)| cluster.finish(prefix)).collect()
}

fn add(clusters: &mut BTreeMap<String, CommandCluster>, one: CommandUse, count: u64) {
    let literal = literal(&one.words);
    // A pattern with a star would permit anything that such a program is given.
    let widens = !is_never_widened(&one) && one.effects.class() != CommandClass::Unknown;
    let key = if widens { prefix(&one.words) } else { literal.clone() };
    // A word that is only known when the line runs cannot be part of a pattern.
    let Some(key) = key else { return };
    let effects = one.effects;
    let kinds: Vec<&'static str> =
        one.arguments().iter().skip(key.split(' ').count() - 1).map(argument_kind).collect();
    let cluster = clusters.entry(key).or_insert_with(|| CommandCluster {
        one,
        frequency: 0,
        effects,
        literal: literal.clone(),
        arguments: Vec::new(),
    });
    cluster.frequency += count;
    // The class of the pattern must permit each of the recorded commands.
    cluster.effects = cluster.effects | effects;
    if cluster.literal != literal {
        cluster.literal = None;
    }
    for kind in kinds {
        if !cluster.arguments.contains(&kind) {
            cluster.arguments.push(kind);
        }
    }
    cluster.arguments.sort_unstable();
}

impl CommandCluster {
    fn finish(self, prefix: String) -> (CommandUse, SeenPattern) {
        let review = is_never_widened(&self.one);
        let pattern = CommandPattern {
            pattern: self.literal.unwrap_or_else(|| format!("{prefix} *")),
            frequency: self.frequency,
            exact: false,
            class: Some(self.effects.class()),
            review,
            meaning: None,
        };
        (self.one, SeenPattern { pattern, arguments: self.arguments })
    }
}

/// All words as a pattern, if they are known.
fn literal(words: &[CommandArgument]) -> Option<String> {
    let texts: Option<Vec<String>> =
        words.iter().map(|word| word.text.as_deref().map(quoted)).collect();
    texts.map(|texts| texts.join(" "))
}

/// The program and its subcommands as a pattern, with the options between them.
fn prefix(words: &[CommandArgument]) -> Option<String> {
    let program = words.first()?.text.as_deref()?;
    let mut depth = subcommand_depth(words);
    let mut texts = vec![quoted(program)];
    let mut rest = words.get(1..)?.iter();
    while depth > 0 {
        // A bare `git` is not widened: its subcommand says what it does.
        let Some(word) = rest.next() else { return Some(texts.join(" ")) };
        let text = word.text.as_deref()?;
        texts.push(quoted(text));
        // Their value is the next word, which must not count as the subcommand.
        if matches!(text, "-C" | "--prefix" | "--manifest-path") {
            texts.push(quoted(rest.next()?.text.as_deref()?));
        } else if !text.starts_with(['-', '+']) {
            depth -= 1;
        }
    }
    Some(texts.join(" "))
}

/// A word as a pattern reads it: in quotes if any of it would mean something else.
pub fn quoted(text: &str) -> String {
    let is_plain =
        |letter: char| letter.is_alphanumeric() || "-_./:=+@%,~^!{}#&;|<>()$\\`".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    match text.contains('\'') {
        false => format!("'{text}'"),
        true => {
            // Each quote in the quotes of the other kind.
            let parts: Vec<String> = text.split('\'').map(|part| format!("'{part}'")).collect();
            parts.join("\"'\"")
        }
    }
}
