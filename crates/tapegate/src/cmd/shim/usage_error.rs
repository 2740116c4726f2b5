//! Reports a command line that cannot be parsed to the client that started us with it.
//!
//! The command line comes from the client's configuration, and most clients show nothing of a
//! server's standard error. An unknown flag is reported only on standard error: a user who gets
//! that error is usually trying out flags.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::error::ErrorKind;
use tapegate_shim::start_failure::{self, FailureKind, StartFailure, start_failed_event};
use tapegate_store::activity::log_event;
use tapegate_wire::clock::Clock;
use tapegate_wire::signals::Signals;

use super::start_refusal::FailureListener;
use crate::exit::Exit;
use crate::runtime;
use crate::settings::SearchContext;
use crate::terminal_output;

/// Every request gets the same answer, so there is no reason to accept large ones.
const MESSAGE_BYTES_MAX: usize = 10_000_000;

/// Answers a client's requests with the error in the command line until the client leaves. The
/// error has already been printed on standard error.
pub(crate) fn answer_usage_error(error: &clap::Error, argv: &[OsString]) {
    let is_told = !matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    // With --http no listener was opened, so no client can connect.
    let has_client = !names_flag(argv, &["--http", "--listen"]);
    if is_told && has_client && !std::io::stdin().is_terminal() {
        let reason = reason(error);
        log(argv, &reason);
        if let Err(error) = serve_error(&reason) {
            terminal_output::warn(&format!("cannot report this to the client: {error:#}"));
        }
    }
}

/// The error on one line, without the usage.
fn reason(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| {
        !["Usage:", "For more information"].iter().any(|start| line.starts_with(start))
    });
    let lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    let message = lines.join(" ");
    message.strip_prefix("error: ").unwrap_or(&message).to_owned()
}

fn serve_error(reason: &str) -> anyhow::Result<()> {
    let runtime = runtime::start()?;
    let hint = "correct the command line of this server in the client's configuration";
    let failure = StartFailure {
        message: start_failure::shorten_reason(reason, Some(hint)),
        kind: FailureKind::Settings,
    };
    let stand_in = FailureListener {
        http: None,
        message_bytes_max: MESSAGE_BYTES_MAX,
        quiet: true,
        clock: Clock::start(),
    };
    runtime.block_on(async { stand_in.run((failure, Exit::Usage), Signals::listen()?).await })?;
    Ok(())
}

/// Logs the error where the session would have been logged.
fn log(argv: &[OsString], reason: &str) {
    let Ok(search) = SearchContext::current() else { return };
    let config = value_of(argv, &["--config", "--thoughtgate-config"]).map(PathBuf::from);
    let Ok(state) = search.state_folder(config.as_deref()) else { return };
    let event = start_failed_event(Clock::start().now().wall_us, FailureKind::Settings, reason);
    if let Err(error) = log_event(&state, &event) {
        terminal_output::warn(&format!("this is not in the activity log: {error}"));
    }
}

/// The words of the command line before `--`, which are not the server's.
fn own_arguments(argv: &[OsString]) -> impl Iterator<Item = &str> {
    // Without clap, which could not parse this command line.
    argv.iter().map(|word| word.to_str().unwrap_or_default()).take_while(|word| *word != "--")
}

fn names_flag(argv: &[OsString], flags: &[&str]) -> bool {
    own_arguments(argv).any(|word| flags.contains(&word.split('=').next().unwrap_or_default()))
}

/// The value of a flag, written as `--flag value` or `--flag=value`.
fn value_of(argv: &[OsString], flags: &[&str]) -> Option<String> {
    let mut words = own_arguments(argv);
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some((flag, value)) if flags.contains(&flag) => return Some(value.to_owned()),
            None if flags.contains(&word) => return words.next().map(str::to_owned),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn flags_of_the_server_are_not_taken_for_ours() {
        let ours = argv("tapegate shim --config=a.yaml --http :1 -- x --config b.yaml");
        assert_eq!(value_of(&ours, &["--config"]).as_deref(), Some("a.yaml"));
        assert!(names_flag(&ours, &["--http"]));
        let theirs = argv("tapegate shim -- x --config b.yaml --http :1");
        assert_eq!(value_of(&theirs, &["--config"]), None);
        assert!(!names_flag(&theirs, &["--http"]));
        assert_eq!(value_of(&argv("shim --config b"), &["--config"]).as_deref(), Some("b"));
        assert_eq!(value_of(&argv("shim --config"), &["--config"]), None);
    }
}
