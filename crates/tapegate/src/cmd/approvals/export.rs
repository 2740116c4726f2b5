//! `tapegate approvals export-key`.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use super::folder::Project;
use crate::exit::{Exit, Failure};
use crate::person::Attempt;
use crate::settings::user_state::project_key;
use crate::views::visible;
use crate::{person, talk};

/// Writes a copy of the project's key to a new file.
pub(super) fn run(project: &Project, path: &str) -> anyhow::Result<Exit> {
    let command = format!("approvals export-key {path}");
    let attempt = Attempt { kind: "approval", command: &command, approval_id: None };
    let required = person::require(
        "exporting the project's key",
        "run it in a terminal that you opened and no agent did",
    );
    attempt.log_if_refused(&project.state, required)?;
    let question = format!(
        "write a copy of this project's key to `{}`?\nWhoever can read that file can approve calls \
         and accept policies of `{}`, without a person.",
        visible::inline(path, usize::MAX),
        project.state.display()
    );
    if !attempt.log_if_refused(&project.state, person::confirm(&question))? {
        talk::say("nothing was written");
        return Ok(Exit::Findings);
    }
    let key = project_key(&project.state)?;
    let failed = |error| Failure::new(Exit::Io, format!("cannot write `{path}`: {error}"));
    let options = File::options().write(true).create_new(true).mode(0o600).clone();
    options.open(path).and_then(|mut file| file.write_all(key.bytes())).map_err(failed)?;
    talk::say(&format!(
        "whoever can read `{path}` can approve calls of this project; keep it from agents"
    ));
    Ok(Exit::Ok)
}
