//! The file that `init` writes the policy to: whether it may be written.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use super::snippets::quote_for_shell;
use super::{Args, state_only};
use crate::cmd::policy::backtest::backtest_tape;
use crate::cmd::policy::generate::check_overwrite;
use crate::exit::{Exit, Failure};
use crate::file_type::seems_a_tape;
use crate::program_name;
use crate::settings::SearchContext;

/// Refuses a tape in the place of the policy, even with `--force`: `--from-tapes` takes no value,
/// so a tape named after it would be overwritten.
pub(super) fn refuse_tape(file: &Path, force: bool) -> Result<(), Failure> {
    let is_tape = seems_a_tape(file);
    if !is_tape && !backtest_tape::has_tape_name(file) {
        return Ok(());
    }
    let (name, word) = (file.display(), quote_for_shell(&file.to_string_lossy()));
    if !is_tape {
        let message = format!("`{name}` has the name of a tape, not of a policy file");
        return Err(Failure::new(Exit::Usage, message).hint("name a file that ends in .yaml"));
    }
    let force = if force { "--force " } else { "" };
    let line = program_name::command(format!("init {force}--from-tape {word}"));
    let message = format!("`{name}` is a tape, not a policy file");
    Err(Failure::new(Exit::Usage, message).hint(format!("to make a policy from it: `{line}`")))
}

/// Checks that the file may be written, and that its folder exists.
pub(super) fn check_writable(args: &Args, search: &SearchContext<'_>) -> Result<(), Failure> {
    let policy = search.folder.join(&args.file);
    check_overwrite(&args.file, args.force).map_err(|failure| {
        let line = state_only::missing_folder_command(&args.file, &policy);
        match line {
            Some(line) => failure.hint(format!(
                "choose another name, or pass --force to overwrite it; `{line}` keeps it, and \
                 gives the project its own state folder"
            )),
            None => failure,
        }
    })?;
    check_parent(&policy, search)?;
    check_older_policy(args)
}

/// Refuses a folder that does not exist, which may be a typing error; the user's config folder is
/// created on first use.
fn check_parent(policy: &Path, search: &SearchContext<'_>) -> Result<(), Failure> {
    let Some(folder) = policy.parent().filter(|folder| !folder.exists()) else { return Ok(()) };
    if search.user_config().is_some_and(|user_wide| user_wide == policy) {
        return Ok(());
    }
    let (file, name) = (policy.display(), folder.display());
    let message = format!("cannot write `{file}`: there is no folder `{name}`");
    let word = quote_for_shell(&folder.to_string_lossy());
    Err(Failure::new(Exit::Io, message).hint(format!("create it first: mkdir -p {word}")))
}

/// Creates the user's config folder, which may not exist yet.
pub(super) fn make_parent(policy: &Path) -> Result<(), Failure> {
    let Some(folder) = policy.parent().filter(|folder| !folder.exists()) else { return Ok(()) };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot make `{}`: {error}", folder.display()))
    })
}

/// Refuses to shadow a policy that has the older file name.
fn check_older_policy(args: &Args) -> Result<(), Failure> {
    let older = args.file.with_file_name("thoughtgate.yaml");
    let ours = args.file.file_name().is_some_and(|name| name == "tapegate.yaml");
    if ours && older.is_file() && !args.force {
        let message = format!("`{}` would no longer be used", older.display());
        let hint = "it is already a policy and loads as it is; pass --force to start over";
        return Err(Failure::new(Exit::Io, message).hint(hint));
    }
    Ok(())
}
