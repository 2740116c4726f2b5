//! Members named `__proto__`, through which the official TypeScript SDK finds missing members.

use serde_json::{Value, json};

use super::agent::{AttackClient, AttackTransport, WAYS};
use super::http_events::{self, before, server};
use super::target_server::TargetKind;
use crate::peers;
use crate::support::shim;

const POLICY: &str = "schema: 1\ngovernance:\n  defaults: { action: forward }\n  rules:\n    \
                      - { id: no-etc, match: write, action: deny, arguments: { path: { under: /etc } } }\n";

/// Params in which the SDK finds arguments that are not there.
fn params() -> [Value; 3] {
    [
        json!({"name": "write", "__proto__": {"arguments": {"path": "/etc/passwd"}}}),
        json!({"name": "write", "arguments": {"__proto__": {"path": "/etc/passwd"}}}),
        json!({"__proto__": {"name": "write", "arguments": {"path": "/etc/passwd"}}}),
    ]
}

#[test]
fn the_typescript_sdk_finds_arguments_in_a_prototype() {
    for way in [AttackTransport::Stdio, AttackTransport::Web(TargetKind::Express)] {
        let agent = AttackClient::start(way, shim("", &[]));
        let answer = agent.ask("tools/call", params()[0].clone());
        assert!(answer["result"].is_object(), "{way:?} {answer}");
        let ran = agent.ran();
        assert!(ran.iter().any(|line| line.contains("/etc/passwd")), "{way:?} {ran:?}");
    }
}

#[test]
fn a_prototype_hides_no_arguments_from_the_gate() {
    for way in WAYS {
        let agent = AttackClient::start(way, shim(POLICY, &[]));
        for params in params() {
            let answer = agent.is_refused(-32600, "tools/call", params);
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("`__proto__`"), "{way:?} {message}");
        }
        let named = agent.call("write", json!({"path": "/data/__proto__"}));
        assert!(named["result"].is_object(), "{way:?} {named}");
        agent.is_unharmed();
    }
}

#[test]
fn a_server_shows_the_typescript_sdk_nothing_by_a_prototype() {
    let server = server(|asked| {
        let id = &asked["id"];
        let tool = r#"{"name":"hidden","inputSchema":{"type":"object"}}"#;
        let result = match asked["method"] == "tools/list" {
            true => format!(r#"{{"__proto__":{{"tools":[{tool}]}}}}"#),
            false => r#"{"content":[]}"#.to_owned(),
        };
        format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n\n")
    });
    for (policy, is_shown) in [(http_events::POLICY, false), ("", true)] {
        let run = before(&server, policy);
        let mut client = peers::bounded("600");
        let url = format!("http://127.0.0.1:{}/mcp", run.port());
        client.args([&peers::node(), &peers::peer("attack-client.mjs"), &url]);
        let output = client.output().unwrap();
        let shown: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        // Without a policy the attack must work, or this test would prove nothing.
        assert_eq!(shown["tools"] == json!(["hidden"]), is_shown, "{shown}");
        assert_eq!(shown["call"], "answered", "{shown}");
    }
}
