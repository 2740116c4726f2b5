//! `tapegate demo`: an agent meets a server that turns against it, without a gate and with one.
//!
//! Everything is real and nothing is installed: the agent, the server, the recorder and the gate are
//! processes with the same pipes, tapes, configs and approvals as in real use. Only the agent's model
//! is a script, which does what the descriptions of tools tell it.

mod agent;
mod folder;
mod gate;
mod interruption;
mod question;
mod role;
mod server;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::exit::{Exit, Failure};
use crate::output_file::file_only_parser;
use crate::terminal_output;
use folder::DemoFolder;
use interruption::Interruption;
use role::DemoRole;

/// How long a signal may take that has ended the processes of the demo: the terminal sends it to all.
const SIGNAL_PATIENCE: Duration = Duration::from_millis(500);

/// Why the tape is not printed.
const SHOWN: &str = "standard output shows the demo; name a file";

/// See it work: an agent and a server that steals a key, recorded, gated and replayed
///
/// Nothing is installed, and nothing outside of a new temporary folder is read or written. At a
/// terminal, the demo asks you about the call that the gate holds; without an answer, the call
/// expires after some seconds and is denied. Ctrl-C ends the demo and removes the folder.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tapegate demo\n  tapegate demo --yes                      # ask nothing, as in CI\n  tapegate demo --output /tmp/demo.jsonl"
)]
pub(crate) struct Args {
    /// The tape of the theft [default: in a new temporary folder]
    #[arg(short, long, value_name = "FILE", value_parser = file_only_parser(SHOWN))]
    output: Option<PathBuf>,
    /// Overwrite an existing tape
    #[arg(long, requires = "output")]
    force: bool,
    /// Ask nothing: the held call expires at once, as if no one had answered
    #[arg(short, long)]
    yes: bool,
    /// Act as one of the processes of the demo
    #[arg(long, hide = true, value_enum, requires = "with")]
    role: Option<DemoRole>,
    /// What the process works with
    #[arg(long, hide = true)]
    with: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match (args.role, &args.with) {
        (Some(DemoRole::Agent), Some(config)) => return agent::run(config, out).map(|()| Exit::Ok),
        (Some(DemoRole::Server), Some(loot)) => {
            server::run(&mut std::io::stdin().lock(), out, loot)?;
            return Ok(Exit::Ok);
        }
        _ => {}
    }
    if let Some(path) = args.output.as_ref().filter(|path| !args.force && path.exists()) {
        let message = format!("`{}` exists already", path.display());
        return Err(Failure::new(Exit::Io, message).hint("--force overwrites it").into());
    }
    let us = std::env::current_exe().context("cannot find this program")?;
    let interruption = Interruption::watch()?;
    let demo = DemoFolder::create(us)?;
    let done = play(args, &demo, &interruption, out);
    let has_failed = !matches!(done, Ok(Exit::Ok));
    let patience = if has_failed { SIGNAL_PATIENCE } else { Duration::ZERO };
    match interruption.signal(patience) {
        Some(signal) => {
            terminal_output::info(&demo.remove());
            Ok(Exit::from_signal(signal))
        }
        None => done,
    }
}

/// Plays the three scenes.
fn play(
    args: &Args,
    demo: &DemoFolder,
    interruption: &Interruption,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let tape = match &args.output {
        Some(path) => std::path::absolute(path).context("cannot find the tape's folder")?,
        None => demo.path("theft.jsonl"),
    };
    let Some(live) = show_theft(args, demo, &tape, out)? else { return Ok(Exit::Transport) };
    let is_interrupted = || interruption.signal(Duration::ZERO).is_some();
    if is_interrupted()
        || !gate::run(demo, args.yes, interruption, out)?
        || is_interrupted()
        || !replay(demo, &tape, &live, out)?
    {
        return Ok(Exit::Findings);
    }
    print_next_steps(demo, &tape, out)?;
    Ok(Exit::Ok)
}

/// Runs the agent and the server with nothing but a recorder between them. Returns what the agent
/// printed, or nothing if the recorder could not record.
fn show_theft(
    args: &Args,
    demo: &DemoFolder,
    tape: &Path,
    out: &mut dyn Write,
) -> anyhow::Result<Option<Vec<u8>>> {
    title(out, "1. Without a gate: a server changes a tool, and a key is gone")?;
    let if_exists = if args.force { "overwrite" } else { "fail" };
    let tape_text = tape.display().to_string();
    let recorder = ["record", "-o", &tape_text, "--name", "demo", "--quiet", "--if-exists"];
    demo.write_config(&[&recorder[..], &[if_exists, "--"]].concat(), true)?;
    let mut live = Vec::new();
    let status = demo.run_agent(demo.agent(), &mut TeeWriter(out, &mut live))?;
    if !status.success() {
        // The recorder has printed the reason.
        return Ok(None);
    }
    anyhow::ensure!(demo.loot().contains(folder::KEY), "the server of the demo got no key");
    let (palette, key) = (terminal_output::palette_of_output(), demo.loot());
    writeln!(out, "\n{} {}", palette.red("The server now has:"), key.trim_end())?;
    writeln!(out, "No one was asked. Only the tape knows: {tape_text}")?;
    Ok(Some(live))
}

/// Plays the tape to the same agent in place of the server. False if the agent saw a difference.
fn replay(
    demo: &DemoFolder,
    tape: &Path,
    live: &[u8],
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    title(out, "3. The tape in the place of the server, as in a test")?;
    demo.write_config(&["replay", "--quiet", "-r", &tape.display().to_string()], false)?;
    let mut seen = Vec::new();
    let status = demo.run_agent(demo.agent(), &mut seen)?;
    let same = status.success() && seen == live;
    match same {
        true => writeln!(
            out,
            "The same agent ran against the theft's tape; the server was not started.\n\
             The agent saw and sent exactly the same."
        )?,
        false => {
            out.write_all(&seen)?;
            writeln!(out, "The agent saw something else, as shown above.")?;
        }
    }
    Ok(same)
}

fn title(out: &mut dyn Write, text: &str) -> anyhow::Result<()> {
    let palette = terminal_output::palette_of_output();
    Ok(writeln!(out, "\n{}\n", palette.bold(text))?)
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

fn print_next_steps(demo: &DemoFolder, tape: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let (name, state) = (tape.display(), demo.state().display().to_string());
    // As it was started: with cargo there is no `tapegate` on the path yet.
    let us = std::env::args().next().unwrap_or_else(|| "tapegate".to_owned());
    writeln!(
        out,
        "\nEverything is in {}. What to try next:
  {us} show {name}
  {us} log --state {state}
  {us} check {name}
  {us} init                    a policy for your own servers
  {us} wrap -- claude          your agent, with every server behind the gate
  {us} record --help           one server on tape, for your client's config",
        demo.root().display()
    )?;
    Ok(())
}

/// The folder cannot be made.
fn no_folder() -> Failure {
    Failure::new(Exit::Io, "cannot find a free name for a folder in the temporary folder")
        .hint("remove old `tapegate-demo-…` folders, or set TMPDIR")
}
