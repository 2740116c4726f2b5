//! What is checked in a folder: of a project the policy, its lock file and the log, and all tapes.

use std::path::{Path, PathBuf};

use super::{activity, policy};
use crate::cmd::policy::backtest::backtest_tape;
use crate::exit::{Exit, Failure};
use crate::settings::state_folder::STATE_NAME;

/// The lock file of a policy, unless the policy names another.
const LOCK: &str = "tapegate.lock";

/// Expands a path: a file stands for itself, a folder for everything in it that can be checked.
pub(super) fn expand(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut all = policy::files_in(path);
    all.extend([path.join(LOCK)].into_iter().filter(|lock| lock.is_file()));
    let tapes = match backtest_tape::tapes_in_folder(path) {
        Ok(tapes) => tapes,
        // A folder may have no tapes.
        Err(failure) if failure.exit == Exit::Invalid => Vec::new(),
        Err(failure) => return Err(failure.into()),
    };
    let (logs, tapes): (Vec<PathBuf>, Vec<PathBuf>) =
        tapes.into_iter().partition(|file| activity::is_log(file));
    // A log is checked as a whole, with its older files.
    let mut folders = vec![path.to_owned(), path.join(STATE_NAME)];
    folders.retain(|folder| activity::is_log(folder));
    for folder in logs.iter().filter_map(|file| file.parent()) {
        if !folders.iter().any(|known| known == folder) {
            folders.push(folder.to_owned());
        }
    }
    all.extend(folders);
    all.extend(tapes);
    if all.is_empty() {
        let message = format!("there is no tape, log or policy in `{}`", path.display());
        let hint = format!("{}; policies are named tapegate.yaml", backtest_tape::ending_hint());
        return Err(Failure::new(Exit::Invalid, message).hint(hint).into());
    }
    Ok(all)
}
