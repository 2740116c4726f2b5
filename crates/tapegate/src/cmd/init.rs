//! `tapegate init`

mod clients;
mod starter;

use std::io::Write;
use std::path::{Path, PathBuf};

use tapegate_policy::generate::{Traffic, Wish, passes};
use tapegate_policy::load::load;
use tapegate_yaml::files::Held;
use tapegate_yaml::finding::Severity;

use super::policy::accept_written;
use super::policy::generate::{head, make, may_write, observe, write};
use crate::exit::{Exit, Failure};
use clients::Found;

/// Write a policy to start with
///
/// The servers are those that the configs of clients in this folder name: .mcp.json,
/// .cursor/mcp.json, .vscode/mcp.json. With --from-tape only what was called on the tapes passes;
/// else everything does, people are asked before something is destroyed, and the rest is comments.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate init
  tapegate init --from-tape session.jsonl
  tapegate init --from-tape .tapegate/tapes/ --force policies/tapegate.yaml

Exit codes: 0 done, 2 a tape is invalid or has no calls, 3 the file is there already or could not be
written, 64 wrong usage.")]
pub(crate) struct Args {
    /// The file to write
    #[arg(value_name = "FILE", default_value = "tapegate.yaml")]
    file: PathBuf,
    /// Let through what was called on this tape, or the tapes in this folder; repeatable
    #[arg(long, value_name = "TAPE")]
    from_tape: Vec<PathBuf>,
    /// The server, by the name it is to have in the policy [default: as each tape says]
    #[arg(long, value_name = "NAME", requires = "from_tape")]
    server_id: Option<String>,
    /// Overwrite what exists already
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    may_write(&args.file, args.force)?;
    unshadowed(args)?;
    let found = clients::find(Path::new("."));
    let (text, traffic) = if args.from_tape.is_empty() {
        (starter::write(&found), Traffic::default())
    } else {
        let traffic = observe(&args.from_tape, args.server_id.as_deref())?;
        let wish = Wish { head: head(&traffic, "tapegate init"), cedar: None };
        let made = make(&traffic, &wish)?;
        (starter::with_more(&made.policy), traffic)
    };
    check(&text, &traffic)?;
    write(&args.file, &text)?;
    accept_written(&args.file);
    tell(args, &found, &traffic, out)?;
    Ok(Exit::Ok)
}

/// A policy under the older name would no longer be found.
fn unshadowed(args: &Args) -> Result<(), Failure> {
    let older = args.file.with_file_name("thoughtgate.yaml");
    let ours = args.file.file_name().is_some_and(|name| name == "tapegate.yaml");
    if ours && older.is_file() && !args.force {
        let words = format!("`{}` would no longer be used", older.display());
        let hint = "it is a policy already and loads as it is; pass --force to begin anew";
        return Err(Failure::new(Exit::Io, words).hint(hint));
    }
    Ok(())
}

/// Reads what is to be written as whoever uses it will.
fn check(text: &str, traffic: &Traffic) -> Result<(), Failure> {
    let loaded = load("tapegate.yaml", &Held::default().with("tapegate.yaml", text));
    let error = loaded.findings.iter().find(|finding| finding.severity == Severity::Error);
    let tried = match (&loaded.policy, error) {
        (Some(policy), None) => passes(policy, traffic),
        (_, error) => Err(error.map_or_else(
            || "it cannot be loaded".to_owned(),
            |error| format!("line {}: {}", error.spot.line, error.words),
        )),
    };
    tried
        .map_err(|why| Failure::new(Exit::Invalid, format!("no policy can be made of this: {why}")))
}

fn tell(
    args: &Args,
    found: &[Found],
    traffic: &Traffic,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let name = args.file.display();
    writeln!(out, "{name}: written")?;
    let taped = traffic.servers();
    for Found { id, config, .. } in found {
        let lost = !taped.is_empty() && !taped.iter().any(|own| own == id || *own == "*");
        let lost = if lost { "; it is on no tape, so nothing of it passes" } else { "" };
        writeln!(out, "  server {id}, from {config}{lost}")?;
    }
    writeln!(out, "\nWhat to do next:\n  tapegate check {name}")?;
    let governed = |server: &&Found| {
        !server.command.is_empty() && (taped.is_empty() || taped.contains(&server.id.as_str()))
    };
    let (id, command) = match found.iter().find(governed) {
        Some(server) => (server.id.as_str(), server.command.join(" ")),
        None => (taped.first().copied().unwrap_or("NAME"), "SERVER ARGS".to_owned()),
    };
    let id = if id == "*" { "NAME" } else { id };
    writeln!(out, "  tapegate shim --server-id {id} -- {command}")?;
    writeln!(out, "      in the place of `{command}` in your client's config")?;
    if args.from_tape.is_empty() {
        writeln!(out, "  tapegate init --force --from-tape TAPE")?;
        writeln!(out, "      once a session is on tape, to let through only what it used")?;
    }
    out.flush()
}
