//! Patterns of a command's words: `git diff *`, `npm run test*`.
//!
//! A pattern has one glob for each word. A `*` that stands alone is any number of words, also none,
//! so `ls *` covers `ls` too. Text in quotes is literal.

use tapegate_shell::classifier::CommandClass;
use tapegate_shell::command_use::{CommandArgument, CommandUse};

use super::MatchCertainty;
use crate::glob::Glob;
use tapegate_core::lenient::folder::has_parent_step;

/// The maximum number of words of a pattern.
const WORDS_MAX: usize = 200;

/// A pattern of a program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPattern {
    text: String,
    words: Vec<PatternWord>,
    /// The most that commands may do which it permits, if that is limited.
    limit: Option<CommandClass>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternWord {
    /// Any number of words.
    Any,
    /// One word.
    One(Glob),
}

impl RunPattern {
    /// Parses a pattern; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = Vec::new();
        for (word, is_quoted) in split(text)? {
            let is_any = word == "*" && !is_quoted;
            words.push(if is_any {
                PatternWord::Any
            } else {
                PatternWord::One(Glob::parse(&word)?)
            });
        }
        match words.first() {
            None => return Err("a pattern of a command must not be empty".to_owned()),
            Some(PatternWord::Any) if words.len() > 1 => {
                return Err(format!("`{text}` begins with `*`; name the program"));
            }
            Some(_) => {}
        }
        if words.len() > WORDS_MAX {
            return Err(format!("a pattern may have at most {WORDS_MAX} words"));
        }
        Ok(Self { text: text.to_owned(), words, limit: None })
    }

    /// The same pattern, which permits only commands that do no more than this.
    pub(crate) fn limited(self, limit: Option<CommandClass>) -> Self {
        Self { limit, ..self }
    }

    /// The pattern as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches all words of a command exactly as they are written.
    pub(super) fn must_match(&self, one: &CommandUse) -> bool {
        let words = &one.words;
        if self.limit.is_some_and(|limit| one.effects.class() > limit) {
            return false;
        }
        let matches = |glob: &Glob, word: &CommandArgument| {
            let text =
                word.text.as_deref().filter(|_| !word.has_tilde || glob.text().starts_with('~'));
            // A path with `..` does not lead where its text suggests.
            text.is_some_and(|text| {
                let is_path = glob.text().contains('/') && !glob.text().contains("..");
                glob.matches(text) && !(is_path && has_parent_step(text))
            })
        };
        !words.is_empty() && walk(&self.words, words, &matches, false)
    }

    /// Whether it matches the words, or may match them when the command runs.
    pub(super) fn may_match(&self, words: &[CommandArgument]) -> MatchCertainty {
        let Some((program, rest)) = words.split_first() else { return MatchCertainty::No };
        // Whatever folder the program is in.
        let named = match (&program.text, self.words.first()) {
            (Some(text), Some(PatternWord::One(glob))) if !glob.text().contains('/') => {
                let name = text.rsplit('/').next().unwrap_or(text);
                CommandArgument::known(name)
            }
            _ => program.clone(),
        };
        let all: Vec<CommandArgument> = [named].into_iter().chain(rest.iter().cloned()).collect();
        let is_certain =
            |words: &[CommandArgument]| walk(&self.words, words, &matches_known, false);
        let without_options = without_global_options(&all);
        if is_certain(&all) || without_options.as_deref().is_some_and(is_certain) {
            return MatchCertainty::Yes;
        }
        if walk(&self.words, &all, &may_match_word, true) {
            return MatchCertainty::Maybe;
        }
        // Options may stand in front of a subcommand, and the tables do not know which take values.
        let starts_with_option = all.get(1).is_some_and(|first| first.prefix.starts_with('-'));
        let skips = |from: usize| {
            let words: Vec<CommandArgument> =
                all.iter().take(1).chain(all.iter().skip(from)).cloned().collect();
            walk(&self.words, &words, &may_match_word, true)
        };
        let subcommand = matches!(self.words.get(1), Some(PatternWord::One(glob)) if !glob.text().starts_with('-'));
        if starts_with_option && subcommand && (2..all.len().min(10)).any(skips) {
            return MatchCertainty::Maybe;
        }
        MatchCertainty::No
    }
}

fn matches_known(glob: &Glob, word: &CommandArgument) -> bool {
    word.text.as_deref().is_some_and(|text| glob.matches(text))
}

fn may_match_word(glob: &Glob, word: &CommandArgument) -> bool {
    word.text.is_none() || matches_known(glob, word)
}

/// Options of `git` that stand in front of its subcommand and take a value.
const GIT_VALUED: [&str; 5] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace"];

/// The words without the options between `git` and its subcommand.
fn without_global_options(words: &[CommandArgument]) -> Option<Vec<CommandArgument>> {
    let (program, rest) = words.split_first().filter(|(program, _)| program.is("git"))?;
    let mut at = 0;
    while let Some(text) = rest.get(at).and_then(|word| word.text.as_deref()) {
        match text {
            text if GIT_VALUED.contains(&text) => at += 2,
            text if text.starts_with('-') => at += 1,
            _ => break,
        }
    }
    let rest = rest.get(at..).filter(|_| at > 0)?;
    Some([program].into_iter().chain(rest).cloned().collect())
}

/// Whether a pattern covers words. With `splits`, a word whose value is unknown may become any
/// number of words.
fn walk(
    pattern: &[PatternWord],
    words: &[CommandArgument],
    matches: &dyn Fn(&Glob, &CommandArgument) -> bool,
    splits: bool,
) -> bool {
    // Row by row: `reached[i]` is whether the first `i` pattern words cover the words so far.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    skip_any(pattern, &mut reached);
    for word in words {
        let may_be_many = splits && word.text.is_none();
        let mut next = vec![false; pattern.len() + 1];
        for (index, one) in pattern.iter().enumerate() {
            if !reached[index] {
                continue;
            }
            match one {
                PatternWord::Any => next[index] = true,
                PatternWord::One(glob) => next[index + 1] |= matches(glob, word),
            }
        }
        if may_be_many {
            // It becomes no word, or the words of any part of the rest of the pattern.
            let first = reached.iter().position(|reached| *reached);
            if let Some(first) = first {
                next[first..].fill(true);
            }
        }
        skip_any(pattern, &mut next);
        reached = next;
    }
    reached[pattern.len()]
}

/// A `*` also covers no word.
fn skip_any(pattern: &[PatternWord], reached: &mut [bool]) {
    for (index, one) in pattern.iter().enumerate() {
        if reached[index] && *one == PatternWord::Any {
            reached[index + 1] = true;
        }
    }
}

/// Splits a pattern into words, each with whether it has quotes. Quoted wildcards become literal.
fn split(text: &str) -> Result<Vec<(String, bool)>, String> {
    let mut words: Vec<(String, bool)> = Vec::new();
    let mut word: Option<(String, bool)> = None;
    let mut quote = None;
    for letter in text.chars() {
        match quote {
            Some(end) if letter == end => quote = None,
            Some(_) => {
                let (word, _) = word.get_or_insert_default();
                match letter {
                    '*' | '?' | '[' => word.extend(['[', letter, ']']),
                    letter => word.push(letter),
                }
            }
            None if letter == '\'' || letter == '"' => {
                quote = Some(letter);
                word.get_or_insert_default().1 = true;
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().0.push(letter),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote in `{text}` is not closed"));
    }
    words.extend(word);
    Ok(words)
}
