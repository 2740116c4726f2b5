//! The built-in rule: calls whose arguments name Tapegate's own files are refused.
//!
//! An agent that can edit its policy, its lock file or the state of Tapegate governs itself. Names
//! are found by any spelling that a server may resolve: relative, with `..`, `~` or `file://`,
//! percent-encoded, escaped, in another case, and inside of a command or the head of a patch. Prose
//! and the content of files that merely mention a name pass.

mod marks;
mod spelling;
mod strings;

use crate::gated::Gated;
use spelling::readings;
use strings::{TextKind, each_string};

/// What the rule goes by in logs and refusals.
pub const OWN_FILES: &str = "tapegate:own-files";

/// The files that are Tapegate's own wherever they lie.
const NAMES: [&str; 3] = ["tapegate.yaml", "thoughtgate.yaml", "tapegate.lock"];
/// The folder of a project's state.
const STATE_FOLDER: &str = ".tapegate";
/// The user's folders, as the last steps of a path.
const USER_FOLDERS: [&[&str]; 2] = [&[".local", "state", "tapegate"], &[".config", "tapegate"]];
/// What lies around the user's state: whoever moves it away moves the keys away.
const AROUND_STATE: [&[&str]; 2] = [&[".local", "state"], &[".local"]];
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
    /// The steps of those paths that a call must have to name them, unless the marks of our names find
    /// it anyway. Found once, since every call is held against them.
    odd_steps: Vec<String>,
}

impl Default for OwnFiles {
    fn default() -> Self {
        Self { refuse: true, paths: Vec::new(), odd_steps: Vec::new() }
    }
}

impl OwnFiles {
    /// Adds a file or folder. A path that is not absolute is left out: what it leads to depends on
    /// where a server runs.
    pub fn add(&mut self, path: &str) {
        let steps = steps(&path.to_lowercase());
        if !path.starts_with('/') || steps.is_empty() || self.paths.contains(&steps) {
            return;
        }
        // The last step, and the one before it of a folder of the user's.
        for step in [steps.last(), around(&steps).and_then(<[String]>::last)].into_iter().flatten()
        {
            if !marks::found(step.as_bytes()) && !self.odd_steps.contains(step) {
                self.odd_steps.push(step.clone());
            }
        }
        self.paths.push(steps);
    }

    /// Whether arguments may name one of the files. Cheap, and wrong only by being careful: most calls
    /// are told apart here.
    pub(crate) fn may_name(&self, arguments: Option<&[u8]>) -> bool {
        let Some(arguments) = arguments.filter(|_| self.refuse) else { return false };
        // An escape may hide any letter.
        memchr::memchr2(b'%', b'\\', arguments).is_some()
            || !arguments.is_ascii()
            || marks::found(arguments)
            || self.odd_steps.iter().any(|step| has_word(arguments, step.as_bytes()))
    }

    /// The name by which a call names one of the files, if it does.
    pub(crate) fn named(
        &self,
        gated: Gated,
        name: &str,
        arguments: Option<&[u8]>,
    ) -> Option<String> {
        if !self.refuse {
            return None;
        }
        let by_uri = !matches!(gated, Gated::Call | Gated::Prompt);
        if by_uri && let Some(found) = self.named_in(name, TextKind::Other) {
            return Some(found);
        }
        self.named_in_any(arguments)
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
        let whole = match kind {
            TextKind::Content => return None,
            // One word may be the name that a file is to have.
            TextKind::Told if text.contains(char::is_whitespace) => return None,
            TextKind::Told => true,
            TextKind::Command => true,
            TextKind::Other => {
                text.len() <= SHORT_BYTES || !text.contains('\n') || text.starts_with("#!")
            }
        };
        if whole {
            return self.named_by_any(text);
        }
        let heads = text.lines().map(str::trim_start).filter(|line| is_patch_head(line));
        heads.into_iter().find_map(|line| self.named_by_any(line))
    }

    fn named_by_any(&self, text: &str) -> Option<String> {
        readings(text).iter().find_map(|reading| self.named_by(reading))
    }

    /// Looks at one reading of a text, in lower case.
    fn named_by(&self, text: &str) -> Option<String> {
        let variable = VARIABLES.iter().find(|name| text.contains(**name));
        if let Some(variable) = variable
            && (text.contains("/tapegate") || *variable == VARIABLES[0])
        {
            return Some(format!("${}", variable.to_uppercase()));
        }
        text.split(is_between).find_map(|token| self.named_by_path(token))
    }

