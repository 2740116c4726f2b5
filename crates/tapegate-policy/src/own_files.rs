//! The built-in rule: calls whose arguments name Tapegate's own files are refused.
//!
//! An agent that can edit its policy, its lock file or the state of Tapegate governs itself. Names
//! are found by any spelling that a server may resolve: relative, with `..`, `~` or `file://`,
//! percent-encoded, escaped, in another case, and inside of a command or the head of a patch. Prose
//! and the content of files that merely mention a name pass.

mod marks;
mod paths;
mod prose;
mod roots;
mod spelling;
mod strings;

use crate::gated::Gated;
use paths::{around, is_between, known_name, may_lead_to, out_of_proc, steps};
use prose::{is_plain_query, is_prose, is_web_address};
use spelling::any_reading;
use strings::{TextKind, each_string};

/// What the rule goes by in logs and refusals.
pub const OWN_FILES: &str = "tapegate:own-files";

/// The files that are Tapegate's own wherever they lie.
const NAMES: [&str; 3] = ["tapegate.yaml", "thoughtgate.yaml", "tapegate.lock"];
/// The folder of a project's state.
const STATE_FOLDER: &str = ".tapegate";
/// Variables that lead to the user's folders.
const VARIABLES: [&str; 3] = ["tapegate_home", "xdg_state_home", "xdg_config_home"];
/// A text of several lines that is longer is taken for content, not for a path or a command.
const SHORT_BYTES: usize = 512;
/// How many literal letters a pattern of file names must have to be about one name in particular: at
/// its start, or in all. `*.yaml` and `*gate*` are about many files, `tape*` about ours.
const PREFIX_MIN: usize = 4;
const LITERALS_MIN: usize = 6;
/// More wildcards are not tried: each multiplies the work.
const STARS_MAX: usize = 4;

/// Which files are ours, and whether calls that name them are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFiles {
    /// Whether such calls are refused.
    pub refuse: bool,
    /// More files and folders of ours, as absolute paths: the policy's own, and the user's folders if
    /// they are not in their usual places.
    paths: Vec<Vec<String>>,
    /// The policy's own files, as they are named from its folder.
    beside: Vec<Vec<String>>,
    /// The steps of those paths that a call must have to name them, unless the marks of our names find
    /// it anyway. Found once, since every call is held against them.
    odd_steps: Vec<String>,
}

impl Default for OwnFiles {
    fn default() -> Self {
        Self { refuse: true, paths: Vec::new(), beside: Vec::new(), odd_steps: Vec::new() }
    }
}

impl OwnFiles {
    /// Adds a file or folder. A path that is not absolute is left out: what it leads to depends on
    /// where a server runs.
    pub fn add(&mut self, path: &str) {
        let steps = owned_steps(path);
        if !path.starts_with('/') || steps.is_empty() || self.paths.contains(&steps) {
            return;
        }
        // The last step, and the one before it of a folder of the user's.
        self.note_odd(steps.last());
        self.note_odd(around(&steps).and_then(<[String]>::last));
        self.paths.push(steps);
    }

    /// Adds a file of the policy by its path from the policy's folder, where servers mostly run.
    pub(crate) fn add_beside(&mut self, path: &str) {
        let steps = owned_steps(path);
        if !path.starts_with('/') && !steps.is_empty() && !self.beside.contains(&steps) {
            self.note_odd(steps.last());
            self.beside.push(steps);
        }
    }

    fn note_odd(&mut self, step: Option<&String>) {
        let odd = step.filter(|step| !marks::found(step.as_bytes()));
        self.odd_steps.extend(odd.filter(|step| !self.odd_steps.contains(step)).cloned());
    }

    /// Whether arguments may name one of the files. Cheap, and wrong only by being careful: most calls
    /// are told apart here.
    pub(crate) fn may_name(&self, arguments: Option<&[u8]>) -> bool {
        let Some(arguments) = arguments.filter(|_| self.refuse) else { return false };
        // An escape may hide any letter.
        memchr::memchr2(b'%', b'\\', arguments).is_some()
            || !arguments.is_ascii()
            || self.is_marked(arguments)
    }

    /// Whether a text has letters that one of the names has.
    fn is_marked(&self, text: &[u8]) -> bool {
        marks::found(text) || self.odd_steps.iter().any(|step| has_word(text, step.as_bytes()))
    }

    /// The name by which the URI of a call names one of the files, if it does. The name of a tool or a
    /// prompt names no file.
    pub(crate) fn named_by(&self, gated: Gated, name: &str) -> Option<String> {
        let by_uri = !matches!(gated, Gated::Call | Gated::Prompt);
        (self.refuse && by_uri).then(|| self.named_in(name, TextKind::Other)).flatten()
    }

    /// The name by which any text of these params names one of the files.
    pub(crate) fn named_in_any(&self, params: Option<&[u8]>) -> Option<String> {
        let arguments = params.filter(|_| self.may_name(params))?;
        let mut found = None;
        each_string(arguments, &mut |text, kind| {
            if found.is_none() {
                found = self.named_in(text, kind);
            }
        });
        found
    }

