//! A recording, from its plan to its exit code.

use std::cell::RefCell;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;

use tapegate_core::tape::{
    Dialect, Entry, FORMAT_VERSION, Header, Mask, RecordError, Recorder, ScribeOptions,
};
use tapegate_core::time::{At, SubSecond, write_rfc3339};
use tapegate_policy::redact::{Redactor, mask_upstream};
use tapegate_store::writer::{TapeOptions, TapeWriter};
use tapegate_wire::child::Child;
use tapegate_wire::clock::Clock;
use tapegate_wire::deck::Deck;
use tapegate_wire::http::bridge_in::Bridge;
use tapegate_wire::http::listen::{ListenError, Listener};
use tapegate_wire::http::proxy::Proxy;
use tapegate_wire::http::{Station, bridge_out, upstream};
use tapegate_wire::port::Port;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{self, Cause, ClientPorts, Outcome, Patience};

use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use super::args::{RecordArgs, TapeArgs, WireArgs};
use super::http;
use crate::exit::{Exit, Failure};
use crate::talk;

/// What is to be recorded, and how.
pub(crate) struct Plan {
    path: PathBuf,
    dialect: Dialect,
    upstream: Upstream,
    wire: WireArgs,
    clock: Clock,
}

/// Where the server is.
enum Upstream {
    Command(Vec<String>),
    Http(String),
}

impl Plan {
    /// The plan of `tapegate record`.
    pub(super) fn of_record(args: RecordArgs) -> anyhow::Result<Self> {
        let upstream = upstream(&args.wire)?;
        let clock = Clock::start();
        Ok(Self {
            path: args.output,
            dialect: args.dialect.into(),
            upstream,
            wire: args.wire,
            clock,
        })
    }

    /// The plan of `tapegate tape`.
    pub(super) fn of_tape(args: TapeArgs) -> anyhow::Result<Self> {
        let upstream = upstream(&args.wire)?;
        let clock = Clock::start();
        let path = match args.tape {
            Some(path) => path,
            None => args.tape_dir.join(tape_name(args.session.as_deref(), clock.now())?),
        };
        Ok(Self { path, dialect: args.dialect.into(), upstream, wire: args.wire, clock })
    }

    fn deck(&self, tape: &SharedTape) -> Deck {
        Deck::new(Box::new(tape.clone()), self.clock, self.wire.on_tape_error.into())
    }

    fn open_tape(&self) -> anyhow::Result<TapeWriter> {
        let at = self.clock.now();
        let mut recorded_at = Vec::new();
        write_rfc3339(&mut recorded_at, at.wall_us, SubSecond::Micros);
        let version = env!("CARGO_PKG_VERSION");
        let redactor = self.wire.redaction.redactor()?;
        let mut extra = format!(",\"recorder\":\"tapegate/{version}\"").into_bytes();
        extra.extend(redactor.iter().flat_map(Redactor::header_extra));
        let header = Header {
            version: FORMAT_VERSION.into(),
            name: self.wire.name.as_deref().map(Into::into),
            tags: self.wire.tags.iter().map(|tag| tag.trim().into()).collect(),
            recorded_at: String::from_utf8(recorded_at)?.into(),
            upstream: mask_upstream(&self.upstream.words()).into(),
            tool_version: version.into(),
            extra,
        };
        let scribe = ScribeOptions {
            dialect: self.dialect,
            raw: !self.wire.no_raw,
            shared: self.wire.http.is_some(),
        };
        let options = TapeOptions {
            path: self.path.clone(),
            scribe,
            flush_interval: self.wire.flush_interval,
            force: self.wire.force,
            mask: redactor.map(|redactor| Box::new(redactor) as Box<dyn Mask>),
        };
        TapeWriter::open(options, &header, at).map_err(|error| {
            let failure = Failure::new(Exit::Io, &error);
            error.hint().map_or(Failure::new(Exit::Io, &error), |hint| failure.hint(hint)).into()
        })
    }
}

impl Upstream {
    /// A client for the server at `url`.
    fn connect(url: &str, headers: &[String]) -> Result<upstream::Upstream, Failure> {
        upstream::Upstream::new(url, headers).map_err(|error| Failure::new(Exit::Usage, error))
    }

