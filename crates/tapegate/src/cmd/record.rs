//! `tapegate record` and `tapegate tape`: the same recorder with two sets of flags.

mod args;
mod plan;
mod session;

pub(crate) use args::{RecordArgs, TapeArgs};

use crate::exit::Exit;
use plan::RecordPlan;

/// Runs `tapegate record`.
pub(crate) fn record(args: RecordArgs) -> anyhow::Result<Exit> {
    session::run(RecordPlan::from_record_args(args)?)
}

/// Runs `tapegate tape`.
pub(crate) fn tape(args: TapeArgs) -> anyhow::Result<Exit> {
    session::run(RecordPlan::from_tape_args(args)?)
}
