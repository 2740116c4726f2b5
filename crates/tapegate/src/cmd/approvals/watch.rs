//! `tapegate approvals watch`: shows each waiting call at the terminal, and takes decisions by key.
//!
//! One request is on the screen at a time. A key counts only for a request that was shown before it
//! was typed, and `y` only once all of the call was shown.

mod key_mode;
mod watch_queue;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Signal as Number, getpid, kill_process};
use tapegate_core::activity::ActivityKind;
use tapegate_hub::grant_plan::{GrantPlan, covers};
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalEntry, ApprovalError, ApprovalOutcome, ApprovalRecord, ApprovalStore,
};
use tapegate_wire::port::StreamPort;
use tokio::io::Interest;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::folder::Project;
use super::grant;
use super::{Args, decide, failure};
use crate::approver_check::{self, PersonAttempt};
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::settings::SearchContext;
use crate::state_folder::now_us;
use crate::terminal_output;
use crate::views::approvals::watch_view::{self, WatchLayout};
use crate::views::{approvals as view, visible_text};
use crate::zone::TimeZone;
use key_mode::KeyMode;
use watch_queue::WatchQueue;

/// The hint for scripts.
const WAY_OUT: &str = "run it in a terminal that you opened, not an agent; scripts use `approve` and `deny` \
                       with --non-interactive --key-file";
/// How often the time left is updated, and requests are looked for where changes cannot be watched.
const TICK: Duration = Duration::from_secs(1);
/// How often to see whether keys are taken for a new request.
const SOON: Duration = Duration::from_millis(100);
/// The size of a terminal that does not tell it.
const SIZE: (usize, usize) = (80, 24);
/// How many lines stay free below a request.
const LINES_FREE: usize = 2;
/// Less of a request is not worth showing.
const LINES_MIN: usize = 12;

pub(super) fn run(args: &Args, project: &Project) -> anyhow::Result<Exit> {
    let by = decide::decider_name(args)?;
    let attempt = PersonAttempt {
        kind: ActivityKind::Approval,
        command: "approvals watch",
        approval_id: None,
    };
    let required = approver_check::require_person("deciding about calls", WAY_OUT);
    attempt.log_if_refused(&project.state, required)?;
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    // Before the mode of the terminal changes, so that no signal can leave it changed.
    let signals = WatchSignals::listen()?;
    let terminal =
        File::options().read(true).write(true).open("/dev/tty").map_err(terminal_gone)?;
    let keys = StreamPort::reader(OwnedFd::from(terminal.try_clone()?)).map_err(terminal_gone)?;
    let mode = KeyMode::enter(terminal.try_clone()?).map_err(terminal_gone)?;
    let mut session = WatchSession {
        args,
        project,
        attempt,
        approvals: project.approvals()?,
        by,
        terminal,
        mode,
        queue: WatchQueue::default(),
        entries: Vec::new(),
        is_bare: std::env::var_os("TERM").is_some_and(|term| term == "dumb"),
        faults: Vec::new(),
        grant_uses: BTreeMap::new(),
    };
    let ended = runtime.block_on(session.run(&keys, signals));
    // Whatever has ended the session, the line of keys must not stay.
    session.print("").ok();
    Ok(ended?)
}

fn terminal_gone(error: io::Error) -> Failure {
    Failure::new(Exit::Io, format!("cannot use the terminal: {error}"))
}

/// The signals that a session handles.
struct WatchSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    quit: Signal,
    stop: Signal,
    resize: Signal,
}

/// What a session waits for.
enum WatchEvent {
    /// Something was typed; this is the first byte of it.
    Key(u8),
    /// A signal that ends the session.
    End(i32),
    /// The folder may have changed, or a second has passed.
    Look,
    /// Ctrl-Z.
    Stop,
    /// The terminal is gone.
    HungUp,
}

impl WatchSignals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            stop: signal(SignalKind::from_raw(Number::TSTP.as_raw()))?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    async fn next(&mut self) -> WatchEvent {
        tokio::select! {
            _ = self.interrupt.recv() => WatchEvent::End(Number::INT.as_raw()),
            _ = self.terminate.recv() => WatchEvent::End(Number::TERM.as_raw()),
            _ = self.hang_up.recv() => WatchEvent::End(Number::HUP.as_raw()),
            _ = self.quit.recv() => WatchEvent::End(Number::QUIT.as_raw()),
            _ = self.stop.recv() => WatchEvent::Stop,
            // The next look writes the line of keys again.
            _ = self.resize.recv() => WatchEvent::Look,
        }
    }
}

