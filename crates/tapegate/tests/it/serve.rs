//! `tapegate serve`: scenarios in the role of the server, on stdio and over HTTP.

mod agent;
mod behavior;
mod behavior_http;
mod conformance;
mod docs_page;
mod hostile_server;
mod http;
mod library;
mod reload;
mod usage;
mod verdicts;

use std::path::Path;
use std::process::Command;

use crate::support::tapegate;

/// A calculator with one tool that answers `text`.
fn calculator(text: &str) -> String {
    format!(
        "server: {{ name: calculator }}\n\
         tools:\n\
         \x20 - tool: {{ name: add, description: Adds., inputSchema: {{ type: object }} }}\n\
         \x20   response: {{ content: [{{ type: text, text: {text} }}] }}\n"
    )
}

/// `tapegate serve` of a file in a folder.
fn serve(folder: &Path, file: &str, flags: &[&str]) -> Command {
    let mut command = tapegate();
    command.current_dir(folder).arg("serve").arg(file).args(flags);
    command
}
