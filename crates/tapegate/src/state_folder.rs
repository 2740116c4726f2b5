//! The state folder that a command works on.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

use crate::exit::{Exit, Failure};
use crate::settings::SearchContext;
use crate::settings::state_folder::StateChoice;
use crate::terminal_output;

/// Which state folder is meant.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct StateArgs {
    /// The state folder [default: TAPEGATE_HOME, .tapegate here or above, or the user's own]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl StateArgs {
    /// The folder that a command has taken by itself.
    pub(crate) fn new(state: Option<PathBuf>) -> Self {
        Self { state }
    }

    /// Whether a folder was named.
    pub(crate) fn is_named(&self) -> bool {
        self.state.is_some()
    }

    /// The folder, and those used before. A named folder must exist; the others may be created
    /// later. Warns of a `.tapegate` folder that is not used.
    pub(crate) fn choice(&self) -> anyhow::Result<StateChoice> {
        let Some(named) = &self.state else {
            let search = SearchContext::current().context("cannot find the current folder")?;
            let choice = search.chosen_state(None)?;
            choice.warnings(&search).iter().for_each(|message| terminal_output::warn(message));
            return Ok(choice);
        };
        match named.is_dir() {
            true => Ok(StateChoice::from_path(named.clone())),
            false => {
                let message = format!("there is no folder `{}`", named.display());
                Err(Failure::new(Exit::Io, message).into())
            }
        }
    }
}

/// The current time, in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}
