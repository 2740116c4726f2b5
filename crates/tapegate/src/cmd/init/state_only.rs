//! The folder beside a policy that holds tapes, logs and approvals; also on its own, for
//! `init --state-only`.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::snippets::quote_for_shell;
use crate::cmd::policy::generate::write;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;
use crate::settings::state_folder::STATE_NAME;
use crate::views::short_path::shorten_path;
use crate::{approver_check, terminal_output};

/// Creates the state folder beside a policy, and leaves the policy as it is.
pub(super) fn run(
    search: &SearchContext<'_>,
    file: &Path,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let policy = search.folder.join(file);
    let made = create_state_folder(&policy)?;
    use_state_folder(search, &policy);
    let home = search.first(&["HOME"]).map(PathBuf::from);
    let shown = |path: &Path| shorten_path(path, &search.folder, home.as_deref());
    made.iter().try_for_each(|path| writeln!(out, "{}: written", shown(path)))?;
    if made.is_empty() {
        writeln!(out, "{}: exists already", shown(&policy.with_file_name(STATE_NAME)))?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// The command that creates the state folder beside a policy, if there is none.
pub(super) fn missing_folder_command(file: &Path, policy: &Path) -> Option<String> {
    let is_missing = policy.with_file_name(STATE_NAME).symlink_metadata().is_err();
    is_missing.then(|| command_text(file))
}

/// `tapegate init --state-only`, with the policy if it is not the one that is found here.
pub(crate) fn command_text(file: &Path) -> String {
    let words = match file.to_str() {
        Some("tapegate.yaml") => String::new(),
        _ => format!(" {}", quote_for_shell(&file.to_string_lossy())),
    };
    program_name::command(format!("init --state-only{words}"))
}

/// Creates the folder for tapes and logs beside a policy; existing content is kept.
pub(super) fn create_state_folder(policy: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folder = policy.with_file_name(STATE_NAME);
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Io, format!("cannot make `{}`: {error}", folder.display()))
    };
    let mut made = Vec::new();
    match fs::DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => made.push(folder.clone()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let there = folder.symlink_metadata().map_err(cannot)?;
            if !there.is_dir() {
                let message = format!("`{}` is not a folder", folder.display());
                return Err(Failure::new(Exit::Io, message).hint("tapes and logs are kept there"));
            }
            // A user who can write there could plant tapes and read logs.
            if there.mode() & 0o022 != 0 {
                terminal_output::warn(&format!("others may write to `{}`", folder.display()));
            }
        }
        Err(error) => return Err(cannot(error)),
    }
    let ignore = folder.join(".gitignore");
    if ignore.symlink_metadata().is_err() {
        // Tapes hold secrets, so they must not get into a repository by accident.
        write(&ignore, "*\n")?;
        made.push(ignore);
    }
    Ok(made)
}

/// Makes sessions keep their state beside the policy, even if they kept it elsewhere before,
/// provided a person is at the terminal: an agent must not move the log to where it can write.
pub(super) fn use_state_folder(search: &SearchContext<'_>, policy: &Path) {
    let Some(project) = policy.parent() else { return };
    if approver_check::require_person("moving the state folder", "").is_ok() {
        search.use_project_state(project);
    }
    let search = SearchContext { folder: project.to_owned(), ..*search };
    let choice = search.chosen_state(Some(policy)).ok();
    let warnings = choice.map(|choice| choice.warnings(&search)).unwrap_or_default();
    warnings.iter().for_each(|message| terminal_output::warn(message));
}
