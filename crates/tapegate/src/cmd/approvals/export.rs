//! `tapegate approvals export-key`: writes a copy of the project's key for scripts.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use super::folder::Project;
use crate::approver_check::PersonAttempt;
use crate::exit::{Exit, Failure};
use crate::settings::state_folder::STATE_NAME;
use crate::settings::user_state::project_key;
use crate::views::visible_text;
use crate::{approver_check, terminal_output};
use tapegate_core::activity::ActivityKind;

/// Writes a copy of the project's key to a new file.
pub(super) fn run(project: &Project, path: &str) -> anyhow::Result<Exit> {
    let command = format!("approvals export-key {path}");
    let attempt =
        PersonAttempt { kind: ActivityKind::Approval, command: &command, approval_id: None };
    let required = approver_check::require_person(
        "exporting the project's key",
        "run it in a terminal that you opened, not an agent",
    );
    attempt.log_if_refused(&project.state, required)?;
    let scope = scope(project);
    let question = format!(
        "The key is valid for {scope}.\nA process that can read a copy of it can approve calls \
         and accept policies there, without a person.\nWrite a copy to `{}`?",
        visible_text::inline(path, usize::MAX),
    );
    if !attempt.log_if_refused(&project.state, approver_check::confirm(&question))? {
        terminal_output::info("nothing was written");
        return Ok(Exit::Findings);
    }
    let key = project_key(&project.state)?;
    let failed = |error| Failure::new(Exit::Io, format!("cannot write `{path}`: {error}"));
    // Never over an existing file, whose owner or mode could be another.
    let options = File::options().write(true).create_new(true).mode(0o600).clone();
    options.open(path).and_then(|mut file| file.write_all(key.bytes())).map_err(failed)?;
    terminal_output::info(&format!(
        "wrote `{path}`, which can approve calls of {scope}; keep it from agents"
    ));
    Ok(Exit::Ok)
}

/// The projects that the key is valid for. Each state folder has one key, and several projects can
/// share a folder.
fn scope(project: &Project) -> String {
    let state = &project.state;
    let whole = state.canonicalize().unwrap_or_else(|_| state.clone());
    let of_tapegate = whole.file_name().is_some_and(|name| name == STATE_NAME);
    match whole.parent().filter(|_| of_tapegate && !project.is_user_wide()) {
        Some(folder) => format!("the project in `{}`, with all folders below it", folder.display()),
        None if project.is_user_wide() => format!(
            "every project that has no `.tapegate` folder of its own, not only this one: they all \
             keep their state in `{}`",
            state.display()
        ),
        None => format!("every project that keeps its state in `{}`", state.display()),
    }
}
