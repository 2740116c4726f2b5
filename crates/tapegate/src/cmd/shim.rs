//! `tapegate shim`: enforces a policy between an agent and its server.

mod absent;
mod args;
mod desk;
mod guard;
mod heard;
mod joined;
mod journal;
mod misuse;
mod plan;
mod refusal;
pub(crate) mod reload;
pub(crate) mod rulebook;
mod session;
mod settings_faults;
mod tally;
mod tapes;

pub(crate) use args::Args;
pub(crate) use misuse::answer_misuse;

use crate::exit::Exit;
use plan::Plan;

/// Runs `tapegate shim`.
pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    session::run(Plan::new(args)?)
}
