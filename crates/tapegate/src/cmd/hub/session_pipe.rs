//! The hub of one session. `wrap` starts it as a process of its own, and talks to it on standard
//! input and output, one JSON object a line.
//!
//! It is a process because `wrap` must be able to stop with its agent on Ctrl-Z, and a hub that is
//! stopped would end every shim. It leaves the terminal: no signal of the terminal reaches it. If
//! `wrap` is killed, it ends the shims and puts the configs back.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::thread;

use serde_json::{Value, json};
use tapegate_agents::config_guard::{self, ConfigLock};
use tapegate_agents::tree::ConfigFormat;
use tapegate_hub::lifecycle::{self, HubSignals};
use tapegate_hub::service::{Hub, NoticeLevel, SessionTotals};
use tapegate_policy::model::Profile;
use tapegate_wire::http::listener::HttpListener;
use tokio::sync::mpsc;

use super::session_processes;
use crate::exit::Exit;
use crate::logs::Logger;

/// How many notices may wait.
const NOTICES_MAX: usize = 50;

/// What the hub tells `wrap` once shims can join it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HubReport {
    /// The id of the session, which is in the headers of its tapes.
    pub(crate) session: String,
    pub(crate) endpoint: String,
    /// The file with the shims' token.
    pub(crate) token_file: PathBuf,
    /// The version of the policy; `None` if everything is only observed.
    pub(crate) policy: Option<String>,
    pub(crate) profile: Profile,
}

/// What `wrap` tells the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionMessage {
    /// This config is about to be rewritten.
    Config(PathBuf, ConfigFormat),
    /// This folder is private to the session.
    Folder(PathBuf),
    /// The session is over, and `wrap` puts the configs back.
    End,
}

/// The pipes to `wrap`.
pub(super) struct SessionPipe {
    messages: mpsc::UnboundedReceiver<SessionMessage>,
}

/// Prints notices, but not on a terminal that an agent has: there they wait until the end.
pub(super) struct DeferredNotices {
    log: Rc<Logger>,
    is_waiting: Cell<bool>,
    notices: RefCell<Vec<(NoticeLevel, String)>>,
}

impl HubReport {
    fn line(&self) -> String {
        json!({
            "session": self.session,
            "endpoint": self.endpoint,
            "token_file": self.token_file,
            "policy": self.policy,
            "profile": self.profile.as_str(),
        })
        .to_string()
    }

    /// Reads the line of a hub.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| object[key].as_str().map(str::to_owned);
        Some(Self {
            session: text("session")?,
            endpoint: text("endpoint")?,
            token_file: text("token_file")?.into(),
            policy: text("policy"),
            profile: match object["profile"].as_str()? {
                "development" => Profile::Development,
                _ => Profile::Production,
            },
        })
    }
}

impl SessionMessage {
    /// The line for the hub.
    pub(crate) fn line(&self) -> String {
        let object = match self {
            Self::Config(path, format) => {
                json!({ "config": path, "format": format_name(*format) })
            }
            Self::Folder(path) => json!({ "folder": path }),
            Self::End => json!({ "end": true }),
        };
        format!("{object}\n")
    }

    /// Reads such a line.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let object: Value = serde_json::from_str(line).ok()?;
        match object["config"].as_str() {
            Some(path) => {
                let name = object["format"].as_str();
                let formats = [ConfigFormat::Json, ConfigFormat::Toml, ConfigFormat::Yaml];
                let format =
                    formats.into_iter().find(|format| name == Some(format_name(*format)))?;
                Some(Self::Config(path.into(), format))
            }
            None => match object["folder"].as_str() {
                Some(path) => Some(Self::Folder(path.into())),
                None => object["end"].as_bool().map(|_| Self::End),
            },
        }
    }
}

fn format_name(format: ConfigFormat) -> &'static str {
    match format {
        ConfigFormat::Json => "json",
        ConfigFormat::Toml => "toml",
        ConfigFormat::Yaml => "yaml",
    }
}

