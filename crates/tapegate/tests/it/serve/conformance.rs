//! Our own example passes every check of the official conformance suite that the reference servers
//! pass, and more.

use std::process::Command;

use serde_json::Value;

use crate::conformance::suite;
use crate::peers::{self, PeerProcess, PeerServer, PeerTransport};

#[test]
fn everything_passes_what_server_everything_passes_of_2025_11_25() {
    assert_passes_more(PeerServer::Everything, "2025-11-25");
}

#[test]
fn everything_passes_what_server_everything_passes_of_the_older_suite() {
    assert_passes_more(PeerServer::Everything, "0.1");
}

#[test]
fn everything_passes_what_a_modern_server_passes_of_2026_07_28() {
    assert_passes_more(PeerServer::Modern, "2026-07-28");
}

#[test]
fn everything_passes_every_check_of_2025_11_25() {
    let scores = ours("2025-11-25");
    assert!(scores.len() > 40, "the suite did not run: {scores:?}");
    let failed: Vec<&(String, bool)> = scores.iter().filter(|(_, passed)| !passed).collect();
    assert_eq!(failed, Vec::<&(String, bool)>::new());
}

fn assert_passes_more(server: PeerServer, revision: &str) {
    let reference = server.listen(PeerTransport::Http);
    let theirs = scores(&suite(&["server", revision, &reference.url]));
    drop(reference);
    let ours = ours(revision);
    let passed = |scores: &[(String, bool)]| scores.iter().filter(|(_, passed)| *passed).count();
    assert!(passed(&theirs) > 10, "the suite did not run: {theirs:?}");
    let missing: Vec<&String> = theirs
        .iter()
        .filter(|check| check.1 && !ours.contains(check))
        .map(|(check, _)| check)
        .collect();
    assert_eq!(missing, Vec::<&String>::new());
    assert!(passed(&ours) >= passed(&theirs));
}

/// The checks of the example.
fn ours(revision: &str) -> Vec<(String, bool)> {
    let mut command = Command::new(peers::tapegate());
    command.args(["serve", "--scenario", "everything", "--http", "127.0.0.1:0"]);
    let running = PeerProcess::start(command);
    let scores = scores(&suite(&["server", revision, &running.url]));
    running.stop();
    scores
}

/// Every check, and whether it always passed.
fn scores(text: &str) -> Vec<(String, bool)> {
    let scores: Value = serde_json::from_str(text).expect("the scores are JSON");
    let mut all = Vec::new();
    for (scenario, checks) in scores.as_object().expect("scenarios") {
        for (check, statuses) in checks.as_object().expect("checks") {
            let passed = statuses.as_array().expect("statuses").iter().all(|it| it == "SUCCESS");
            all.push((format!("{scenario} {check}"), passed));
        }
    }
    all
}