    /// The upstream as the header names it.
    fn words(&self) -> String {
        match self {
            Self::Command(argv) => {
                let words = argv.iter().map(String::as_str);
                shlex::try_join(words).unwrap_or_else(|_| argv.join(" "))
            }
            Self::Http(url) => url.clone(),
        }
    }
}

fn upstream(args: &WireArgs) -> Result<Upstream, Failure> {
    if let Some(url) = &args.upstream_http {
        return Ok(Upstream::Http(url.clone()));
    }
    if !args.command.is_empty() {
        return Ok(Upstream::Command(args.command.clone()));
    }
    let Some(line) = &args.upstream else {
        return Err(Failure::new(Exit::Usage, "no MCP server to record")
            .hint("name one: `-- CMD ARGS`, `--upstream CMD` or `--upstream-http URL`"));
    };
    match shlex::split(line) {
        Some(words) if !words.is_empty() => Ok(Upstream::Command(words)),
        _ => Err(Failure::new(Exit::Usage, format!("`--upstream {line}` is no command line"))
            .hint("check its quotes, or give the words after `--`")),
    }
}

/// The name of a tape in a folder: `tape-[SESSION-]2026-03-20T14-22-11-804Z.jsonl`.
fn tape_name(session: Option<&str>, at: At) -> Result<String, Failure> {
    let mut stamp = Vec::new();
    write_rfc3339(&mut stamp, at.wall_us, SubSecond::Millis);
    let stamp = String::from_utf8_lossy(&stamp).replace([':', '.'], "-");
    match session {
        None => Ok(format!("tape-{stamp}.jsonl")),
        Some(word)
            if word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
                && !word.starts_with('.') =>
        {
            Ok(format!("tape-{word}-{stamp}.jsonl"))
        }
        Some(word) => Err(Failure::new(
            Exit::Usage,
            format!("`--session {word}` cannot be part of a file name"),
        )
        .hint("use letters, digits, `.`, `_` and `-`")),
    }
}

/// A tape that the session and the summary share.
#[derive(Clone)]
struct SharedTape(Rc<RefCell<TapeWriter>>);

impl Recorder for SharedTape {
    fn append(&mut self, entry: &Entry<'_>) {
        self.0.borrow_mut().append(entry);
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        self.0.borrow_mut().commit()
    }

    fn close(&mut self, at: At) -> Result<(), RecordError> {
        self.0.borrow_mut().close(at)
    }
}

/// Records until the session ends.
pub(super) fn run(plan: Plan) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let signals = Signals::listen()?;
    match (&plan.wire.http, &plan.upstream) {
        (None, Upstream::Command(argv)) => run_stdio(&plan, argv, &runtime, signals),
        (Some(address), Upstream::Http(url)) => {
            runtime.block_on(run_proxy(&plan, address, url, signals))
        }
        (Some(address), Upstream::Command(argv)) => {
            runtime.block_on(run_bridge_in(&plan, address, argv, signals))
        }
        (None, Upstream::Http(url)) => runtime.block_on(run_bridge_out(&plan, url, signals)),
    }
}

fn run_stdio(
    plan: &Plan,
    argv: &[String],
    runtime: &Runtime,
    signals: Signals,
) -> anyhow::Result<Exit> {
    let tape = plan.open_tape()?;
    let server = match Child::spawn(argv) {
        Ok(server) => server,
        Err(error) => {
            tape.discard();
            return Err(Failure::new(Exit::Transport, error).into());
        }
    };
    let tape = SharedTape(Rc::new(RefCell::new(tape)));
    let mut deck = plan.deck(&tape);
    let session = stdio::run(
        &mut deck,
        client_ports()?,
        server,
        signals,
        plan.wire.max_message_bytes,
        Patience::default(),
    );
    let outcome = runtime.block_on(session);
    Ok(conclude(&mut deck, &tape, outcome, plan.wire.quiet))
}

