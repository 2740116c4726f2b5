//! The official SDK clients see the same from a tape as from the recorded server.
//!
//! Each client is recorded once; it must see the same from the tape, in every match mode, with
//! nothing unmatched and nothing left over.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::peers::{self, PeerClient, PeerProcess, PeerServer, PeerTransport};
use crate::sdk::{PY1, PY2, PY2_AUTO, PY2_MODERN, TS1, TS2, TS2_AUTO, TS2_MODERN};

const MODES: [&str; 3] = ["sequential", "by-request", "fuzzy"];

/// One test per line: client and server, and the link it was recorded over.
macro_rules! same_from_the_tape {
    ($($name:ident: $client:ident, $server:ident, $link:ident => $play:ident;)*) => {
        $(#[test]
        fn $name() {
            SdkRecording::over(PeerTransport::$link, $client, PeerServer::$server).$play();
        })*
    };
}

// It uses the macro.
mod order;

same_from_the_tape! {
    ts1_on_stdio: TS1, Everything, Stdio => plays_on_stdio;
    ts2_on_stdio: TS2, Everything, Stdio => plays_on_stdio;
    py1_on_stdio: PY1, Everything, Stdio => plays_on_stdio;
    py2_on_stdio: PY2, Everything, Stdio => plays_on_stdio;
    ts2_modern_on_stdio: TS2_MODERN, Modern, Stdio => plays_on_stdio;
    ts2_auto_on_stdio: TS2_AUTO, Modern, Stdio => plays_on_stdio;
    py2_modern_on_stdio: PY2_MODERN, Modern, Stdio => plays_on_stdio;
    py2_auto_on_stdio: PY2_AUTO, Modern, Stdio => plays_on_stdio;

    ts1_by_http: TS1, Everything, Http => plays_by_http;
    ts2_by_http: TS2, Everything, Http => plays_by_http;
    py1_by_http: PY1, Everything, Http => plays_by_http;
    py2_by_http: PY2, Everything, Http => plays_by_http;
    ts2_modern_by_http: TS2_MODERN, Modern, Http => plays_by_http;
    ts2_auto_by_http: TS2_AUTO, Modern, Http => plays_by_http_once;
    py2_modern_by_http: PY2_MODERN, Modern, Http => plays_by_http;
    py2_auto_by_http: PY2_AUTO, Modern, Http => plays_by_http_once;
}

/// A client's session with a real server.
#[derive(Clone)]
struct SdkRecording {
    folder: Arc<TempDir>,
    client: PeerClient,
    /// Whether it uses the protocol revision without sessions.
    stateless: bool,
    tape: PathBuf,
    /// What the client saw.
    live: String,
    /// The content of the tape when it was recorded.
    kept: Vec<u8>,
}

