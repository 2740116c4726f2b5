//! The other way to authorize a decision: a copy of the project's key.

use std::path::{Path, PathBuf};

use super::{key_file, require_exported_key, require_person};
use crate::exit::Failure;
use crate::program_name;
use crate::settings::user_state::project_key;

/// The hint for scripts.
fn key_alternative() -> String {
    format!(
        "run it in a terminal that you opened, not an agent; a script passes --non-interactive \
         --key-file FILE, with a key from `{}`",
        program_name::command("approvals export-key FILE")
    )
}

/// How a script shows that it may decide.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct KeyArgs {
    /// Decide without a person at a terminal; needs --key-file
    #[arg(long, requires = "key_file")]
    non_interactive: bool,
    /// A copy of the project's key that only you can read, made by `approvals export-key`
    #[arg(long, value_name = "FILE", requires = "non_interactive")]
    key_file: Option<PathBuf>,
}

impl KeyArgs {
    /// Whether a key is used in place of a person.
    pub(crate) fn is_given(&self) -> bool {
        self.non_interactive
    }

    /// The command with these options, as it is logged if it is refused.
    pub(crate) fn command_text(&self, command: &str) -> String {
        match &self.key_file {
            None => command.to_owned(),
            Some(path) => format!("{command} --non-interactive --key-file {}", path.display()),
        }
    }

    /// Checks that `what` is permitted in the project with this state folder: by a person at a
    /// terminal, or by the project's key.
    pub(crate) fn authorize(&self, what: &str, state_folder: &Path) -> Result<(), Failure> {
        match &self.key_file {
            None => require_person(what, &key_alternative()),
            Some(path) => {
                // In an agent's shell no key counts, so its file is not even read.
                require_exported_key(what, path, state_folder)?;
                key_file::check(path, &project_key(state_folder)?)
            }
        }
    }
}
