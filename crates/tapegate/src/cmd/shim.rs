//! `tapegate shim`: enforces a policy between an agent and its server.

mod args;
mod event_text;
mod hub_start;
mod run;
mod settings_errors;
mod start_plan;
mod start_refusal;
mod usage_error;

pub(crate) use args::Args;
pub(crate) use usage_error::answer_usage_error;

use std::ffi::OsString;

use super::wrap::stored_entries;
use crate::exit::Exit;
use crate::settings::SearchContext;
use start_plan::StartPlan;

/// The command line, with the words of the stored entry that it names. One that cannot be read stays
/// as it is: the session then answers with the reason.
pub(crate) fn with_stored_entry(argv: Vec<OsString>) -> Vec<OsString> {
    let word = |at: usize| argv.get(at).and_then(|word| word.to_str());
    let (Some("--entry"), Some(id)) = (word(2), word(3)) else { return argv };
    let search = SearchContext::current().ok();
    let user_state = search.and_then(|search| search.user_state_dir().ok());
    let words = user_state.and_then(|folder| stored_entries::read(&folder, id).ok());
    match words {
        Some(words) => {
            argv[..2].iter().cloned().chain(words.into_iter().map(OsString::from)).collect()
        }
        None => argv,
    }
}

/// Runs `tapegate shim`.
pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    run::run(StartPlan::new(args)?)
}
