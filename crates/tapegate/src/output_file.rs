//! Output files named on the command line.
//!
//! `-` means standard output where that is free. Elsewhere it is refused with the reason, because a
//! file of that name is never what the user means.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};

/// Why commands that run in place of a server cannot write files to `-`.
pub(crate) const CLIENTS: &str = "standard output belongs to the client; name a file";

/// Why tapes of agents' servers cannot be written to `-`.
pub(crate) const TAPES: &str = "each session has a tape of its own; name a folder";

/// Parses an output file that must not be standard output, for the given reason.
pub(crate) fn file_only_parser(reason: &'static str) -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(move |path| match path == Path::new("-") {
        true => Err(reason),
        false => Ok(path),
    })
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use super::*;

    /// Outputs that accept `-` as standard output, or refuse it themselves.
    const OUTPUTS: [&str; 4] =
        ["record output", "tape tape", "convert output", "policy generate output"];

    /// Paths that are read, and folders that must exist.
    const INPUTS: [&str; 63] = [
        "agents install config",
        "agents install config_path",
        "agents uninstall config_path",
        "approvals key_file",
        "approvals state",
        "bash config",
        "bash policy",
        "check files",
        "check library",
        "convert recording",
        "hub config",
        "hub key_file",
        "hub state",
        "init from_tape",
        "log files",
        "log state",
        "policy accept file",
        "policy accept key_file",
        "policy backtest against",
        "policy backtest config",
        "policy backtest tapes",
        "policy explain arguments_file",
        "policy explain config",
        "policy generate tapes",
        "policy pin config",
        "policy pin tapes",
        "policy test config",
        "policy test files",
        "record redact_key_file",
        "redact redact_key_file",
        "redact tape",
        "replay recording",
        "replay redact_key_file",
        "serve config",
        "serve file",
        "serve library",
        "serve tool",
        "sessions clean config",
        "sessions clean directory",
        "sessions export config",
        "sessions export directory",
        "sessions generate check",
        "sessions generate config",
        "sessions generate directory",
        "sessions list config",
        "sessions list directory",
        "sessions show config",
        "sessions show directory",
        "sessions stats config",
        "sessions stats directory",
        "shim config",
        "shim token_file",
        "show state",
        "show tapes",
        "stats state",
        "stats tapes",
        "tape redact_key_file",
        "verify recording",
        "unwrap config_path",
        "demo with",
        "verify redact_key_file",
        "wrap config",
        "wrap config_path",
    ];

    /// Every path argument is an input, or handles `-` sensibly. A new one uses [`file_only_parser`] or
    /// is listed here.
    #[test]
    fn every_output_knows_what_a_dash_means() {
        let mut unknown = Vec::new();
        let mut commands = vec![(String::new(), crate::cli::command())];
        while let Some((name, command)) = commands.pop() {
            for inner in command.get_subcommands() {
                commands.push((format!("{name}{} ", inner.get_name()), inner.clone()));
            }
            for arg in command.get_arguments() {
                let parser = arg.get_value_parser();
                let is_path = parser.type_id() == TypeId::of::<PathBuf>();
                let place = format!("{name}{}", arg.get_id());
                let alone = clap::Arg::new("path").value_parser(parser.clone());
                let takes_dash =
                    clap::Command::new("x").arg(alone).try_get_matches_from(["x", "-"]).is_ok();
                let is_known = OUTPUTS.iter().chain(&INPUTS).any(|known| *known == place);
                if is_path && takes_dash && !is_known {
                    unknown.push(place);
                }
            }
        }
        assert_eq!(unknown, Vec::<String>::new());
    }
}
