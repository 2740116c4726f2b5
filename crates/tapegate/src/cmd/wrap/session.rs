//! Runs an agent: its configs are rewritten while it runs, and put back when it has ended.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use tapegate_agents::discovery::ServerScan;
use tapegate_hub::service::SessionTotals;
use tapegate_wire::foreground::{
    ForegroundProcess, ForegroundSignals, ReceivedSignal, is_session_leader,
};
use tokio::time::Instant;

use super::agent_choice::AgentChoice;
use super::args::Args;
use super::config_locks::{ConfigRewrite, LockedConfigs, RewrittenConfigs, plan};
use super::entry_table;
use super::overlay;
use super::overlay_folder::OverlayFolder;
use super::policy_in_force;
use super::session_hub::{HubStartError, SessionHub};
use super::session_notes::SessionNote;
use super::shim_options::{self, ShimOptions};
use super::stored_entries::{self, StoredEntry};
use super::tape_folder;
use crate::cmd::hub::session_pipe::SessionMessage;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::runtime;
use crate::settings::SearchContext;
use crate::terminal_output;

/// How long an agent may take to end after it was asked to.
const AGENT_PATIENCE: Duration = Duration::from_secs(10);
/// What tells the agent, and the programs it starts, where they run.
const MARKS: [(&str, &str); 2] = [("TAPEGATE_ACTIVE", "1"), ("THOUGHTGATE_ACTIVE", "1")];

pub(super) fn run(
    args: &Args,
    search: &SearchContext<'_>,
    agent: &AgentChoice,
) -> anyhow::Result<Exit> {
    // Before anything is locked, since it may fail.
    let binary = shim_options::own_path(search)?;
    if let Some(tapes) = args.tapes_folder(search)? {
        tape_folder::prepare(&tapes)?;
    }
    // Locked before they are checked: another session may be rewriting them now.
    let locks = match args.overlay {
        true => LockedConfigs::lock_left(agent, search)?,
        false => LockedConfigs::lock(agent, &agent.scan(search), search)?,
    };
    locks.recover(&search.user_state_dir()?)?;
    stored_entries::remove_left(&search.user_state_dir()?, &locks.configs());
    // Read again, because recovery changes configs.
    let scan = agent.scan(search);
    agent.check(&scan, search)?;
    let preparation = match args.overlay {
        // The locks end here: nothing is going to be rewritten.
        true => Preparation::Overlay(overlay_parent(args, search, (agent, &scan), &binary)?),
        false => Preparation::Locks(locks),
    };
    let runtime = runtime::start()?;
    runtime.block_on(async {
        // Before anything is rewritten: from here on, no signal ends this process.
        let mut signals = ForegroundSignals::listen()?;
        let hub =
            SessionHub::start(Path::new(&binary), args, agent.client, search, &mut signals).await;
        let hub = match hub {
            Ok(hub) => hub,
            Err(HubStartError::Failure(failure)) => return Err(failure.into()),
            Err(HubStartError::Exit(exit)) => return Ok(exit),
        };
        let session = WrapSession { args, search, agent, hub };
        session.run(binary, preparation, &mut signals).await
    })
}

/// Where the private folder of a session with an overlay goes, once it is known that there can be
/// one.
fn overlay_parent(
    args: &Args,
    search: &SearchContext<'_>,
    (agent, scan): (&AgentChoice, &ServerScan),
    binary: &str,
) -> Result<PathBuf, Failure> {
    let shim = ShimOptions::before_start(args, search, binary.to_owned())?;
    overlay::plan((agent, &args.command), scan, &shim, search, Path::new("/"))?;
    let parent = OverlayFolder::parent(&search.user_state_dir()?)?;
    overlay::check_folder(agent, &parent)?;
    Ok(parent)
}

/// What is prepared before the hub starts.
enum Preparation {
    /// Configs to rewrite.
    Locks(LockedConfigs),
    /// Where the folder of a session goes that leaves the configs alone.
    Overlay(PathBuf),
}