    fn named_in(&self, text: &str, kind: TextKind) -> Option<String> {
        // Blanks around a path are no part of it to many tools.
        let text = text.trim();
        match kind {
            TextKind::Content => None,
            // One word may be the name that a file is to have.
            TextKind::Told if text.contains(char::is_whitespace) => None,
            TextKind::Query if is_plain_query(text) => None,
            TextKind::Url if is_web_address(text) => None,
            TextKind::Text => {
                let mut lines = text.lines().filter(|line| !is_prose(line));
                lines.find_map(|line| self.named_by_any(line)).or_else(|| self.named_by_whole(text))
            }
            TextKind::Other if is_content(text) => {
                let mut heads =
                    text.lines().map(str::trim_start).filter(|line| is_patch_head(line));
                heads.find_map(|line| self.named_by_any(line)).or_else(|| self.named_by_whole(text))
            }
            _ => self.named_by_any(text),
        }
    }

    /// Looks for names anywhere in a text.
    fn named_by_any(&self, text: &str) -> Option<String> {
        any_reading(text, &|text| self.may_be_marked(text), &mut |reading| {
            self.named_by_reading(reading)
        })
    }

    /// Looks at a text as one path, whatever letters it has.
    fn named_by_whole(&self, text: &str) -> Option<String> {
        any_reading(text, &|text| self.may_be_marked(text), &mut |reading| {
            self.named_by_path(reading)
        })
    }

    /// Whether a text may have one of the names in lower case.
    fn may_be_marked(&self, text: &str) -> bool {
        let has_other_letters = || self.odd_steps.iter().any(|step| !step.is_ascii());
        self.is_marked(text.as_bytes()) || !text.is_ascii() && has_other_letters()
    }

    /// Looks at one reading of a text, in lower case.
    fn named_by_reading(&self, text: &str) -> Option<String> {
        let variable = VARIABLES.iter().find(|name| text.contains(**name));
        if let Some(variable) = variable
            && (text.contains("/tapegate") || *variable == VARIABLES[0])
        {
            return Some(format!("${}", variable.to_uppercase()));
        }
        let text = text.replace("${home}", "$home");
        let tokens = |split: &mut dyn Iterator<Item = &str>| {
            let mut marked = split.filter(|token| self.is_marked(token.as_bytes()));
            marked.find_map(|token| self.named_by_path(token))
        };
        // A file name may have any letter, so the whole text and what is quoted in it may be one path.
        tokens(&mut text.split(is_between))
            .or_else(|| tokens(&mut text.split(['\'', '"', '`'])))
            .or_else(|| tokens(&mut [text.as_str()].into_iter()))
    }

    fn named_by_path(&self, token: &str) -> Option<String> {
        let token = out_of_proc(token.trim_end_matches(['.', '!', '~']));
        let without_query = || {
            let end = token.find(['?', '#'])?;
            self.named_by_steps(&token[..end])
        };
        self.named_by_steps(token).or_else(without_query)
    }

    fn named_by_steps(&self, path: &str) -> Option<String> {
        let written: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let walked = steps(path);
        if let Some(name) = known_name(&written).or_else(|| known_name(&walked)) {
            return Some(name);
        }
        let from_home = path.starts_with('~') || path.starts_with("$home");
        let rest = if from_home { walked.get(1..).unwrap_or_default() } else { &walked };
        if path.starts_with('/') {
            let mut all = self.paths.iter();
            let hit = |own: &&Vec<String>| {
                starts_with(rest, own) || around(own).is_some_and(|around| around == rest)
            };
            return all.find(hit).map(|own| format!("/{}", own.join("/")));
        }
        let leads_around = |own: &[String]| {
            from_home
                && !rest.is_empty()
                && around(own).is_some_and(|around| ends_with(around, rest))
        };
        let hit = |own: &&Vec<String>| may_lead_to(rest, own, from_home) || leads_around(own);
        if let Some(own) = self.paths.iter().find(hit) {
            return Some(format!("/{}", own.join("/")));
        }
        let beside = self.beside.iter().find(|own| !from_home && starts_with(rest, own));
        beside.map(|own| own.join("/"))
    }
}

fn owned_steps(path: &str) -> Vec<String> {
    steps(&path.to_lowercase()).into_iter().map(str::to_owned).collect()
}

fn starts_with(steps: &[&str], start: &[String]) -> bool {
    steps.get(..start.len()).is_some_and(|steps| steps == start)
}

fn ends_with(steps: &[String], end: &[&str]) -> bool {
    steps.len() >= end.len() && steps[steps.len() - end.len()..] == *end
}

/// Whether a text of several lines is content rather than a path or a command.
fn is_content(text: &str) -> bool {
    text.len() > SHORT_BYTES && text.contains('\n') && !text.starts_with("#!")
}

/// Whether a line of a longer text names the file that a patch is about.
fn is_patch_head(line: &str) -> bool {
    const HEADS: [&str; 9] =
        ["---", "+++", "***", "diff", "rename", "copy", "Index:", "deleted file", "new file"];
    let is_head =
        |head: &&str| line.strip_prefix(*head).is_some_and(|rest| rest.starts_with([' ', '\t']));
    HEADS.iter().any(is_head)
}

/// Whether a text has a word, in any case of its ASCII letters.
fn has_word(text: &[u8], word: &[u8]) -> bool {
    let Some((&first, _)) = word.split_first() else { return false };
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    memchr::memchr2_iter(lower, upper, text)
        .any(|at| text.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests;