impl SdkRecording {
    fn over(link: PeerTransport, client: PeerClient, server: PeerServer) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        let tape = folder.path().join("tape.jsonl");
        // A client that probes starts its server twice, and the second session counts.
        let mut line = words(&["record", "--force", "-o"]);
        line.push(tape.display().to_string());
        let wire = Path::new("/dev/null");
        let live = if link == PeerTransport::Stdio {
            line.push("--".to_owned());
            line.extend(server.stdio(&tape));
            client.run(link, &line, wire)
        } else {
            let upstream = server.listen(link);
            line.extend(["--http", "127.0.0.1:0", "--upstream-http"].map(str::to_owned));
            line.push(upstream.url.clone());
            let proxy = PeerProcess::start(command(&line));
            let live = client.run(link, std::slice::from_ref(&proxy.url), wire);
            proxy.stop();
            live
        };
        peers::assert_valid(&tape);
        let kept = fs::read(&tape).expect("a tape");
        let stateless = server == PeerServer::Modern;
        Self { folder, client, stateless, tape, live, kept }
    }

    /// The command line that plays the tape and writes a report.
    fn replay(&self, mode: &str) -> (Vec<String>, PathBuf) {
        let report = self.folder.path().join(format!("{mode}.json"));
        let mut line = words(&["replay", "--match-mode", mode, "-r"]);
        line.extend([self.tape.display().to_string(), "--report".to_owned()]);
        line.push(report.display().to_string());
        (line, report)
    }

    /// On stdio in every mode, over HTTP, and over the old transport.
    fn plays_on_stdio(&self) {
        for mode in MODES {
            let (line, report) = self.replay(mode);
            self.is_same(PeerTransport::Stdio, &line);
            assert_clean(&report, Some(1));
        }
        self.plays_at("sequential", |url| {
            self.is_same(PeerTransport::Http, &[url.to_owned()]);
            if !self.stateless {
                self.is_same(PeerTransport::Sse, &[url.replace("/mcp", "/sse")]);
            }
        });
        self.is_untouched();
    }

    /// Over HTTP in every mode, again and four at once, and on stdio.
    fn plays_by_http(&self) {
        self.plays_at("sequential", |url| {
            self.is_same(PeerTransport::Http, &[url.to_owned()]);
            self.is_same_at_once(url);
        });
        for mode in ["by-request", "fuzzy"] {
            self.plays_at(mode, |url| self.is_same(PeerTransport::Http, &[url.to_owned()]));
        }
        // On stdio, a client that probes does so in a separate session.
        let (line, _) = self.replay("sequential");
        self.is_same(PeerTransport::Stdio, &line);
        self.is_untouched();
    }

    /// Over HTTP in order, for a client that differs only at the start from one tested in full.
    fn plays_by_http_once(&self) {
        self.plays_at("sequential", |url| self.is_same(PeerTransport::Http, &[url.to_owned()]));
        self.is_untouched();
    }

    /// Four clients at once see what one saw live. Clients without sessions cannot be told apart:
    /// they get the same answers, and among them all unsolicited messages.
    fn is_same_at_once(&self, url: &str) {
        let run =
            || self.client.run(PeerTransport::Http, &[url.to_owned()], Path::new("/dev/null"));
        let seen: Vec<String> = thread::scope(|scope| {
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            clients.into_iter().map(|client| client.join().expect("a client")).collect()
        });
        if !self.stateless {
            return seen.iter().for_each(|one| peers::assert_same(&self.live, one));
        }
        seen.iter().for_each(|one| peers::assert_same(&steps(&self.live), &steps(one)));
        let notes = |texts: &[&String]| {
            let read = |text: &&String| read(text)["notes"].as_array().cloned().expect("notes");
            let mut notes: Vec<String> =
                texts.iter().flat_map(read).map(|note| note.to_string()).collect();
            notes.sort_unstable();
            notes.join("\n")
        };
        peers::assert_same(&notes(&[&self.live; 4]), &notes(&seen.iter().collect::<Vec<_>>()));
    }

    /// Plays the tape over HTTP to the clients that `visit` runs.
    fn plays_at(&self, mode: &str, visit: impl FnOnce(&str)) {
        let (mut line, report) = self.replay(mode);
        line.extend(["--http", "127.0.0.1:0"].map(str::to_owned));
        let player = PeerProcess::start(command(&line));
        visit(&player.url);
        player.stop();
        assert_clean(&report, None);
    }

    /// Asserts that the client sees what it saw live.
    fn is_same(&self, link: PeerTransport, target: &[String]) {
        let played = self.client.run(link, target, Path::new("/dev/null"));
        peers::assert_same(&self.live, &played);
    }

    fn is_untouched(&self) {
        assert!(fs::read(&self.tape).expect("a tape") == self.kept, "the tape was touched");
    }
}

/// The client's steps, without those that timed out.
pub(crate) fn steps(transcript: &str) -> String {
    let mut steps = read(transcript)["steps"].take();
    let missing =
        |step: &Value| step["step"].as_str().is_some_and(|it| it.starts_with("missing: "));
    steps.as_array_mut().expect("steps").retain(|step| !missing(step));
    format!("{steps:#}")
}

fn read(transcript: &str) -> Value {
    serde_json::from_str(transcript).expect("a transcript is JSON")
}

