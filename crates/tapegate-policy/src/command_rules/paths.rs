//! The paths in the words of a command.
//!
//! Which words are paths depends on the program, so every word counts as one: a word without a slash
//! is a file in the folder in which the command runs. Symbolic links are not followed, so commands
//! that may make one which leads out of a folder are never certainly in it.

use tapegate_core::lenient::folder::{FolderPath, has_parent_step};
use tapegate_shell::command_use::{CommandArgument, CommandUse};

use super::MatchCertainty;
use super::path_parts::path_parts;
use super::unseen_paths::{has_open_script, may_link_out};
use crate::glob::Glob;

/// Options that change the folder that other arguments are relative to.
const FOLDER_OPTIONS: [&str; 6] =
    ["-C", "--directory", "--work-tree", "--git-dir", "--prefix", "--cwd"];

/// Builtins that only print their arguments.
const PRINTERS: [&str; 2] = ["echo", "printf"];

/// The paths of a command.
pub(super) struct UsePaths<'a> {
    one: &'a CommandUse,
    /// The folders it may run in, as absolute paths; `None` if they are unknown.
    folders: Option<Vec<String>>,
}

impl<'a> UsePaths<'a> {
    /// The paths of a command in a line that starts in this folder.
    pub(super) fn new(one: &'a CommandUse, start: Option<String>) -> Self {
        let absolute = |folder: &String| match (folder.as_str(), &start) {
            ("", Some(start)) => Some(start.clone()),
            (folder, _) if folder.starts_with('/') => Some(folder.to_owned()),
            (folder, _) if folder.starts_with('~') => None,
            (folder, Some(start)) => Some(format!("{start}/{folder}")),
            (_, None) => None,
        };
        let folders = one.folders.as_ref().and_then(|all| all.iter().map(absolute).collect());
        Self { one, folders }
    }

    /// The words whose values may be paths.
    fn words(&self) -> impl Iterator<Item = &'a CommandArgument> {
        let by_path =
            |word: &&CommandArgument| word.prefix.contains('/') && !is_system_program(word);
        let program = self.one.words.first().filter(by_path);
        let targets = self.one.redirections.iter().filter(|one| one.names_file());
        program.into_iter().chain(self.one.arguments()).chain(targets.map(|one| &one.target))
    }

    /// Whether every path is certainly in one of these folders, and so is where the command runs.
    pub(super) fn must_be_in(&self, wanted: &[FolderPath]) -> bool {
        let Some(folders) = &self.folders else { return false };
        let inside = |path: &str| wanted.iter().any(|folder| folder.holds(path));
        // Two steps up in different arguments may add up.
        let moves = self
            .one
            .words
            .iter()
            .any(|word| FOLDER_OPTIONS.iter().any(|option| word.prefix.starts_with(option)));
        let steps_up = self.one.words.iter().any(|word| word.prefix.contains(".."));
        if moves && steps_up || !folders.iter().all(|folder| inside(folder)) {
            return false;
        }
        if has_open_script(self.one) || may_link_out(self.one) {
            return false;
        }
        // Only the files of their redirections are paths.
        let is_printer = self.one.program().is_some_and(|program| PRINTERS.contains(&program));
        let skipped = if is_printer { self.one.arguments().len() } else { 0 };
        self.words().skip(skipped).all(|word| {
            let Some(text) = word.text.as_deref().filter(|_| !word.has_tilde) else { return false };
            if text.contains("://") {
                return false;
            }
            let Some(parts) = path_parts(text) else { return false };
            let is_in = |path: &str| folders.iter().all(|folder| inside(&joined(folder, path)));
            parts.iter().all(|part| !part.text.starts_with('~') && is_in(part.text))
        })
    }

    /// Whether some path may be in one of these folders, or the command runs there.
    pub(super) fn may_be_in(&self, wanted: &[FolderPath]) -> MatchCertainty {
        let inside = |path: &str| wanted.iter().any(|folder| folder.may_hold(path));
        let mut best = MatchCertainty::No;
        match &self.folders {
            Some(folders) if folders.iter().any(|folder| inside(folder)) => {
                return MatchCertainty::Yes;
            }
            Some(_) => {}
            None => best = MatchCertainty::Maybe,
        }
        if has_open_script(self.one) {
            best = MatchCertainty::Maybe;
        }
        for word in self.words() {
            let Some(text) = word.text.as_deref().filter(|_| !word.has_tilde) else {
                best = MatchCertainty::Maybe;
                continue;
            };
            let Some(parts) = path_parts(text) else {
                best = MatchCertainty::Maybe;
                continue;
            };
            for part in parts {
                let path = part.text;
                let found = match &self.folders {
                    _ if path.starts_with('/') => inside(path),
                    Some(folders) => folders.iter().any(|folder| inside(&joined(folder, path))),
                    None => continue,
                };
                match part.is_usual {
                    true if found => return MatchCertainty::Yes,
                    false if found => best = MatchCertainty::Maybe,
                    _ => {}
                }
            }
        }
        best
    }

    /// Whether one of the globs certainly matches the target of a redirection.
    pub(super) fn must_match(&self, target: &CommandArgument, globs: &[Glob]) -> bool {
        let Some(text) = target.text.as_deref().filter(|_| !target.has_tilde) else { return false };
        let Some(folders) = &self.folders else { return false };
        folders.iter().all(|folder| {
            let path = joined(folder, text);
            !has_parent_step(&path) && globs.iter().any(|glob| glob.matches(&path))
        })
    }

    /// Whether one of the globs may match the target of a redirection, as it is written or as a
    /// path.
    pub(super) fn may_match(&self, target: &CommandArgument, globs: &[Glob]) -> MatchCertainty {
        let Some(text) = target.text.as_deref().filter(|_| !target.has_tilde) else {
            return MatchCertainty::Maybe;
        };
        let matches = |path: &str| globs.iter().any(|glob| glob.matches_decoded(path));
        let normal =
            |path: String| tapegate_core::lenient::folder::normal_path(&path).unwrap_or(path);
        if matches(text) {
            return MatchCertainty::Yes;
        }
        match &self.folders {
            Some(folders)
                if folders.iter().any(|folder| matches(&normal(joined(folder, text)))) =>
            {
                MatchCertainty::Yes
            }
            None if !text.starts_with('/') => MatchCertainty::Maybe,
            None if matches(&normal(text.to_owned())) => MatchCertainty::Yes,
            _ => MatchCertainty::No,
        }
    }
}

fn is_system_program(word: &CommandArgument) -> bool {
    let folders = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"];
    word.text.as_deref().is_some_and(|text| {
        folders
            .iter()
            .any(|folder| text.strip_prefix(folder).is_some_and(|name| !name.contains('/')))
    })
}

fn joined(folder: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{folder}/{path}") }
}
