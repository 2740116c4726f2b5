//! The official SDKs report what a policy does to their callers as an error with its code.

use serde_json::{Value, json};

use super::{GovernedFolder, SECRET, assert_told, calls, command_of};
use crate::peers::{self, PeerClient, PeerProcess, PeerServer, PeerTransport};

const TS1: PeerClient = PeerClient { python: None, script: &["governed.mjs", "1"] };
const TS2: PeerClient = PeerClient { python: None, script: &["governed.mjs", "legacy"] };
const TS2_AUTO: PeerClient = PeerClient { python: None, script: &["governed.mjs", "auto"] };
const TS2_MODERN: PeerClient = PeerClient { python: None, script: &["governed.mjs", "modern"] };
const PY1: PeerClient = PeerClient { python: Some("py1"), script: &["governed.py", "1"] };
const PY2: PeerClient = PeerClient { python: Some("py2"), script: &["governed.py", "legacy"] };
const PY2_AUTO: PeerClient = PeerClient { python: Some("py2"), script: &["governed.py", "auto"] };
const PY2_MODERN: PeerClient =
    PeerClient { python: Some("py2"), script: &["governed.py", "modern"] };

/// Tests on each line: client, and the links from client to shim and from shim to server.
macro_rules! is_governed {
    ($($name:ident: $client:ident, $near:ident => $far:ident;)*) => {
        $(#[test]
        fn $name() {
            governed($client, PeerTransport::$near, PeerTransport::$far);
        })*
    };
}

is_governed! {
    ts1_is_governed_over_stdio: TS1, Stdio => Stdio;
    ts1_is_governed_over_http: TS1, Http => Http;
    ts2_is_governed_over_stdio: TS2, Stdio => Stdio;
    ts2_is_governed_from_http_to_stdio: TS2, Http => Stdio;
    ts2_auto_is_governed_over_stdio: TS2_AUTO, Stdio => Stdio;
    ts2_auto_is_governed_over_http: TS2_AUTO, Http => Http;
    ts2_modern_is_governed_over_stdio: TS2_MODERN, Stdio => Stdio;
    ts2_modern_is_governed_over_http: TS2_MODERN, Http => Http;
    py1_is_governed_over_stdio: PY1, Stdio => Stdio;
    py1_is_governed_over_http: PY1, Http => Http;
    py2_is_governed_over_stdio: PY2, Stdio => Stdio;
    py2_is_governed_over_http: PY2, Http => Http;
    py2_auto_is_governed_from_http_to_stdio: PY2_AUTO, Http => Stdio;
    py2_modern_is_governed_over_stdio: PY2_MODERN, Stdio => Stdio;
    py2_modern_is_governed_over_http: PY2_MODERN, Http => Http;
}

fn governed(client: PeerClient, near: PeerTransport, far: PeerTransport) {
    let stand = GovernedFolder::new();
    let decided = stand.decided();
    let upstream = (far == PeerTransport::Http).then(|| {
        let server = PeerServer::Modern.listen(PeerTransport::Http);
        let mut line = stand.recorder();
        line.extend(["--http", "127.0.0.1:0", "--upstream-http", &server.url].map(str::to_owned));
        (PeerProcess::start(command_of(&line)), server)
    });
    let mut line = match &upstream {
        Some((recorder, _)) => {
            let end = ["--upstream-http".to_owned(), recorder.url.clone()];
            [stand.shim(), end.to_vec()].concat()
        }
        None => stand.in_front_of_a_process(),
    };
    let told = if near == PeerTransport::Stdio {
        run(client, PeerTransport::Stdio, &line)
    } else {
        let at = line.iter().position(|word| word == "shim").expect("a shim") + 1;
        line.splice(at..at, ["--http", "127.0.0.1:0"].map(str::to_owned));
        let shim = PeerProcess::start(command_of(&line));
        let told = run(client, PeerTransport::Http, std::slice::from_ref(&shim.url));
        shim.stop();
        told
    };
    decided.join().expect("both were decided");
    if let Some((recorder, _)) = upstream {
        recorder.stop();
    }
    assert_outcomes(&told);
    stand.assert_in_order();
}

fn run(client: PeerClient, link: PeerTransport, target: &[String]) -> Value {
    let mut command = client.command(link, target);
    command.env("CALLS", calls().to_string());
    serde_json::from_str(&peers::transcript(command)).expect("a driver prints JSON")
}

fn assert_outcomes(told: &Value) {
    let offered = told["offered"].as_array().expect("a list of tools");
    assert!(offered.contains(&json!("echo")), "{offered:?}");
    assert!(!offered.contains(&json!("test_audio_content")), "{offered:?}");

    let outcomes = told["outcomes"].as_array().expect("a list of outcomes");
    let texts: Vec<_> = outcomes.iter().map(Value::to_string).collect();
    assert_told(&texts);
    assert!(!texts[4].contains(SECRET), "{}", texts[4]);
    let codes: Vec<_> = outcomes.iter().map(|outcome| outcome["code"].as_i64()).collect();
    assert_eq!(codes, [None, Some(-32014), None, Some(-32007), None]);
    assert_eq!(outcomes[1]["data"]["error_type"], "governance_rule_denied");
    assert_eq!(outcomes[3]["data"]["error_type"], "approval_rejected");
}