/// How the agent gets its servers; it ends with the agent.
enum AgentServers {
    /// From its configs.
    Configs(RewrittenConfigs, SessionNote, Vec<StoredEntry>),
    /// From us.
    Overlay(OverlayFolder),
}

/// A session whose hub runs.
struct WrapSession<'a> {
    args: &'a Args,
    search: &'a SearchContext<'a>,
    agent: &'a AgentChoice,
    hub: SessionHub,
}

impl WrapSession<'_> {
    async fn run(
        mut self,
        binary: String,
        preparation: Preparation,
        signals: &mut ForegroundSignals,
    ) -> anyhow::Result<Exit> {
        let (source, process) = match self.start(binary, preparation) {
            Ok(started) => started,
            Err(failure) => {
                // Nothing of the session may outlive it.
                self.hub.end(signals).await;
                return Err(failure.into());
            }
        };
        let status = self.wait(process, signals).await;
        // Before the hub ends, since without it the shims' entries cannot start anything.
        let is_restored = source.end(self.args.no_restore);
        let session = self.hub.report.session.clone();
        let totals = self.hub.end(signals).await;
        if let Some(totals) = totals {
            terminal_output::info(&totals_text(&totals, &session));
        }
        match Exit::from_child_status(status.ok()) {
            // An agent that ended well must not hide that a config is not restored.
            Exit::Ok if !is_restored => Ok(Exit::Io),
            exit => Ok(exit),
        }
    }

    /// Gives the agent its servers and starts it. If either fails, all configs are as they were.
    fn start(
        &mut self,
        binary: String,
        preparation: Preparation,
    ) -> Result<(AgentServers, ForegroundProcess), Failure> {
        let shim = self.shim_options(binary)?;
        // Once more, because agents change their configs at any time.
        let scan = self.agent.scan(self.search);
        self.agent.check(&scan, self.search)?;
        let table = entry_table::text(&scan, self.search);
        let mut command = self.args.command.clone();
        let mut variables = MARKS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let source = match preparation {
            Preparation::Locks(locks) => self.rewrite(locks, &plan(&scan, &shim))?,
            Preparation::Overlay(parent) => {
                // The hub removes it if this process is killed, so nothing is in it before.
                let mut folder = OverlayFolder::create(&parent)?;
                self.hub.tell(&SessionMessage::Folder(folder.path().to_owned()));
                let agent = (self.agent, command.as_slice());
                let overlay = overlay::plan(agent, &scan, &shim, self.search, folder.path())?;
                if let Some((name, text)) = &overlay.file {
                    folder.write(name, text)?;
                }
                command = overlay::command_line(&command, &overlay);
                variables.extend(overlay.environment);
                AgentServers::Overlay(folder)
            }
        };
        let report = &self.hub.report;
        let policy = policy_in_force::text(report.policy.as_deref(), report.profile);
        terminal_output::info(&format!(
            "{} behind the hub at {}; {policy}\n{table}",
            self.agent.client.name, report.endpoint
        ));
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let process = ForegroundProcess::spawn(&command, &variables).map_err(|error| {
            // One code for every program of ours that cannot be started, as for a server. 127 would
            // be that of an agent that ran and could not start something else.
            Failure::new(Exit::Transport, format!("{error}; the configs are restored"))
                .hint("check the agent's command after `--`")
        })?;
        Ok((source, process))
    }

    /// What the shims of this session have in common.
    fn shim_options(&self, binary: String) -> Result<ShimOptions, Failure> {
        let report = &self.hub.report;
        Ok(ShimOptions {
            endpoint: report.endpoint.clone(),
            token_file: report.token_file.clone(),
            profile: report.profile,
            ..ShimOptions::before_start(self.args, self.search, binary)?
        })
    }

    fn rewrite(
        &mut self,
        locks: LockedConfigs,
        plan: &[ConfigRewrite],
    ) -> Result<AgentServers, Failure> {
        // Before the rewrite, so that each can be put back if this process is killed.
        let note = SessionNote::write(&self.search.user_state_dir()?, plan);
        for config in plan {
            self.hub.tell(&SessionMessage::Config(config.path.clone(), config.format));
        }
        let stored: Vec<StoredEntry> =
            plan.iter().flat_map(|config| config.stored.clone()).collect();
        let written = stored.iter().try_for_each(StoredEntry::write);
        let rewritten = written.and_then(|()| locks.rewrite(plan)).inspect_err(|_| {
            stored.iter().for_each(StoredEntry::remove);
        });
        Ok(AgentServers::Configs(rewritten?, note, stored))
    }

    /// Waits until the agent has ended, and passes signals on to it.
    async fn wait(
        &mut self,
        mut process: ForegroundProcess,
        signals: &mut ForegroundSignals,
    ) -> std::io::Result<ExitStatus> {
        let mut deadline: Option<Instant> = None;
        let mut is_hub_lost = false;
        loop {
            let patience = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let received = tokio::select! {
                status = process.exited() => return status,
                received = signals.next() => received,
                // The agent goes on: its work should not be lost because its tools are.
                () = self.hub.lost(), if !is_hub_lost => {
                    is_hub_lost = true;
                    terminal_output::warn("the hub has ended, so the servers of this session end, too");
                    continue;
                }
                () = patience => {
                    process.signal(Signal::KILL);
                    deadline = None;
                    continue;
                }
            };
            pass_on(&process, received, &mut deadline);
        }
    }
}

