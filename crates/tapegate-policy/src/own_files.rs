//! The built-in rule that refuses calls whose arguments name Tapegate's own files.
//!
//! An agent that can edit its policy, its lock file or Tapegate's state governs itself. Names are
//! found in every spelling that a server may resolve: relative, with `..`, `~` or `file://`,
//! percent-encoded, escaped, in another case, inside a command or in a patch header. Prose and file
//! contents that merely mention a name pass.

mod entities;
mod listing;
mod mentions;
mod paths;
mod prefilter;
mod prose;
mod roots;
mod spelling;
mod strings;

use crate::gated_requests::GatedMethod;
use entities::is_bare;
use listing::is_listing;
use paths::{is_between, known_name, may_lead_to, parent_folder, steps, without_proc_prefix};
use prose::{is_plain_query, is_prose, is_web_address};
use spelling::any_reading;
use strings::{TextKind, each_string};

/// The rule's name in logs and refusals.
pub const OWN_FILES: &str = "tapegate:own-files";

/// Files that are Tapegate's own in any folder.
const NAMES: [&str; 3] = ["tapegate.yaml", "thoughtgate.yaml", "tapegate.lock"];
/// The folders of a project's state, and of the recordings and settings of the bash tool.
const STATE_FOLDERS: [&str; 2] = [".tapegate", ".cuff"];
/// The settings of the bash tool, in the folder of the policy.
const BASH_SETTINGS: [&str; 2] = ["settings.yml", "settings.yaml"];
/// Environment variables that point to the user's folders.
const VARIABLES: [&str; 3] = ["tapegate_home", "xdg_state_home", "xdg_config_home"];
/// A longer text of several lines counts as content, not as a path or a command.
const SHORT_BYTES: usize = 512;
/// How many literal letters a wildcard pattern needs to count as naming one file: at its start, or
/// in total. `*.yaml` and `*gate*` match many files, `tape*` matches ours.
const PREFIX_MIN: usize = 4;
const LITERALS_MIN: usize = 6;
/// Patterns with more wildcards are not expanded: each one multiplies the work.
const STARS_MAX: usize = 4;

/// Which files are Tapegate's own, and whether calls that name them are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFiles {
    /// Whether such calls are refused.
    pub refuse: bool,
    /// Further files and folders of ours, as absolute paths: the policy's own, and the user's
    /// folders if they are not in the usual places.
    paths: Vec<Vec<String>>,
    /// The policy's own files, relative to its folder.
    beside: Vec<Vec<String>>,
    /// Path steps that a call must contain to name one of those files, except steps that the marks
    /// of our names cover. Collected once, since every call is compared with them.
    odd_steps: Vec<String>,
}

impl Default for OwnFiles {
    fn default() -> Self {
        Self { refuse: true, paths: Vec::new(), beside: Vec::new(), odd_steps: Vec::new() }
    }
}

impl OwnFiles {
    /// Adds a file or folder. A path that is not absolute is ignored: where it leads depends on the
    /// server's working directory.
    pub fn add(&mut self, path: &str) {
        let steps = owned_steps(path);
        if !path.starts_with('/') || steps.is_empty() || self.paths.contains(&steps) {
            return;
        }
        // The last step, and for a folder of the user's, the one before it.
        self.note_unusual_step(steps.last());
        self.note_unusual_step(parent_folder(&steps).and_then(<[String]>::last));
        self.paths.push(steps);
    }

    /// Adds a file relative to the folder where the server runs, such as the policy's own.
    pub fn add_relative(&mut self, path: &str) {
        let steps = owned_steps(path);
        if !path.starts_with('/') && !steps.is_empty() && !self.beside.contains(&steps) {
            self.note_unusual_step(steps.last());
            self.beside.push(steps);
        }
    }

    /// Adds the settings of the bash tool in the policy's folder: what is in them decides which
    /// shell reads a permitted line, and whether it is recorded.
    pub(crate) fn add_bash_settings(&mut self, folder: &str) {
        for name in BASH_SETTINGS {
            self.add_relative(name);
            self.add(&format!("{folder}/{name}"));
        }
    }

    fn note_unusual_step(&mut self, step: Option<&String>) {
        // Steps with a mark are found by the one search that every call gets anyway.
        let odd = step.filter(|step| !prefilter::contains_mark(step.as_bytes()));
        self.odd_steps.extend(odd.filter(|step| !self.odd_steps.contains(step)).cloned());
    }

    /// Whether arguments may name one of the files. A cheap filter without false negatives, which
    /// settles most calls.
    pub(crate) fn may_name(&self, arguments: Option<&[u8]>) -> bool {
        let Some(arguments) = arguments.filter(|_| self.refuse) else { return false };
        // An escape may hide any letter.
        memchr::memchr2(b'%', b'\\', arguments).is_some()
            || !arguments.is_ascii()
            || self.is_marked(arguments)
    }

    /// Whether a text contains a mark of one of the names.
    fn is_marked(&self, text: &[u8]) -> bool {
        prefilter::contains_mark(text)
            || self.odd_steps.iter().any(|step| has_word(text, step.as_bytes()))
    }

    /// The name by which the URI of a call names one of the files, if it does. Names of tools and
    /// prompts never do.
    pub(crate) fn file_named_by_uri(&self, gated: GatedMethod, name: &str) -> Option<String> {
        let by_uri = !matches!(gated, GatedMethod::Call | GatedMethod::Prompt);
        (self.refuse && by_uri).then(|| self.file_named_in(name, TextKind::Other)).flatten()
    }

    /// The name by which any string in these params names one of the files.
    pub(crate) fn file_named_in_params(&self, params: Option<&[u8]>) -> Option<String> {
        let arguments = params.filter(|_| self.may_name(params))?;
        let mut found = None;
        each_string(arguments, &mut |text, kind| {
            if found.is_none() {
                found = self.file_named_in(text, kind);
            }
        });
        found
    }

