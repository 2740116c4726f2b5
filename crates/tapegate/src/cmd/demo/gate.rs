//! The same agent and server, started by `tapegate wrap`: the gate notices that the tool has changed,
//! holds the call, and asks a person.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tapegate_store::activity::{log_event, settled_event};
use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, ApprovalStore};

use super::folder::{DemoFolder, SERVER};
use super::interruption::Interruption;
use super::question::{self, Answer};
use super::title;
use crate::state_folder::now_us;
use crate::terminal_output;
use crate::views::approvals as view;

const POLICY: &str = "\
schema: 1
governance:
  defaults: { action: deny }
  rules:
    - { match: get_forecast, action: forward }
pins: { on_drift: approve }       # a tool that is not as it was accepted: ask a person
approval:
  default: { destination: cli, timeout: 15s, on_timeout: deny }
";

/// What is printed of a call that no one decides about.
const EXPIRED: &str = "No one answered in time, so the call is denied.";

/// How often to look for a call that waits while the agent prints nothing.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Runs the scene. False if the gate did not do what the policy says.
pub(super) fn run(
    demo: &DemoFolder,
    is_silent: bool,
    interruption: &Interruption,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    title(out, "2. The same agent and server, with the gate between them")?;
    demo.forget_loot();
    demo.write_config(&[], true)?;
    let policy = demo.path("project/tapegate.yaml");
    std::fs::write(&policy, POLICY).context("cannot write the demo's policy")?;
    writeln!(out, "The policy:\n")?;
    for line in POLICY.lines() {
        writeln!(out, "  {line}")?;
    }
    accept_tools(demo)?;
    writeln!(out, "\ntapegate policy pin -- SERVER     accepts the tool as it is now")?;
    writeln!(out, "tapegate wrap -- AGENT            starts the agent behind the gate\n")?;
    let answer = run_wrapped(demo, question::terminal(is_silent), interruption, out)?;
    if interruption.signal(Duration::ZERO).is_some() {
        return Ok(false);
    }
    show_log(demo, out)?;
    let is_stolen = !demo.loot().is_empty();
    match (answer, is_stolen) {
        (Some(Answer::Yes), true) => {
            writeln!(out, "You let it through, so the server has the key again.")?
        }
        (Some(Answer::No | Answer::Nobody), false) => {
            writeln!(out, "The held call was never sent: the server has nothing.")?
        }
        _ => writeln!(out, "The gate did not follow the policy.")?,
    }
    Ok(answer.is_some_and(|answer| (answer == Answer::Yes) == is_stolen))
}

/// Accepts the tools that the server has now.
fn accept_tools(demo: &DemoFolder) -> anyhow::Result<()> {
    let mut pin = demo.command();
    pin.args(["policy", "pin", "--server-id", SERVER, "--"]).args(demo.server());
    let done = pin.output().context("cannot start tapegate")?;
    let reason = String::from_utf8_lossy(&done.stderr).into_owned();
    anyhow::ensure!(done.status.success(), "`tapegate policy pin` failed: {reason}");
    Ok(())
}

/// Runs the wrapped agent, and has a person decide about the call that is held. Returns the answer.
fn run_wrapped(
    demo: &DemoFolder,
    mut terminal: Option<File>,
    interruption: &Interruption,
    out: &mut dyn Write,
) -> anyhow::Result<Option<Answer>> {
    let mut wrap = demo.command();
    wrap.args(["wrap", "--agent-type", "custom", "--config-path"]).arg(demo.config());
    wrap.arg("--").args(demo.agent_line());
    wrap.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = wrap.spawn().context("cannot start tapegate")?;
    let lines = lines_of(&mut child)?;
    let said = child.stderr.take().context("wrap has no standard error")?;
    // Read all the time: a pipe that is full would stop the session.
    let said = thread::spawn(move || read_all(said));
    let mut answer = None;
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => writeln!(out, "{line}")?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if interruption.signal(Duration::ZERO).is_some() => {
                // The terminal sends Ctrl-C to all processes, but others send signals to one.
                kill_process(Pid::from_child(&child), Signal::TERM).ok();
                break;
            }
            Err(RecvTimeoutError::Timeout) if answer.is_none() => {
                if let Some(request) = waiting_call(demo) {
                    answer = Some(decide(demo, &request, terminal.take(), interruption, out)?);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let status = child.wait()?;
    let said = said.join().unwrap_or_default();
    let is_interrupted = interruption.signal(Duration::ZERO).is_some();
    anyhow::ensure!(
        is_interrupted || status.success(),
        "`tapegate wrap` failed ({status}):\n{said}"
    );
    Ok(answer)
}

/// The lines that the agent prints, as they come.
fn lines_of(child: &mut Child) -> anyhow::Result<Receiver<String>> {
    let printed = child.stdout.take().context("the agent has no output")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(printed).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    Ok(lines)
}

fn read_all(mut source: ChildStderr) -> String {
    let mut text = Vec::new();
    source.read_to_end(&mut text).ok();
    String::from_utf8_lossy(&text).into_owned()
}

/// The call that waits for a person, if one does.
fn waiting_call(demo: &DemoFolder) -> Option<ApprovalRecord> {
    approvals(demo).ok()?.pending(now_us()).ok()?.pop()
}

/// `tapegate approvals` requires a person at a terminal, and the demo may run without one; the state
/// folder and its key are the demo's own.
fn approvals(demo: &DemoFolder) -> anyhow::Result<ApprovalStore> {
    Ok(ApprovalStore::open_project(&demo.state(), &demo.state())?)
}

/// Asks the person, and passes the answer on. Without one, the gate lets the call expire; without
/// a terminal, it expires at once.
fn decide(
    demo: &DemoFolder,
    request: &ApprovalRecord,
    terminal: Option<File>,
    interruption: &Interruption,
    out: &mut dyn Write,
) -> anyhow::Result<Answer> {
    let palette = terminal_output::palette_of_output();
    let (call, reason) = (view::call(request, 200), &request.reason);
    writeln!(out, "\n{} {call}", palette.red("The gate holds a call:"))?;
    writeln!(out, "Why: {}", terminal_output::sanitize(reason))?;
    let is_asked = terminal.is_some();
    let answer = match terminal {
        Some(terminal) => question::ask(terminal, request.expires_us, interruption, out)?,
        None => Answer::Nobody,
    };
    let (ruling, by, what) = match answer {
        Answer::Yes => (ApprovalOutcome::Approved, "you", "Approved by you."),
        Answer::No => (ApprovalOutcome::Denied, "you", "Denied by you."),
        Answer::Nobody => (ApprovalOutcome::Expired, "tapegate", EXPIRED),
    };
    if interruption.signal(Duration::ZERO).is_some() {
        return Ok(answer);
    }
    writeln!(out, "{what}\n")?;
    if answer == Answer::Nobody && is_asked {
        return Ok(answer);
    }
    let decided = ApprovalDecision { ruling, by: by.to_owned(), at_us: now_us(), reason: None };
    let log = || log_event(&demo.state(), &settled_event(request, &decided));
    approvals(demo)?.decide_and_log(&request.id, &decided, log)??;
    Ok(answer)
}

fn show_log(demo: &DemoFolder, out: &mut dyn Write) -> anyhow::Result<()> {
    let done = demo.command().args(["log", "--kind", "decision,approval"]).output();
    let done = done.context("cannot read the activity log")?;
    writeln!(out, "\nThe activity log (`tapegate log`):")?;
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)?;
    Ok(())
}
