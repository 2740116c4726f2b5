//! Serves the bash tool, from its start to its exit code.

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Context;
use tapegate_bash::server::{
    BashServer, ServerEnvironment, ServerSetup, ServerWaker, ToolGovernance,
};
use tapegate_core::actor::Actor;
use tapegate_shim::file_watch::FileWatch;
use tapegate_wire::actor_host::{self, ActorHost, ActorHostOptions};
use tapegate_wire::clock::Clock;
use tapegate_wire::http::bridge_in::{InboundBridge, ServerProvider};
use tapegate_wire::http::{self, SharedSession};
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{EndCause, ShutdownTimeouts};
use tokio::sync::Notify;

use super::args::Args;
use super::settings_file::SettingsFile;
use super::{governed, governed_settings, log_printer, metrics_file};
use crate::client_transport::{client_ports, listen, print_address, print_waiting_notice};
use crate::exit::{Exit, Failure};
use crate::runtime;
use crate::settings::SearchContext;
use crate::terminal_output;
use crate::verbosity;

/// The longest message of a client.
const MESSAGE_BYTES_MAX: usize = 10 << 20;
/// Variables that commands do not get: our tokens, and the client's own channels.
const HIDDEN: [&str; 3] = ["TAPEGATE_", "THOUGHTGATE_", "CLAUDE_CODE_MESSAGING_"];
/// Where Claude Code names the conversation that it starts a server for.
const CONVERSATION: &str = "CLAUDE_CODE_SESSION_ID";

/// Serves until the client is gone or a signal arrives.
pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    // Before the file is read, so that no change is missed.
    let search = SearchContext::current().map_err(|error| {
        Failure::new(Exit::Io, format!("cannot find the current folder: {error}"))
    })?;
    let watch = FileWatch::new(SettingsFile::candidates(args.config.as_deref()));
    let SettingsFile { path, mut config } = SettingsFile::find_ready(args.config.as_deref())?;
    args.tool_name_style.iter().for_each(|style| config.tool_names = (*style).into());
    let runtime = runtime::start()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    let clock = Clock::start();
    let mail = Arc::new(Notify::new());
    let waker = Arc::clone(&mail);
    let waker = ServerWaker::new(move || waker.notify_one());
    let is_governed = governed::is_behind_shim(&search);
    if is_governed {
        governed_settings::check(&config)?;
    }
    let environment = environment(is_governed)?;
    let judged = args.judged_folder.as_deref();
    governed_settings::check_folder(judged, &config, &environment.folder)?;
    let misreading: fn(&Path, &str) -> Option<String> = governed_settings::misreading;
    let governance = is_governed.then_some(ToolGovernance { misreading });
    let setup = ServerSetup { config, environment, governance, log: log_printer::sink() };
    let server = Rc::new(RefCell::new(BashServer::new(setup, waker)));
    let tools = server.borrow().tool_host();
    if let Some(path) = &args.metrics_file {
        metrics_file::write(path, &tools)?;
    }
    let actor: Rc<RefCell<dyn Actor>> = server.clone();
    let host = ActorHost::new(actor, clock, host_options());
    let served = runtime.block_on(async {
        tokio::select! {
            cause = serve(args, &host, clock, signals) => cause,
            never = deliver_mail(&mail, &host) => match never {},
            never = reload(args, (path, watch), &server, &host) => match never {},
            never = metrics_file::keep_writing(args.metrics_file.as_deref(), &tools) => match never {},
        }
    });
    // However the session ended, nothing that a command started stays.
    tools.shutdown();
    if let Some(path) = &args.metrics_file {
        metrics_file::write(path, &tools)?;
    }
    Ok(match served? {
        EndCause::Signal(number) => Exit::from_signal(number),
        _ => Exit::Ok,
    })
}

/// Serves one client on standard input and output, or any number of clients over HTTP.
async fn serve(
    args: &Args,
    host: &Rc<ActorHost>,
    clock: Clock,
    signals: Signals,
) -> anyhow::Result<EndCause> {
    let Some(address) = &args.http else {
        print_waiting_notice(verbosity::is_quiet());
        return Ok(actor_host::run_stdio(host, client_ports()?, None, signals).await);
    };
    let listener = listen(address).await?.with_allowed(args.listen.allowed());
    let session = SharedSession::new(RecordedSession::without_recording(clock), MESSAGE_BYTES_MAX);
    let servers = ServerProvider::Stage(Rc::clone(host));
    let bridge = InboundBridge::new(Rc::clone(&session), servers, ShutdownTimeouts::default());
    print_address(&listener, verbosity::is_quiet())?;
    Ok(http::serve(listener, bridge, &session, signals).await)
}

/// Makes the host send what threads have left in the mailbox. Never returns.
async fn deliver_mail(mail: &Notify, host: &ActorHost) -> Infallible {
    loop {
        mail.notified().await;
        host.wake_all();
    }
}

/// Reloads the settings whenever their file changes, or appears. Never returns.
async fn reload(
    args: &Args,
    (mut path, mut watch): (Option<PathBuf>, FileWatch),
    server: &RefCell<BashServer>,
    host: &ActorHost,
) -> Infallible {
    loop {
        watch.changed().await;
        match SettingsFile::reload(args.config.as_deref(), path.as_deref()) {
            Ok(SettingsFile { path: found, mut config }) => {
                args.tool_name_style.iter().for_each(|style| config.tool_names = (*style).into());
                path = found;
                server.borrow_mut().reload(config);
                host.wake_all();
            }
            Err(error) => {
                terminal_output::warn(&format!("{error:#}; the settings stay as they were"));
            }
        }
    }
}

fn environment(is_governed: bool) -> anyhow::Result<ServerEnvironment> {
    let hidden = |name: &OsString| {
        let is_withheld = is_governed && governed_settings::is_withheld(name);
        let bytes = name.as_encoded_bytes();
        is_withheld || HIDDEN.iter().any(|prefix| bytes.starts_with(prefix.as_bytes()))
    };
    let inherited = std::env::vars_os().filter(|(name, _)| !hidden(name));
    // What an agent starts may not decide about approvals, whatever process it is moved to.
    let mark = (OsString::from("TAPEGATE_ACTIVE"), OsString::from("1"));
    Ok(ServerEnvironment {
        variables: inherited.chain([mark]).collect(),
        folder: std::env::current_dir().context("cannot find the current folder")?,
        conversation_id: std::env::var(CONVERSATION).ok().filter(|id| !id.is_empty()),
    })
}

fn host_options() -> ActorHostOptions {
    ActorHostOptions {
        message_bytes_max: MESSAGE_BYTES_MAX,
        passthrough: None,
        patience: ShutdownTimeouts::default(),
        notice: match verbosity::is_quiet() {
            true => Rc::new(|_| ()),
            false => Rc::new(terminal_output::warn),
        },
        farewell: "the bash tool has ended".to_owned(),
    }
}
