//! The official SDKs report what a policy does to their callers as an error with its code.

use serde_json::{Value, json};

use super::{GovernedFolder, SECRET, assert_told, calls};
use crate::peers::{self, PeerClient, PeerTransport};

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
    let told = stand.serve((near, far), |target| {
        let mut command = client.command(near, target);
        command.env("CALLS", calls().to_string());
        serde_json::from_str(&peers::transcript(command)).expect("a driver prints JSON")
    });
    decided.join().expect("both were decided");
    assert_outcomes(&told);
    stand.assert_in_order();
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
