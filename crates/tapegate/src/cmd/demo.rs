//! `tapegate demo`: shows record, replay and gate with nothing to install.
//!
//! A small built-in agent and MCP server talk through a real `tapegate record`: three processes,
//! with the same pipes and the same tape as in real use. Then the tape plays the server, and the
//! agent must not see a difference. Finally, a gate is put in front of the server.

mod agent;
mod gate;
mod server;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::exit::{Exit, Failure};
use crate::output_file::file_only_parser;

/// Why the tape is not printed.
const SHOWN: &str = "standard output shows the demo; name a file";

/// See it work: a built-in agent and server, recorded, replayed and gated
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tapegate demo\n  tapegate demo --output /tmp/demo.jsonl")]
pub(crate) struct Args {
    /// The tape to write [default: in a new temporary folder]
    #[arg(short, long, value_name = "FILE", value_parser = file_only_parser(SHOWN))]
    output: Option<PathBuf>,
    /// Overwrite an existing tape
    #[arg(long, requires = "output")]
    force: bool,
    /// Act as the server of the demo
    #[arg(long, hide = true)]
    serve: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if args.serve {
        server::run(&mut std::io::stdin().lock(), out)?;
        return Ok(Exit::Ok);
    }
    let tape = match &args.output {
        Some(path) => path.clone(),
        None => fresh_folder()?.join("demo.jsonl"),
    };
    let us = std::env::current_exe().context("cannot find this program")?;
    writeln!(out, "Starting three processes: an agent, a recorder and an MCP server.\n")?;
    let mut recorder = Command::new(&us);
    recorder.arg("record").arg("-o").arg(&tape).args(["--name", "demo", "--quiet"]);
    let if_exists = if args.force { "overwrite" } else { "fail" };
    recorder.args(["--if-exists", if_exists]).arg("--").arg(&us).args(["demo", "--serve"]);
    // What the agent saw live, to compare with what it sees from the tape.
    let mut live = Vec::new();
    let status = agent::run(recorder, &mut TeeWriter(out, &mut live))?;
    if !status.success() {
        // The recorder has printed the reason.
        return Ok(Exit::from_child_status(Some(status)));
    }
    show_tape(&tape, out)?;
    if !replay(&us, &tape, &live, out)? {
        return Ok(Exit::Findings);
    }
    if !gate::GateDemo::new(&us, fresh_folder()?).run(out)? {
        return Ok(Exit::Findings);
    }
    print_next_steps(&tape, out)?;
    Ok(Exit::Ok)
}

/// Plays the tape to the same agent in place of the server. False if the agent saw a difference.
fn replay(us: &Path, tape: &Path, live: &[u8], out: &mut dyn Write) -> anyhow::Result<bool> {
    writeln!(out, "\nThe same agent again. The tape plays the server, which is not started.")?;
    let mut player = Command::new(us);
    player.args(["replay", "--quiet", "-r"]).arg(tape);
    let mut seen = Vec::new();
    let status = agent::run(player, &mut seen)?;
    let same = status.success() && seen == live;
    match same {
        true => writeln!(out, "The agent saw and sent exactly the same.")?,
        false => {
            out.write_all(&seen)?;
            writeln!(out, "The agent saw something else, as shown above.")?;
        }
    }
    Ok(same)
}

/// Writes to both.
struct TeeWriter<'a>(&'a mut dyn Write, &'a mut Vec<u8>);

impl Write for TeeWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1.extend_from_slice(bytes);
        self.0.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn show_tape(tape: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let name = tape.display();
    let text = std::fs::read_to_string(tape).with_context(|| format!("cannot read `{name}`"))?;
    let lines = text.lines().count();
    writeln!(out, "\nThe tape holds a header, {} messages and a footer:", lines.saturating_sub(2))?;
    for line in text.lines().take(3).chain(text.lines().last()) {
        let short: String = line.chars().take(96).collect();
        writeln!(out, "  {short}{}", if short.len() < line.len() { "…" } else { "" })?;
    }
    Ok(())
}

fn print_next_steps(tape: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let name = tape.display();
    // As it was started: with cargo there is no `tapegate` on the path yet.
    let us = std::env::args().next().unwrap_or_else(|| "tapegate".to_owned());
    writeln!(
        out,
        "\nThe tape lies in {name}\n\nWhat to try next:
  {us} check {name}
  {us} replay --help       a tape in the place of your server
  {us} verify --help       what has changed about your server since
  jq -c 'select(.msg.method == \"tools/call\") | .msg.params' {name}
  {us} init                a policy to begin with
  {us} shim --help         a gate in front of your server
  {us} record -o mine.jsonl -- npx -y @modelcontextprotocol/server-everything
  {us} record --help       for your client's config"
    )?;
    Ok(())
}

/// Creates a new folder for temporary files.
fn fresh_folder() -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    for attempt in 0..1000 {
        let folder =
            std::env::temp_dir().join(format!("tapegate-demo-{}-{attempt}", std::process::id()));
        // Never an existing folder: in /tmp, another user could have prepared it.
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context("cannot make a folder for the tape"),
        }
    }
    Err(Failure::new(Exit::Io, "cannot find a free name for a folder")
        .hint("name a file with --output")
        .into())
}
