//! Runs a live session over any combination of transports, for all commands that run between
//! clients and a server.

use std::ffi::OsString;
use std::rc::Rc;

use tapegate_wire::child::{Child, Launch, SpawnError};
use tapegate_wire::deck::Deck;
use tapegate_wire::http::bridge_in::{Bridge, OnServerEnd, Servers};
use tapegate_wire::http::proxy::Proxy;
use tapegate_wire::http::{self, Station, bridge_out};
use tapegate_wire::memory;
use tapegate_wire::signals::{ASKED, Signals};
use tapegate_wire::stdio::{self, Cause, Outcome, Patience};
use tokio::task::LocalSet;

use crate::exit::Exit;
use crate::talk;
use crate::upstream::Upstream;
use crate::wiring::{announce, client_ports, listen, release_stdout};

/// How to reach the two ends of a session.
pub(crate) struct Route<'a> {
    pub(crate) upstream: &'a Upstream,
    /// Headers for a server reached over HTTP.
    pub(crate) headers: &'a [String],
    /// The address to listen on; `None` for one client on standard input and output.
    pub(crate) http: Option<&'a str>,
    /// Variables removed from the environment of a server that is started.
    pub(crate) without: Vec<OsString>,
    pub(crate) message_bytes_max: usize,
    pub(crate) patience: Patience,
    /// Whether the last lines of the server's standard error are kept.
    pub(crate) keeps_stderr: bool,
    pub(crate) quiet: bool,
}

/// The parts of a session that depend on the command.
pub(crate) trait Keeper {
    /// Opens the recording of the session. Clients can be served from then on.
    fn open(&mut self) -> anyhow::Result<Deck>;

    /// Called if the session does not take place because the server cannot be started.
    fn discard(&mut self);

    /// What to call when a server ends while others may go on, as there may be many over HTTP.
    fn on_server_end(&self) -> Option<OnServerEnd> {
        None
    }

    /// Called when the session is over; returns the exit code.
    fn conclude(&mut self, deck: &mut Deck, outcome: Outcome) -> Exit;
}

/// How a session ended.
pub(crate) enum Ended {
    /// With this exit code.
    Exit(Exit),
    /// The server could not be started. The signals are returned so that the caller can go on with
    /// them.
    NoServer(SpawnError, Signals),
}

/// Runs a session to its end. Must be called inside a single-threaded runtime.
pub(crate) async fn run(
    route: &Route<'_>,
    signals: Signals,
    keeper: &mut dyn Keeper,
) -> anyhow::Result<Ended> {
    if let Upstream::Command(argv) = route.upstream
        && let Err(error) = Child::look_for(argv)
    {
        return Ok(Ended::NoServer(error, signals));
    }
    match (route.http, route.upstream) {
        (None, Upstream::Command(argv)) => {
            return on_stdio(route, argv, signals, keeper).await;
        }
        (Some(address), Upstream::Http(url)) => proxy(route, address, url, signals, keeper).await,
        (Some(address), Upstream::Command(argv)) => {
            bridge_in(route, address, argv, signals, keeper).await
        }
        (None, Upstream::Http(url)) => bridge_out(route, url, signals, keeper).await,
    }
    .map(Ended::Exit)
}

/// Opens the recording of a session, as the last step before its first message.
fn open(keeper: &mut dyn Keeper) -> anyhow::Result<Deck> {
    let deck = keeper.open()?;
    // Most of the code that has run until now is not needed again: the command line, settings and
    // the policy have been read. There may be a dozen such processes beside each agent.
    memory::release_code();
    Ok(deck)
}

async fn on_stdio(
    route: &Route<'_>,
    argv: &[String],
    signals: Signals,
    keeper: &mut dyn Keeper,
) -> anyhow::Result<Ended> {
    let client = client_ports()?;
    let mut deck = open(keeper)?;
    if !deck.is_governed() {
        release_stdout()?;
    }
    let launch = Launch { keeps_stderr: route.keeps_stderr, ..launch(route, argv) };
    let server = match Child::launch(&launch) {
        Ok(server) => server,
        Err(error) => {
            drop(deck);
            keeper.discard();
            return Ok(Ended::NoServer(error, signals));
        }
    };
    let (bytes_max, patience) = (route.message_bytes_max, route.patience);
    let outcome = stdio::run(&mut deck, client, server, signals, bytes_max, patience).await;
    Ok(Ended::Exit(keeper.conclude(&mut deck, outcome)))
}

async fn proxy(
    route: &Route<'_>,
    address: &str,
    url: &str,
    signals: Signals,
    keeper: &mut dyn Keeper,
) -> anyhow::Result<Exit> {
    let upstream = Upstream::connect(url, route.headers)?;
    let listener = listen(address).await?;
    let station = Station::new(open(keeper)?, route.message_bytes_max);
    let proxy = Proxy::new(Rc::clone(&station), upstream);
    announce(&listener, route.quiet)?;
    let cause = http::serve(listener, proxy, &station, signals).await;
    Ok(keeper.conclude(&mut station.deck(), Outcome::new(cause)))
}

async fn bridge_in(
    route: &Route<'_>,
    address: &str,
    argv: &[String],
    signals: Signals,
    keeper: &mut dyn Keeper,
) -> anyhow::Result<Exit> {
    let listener = listen(address).await?;
    let station = Station::new(open(keeper)?, route.message_bytes_max);
    let launch = Launch { keeps_stderr: route.keeps_stderr, ..launch(route, argv) };
    let servers = Servers::Processes(launch, keeper.on_server_end());
    let bridge = Bridge::new(Rc::clone(&station), servers, route.patience);
    announce(&listener, route.quiet)?;
    let cause = http::serve(listener, bridge, &station, signals).await;
    Ok(keeper.conclude(&mut station.deck(), Outcome::new(cause)))
}

async fn bridge_out(
    route: &Route<'_>,
    url: &str,
    signals: Signals,
    keeper: &mut dyn Keeper,
) -> anyhow::Result<Exit> {
    let upstream = Upstream::connect(url, route.headers)?;
    let client = client_ports()?;
    let station = Station::new(open(keeper)?, route.message_bytes_max);
    let (notice, patience) = (Box::new(talk::warn), route.patience);
    let session = bridge_out::run(Rc::clone(&station), client, upstream, signals, patience, notice);
    let outcome = LocalSet::new().run_until(session).await;
    Ok(keeper.conclude(&mut station.deck(), outcome))
}

/// The exit code for the outcome of a session.
pub(crate) fn exit_of(outcome: &Outcome) -> Exit {
    match &outcome.cause {
        Cause::Tape(_) => Exit::Io,
        // An orderly end on request is a success.
        Cause::Signal(ASKED) => Exit::Ok,
        Cause::Signal(signal) => Exit::of_signal(*signal),
        Cause::Unreachable(why) => {
            talk::error(why, None);
            Exit::Transport
        }
        // Without a child process there is no exit code to pass on when the client leaves.
        Cause::Client if outcome.status.is_none() => Exit::Ok,
        Cause::Server | Cause::Actor | Cause::Client => Exit::of_child(outcome.status),
    }
}

fn launch(route: &Route<'_>, argv: &[String]) -> Launch {
    Launch { argv: argv.to_vec(), without: route.without.clone(), keeps_stderr: false }
}
