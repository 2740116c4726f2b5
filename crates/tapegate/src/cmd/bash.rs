//! `tapegate bash`: the governed bash tool as an MCP server.

mod args;
mod governed;
mod governed_settings;
mod log_printer;
mod metrics_file;
mod session;
mod settings_file;

pub(crate) use args::Args;
pub(crate) use settings_file::SettingsFile;

use super::shim;
use crate::exit::Exit;

/// Runs `tapegate bash`: under the policy that applies, or else on its own.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match governed::shim_args(args)? {
        Some(shim_args) => shim::run(shim_args),
        None => session::run(args),
    }
}