#[test]
fn what_is_not_on_the_tape_comes_from_the_server_behind_and_the_client_sees_no_difference() {
    let recorded = SdkRecording::over(PeerTransport::Stdio, TS2, PeerServer::Everything);
    let text = String::from_utf8(recorded.kept.clone()).expect("a tape is text");
    // The handshake, the list of tools and some calls; the rest is passed to the server.
    let end = text.lines().position(|line| line.contains("\"get-sum\"")).expect("a call");
    let tape = recorded.folder.path().join("part.jsonl");
    let part: String = text.lines().take(end).map(|line| format!("{line}\n")).collect();
    fs::write(&tape, &part).expect("a part of the tape");
    let (new, report) =
        (recorded.folder.path().join("new.jsonl"), recorded.folder.path().join("r"));
    let mut line =
        words(&["replay", "--match-mode", "by-request", "--on-unmatched", "passthrough"]);
    for (flag, path) in [("-r", &tape), ("--record-to", &new), ("--report", &report)] {
        line.extend([flag.to_owned(), path.display().to_string()]);
    }
    line.push("--".to_owned());
    line.extend(PeerServer::Everything.stdio(&tape));
    let seen = TS2.run(PeerTransport::Stdio, &line, Path::new("/dev/null"));
    peers::assert_none_left(&tape);
    peers::assert_same(&steps(&recorded.live), &steps(&seen));
    assert_eq!(fs::read_to_string(&tape).expect("a tape"), part);
    let report = read(&fs::read_to_string(&report).expect("a report"));
    assert!(report["passed_on"].as_u64() > Some(20), "{report}");
    assert_eq!(report["passed_on"], report["unmatched"]);
    // The new tape has both, and needs no server behind it.
    peers::assert_valid(&new);
    let whole = SdkRecording { tape: new, live: seen, ..recorded };
    let (mut line, _) = whole.replay("by-request");
    // How often the client lists the tools again depends on when it learns that they have changed.
    line.extend(["--on-exhausted", "last"].map(str::to_owned));
    let seen = TS2.run(PeerTransport::Stdio, &line, Path::new("/dev/null"));
    peers::assert_same(&steps(&whole.live), &steps(&seen));
}

#[test]
fn independent_calls_may_come_in_any_order() {
    const ORDERS: [PeerClient; 3] = [
        PeerClient { python: None, script: &["shuffled.mjs", "1"] },
        PeerClient { python: None, script: &["shuffled.mjs", "2"] },
        PeerClient { python: None, script: &["shuffled.mjs", "3"] },
    ];
    let recorded = SdkRecording::over(PeerTransport::Stdio, ORDERS[0], PeerServer::Everything);
    for (client, mode) in ORDERS[1..].iter().zip(["by-request", "fuzzy"]) {
        let shuffled = SdkRecording { client: *client, ..recorded.clone() };
        let (line, report) = shuffled.replay(mode);
        shuffled.is_same(PeerTransport::Stdio, &line);
        assert_clean(&report, Some(1));
        shuffled.plays_at(mode, |url| {
            shuffled.is_same(PeerTransport::Http, &[url.to_owned()]);
            shuffled.is_same_at_once(url);
        });
    }
    recorded.is_untouched();
}

/// Asserts that every request is on the tape, and everything on the tape was requested.
fn assert_clean(report: &Path, sessions: Option<u64>) {
    let text = fs::read_to_string(report).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("a report is JSON");
    for count in ["unmatched", "unused"] {
        assert_eq!(report[count], 0, "{count} in {text}");
    }
    // Some clients start the server once to probe it, and again to use it.
    let starts = report["starts"].as_array().expect("starts");
    let each = |count: u64| starts.iter().all(|start| start["sessions"] == count);
    assert!(sessions.is_none_or(each), "{text}");
    assert!(report["matched"].as_u64() > Some(10), "{text}");
}

/// A command line of the binary under test.
fn words(words: &[&str]) -> Vec<String> {
    let words = words.iter().map(|&word| word.to_owned());
    std::iter::once(peers::tapegate().to_owned()).chain(words).collect()
}

fn command(line: &[String]) -> Command {
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    command
}
