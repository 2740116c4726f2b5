//! The `tapegate` command.

mod approver_check;
mod argument_values;
mod cli;
mod client_transport;
mod cmd;
mod entry_limit;
mod environment;
mod event_log;
mod exit;
mod file_type;
mod local_files;
mod logs;
mod output_file;
mod program_name;
mod recorded_sessions;
mod redaction;
mod report_files;
mod runtime;
mod screen;
mod session;
mod settings;
mod state_folder;
mod tape_loader;
mod tape_rows;
mod terminal_output;
mod trust;
mod units;
mod upstream;
mod verbosity;
mod views;
mod zone;

use std::process::ExitCode;

use tapegate_wire::reaper;

fn main() -> ExitCode {
    if let Some(job) = reaper::parse_job(std::env::args_os()) {
        job.run();
        return ExitCode::SUCCESS;
    }
    if tapegate_bash::runner::run_if_named(std::env::args_os()) {
        return ExitCode::SUCCESS;
    }
    tapegate_store::input::on_wait(terminal_output::report_waiting);
    tapegate_store::input::on_open(terminal_output::report_reading);
    cli::run(std::env::args_os().collect()).into()
}