impl SessionPipe {
    /// Leaves the terminal, and listens to `wrap`.
    pub(super) fn open() -> anyhow::Result<Self> {
        // Fails only for the leader of a group, which is not at the terminal either.
        rustix::process::setsid().ok();
        let (sender, messages) = mpsc::unbounded_channel();
        thread::Builder::new().spawn(move || {
            for line in io::stdin().lock().lines() {
                let message = line.ok().as_deref().and_then(SessionMessage::read);
                if message.is_none_or(|message| sender.send(message).is_err()) {
                    return;
                }
            }
        })?;
        Ok(Self { messages })
    }

    /// Serves until the session is over, and reports what was done in it.
    pub(super) async fn serve(
        mut self,
        ready: HubReport,
        notices: &DeferredNotices,
        hub: &Rc<Hub>,
        (listener, signals): (HttpListener, HubSignals),
        beside: impl Future<Output = ()>,
    ) -> anyhow::Result<Exit> {
        let endpoint = ready.endpoint.clone();
        let is_heard = write_line(&ready.line());
        notices.wait();
        let (mut configs, mut folders) = (Vec::new(), Vec::new());
        let (is_ended, is_empty) = (Cell::new(false), Cell::new(false));
        let listen = async {
            while let Some(message) = self.messages.recv().await {
                match message {
                    SessionMessage::Config(path, format) => configs.push((path, format)),
                    SessionMessage::Folder(path) => folders.push(path),
                    SessionMessage::End => {
                        is_ended.set(true);
                        break;
                    }
                }
            }
            hub.stop();
        };
        if is_heard.is_err() {
            hub.stop();
        }
        let background = async { _ = tokio::join!(beside, listen) };
        let shims_left = async {
            session_processes::drain(hub, &endpoint).await;
            is_empty.set(true);
        };
        lifecycle::serve(Rc::clone(hub), listener, signals, background, shims_left).await;
        if !is_ended.get() {
            restore(&configs);
            for folder in folders {
                std::fs::remove_dir_all(folder).ok();
            }
        }
        // A second signal has ended the wait.
        if !is_empty.get() {
            let now = std::future::ready(());
            session_processes::end_shims(&endpoint, &hub.active_processes(), now).await;
        }
        notices.print();
        // Without a reader, `wrap` was killed.
        write_line(&totals_line(&hub.session_totals())).ok();
        Ok(Exit::Ok)
    }
}

fn totals_line(totals: &SessionTotals) -> String {
    json!({
        "servers": totals.servers,
        "calls": totals.calls,
        "denials": totals.denials,
        "approvals": totals.approvals,
        "tapes": totals.tapes,
    })
    .to_string()
}

/// Reads the last line of a hub.
pub(crate) fn read_totals(line: &str) -> Option<SessionTotals> {
    let object: Value = serde_json::from_str(line).ok()?;
    let number = |key: &str| object[key].as_u64();
    let tapes = object["tapes"].as_array()?.iter().filter_map(Value::as_str);
    Some(SessionTotals {
        servers: usize::try_from(number("servers")?).ok()?,
        calls: number("calls")?,
        denials: number("denials")?,
        approvals: number("approvals")?,
        tapes: tapes.map(str::to_owned).collect(),
    })
}

fn write_line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

/// Puts configs back whose `wrap` was killed.
fn restore(configs: &[(PathBuf, ConfigFormat)]) {
    for (path, format) in configs {
        // If the next `wrap` has the lock already, it puts the config back itself.
        if let Ok(lock) = ConfigLock::acquire(path) {
            config_guard::restore(&lock, *format).ok();
        }
    }
}

impl DeferredNotices {
    pub(super) fn new(log: Rc<Logger>) -> Self {
        Self { log, is_waiting: Cell::new(false), notices: RefCell::default() }
    }

    /// Prints a notice, now or at the end.
    pub(super) fn post(&self, level: NoticeLevel, message: &str) {
        match self.is_waiting.get() {
            true => {
                let mut notices = self.notices.borrow_mut();
                // All of them are in the activity log.
                if notices.len() < NOTICES_MAX {
                    notices.push((level, message.to_owned()));
                }
            }
            false => super::log_message(&self.log, level, message),
        }
    }

    /// From now on an agent has the terminal.
    fn wait(&self) {
        self.is_waiting.set(io::stderr().is_terminal());
    }

    /// Prints what has waited.
    fn print(&self) {
        self.is_waiting.set(false);
        for (level, message) in self.notices.take() {
            super::log_message(&self.log, level, &message);
        }
    }
}
