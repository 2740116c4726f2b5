//! `tapegate shim`: enforces a policy between an agent and its server.

mod args;
mod counters;
mod file_approvals;
mod hub_session;
mod journal;
mod plan;
pub(crate) mod reload;
mod session;
mod settings_errors;
pub(crate) mod shim_policy;
mod shim_session;
mod start_failure;
mod start_refusal;
mod tapes;
mod traffic_monitor;
mod usage_error;

pub(crate) use args::Args;
pub(crate) use usage_error::answer_usage_error;

use crate::exit::Exit;
use plan::ShimPlan;

/// Runs `tapegate shim`.
pub(crate) fn run(args: Args) -> anyhow::Result<Exit> {
    session::run(ShimPlan::new(args)?)
}
