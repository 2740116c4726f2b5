//! The hub of a session, which runs as a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tapegate_agents::client_table::McpClient;
use tapegate_hub::service::SessionTotals;
use tapegate_wire::foreground::ForegroundSignals;
use tokio::sync::mpsc;

use super::args::Args;
use crate::cmd::hub::session_pipe::{self, HubReport, SessionMessage};
use crate::cmd::hub::session_processes;
use crate::exit::{Exit, Failure};
use crate::settings::SearchContext;
use crate::verbosity::{self, VerbosityLevel};

/// How long a hub may take to end: it waits for shims for ten seconds, and for the servers of those
/// that it kills for three.
const PATIENCE: Duration = Duration::from_secs(16);
/// How long shims may take to end that have no hub any more.
const SHIMS_PATIENCE: Duration = Duration::from_secs(3);

/// A running hub. Dropping it ends it.
pub(super) struct SessionHub {
    child: Child,
    /// The hub ends when this is closed.
    input: Option<ChildStdin>,
    lines: mpsc::UnboundedReceiver<String>,
    pub(super) report: HubReport,
}

/// Why there is no hub.
pub(super) enum HubStartError {
    /// It could not be started.
    Failure(Failure),
    /// It has reported the reason itself, and exited with this code.
    Exit(Exit),
}

impl SessionHub {
    /// Starts a hub, and waits until shims can join it.
    pub(super) async fn start(
        binary: &Path,
        args: &Args,
        agent: &McpClient,
        search: &SearchContext<'_>,
        signals: &mut ForegroundSignals,
    ) -> Result<Self, HubStartError> {
        let mut command = Command::new(binary);
        // A process of its own, so that it outlives this one and can put the configs back.
        command.args(["hub", "--session", agent.id, "--port", &args.governance_port.to_string()]);
        if let Some(config) = &args.project.config {
            command.arg("--config").arg(search.folder.join(config));
        }
        if let Some(profile) = args.project.profile {
            command.args(["--profile", tapegate_policy::model::Profile::from(profile).as_str()]);
        }
        if args.require_policy {
            command.arg("--require-policy");
        }
        // Quieter than a hub that is started by hand, because the agent has the terminal.
        let level = verbosity::chosen_level().unwrap_or(VerbosityLevel::Warn);
        command.args(["--log-level", level.name()]);
        let format = if verbosity::is_json() { "json" } else { "human" };
        command.args(["--log-format", format]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let cannot = |error: std::io::Error| {
            let message = format!("cannot start the hub `{}`: {error}", binary.display());
            HubStartError::Failure(Failure::new(Exit::Transport, message))
        };
        let mut child = command.spawn().map_err(cannot)?;
        let input = child.stdin.take();
        let (sender, mut lines) = mpsc::unbounded_channel();
        if let Some(output) = child.stdout.take() {
            // On a thread: this runtime must not wait for a pipe, and the thread ends with the hub.
            let read = move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                lines.for_each(|line| _ = sender.send(line));
            };
            thread::Builder::new().spawn(read).map_err(cannot)?;
        }
        let first = tokio::select! {
            first = lines.recv() => first,
            // Ctrl-C while the hub starts; nothing is rewritten yet.
            received = signals.next() => {
                drop(input);
                child.wait().ok();
                return Err(HubStartError::Exit(Exit::from_signal(received.signal.as_raw())));
            }
        };
        match first.as_deref().and_then(HubReport::read) {
            Some(report) => Ok(Self { child, input, lines, report }),
            None => {
                drop(input);
                let status = child.wait().ok().filter(|status| !status.success());
                Err(HubStartError::Exit(Exit::from_child_status(status)))
            }
        }
    }

    /// Tells the hub something. A hub that has died is noticed elsewhere.
    pub(super) fn tell(&mut self, message: &SessionMessage) {
        if let Some(input) = &mut self.input {
            input.write_all(message.line().as_bytes()).ok();
        }
    }

    /// Waits until the hub has ended although the session has not.
    pub(super) async fn lost(&mut self) {
        while self.lines.recv().await.is_some() {}
        // The session may go on for hours, and would have a zombie for as long. The hub closes its
        // output only by ending.
        self.child.wait().ok();
    }

    /// Ends the shims and the hub, and returns what was done in the session. A signal ends the wait
    /// for shims.
    pub(super) async fn end(mut self, signals: &mut ForegroundSignals) -> Option<SessionTotals> {
        self.tell(&SessionMessage::End);
        let pid = Pid::from_child(&self.child);
        let mut totals = None;
        let deadline = tokio::time::sleep(PATIENCE);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                line = self.lines.recv() => match line {
                    // Other lines may come before the totals.
                    Some(line) => totals = session_pipe::read_totals(&line).or(totals),
                    None => break,
                },
                _ = signals.next() => {
                    // The hub then stops waiting for shims, and still reports its totals.
                    if matches!(self.child.try_wait(), Ok(None)) {
                        kill_process(pid, Signal::TERM).ok();
                    }
                }
                () = &mut deadline => {
                    self.child.kill().ok();
                    break;
                }
            }
        }
        self.child.wait().ok();
        // A hub that was killed has not looked for shims that do not end.
        if totals.is_none() {
            let patience = tokio::time::sleep(SHIMS_PATIENCE);
            session_processes::end_shims(&self.report.endpoint, &[], patience).await;
        }
        totals
    }
}

impl Drop for SessionHub {
    fn drop(&mut self) {
        // It ends by itself when its input closes, and the process that adopts it reaps it.
        self.input = None;
        self.child.try_wait().ok();
    }
}
