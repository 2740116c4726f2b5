//! The official SDK clients see the same from a tape as from the server it was recorded of.
//!
//! Each client is recorded once; what it saw then is what it must see from the tape, in every way
//! of matching, with nothing unmatched and nothing left over.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::peers::{self, Client, Link, Server};
use crate::sdk::{PY1, PY2, PY2_AUTO, PY2_MODERN, TS1, TS2, TS2_AUTO, TS2_MODERN};

const MODES: [&str; 3] = ["sequential", "by-request", "fuzzy"];

/// One test a line: client and server.
macro_rules! same_from_the_tape {
    ($($name:ident: $client:ident, $server:ident;)*) => {
        $(#[test]
        fn $name() {
            Recorded::over_stdio($client, Server::$server).replays_over_stdio();
        })*
    };
}

same_from_the_tape! {
    ts1_over_stdio: TS1, Everything;
    ts2_over_stdio: TS2, Everything;
    py1_over_stdio: PY1, Everything;
    py2_over_stdio: PY2, Everything;
    ts2_modern_over_stdio: TS2_MODERN, Modern;
    ts2_auto_over_stdio: TS2_AUTO, Modern;
    py2_modern_over_stdio: PY2_MODERN, Modern;
    py2_auto_over_stdio: PY2_AUTO, Modern;
}

/// A client's session with a real server.
struct Recorded {
    folder: TempDir,
    client: Client,
    tape: PathBuf,
    /// What the client saw.
    live: String,
}

impl Recorded {
    fn over_stdio(client: Client, server: Server) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tape = folder.path().join("tape.jsonl");
        // A client that probes starts its server twice, and the second session is the one.
        let mut line = words(&["record", "--force", "-o"]);
        line.extend([tape.display().to_string(), "--".to_owned()]);
        line.extend(server.stdio(&tape));
        let live = client.run(Link::Stdio, &line, Path::new("/dev/null"));
        peers::assert_valid(&tape);
        Self { folder, client, tape, live }
    }

    fn replays_over_stdio(&self) {
        let before = fs::read(&self.tape).expect("a tape");
        for mode in MODES {
            let report = self.folder.path().join("report.json");
            let mut line = words(&["replay", "--match-mode", mode, "-r"]);
            line.extend([self.tape.display().to_string(), "--report".to_owned()]);
            line.push(report.display().to_string());
            let played = self.client.run(Link::Stdio, &line, Path::new("/dev/null"));
            peers::assert_same(&self.live, &played);
            assert_clean(&report, 1);
        }
        assert_eq!(fs::read(&self.tape).expect("a tape"), before);
    }
}

/// Asserts that everything that was asked is on the tape, and everything on the tape was asked.
fn assert_clean(report: &Path, sessions: u64) {
    let text = fs::read_to_string(report).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("a report is JSON");
    for (count, expected) in [("unmatched", 0), ("unused", 0), ("sessions", sessions)] {
        assert_eq!(report[count], expected, "{count} in {text}");
    }
    assert!(report["matched"].as_u64() > Some(20), "{text}");
}

/// A command line of the binary under test.
fn words(words: &[&str]) -> Vec<String> {
    let words = words.iter().map(|&word| word.to_owned());
    std::iter::once(peers::tapegate().to_owned()).chain(words).collect()
}