async fn run_proxy(
    plan: &Plan,
    address: &str,
    url: &str,
    signals: Signals,
) -> anyhow::Result<Exit> {
    let upstream = Upstream::connect(url, &plan.wire.header)?;
    let listener = listen(address).await?;
    let tape = SharedTape(Rc::new(RefCell::new(plan.open_tape()?)));
    let station = Station::new(plan.deck(&tape), plan.wire.max_message_bytes);
    let proxy = Proxy::new(Rc::clone(&station), upstream);
    let outcome = http::serve(listener, proxy, &station, signals, plan.wire.quiet).await?;
    Ok(conclude(&mut station.deck(), &tape, outcome, plan.wire.quiet))
}

async fn run_bridge_in(
    plan: &Plan,
    address: &str,
    argv: &[String],
    signals: Signals,
) -> anyhow::Result<Exit> {
    let listener = listen(address).await?;
    let tape = SharedTape(Rc::new(RefCell::new(plan.open_tape()?)));
    let station = Station::new(plan.deck(&tape), plan.wire.max_message_bytes);
    let bridge = Bridge::new(Rc::clone(&station), argv.to_vec(), Patience::default());
    let outcome = http::serve(listener, bridge, &station, signals, plan.wire.quiet).await?;
    Ok(conclude(&mut station.deck(), &tape, outcome, plan.wire.quiet))
}

async fn run_bridge_out(plan: &Plan, url: &str, signals: Signals) -> anyhow::Result<Exit> {
    let upstream = Upstream::connect(url, &plan.wire.header)?;
    let client = client_ports()?;
    let tape = SharedTape(Rc::new(RefCell::new(plan.open_tape()?)));
    let station = Station::new(plan.deck(&tape), plan.wire.max_message_bytes);
    let notice = Box::new(talk::warn);
    let patience = Patience::default();
    let session = bridge_out::run(Rc::clone(&station), client, upstream, signals, patience, notice);
    let outcome = LocalSet::new().run_until(session).await;
    Ok(conclude(&mut station.deck(), &tape, outcome, plan.wire.quiet))
}

async fn listen(address: &str) -> Result<Listener, Failure> {
    Listener::bind(address).await.map_err(|error| match &error {
        ListenError::Address(_) => Failure::new(Exit::Usage, error),
        ListenError::Bind { .. } => Failure::new(Exit::Transport, error),
    })
}

fn client_ports() -> std::io::Result<ClientPorts> {
    let input = rustix::stdio::stdin().as_fd().try_clone_to_owned()?;
    let output = rustix::stdio::stdout().as_fd().try_clone_to_owned()?;
    Ok(ClientPorts { input: Port::reader(input)?, output: Port::writer(output)? })
}

/// Ends the tape, says what was recorded, and finds the exit code.
fn conclude(deck: &mut Deck, tape: &SharedTape, outcome: Outcome, quiet: bool) -> Exit {
    let closed = deck.close();
    if let Some(error) = deck.lost() {
        talk::warn(&format!("the session was not recorded to its end: {error}"));
    }
    if !quiet {
        summarise(&tape.0.borrow());
    }
    match (outcome.cause, closed) {
        (Cause::Tape(error), _) => {
            let hint = "free some space, or pass --on-tape-error continue to go on without a tape";
            talk::error(&format!("the session was stopped because {error}"), Some(hint));
            Exit::Io
        }
        (_, Err(error)) if deck.lost().is_none() => {
            talk::error(&error.to_string(), None);
            Exit::Io
        }
        (Cause::Signal(signal), _) => Exit::of_signal(signal),
        (Cause::Unreachable(why), _) => {
            talk::error(&why, None);
            Exit::Transport
        }
        // Without a child there is nothing to hand on when the client leaves.
        (Cause::Client, _) if outcome.status.is_none() => Exit::Ok,
        (Cause::Server | Cause::Client, _) => Exit::of_child(outcome.status),
    }
}

fn summarise(tape: &TapeWriter) {
    let (client, server) = tape.messages();
    let path = tape.path().display();
    talk::say(&format!(
        "recorded {} messages ({client} client, {server} server) to {path}",
        client + server
    ));
    let (anomalies, place) = tape.anomalies();
    if anomalies > 0 {
        talk::warn(&format!(
            "{anomalies} frames were no plain JSON-RPC messages; see {}",
            place.display()
        ));
    }
}