impl AgentServers {
    /// Puts everything back; false if a config is not back.
    fn end(self, is_kept: bool) -> bool {
        match self {
            Self::Overlay(folder) => {
                if folder.is_changed() {
                    terminal_output::warn(
                        "the agent has changed its servers or settings in this session; with \
                         --overlay, such changes are not kept",
                    );
                }
                true
            }
            Self::Configs(configs, ..) if is_kept => {
                configs.keep();
                let unwrap = program_name::command("unwrap");
                let text = format!("the configs stay rewritten; `{unwrap}` restores them");
                terminal_output::info(&text);
                true
            }
            Self::Configs(configs, note, stored) => {
                let is_restored = configs.restore();
                // The note leads `unwrap --all` to configs that are still rewritten.
                if is_restored {
                    note.remove();
                    stored.iter().for_each(StoredEntry::remove);
                }
                is_restored
            }
        }
    }
}

/// Passes a signal on, and notes when the agent must have ended because of it.
fn pass_on(process: &ForegroundProcess, received: ReceivedSignal, deadline: &mut Option<Instant>) {
    let ReceivedSignal { signal, is_from_process } = received;
    // Ctrl-C is for the agent, which may use it to stop a single answer.
    let must_end = signal == Signal::TERM || signal == Signal::HUP;
    // A second request is urgent.
    let is_urgent = signal == Signal::TERM && deadline.is_some();
    // If its terminal is closed, a session's leader alone is told, and the other programs later.
    let is_for_leader = signal == Signal::HUP && is_session_leader();
    if is_from_process || is_for_leader {
        process.signal(if is_urgent { Signal::KILL } else { signal });
    }
    if must_end && deadline.is_none() {
        *deadline = Some(Instant::now() + AGENT_PATIENCE);
    }
}

fn totals_text(totals: &SessionTotals, session: &str) -> String {
    let count = |number: u64, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    };
    let mut text = format!(
        "{}, {}, {} denied, {} approved, {}",
        count(totals.servers as u64, "server", "servers"),
        count(totals.calls, "call", "calls"),
        totals.denials,
        totals.approvals,
        count(totals.tapes.len() as u64, "tape", "tapes"),
    );
    for tape in &totals.tapes {
        text += &format!("\n  {tape}");
    }
    if !totals.tapes.is_empty() {
        let show = program_name::command("show");
        text += &format!("\nsession {session}; `{show} {session}` shows it");
    }
    text
}
