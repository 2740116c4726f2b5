//! The official conformance suite gives the same scores, check by check, directly and through
//! `record`, and through `shim` with a policy that permits everything or none; and again from the
//! tape of `record`.
//!
//! The suite only speaks HTTP. It does not notice a dropped `Origin` or a client's disconnect that
//! is not passed on; those have separate tests.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::peers::{self, Intermediary, PeerProcess, PeerServer, PeerTransport};

/// One test per line, for each thing that may be in between.
macro_rules! same_scores {
    ($($name:ident: $scores:ident($($what:expr),*);)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn through_record() {
                $scores(Intermediary::Record, $($what),*);
            }

            #[test]
            fn through_a_shim_that_lets_everything_pass() {
                $scores(Intermediary::Forwarding, $($what),*);
            }

            #[test]
            fn through_a_shim_without_a_policy() {
                $scores(Intermediary::Observing, $($what),*);
            }
        })*
    };
}

same_scores! {
    server_scenarios_of_2025_11_25_with_server_everything:
        same_server_scores(PeerServer::Everything, "2025-11-25");
    server_scenarios_of_2025_11_25_with_sessions_and_resumption:
        same_server_scores(PeerServer::Modern, "2025-11-25");
    server_scenarios_of_2026_07_28: same_server_scores(PeerServer::Modern, "2026-07-28");
    server_scenarios_of_the_older_suite_with_server_everything:
        same_server_scores(PeerServer::Everything, "0.1");
    server_scenarios_of_the_older_suite_with_sessions_and_resumption:
        same_server_scores(PeerServer::Modern, "0.1");
    client_scenarios_of_2025_11_25_with_sdk_1: same_client_scores("2025-11-25", "ts1");
    client_scenarios_of_2025_11_25_with_sdk_2: same_client_scores("2025-11-25", "ts2");
    client_scenarios_of_2026_07_28_with_sdk_2: same_client_scores("2026-07-28", "ts2");
}

fn same_server_scores(between: Intermediary, server: PeerServer, revision: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // A separate server for each run: the suite leaves sessions and subscriptions behind.
    let upstream = server.listen(PeerTransport::Http);
    let direct = suite(&["server", revision, &upstream.url]);
    drop(upstream);

    let upstream = server.listen(PeerTransport::Http);
    let line = between.command(folder.path());
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    command.args(["--http", "127.0.0.1:0", "--upstream-http", &upstream.url]);
    let proxy = PeerProcess::start(command);
    let proxied = suite(&["server", revision, &proxy.url]);
    proxy.stop();

    let tape = between.tape(folder.path());
    assert!(direct.matches("SUCCESS").count() > 10, "the suite did not run:\n{direct}");
    peers::assert_same(&guarded(&direct), &sorted(&proxied));
    peers::assert_valid(&tape);
    if between != Intermediary::Record {
        return;
    }
    let live = bridged(&proxied);
    thread::scope(|scope| {
        for mode in ["sequential", "by-request"] {
            let (live, tape) = (&live, &tape);
            scope.spawn(move || peers::assert_same(live, &replayed(tape, mode, revision)));
        }
    });
}

/// The scores of a tape in place of the server. Every request must be on it.
fn replayed(tape: &Path, mode: &str, revision: &str) -> String {
    let report = tape.with_extension(format!("{mode}.json"));
    let mut command = Command::new(peers::tapegate());
    command.args(["replay", "--http", "127.0.0.1:0", "--match-mode", mode, "-r"]);
    command.arg(tape).arg("--report").arg(&report);
    let player = PeerProcess::start(command);
    let scores = suite(&["server", revision, &player.url]);
    player.stop();
    let text = fs::read_to_string(&report).expect("a report");
    let report: Value = serde_json::from_str(&text).expect("a report is JSON");
    assert_eq!(report["unmatched"], 0, "{mode}: {text}");
    sorted(&scores)
}

/// The scores of a server behind our own `Host` check, the one check that it may lack (as
/// server-everything does) and the proxy adds.
fn guarded(scores: &str) -> String {
    passing(scores, "/dns-rebinding-protection/localhost-host-rebinding-rejected")
}

/// The scores of a server whose sessions we keep: an ended session is unknown, as the protocol
/// requires. For server-everything it is a bad request.
fn bridged(scores: &str) -> String {
    passing(scores, "/server-session-lifecycle/server-session-terminated-returns-404")
}

/// The scores with one check passed, if it was performed.
fn passing(scores: &str, check: &str) -> String {
    let mut scores: Value = serde_json::from_str(scores).expect("the scores are JSON");
    if let Some(check) = scores.pointer_mut(check) {
        *check = json!(["SUCCESS"]);
    }
    format!("{scores:#}")
}

/// The scores in a canonical order.
fn sorted(scores: &str) -> String {
    let scores: Value = serde_json::from_str(scores).expect("the scores are JSON");
    format!("{scores:#}")
}

/// The suite starts the client, and the client starts the proxy: each scenario's server has its own
/// port.
fn same_client_scores(between: Intermediary, revision: &str, sdk: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (node, script) = (peers::node(), peers::peer("conformance-client.mjs"));
    let arguments = ["client", revision, &node, &script, sdk];
    let mut command = conformance(&arguments);
    command.env("PEER_TAPES", folder.path());
    match between {
        Intermediary::Record => command.env("PEER_PROXY", peers::tapegate()),
        _ => command.env("PEER_SHIM", between.command(folder.path()).join("\n")),
    };
    let (direct, proxied) = thread::scope(|scope| {
        let direct = scope.spawn(|| suite(&arguments));
        let proxied = peers::transcript(command);
        (direct.join().expect("the direct run succeeds"), proxied)
    });

    assert!(direct.contains("SUCCESS"), "the suite did not run:\n{direct}");
    peers::assert_same(&direct, &proxied);
    let tapes = match between {
        Intermediary::Record => folder.path().to_owned(),
        _ => folder.path().join("state/tapes/peer"),
    };
    for tape in tapes.read_dir().expect("the tapes' folder") {
        peers::assert_valid(&tape.expect("a tape").path());
    }
}

pub(crate) fn suite(arguments: &[&str]) -> String {
    peers::transcript(conformance(arguments))
}

fn conformance(arguments: &[&str]) -> Command {
    let mut command = peers::bounded("600");
    command.args([peers::node(), peers::peer("conformance.mjs")]).args(arguments);
    command
}
