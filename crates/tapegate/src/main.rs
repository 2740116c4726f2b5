//! The `tapegate` command.

mod called;
mod cli;
mod cmd;
mod disk;
mod entries;
mod environment;
mod exit;
mod loading;
mod logs;
mod output_file;
mod person;
mod reading;
mod redaction;
mod reporting;
mod runtime;
mod screen;
mod session;
mod settings;
mod sizes;
mod sniff;
mod state;
mod talk;
mod taping;
mod trust;
mod upstream;
mod verbosity;
mod views;
mod watching;
mod wiring;
mod zone;

use std::process::ExitCode;

use tapegate_wire::sentry;

fn main() -> ExitCode {
    if let Some(duty) = sentry::duty(std::env::args_os()) {
        duty.keep();
        return ExitCode::SUCCESS;
    }
    tapegate_store::input::on_wait(talk::waiting_for);
    tapegate_store::input::on_open(talk::reading);
    cli::run(std::env::args_os().collect()).into()
}