/// A person who watches the calls of a project.
struct WatchSession<'a> {
    args: &'a Args,
    project: &'a Project,
    attempt: PersonAttempt<'a>,
    approvals: ApprovalStore,
    by: String,
    terminal: File,
    mode: KeyMode,
    queue: WatchQueue,
    /// All requests, with those that were decided: they are what new calls are compared with.
    entries: Vec<ApprovalEntry>,
    /// Whether the terminal cannot rewrite a line.
    is_bare: bool,
    /// The channels that were reported as failing.
    faults: Vec<String>,
    /// When each grant was last used.
    grant_uses: BTreeMap<String, i64>,
}

impl WatchSession<'_> {
    async fn run(&mut self, keys: &StreamPort, mut signals: WatchSignals) -> Result<Exit, Failure> {
        // Before the first look, so that a request in between is not missed.
        let watcher = self.approvals.watch();
        let notifier = watcher.handle().and_then(|handle| handle.try_clone_to_owned().ok());
        let notifier = notifier
            .and_then(|handle| StreamPort::from_own_descriptor(handle, Interest::READABLE).ok());
        let mut is_changed = true;
        let state = visible_text::path(&self.project.state);
        self.print(&format!("watching the calls of `{state}`; decisions are made as {}\n", {
            visible_text::inline(&self.by, usize::MAX)
        }))?;
        loop {
            if std::mem::take(&mut is_changed) || notifier.is_none() {
                self.look()?;
            }
            self.report_news()?;
            self.show_next()?;
            self.print_keys()?;
            // The keys appear as soon as they are taken.
            let pause = if self.queue.takes_keys(now_us()) { TICK } else { SOON };
            let event = tokio::select! {
                event = next_key(keys) => event,
                event = signals.next() => event,
                () = folder_changed(notifier.as_ref()) => {
                    is_changed = true;
                    WatchEvent::Look
                }
                () = tokio::time::sleep(pause) => WatchEvent::Look,
            };
            match event {
                WatchEvent::Key(key) => {
                    if let Some(exit) = self.press(key)? {
                        return Ok(exit);
                    }
                }
                WatchEvent::End(number) => return Ok(Exit::from_signal(number)),
                WatchEvent::HungUp => return Ok(Exit::from_signal(Number::HUP.as_raw())),
                WatchEvent::Look => is_changed |= self.is_expired() || self.mode.is_gone(),
                WatchEvent::Stop => {
                    self.stop()?;
                    is_changed = true;
                }
            }
        }
    }

    /// Stops as Ctrl-Z asks, with the terminal as it was, and goes on after SIGCONT.
    fn stop(&mut self) -> Result<(), Failure> {
        self.print("")?;
        self.mode.suspend();
        // Not SIGTSTP, which is handled; the shell treats both alike.
        kill_process(getpid(), Number::STOP).ok();
        self.mode.resume().map_err(terminal_gone)
    }

    /// Reads the folder, and reports a request that has ended elsewhere.
    fn look(&mut self) -> Result<(), Failure> {
        if self.mode.is_gone() {
            return Err(terminal_gone(io::Error::from(io::ErrorKind::BrokenPipe)));
        }
        // The folder may report forged files, which must not be written behind the keys.
        self.print("")?;
        self.entries = self.project.entries()?;
        let now_us = now_us();
        let here = SearchContext::current().map(|search| search.folder.clone()).unwrap_or_default();
        let takes_all = self.args.all || self.args.state.is_named();
        let is_ours = |entry: &&ApprovalEntry| {
            // What this person has approved waits for others.
            let is_voted = entry.votes.contains(&self.by);
            entry.is_pending(now_us)
                && !is_voted
                && (takes_all || decide::is_of_project(&entry.request, &here))
        };
        let waiting: Vec<ApprovalEntry> = self.entries.iter().filter(is_ours).cloned().collect();
        let change = self.queue.update(waiting);
        if let Some(id) = change.ended {
            let entry = self.entries.iter().find(|entry| entry.request.id == id);
            let text = match entry {
                Some(entry) => watch_view::ended_line(entry, &self.layout(entry)),
                None => format!("{id}: removed"),
            };
            self.print(&format!("{text}\n"))?;
        }
        match change.arrived {
            true => self.print("\x07"),
            false => Ok(()),
        }
    }

    /// Reports channels that fail or work again, and calls that pass by a grant.
    fn report_news(&mut self) -> Result<(), Failure> {
        let faults = self.project.channel_faults();
        if faults != self.faults {
            let new = faults.iter().filter(|fault| !self.faults.contains(fault)).cloned();
            let mut lines: Vec<String> = new.collect();
            if faults.is_empty() {
                lines.push("all channels work again".to_owned());
            }
            self.faults = faults;
            lines.iter().try_for_each(|line| self.print(&format!("{line}\n")))?;
        }
        for (grant, used_us) in self.approvals.indexed_grants().map_err(failure)? {
            // What was used before this session began is no news.
            let before = self.grant_uses.insert(grant.id.clone(), used_us);
            if before.is_some_and(|before| before != used_us) {
                let by = visible_text::inline(&grant.by, 200);
                let line = format!("passed by {}, granted by {by}: {}", grant.id, covers(&grant));
                self.print(&format!("{line}\n"))?;
            }
        }
        Ok(())
    }

    /// Whether the request on the screen has expired.
    fn is_expired(&self) -> bool {
        let now_us = now_us();
        let fresh =
            self.queue.current().map(|entry| self.approvals.asker_now_us(&entry.request, now_us));
        self.queue.current().zip(fresh).is_some_and(|(entry, now)| now >= entry.request.expires_us)
    }

    /// Shows the next request, if none is on the screen.
    fn show_next(&mut self) -> Result<(), Failure> {
        let Some(entry) = self.queue.next().cloned() else { return Ok(()) };
        let layout = self.layout(&entry);
        let lines = watch_view::block(&entry, self.similar(&entry), &layout);
        let (_, rows) = self.mode.size().unwrap_or(SIZE);
        let room = rows.saturating_sub(LINES_FREE).max(LINES_MIN);
        let is_whole = lines.len() <= room;
        let shown = if is_whole { lines.len() } else { room.saturating_sub(1) };
        let mut text = lines[..shown].join("\n") + "\n";
        if !is_whole {
            let hidden = lines.len() - shown;
            text.push_str(&format!("… {hidden} more lines: press d to see all before y\n"));
        }
        text.push_str(&self.refusal(&entry.request).map(|why| why + "\n").unwrap_or_default());
        self.print(&text)?;
        // What was typed until now was not meant for this request.
        self.mode.discard_typed();
        self.queue.show(&entry.request.id, is_whole, now_us());
        Ok(())
    }

    /// The last call of the same tool, decided or not.
    fn similar(&self, entry: &ApprovalEntry) -> Option<&ApprovalEntry> {
        let key = |request: &ApprovalRecord| {
            let ApprovalRecord { server_id, method, tool, .. } = request;
            (server_id.clone(), method.clone(), tool.clone())
        };
        let wanted = key(&entry.request);
        // Oldest first, so the last one before this call is the newest.
        let before = self.entries.iter().take_while(|one| one.request.id != entry.request.id);
        before.filter(|one| key(&one.request) == wanted).last()
    }

    /// Handles a key; a value ends the session.
    fn press(&mut self, key: u8) -> Result<Option<Exit>, Failure> {
        match key.to_ascii_lowercase() {
            // Ctrl-D too: people end programs with it.
            b'q' | 4 => return Ok(Some(Exit::Ok)),
            _ if !self.queue.takes_keys(now_us()) => {}
            b'y' | b'a' if !self.queue.is_whole() && self.queue.current().is_some() => {
                self.print("press d first: not all of this call was shown\n")?;
            }
            b'y' => self.decide(ApprovalOutcome::Approved, None)?,
            b'a' => self.decide(ApprovalOutcome::Approved, Some(&GrantPlan::for_session()))?,
            b'n' => self.decide(ApprovalOutcome::Denied, None)?,
            b'd' => self.show_details()?,
            b's' if self.queue.others() > 0 => self.queue.skip(),
            _ => {}
        }
        Ok(None)
    }

    /// Shows everything about the current request.
    fn show_details(&mut self) -> Result<(), Failure> {
        let Some(entry) = self.queue.current() else { return Ok(()) };
        let text = view::details(entry, now_us(), &TimeZone::system());
        self.print(&format!("{text}\n"))?;
        self.queue.show_whole();
        Ok(())
    }

    /// Why this person may not approve a request, if so.
    fn refusal(&self, request: &ApprovalRecord) -> Option<String> {
        let decision = self.decision(request, ApprovalOutcome::Approved);
        let error = self.approvals.check_decision(request, &decision).err()?;
        Some(visible_text::inline(&error.to_string(), usize::MAX))
    }

    fn decision(&self, request: &ApprovalRecord, ruling: ApprovalOutcome) -> ApprovalDecision {
        // By the clock of the waiting process, since ours may be off.
        let at_us = self.approvals.asker_now_us(request, now_us());
        ApprovalDecision { ruling, by: self.by.clone(), at_us, reason: None }
    }

    /// Decides about the current request, and grants more if there is a plan.
    fn decide(&mut self, ruling: ApprovalOutcome, plan: Option<&GrantPlan>) -> Result<(), Failure> {
        let Some(ApprovalEntry { request, .. }) = self.queue.current().cloned() else {
            return Ok(());
        };
        let planned = plan.map(|plan| {
            let granted = plan.grant_for(&self.approvals, &request, &self.by, now_us());
            granted.map_err(grant::refusal)
        });
        let granted = match planned.transpose() {
            Ok(granted) => granted,
            Err(failure) => return self.print(&format!("{}\n", failure.message)),
        };
        let decided = self.decision(&request, ruling);
        let log = || self.project.log(&decide::event(&request, &decided));
        let done = self.approvals.decide_and_log(&request.id, &decided, log);
        let text = match &done {
            Ok(_) => format!("{} {}", ruling.as_str(), view::call(&request, 60)),
            Err(error) => visible_text::inline(&error.to_string(), usize::MAX),
        };
        self.print(&format!("{text}\n"))?;
        match done {
            Ok(logged) => {
                logged.err().iter().for_each(decide::warn_of_log);
                granted.iter().try_for_each(|granted| {
                    decide::store_grant(self.project, &self.approvals, granted)
                })?;
            }
            Err(error) if decide::is_for_other_approver(&error) => {
                let attempt = PersonAttempt { approval_id: Some(&request.id), ..self.attempt };
                attempt.log_refusal(&self.project.state, &error.to_string());
                // It stays on the screen: another key may be permitted.
                return Ok(());
            }
            Err(error @ (ApprovalError::Io { .. } | ApprovalError::Private(_))) => {
                return Err(failure(error));
            }
            // The next look leaves it out.
            Err(error @ ApprovalError::NeedsMore { .. }) => {
                decide::log_vote(self.project, &request, &decided, &error.to_string());
            }
            // Another process was faster, or it has expired.
            Err(_) => {}
        }
        self.queue.finish();
        Ok(())
    }

    fn layout(&self, entry: &ApprovalEntry) -> WatchLayout {
        let (columns, _) = self.mode.size().unwrap_or(SIZE);
        let now_us = self.approvals.asker_now_us(&entry.request, now_us());
        WatchLayout { columns, palette: terminal_output::palette_of_terminal(), now_us }
    }

    /// Writes the line of keys over the one before.
    fn print_keys(&mut self) -> Result<(), Failure> {
        let none = ApprovalEntry::default();
        let layout = self.layout(self.queue.current().unwrap_or(&none));
        let (others, takes_keys) = (self.queue.others(), self.queue.takes_keys(now_us()));
        let line = watch_view::keys_line(self.queue.current(), others, takes_keys, &layout);
        match self.is_bare {
            true => Ok(()),
            false => self.print(&line),
        }
    }

    /// Writes text in place of the line of keys.
    fn print(&mut self, text: &str) -> Result<(), Failure> {
        let clear = if self.is_bare { "" } else { "\r\x1b[K" };
        let written = self.terminal.write_all(format!("{clear}{text}").as_bytes());
        written.and_then(|()| self.terminal.flush()).map_err(terminal_gone)
    }
}

/// Waits until something is typed. Of a pasted text only the first byte counts, so that no text
/// can decide about several calls.
async fn next_key(keys: &StreamPort) -> WatchEvent {
    let mut typed = [0; 256];
    match keys.read(&mut typed).await {
        Ok(1..) => WatchEvent::Key(typed[0]),
        Ok(0) | Err(_) => WatchEvent::HungUp,
    }
}

/// Waits until the folder has changed. Never returns where changes cannot be watched.
async fn folder_changed(notifier: Option<&StreamPort>) {
    let mut news = [0; 4096];
    match notifier {
        Some(notifier) if notifier.read(&mut news).await.is_ok() => {}
        _ => std::future::pending().await,
    }
}
