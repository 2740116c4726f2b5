//! The official SDK clients see the same from a tape as from the server it was recorded of.
//!
//! Each client is recorded once; what it saw then is what it must see from the tape, in every way
//! of matching, with nothing unmatched and nothing left over.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::peers::{self, Client, Link, Running, Server};
use crate::sdk::{PY1, PY2, PY2_AUTO, PY2_MODERN, TS1, TS2, TS2_AUTO, TS2_MODERN};

const MODES: [&str; 3] = ["sequential", "by-request", "fuzzy"];

/// One test a line: client and server, and the link it was recorded over.
macro_rules! same_from_the_tape {
    ($($name:ident: $client:ident, $server:ident, $link:ident => $play:ident;)*) => {
        $(#[test]
        fn $name() {
            Recorded::over(Link::$link, $client, Server::$server).$play();
        })*
    };
}

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
    ts2_auto_by_http: TS2_AUTO, Modern, Http => plays_by_http;
    py2_modern_by_http: PY2_MODERN, Modern, Http => plays_by_http;
    py2_auto_by_http: PY2_AUTO, Modern, Http => plays_by_http;
}

/// A client's session with a real server.
struct Recorded {
    folder: TempDir,
    client: Client,
    /// Whether it speaks the revision without sessions.
    stateless: bool,
    tape: PathBuf,
    /// What the client saw.
    live: String,
    /// What the tape held when it was recorded.
    kept: Vec<u8>,
}

impl Recorded {
    fn over(link: Link, client: Client, server: Server) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tape = folder.path().join("tape.jsonl");
        // A client that probes starts its server twice, and the second session is the one.
        let mut line = words(&["record", "--force", "-o"]);
        line.push(tape.display().to_string());
        let wire = Path::new("/dev/null");
        let live = if link == Link::Stdio {
            line.push("--".to_owned());
            line.extend(server.stdio(&tape));
            client.run(link, &line, wire)
        } else {
            let upstream = server.listen(link);
            line.extend(["--http", "127.0.0.1:0", "--upstream-http"].map(str::to_owned));
            line.push(upstream.url.clone());
            let proxy = Running::start(command(&line));
            let live = client.run(link, std::slice::from_ref(&proxy.url), wire);
            proxy.stop();
            live
        };
        peers::assert_valid(&tape);
        let kept = fs::read(&tape).expect("a tape");
        let stateless = server == Server::Modern;
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

    /// On stdio in every mode, and by HTTP.
    fn plays_on_stdio(&self) {
        for mode in MODES {
            let (line, report) = self.replay(mode);
            self.is_same(Link::Stdio, &line);
            assert_clean(&report, Some(1));
        }
        self.plays_at(Link::Http, "sequential", |url| self.is_same(Link::Http, &[url]));
        self.is_untouched();
    }

    /// By HTTP in every mode, twice in a row and four at once, and on stdio.
    fn plays_by_http(&self) {
        self.plays_at(Link::Http, "sequential", |url| {
            self.is_same(Link::Http, std::slice::from_ref(&url));
            self.is_same(Link::Http, std::slice::from_ref(&url));
            self.is_same_at_once(&url);
        });
        for mode in ["by-request", "fuzzy"] {
            self.plays_at(Link::Http, mode, |url| self.is_same(Link::Http, &[url]));
        }
        // A client that probes does so on stdio in a session of its own.
        let (line, _) = self.replay("sequential");
        self.is_same(Link::Stdio, &line);
        self.is_untouched();
    }

    /// Four clients at once see what one saw live. Clients without sessions cannot be told apart
    /// by anybody: they get the same answers, and among them everything that was said unasked.
    fn is_same_at_once(&self, url: &str) {
        let run = || self.client.run(Link::Http, &[url.to_owned()], Path::new("/dev/null"));
        let seen: Vec<String> = thread::scope(|scope| {
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            clients.into_iter().map(|client| client.join().expect("a client")).collect()
        });
        if !self.stateless {
            return seen.iter().for_each(|one| peers::assert_same(&self.live, one));
        }
        let read = |text: &str| -> Value { serde_json::from_str(text).expect("a transcript") };
        let steps = |text: &str| {
            let mut read = read(text)["steps"].take();
            let missing = |step: &Value| step["step"].as_str().unwrap().starts_with("missing: ");
            read.as_array_mut().expect("steps").retain(|step| !missing(step));
            format!("{read:#}")
        };
        seen.iter().for_each(|one| peers::assert_same(&steps(&self.live), &steps(one)));
        let notes = |texts: &[&String]| {
            let read = |text: &&String| read(text)["notes"].as_array().cloned().unwrap_or_default();
            let mut notes: Vec<String> =
                texts.iter().flat_map(read).map(|note| note.to_string()).collect();
            notes.sort_unstable();
            notes.join("\n")
        };
        peers::assert_same(&notes(&[&self.live; 4]), &notes(&seen.iter().collect::<Vec<_>>()));
    }

    /// Plays the tape by HTTP to whoever `visit` sends there.
    fn plays_at(&self, link: Link, mode: &str, visit: impl FnOnce(String)) {
        let (mut line, report) = self.replay(mode);
        line.extend(["--http", "127.0.0.1:0"].map(str::to_owned));
        let player = Running::start(command(&line));
        let url = match link {
            Link::Sse => player.url.replace("/mcp", "/sse"),
            _ => player.url.clone(),
        };
        visit(url);
        player.stop();
        assert_clean(&report, None);
    }

    /// The client sees what it saw live.
    fn is_same(&self, link: Link, target: &[String]) {
        let played = self.client.run(link, target, Path::new("/dev/null"));
        peers::assert_same(&self.live, &played);
    }

    fn is_untouched(&self) {
        assert!(fs::read(&self.tape).expect("a tape") == self.kept, "the tape was touched");
    }
}

/// Asserts that everything that was asked is on the tape, and everything on the tape was asked.
fn assert_clean(report: &Path, sessions: Option<u64>) {
    let text = fs::read_to_string(report).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("a report is JSON");
    for count in ["unmatched", "unused"] {
        assert_eq!(report[count], 0, "{count} in {text}");
    }
    assert!(sessions.is_none_or(|count| report["sessions"] == count), "{text}");
    assert!(report["matched"].as_u64() > Some(20), "{text}");
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
