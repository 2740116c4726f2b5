//! The `tapegate` command.

mod cli;
mod cmd;
mod disk;
mod exit;
mod loading;
mod logs;
mod redaction;
mod reporting;
mod session;
mod settings;
mod sizes;
mod state;
mod talk;
mod taping;
mod upstream;
mod views;
mod watching;
mod wiring;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(std::env::args_os().collect()).into()
}