    fn named_by_path(&self, token: &str) -> Option<String> {
        let token = out_of_proc(token.trim_end_matches(['.', '!', '~']));
        let written: Vec<&str> = token.split('/').filter(|step| !step.is_empty()).collect();
        let walked = steps(token);
        for steps in [&written, &walked.iter().map(String::as_str).collect::<Vec<_>>()] {
            let found = steps.iter().find(|step| {
                let is_ours = |name: &&str| **step == *name || is_pattern_of(step, name);
                **step == STATE_FOLDER
                    || is_pattern_of(step, STATE_FOLDER)
                    || NAMES.iter().any(is_ours)
            });
            if let Some(step) = found {
                return Some((*step).to_owned());
            }
            let in_user_folder =
                |folder: &&&[&str]| steps.windows(folder.len()).any(|window| window == **folder);
            if let Some(folder) = USER_FOLDERS.iter().find(in_user_folder) {
                return Some(folder.join("/"));
            }
            if let Some(folder) = AROUND_STATE.iter().find(|folder| steps.ends_with(folder)) {
                return Some(folder.join("/"));
            }
        }
        let from_home = token.starts_with('~') || token.starts_with("$home");
        let is_absolute = token.starts_with('/');
        let rest = if from_home { walked.get(1..).unwrap_or_default() } else { &walked };
        let hit = |own: &&Vec<String>| match is_absolute {
            true => rest.starts_with(own) || around(own).is_some_and(|around| around == rest),
            false => !rest.is_empty() && (own.ends_with(rest) && (from_home || rest.len() > 1)),
        };
        self.paths.iter().find(hit).map(|own| format!("/{}", own.join("/")))
    }
}

/// The folder that holds a folder of the user's, unless it holds the settings of everybody.
fn around(own: &[String]) -> Option<&[String]> {
    let (last, around) = own.split_last()?;
    let is_shared = around.last().is_none_or(|step| step == ".config");
    (last == "tapegate" && !is_shared).then_some(around)
}

/// A path without the detour by `/proc`, where the root and the folder of every process are links.
fn out_of_proc(path: &str) -> &str {
    let by_proc = path.strip_prefix("/proc/").and_then(|rest| rest.split_once('/'));
    let Some((_, rest)) = by_proc else { return path };
    let cut = |link: &str| rest.strip_prefix(link).filter(|rest| rest.starts_with('/'));
    match (cut("root"), cut("cwd")) {
        (Some(rest), _) => rest,
        (_, Some(rest)) => rest.trim_start_matches('/'),
        _ => path,
    }
}

/// The steps of a path, with `.` and `..` resolved as far as they can be.
fn steps(path: &str) -> Vec<String> {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            _ => steps.push(step),
        }
    }
    steps.into_iter().map(str::to_owned).collect()
}

/// Whether a letter stands between paths rather than in one.
fn is_between(letter: char) -> bool {
    letter.is_whitespace()
        || letter.is_control()
        || matches!(
            letter,
            '\'' | '"'
                | '`'
                | ';'
                | '|'
                | '&'
                | '<'
                | '>'
                | '('
                | ')'
                | '{'
                | '}'
                | '='
                | ','
                | ':'
                | '@'
                | '#'
                | '«'
                | '»'
                | '“'
                | '”'
        )
}

/// Whether a pattern of file names is about this name in particular.
fn is_pattern_of(pattern: &str, name: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return false;
    }
    let stem = pattern.trim_end_matches(".yaml").trim_end_matches(".lock").trim_end_matches(".y*");
    let literals = stem.bytes().filter(u8::is_ascii_alphanumeric).count();
    let prefix = pattern.find(['*', '?', '[']).unwrap_or_default();
    let few = pattern.bytes().filter(|byte| *byte == b'*').count() <= STARS_MAX;
    (literals >= LITERALS_MIN || prefix >= PREFIX_MIN)
        && few
        && wildcard(pattern.as_bytes(), name.as_bytes())
}

/// Whether a shell's pattern matches. A set in brackets counts as any letter.
fn wildcard(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|at| wildcard(rest, &name[at..])),
        Some((b'[', rest)) => {
            let end = rest.iter().position(|byte| *byte == b']').map_or(rest.len(), |at| at + 1);
            !name.is_empty() && wildcard(&rest[end..], &name[1..])
        }
        Some((b'?', rest)) => !name.is_empty() && wildcard(rest, &name[1..]),
        Some((byte, rest)) => name.first() == Some(byte) && wildcard(rest, &name[1..]),
    }
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
