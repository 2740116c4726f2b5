//! `tapegate shim`: a policy between an agent and its server.

mod absent;
mod args;
mod desk;
mod guard;
mod heard;
mod joined;
mod journal;
mod plan;
mod refusal;
pub(crate) mod reload;
pub(crate) mod rulebook;
mod session;
mod tally;
mod tapes;

pub(crate) use args::Args;

use crate::exit::Exit;
use plan::Plan;

/// Runs `tapegate shim`.
pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    session::run(Plan::new(args)?)
}