    fn file_named_in(&self, text: &str, kind: TextKind) -> Option<String> {
        // Many tools ignore blanks around a path.
        let text = text.trim();
        match kind {
            TextKind::Content => None,
            // A single word may be the name of a file to create.
            TextKind::Told if text.contains(char::is_whitespace) => None,
            TextKind::Query if is_plain_query(text) => None,
            TextKind::Url if is_web_address(text) => None,
            TextKind::EntityName if is_bare(text) => None,
            // Folders around ours may be listed. With one more step, only a path inside ours
            // matches.
            TextKind::Shell if is_listing(text) => {
                let mut words = text.split_whitespace();
                words.find_map(|word| self.file_named_anywhere_in(&format!("{word}/-")))
            }
            TextKind::Text => {
                let mut lines = text.lines().filter(|line| !is_prose(line));
                lines
                    .find_map(|line| self.file_named_anywhere_in(line))
                    .or_else(|| self.file_named_by_path_text(text))
            }
            // A patch names its files in its headers, and applying it changes them.
            TextKind::Other if is_content(text) => {
                let mut heads =
                    text.lines().map(str::trim_start).filter(|line| is_patch_head(line));
                heads
                    .find_map(|line| self.file_named_anywhere_in(line))
                    .or_else(|| self.file_named_by_path_text(text))
            }
            _ => self.file_named_anywhere_in(text),
        }
    }

    /// Searches a text for names anywhere in it.
    fn file_named_anywhere_in(&self, text: &str) -> Option<String> {
        any_reading(text, &|text| self.may_be_marked(text), &mut |reading| {
            self.file_named_by_reading(reading)
        })
    }

    /// Checks a text as a single path, whatever characters it contains.
    fn file_named_by_path_text(&self, text: &str) -> Option<String> {
        any_reading(text, &|text| self.may_be_marked(text), &mut |reading| {
            self.file_named_by_path(reading)
        })
    }

    /// Whether a text may contain one of the names in lower case.
    fn may_be_marked(&self, text: &str) -> bool {
        let has_other_letters = || self.odd_steps.iter().any(|step| !step.is_ascii());
        self.is_marked(text.as_bytes()) || !text.is_ascii() && has_other_letters()
    }

    /// Checks one reading of a text, in lower case.
    fn file_named_by_reading(&self, text: &str) -> Option<String> {
        let variable = VARIABLES.iter().find(|name| text.contains(**name));
        if let Some(variable) = variable
            // The XDG folders are those of every program; only ours below them count.
            && (text.contains("/tapegate") || *variable == VARIABLES[0])
        {
            return Some(format!("${}", variable.to_uppercase()));
        }
        // `{` separates paths below, so the braces would tear the variable from its path.
        let text = text.replace("${home}", "$home");
        let tokens = |split: &mut dyn Iterator<Item = &str>| {
            let mut marked = split.filter(|token| self.is_marked(token.as_bytes()));
            marked.find_map(|token| self.file_named_by_path(token))
        };
        // A file name may contain any character, so the whole text and each quoted part may be one
        // path.
        tokens(&mut text.split(is_between))
            .or_else(|| tokens(&mut text.split(['\'', '"', '`'])))
            .or_else(|| tokens(&mut [text.as_str()].into_iter()))
    }

    fn file_named_by_path(&self, token: &str) -> Option<String> {
        let token = without_proc_prefix(token.trim_end_matches(['.', '!', '~']));
        // A server that opens the path of a URI drops both; another takes them for part of the
        // name.
        let without_query = || {
            let end = token.find(['?', '#'])?;
            self.file_named_by_steps(&token[..end])
        };
        self.file_named_by_steps(token).or_else(without_query)
    }

    fn file_named_by_steps(&self, path: &str) -> Option<String> {
        // As written too: what `..` leaves may be a link into another folder.
        let written: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let walked = steps(path);
        if let Some(name) = known_name(&written).or_else(|| known_name(&walked)) {
            return Some(name);
        }
        // The home folder is not known here, so the steps below it are compared with the ends of
        // our paths.
        let from_home = path.starts_with('~') || path.starts_with("$home");
        let rest = if from_home { walked.get(1..).unwrap_or_default() } else { &walked };
        if path.starts_with('/') {
            let mut all = self.paths.iter();
            let hit = |own: &&Vec<String>| {
                // Moving the folder around ours would move the keys away too.
                starts_with(rest, own) || parent_folder(own).is_some_and(|around| around == rest)
            };
            return all.find(hit).map(|own| format!("/{}", own.join("/")));
        }
        let leads_around = |own: &[String]| {
            from_home
                && !rest.is_empty()
                && parent_folder(own).is_some_and(|around| ends_with(around, rest))
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

/// Whether a multi-line text is content rather than a path or a command.
fn is_content(text: &str) -> bool {
    // A script is run as a whole, however long it is.
    text.len() > SHORT_BYTES && text.contains('\n') && !text.starts_with("#!")
}

/// Whether a line of a longer text is a patch header that names a file.
fn is_patch_head(line: &str) -> bool {
    const HEADS: [&str; 9] =
        ["---", "+++", "***", "diff", "rename", "copy", "Index:", "deleted file", "new file"];
    let is_head =
        |head: &&str| line.strip_prefix(*head).is_some_and(|rest| rest.starts_with([' ', '\t']));
    HEADS.iter().any(is_head)
}

/// Whether a text contains a word, ignoring ASCII case.
fn has_word(text: &[u8], word: &[u8]) -> bool {
    let Some((&first, _)) = word.split_first() else { return false };
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    memchr::memchr2_iter(lower, upper, text)
        .any(|at| text.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests;
