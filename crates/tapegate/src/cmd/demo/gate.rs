//! The last part of the demo: the same agent with a gate in front of the same server.
//!
//! One tool needs approval, which the demo gives in place of a person; the other is denied. The
//! decisions are read from the activity log.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome, ApprovalStore};

use super::agent;
use crate::state_folder::now_us;

const POLICY: &str = "\
schema: 1
governance:
  defaults: { action: deny }
  rules:
    - { match: count_words, action: approve }
";

/// How many times to check for a call that waits for approval, and how often.
const LOOKS_MAX: usize = 400;
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// The binary and the folder that this part runs with.
pub(super) struct GateDemo<'a> {
    us: &'a Path,
    folder: PathBuf,
}

impl<'a> GateDemo<'a> {
    pub(super) fn new(us: &'a Path, folder: PathBuf) -> Self {
        Self { us, folder }
    }

    /// Runs this part. Returns false if the gate does not act as the policy says.
    pub(super) fn run(&self, out: &mut dyn Write) -> anyhow::Result<bool> {
        let policy = self.folder.join("tapegate.yaml");
        std::fs::write(&policy, POLICY).context("cannot write a policy")?;
        writeln!(out, "\nThe same agent again, behind a gate with this policy:\n")?;
        for line in POLICY.lines() {
            writeln!(out, "  {line}")?;
        }
        writeln!(out)?;
        let mut shim = self.command();
        shim.args(["shim", "--server-id", "demo", "--log-format", "human", "--config"])
            .arg(&policy);
        shim.arg("--").arg(self.us).args(["demo", "--serve"]);
        // The demo prints its own account of what happens.
        shim.stderr(std::process::Stdio::null());
        let mut seen = Vec::new();
        let status = std::thread::scope(|scope| {
            // Beside the agent, which waits for its held call.
            let person = scope.spawn(|| self.approve());
            let status = agent::run(shim, &mut super::TeeWriter(out, &mut seen));
            person.join().ok();
            status
        })?;
        let seen = String::from_utf8_lossy(&seen);
        let good = status.success() && seen.contains("4 words") && seen.contains("-32014");
        self.show_log(out)?;
        match good {
            true => writeln!(out, "The approved call was forwarded; the other was not sent.")?,
            false => writeln!(out, "The gate did not follow the policy.")?,
        }
        Ok(good)
    }

    /// Approves the first call that waits. `tapegate approvals` requires a person at a terminal,
    /// and the demo may run without one; the state folder and its key are the demo's own.
    fn approve(&self) {
        let state = self.folder.join("state");
        for _ in 0..LOOKS_MAX {
            let approved = ApprovalStore::open_project(&state, &state).and_then(|approvals| {
                let Some(request) = approvals.pending(now_us())?.pop() else { return Ok(false) };
                let (ruling, by) = (ApprovalOutcome::Approved, "demo".to_owned());
                let decided = ApprovalDecision { ruling, by, at_us: now_us(), reason: None };
                approvals.decide(&request.id, &decided).map(|()| true)
            });
            if approved.is_ok_and(|approved| approved) {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn show_log(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let done = self.command().args(["log", "--kind", "decision,approval"]).output();
        let done = done.context("cannot read the activity log")?;
        writeln!(out, "\nThe decisions are in the activity log:")?;
        for line in String::from_utf8_lossy(&done.stdout).lines() {
            writeln!(out, "  {line}")?;
        }
        Ok(())
    }

    /// A command that runs this binary with its state in the demo's folder.
    fn command(&self) -> Command {
        let mut command = Command::new(self.us);
        command.env("TAPEGATE_HOME", self.folder.join("state")).current_dir(&self.folder);
        command
    }
}
