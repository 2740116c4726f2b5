//! The other way to show that a decision is permitted: a copy of the project's key.

use std::path::{Path, PathBuf};

use tapegate_store::user_state::{KEY_BYTES, ProjectKey};

use super::require;
use crate::exit::{Exit, Failure};
use crate::settings::user_state::project_key;

/// How a script shows that it may decide.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct KeyArgs {
    /// Do without a person at a terminal; --key-file shows that this is permitted
    #[arg(long, requires = "key_file")]
    non_interactive: bool,
    /// A copy of the project's key, which lies in the user's state folder
    #[arg(long, value_name = "FILE", requires = "non_interactive")]
    key_file: Option<PathBuf>,
}

impl KeyArgs {
    /// Whether a key stands in for a person.
    pub(crate) fn is_given(&self) -> bool {
        self.non_interactive
    }

    /// Makes sure that `what` is permitted in the project with this state folder: by a person at a
    /// terminal, or by the project's key.
    pub(crate) fn authorize(&self, what: &str, state_folder: &Path) -> Result<(), Failure> {
        let Some(path) = &self.key_file else {
            return require(what, "a script needs --non-interactive and --key-file");
        };
        let failed = |exit, why: String| {
            Failure::new(exit, format!("cannot use the key `{}`: {why}", path.display()))
        };
        let bytes = std::fs::read(path).map_err(|error| failed(Exit::Io, error.to_string()))?;
        let wrong = |why: &str| failed(Exit::Findings, why.to_owned());
        let bytes = <[u8; KEY_BYTES]>::try_from(bytes.as_slice())
            .map_err(|_| wrong(&format!("it must be {KEY_BYTES} bytes long")))?;
        match ProjectKey::new(bytes) == project_key(state_folder)? {
            true => Ok(()),
            false => Err(wrong("it is not the key of this project")),
        }
    }
}
