//! Calls that a rule covers, written so that the rule might seem not to match.

use serde_json::{Value, json};

use super::agent::{AttackClient, WAYS};
use crate::shim::setup::{FORWARD, event, state};
use crate::support::shim;

/// A policy with one rule; everything it does not cover passes.
fn one_rule(rule: &str) -> String {
    format!(
        "schema: 1\ngovernance:\n  defaults: {{ action: forward }}\n  rules:\n    - {{ {rule} }}\n"
    )
}

fn write(arguments: Value) -> Value {
    json!({"name": "write", "arguments": arguments})
}

#[test]
fn an_argument_of_another_type_or_spelling_is_what_a_server_makes_of_it() {
    let forced = one_rule("match: write, action: deny, arguments: { force: true }");
    let spellings = [
        json!({"force": true}),
        json!({"force": "true"}),
        json!({"force": "Yes"}),
        json!({"force": 1}),
        json!({"force": [true]}),
        json!({"FORCE": "on"}),
        json!({"force": "{\"force\":true}"}),
    ];
    let large = one_rule("match: write, action: deny, arguments: { amount: { min: 1000 } }");
    let amounts = [
        json!({"amount": 5000}),
        json!({"amount": "5000"}),
        json!({"amount": "5_000"}),
        json!({"amount": " 5e3"}),
        json!({"amount": [5000]}),
        json!({"amount": "0x1388"}),
        json!({"amount": 1e300}),
    ];
    let listed = one_rule("match: write, action: deny, arguments: { \"path[*]\": \"/etc/*\" }");
    let paths = [
        json!({"path": ["/etc/passwd"]}),
        json!({"path": "[\"/etc/passwd\"]"}),
        json!({"path": "/data/a,/etc/passwd"}),
        json!({"path": [["/etc/passwd"]]}),
        json!({"path": "/etc/passwd"}),
    ];
    for way in WAYS {
        for (policy, spellings) in
            [(&forced, &spellings[..]), (&large, &amounts[..]), (&listed, &paths[..])]
        {
            let agent = AttackClient::start(way, shim(policy, &[]));
            for arguments in spellings {
                agent.is_refused(-32014, "tools/call", write(arguments.clone()));
            }
            let plain = json!({"path": "/data/a", "force": false, "amount": 5});
            assert!(agent.call("write", plain)["result"].is_object(), "{way:?}");
            agent.is_unharmed();
        }
    }
}

#[test]
fn a_path_is_where_it_leads() {
    let inside =
        one_rule("match: write, action: deny, arguments: { path: { not: { under: /data } } }");
    let elsewhere = one_rule("match: write, action: deny, arguments: { path: { under: /etc } }");
    let paths = [
        "/etc/passwd",
        "/data/../etc/passwd",
        "/data/./../etc/passwd",
        "/data/%2e%2e/etc/passwd",
        "/data/..%2fetc/passwd",
        "/data/..\\..\\etc\\passwd",
        "//etc/passwd",
        "file:///etc/passwd",
        "file:///data/../etc/passwd",
        "../etc/passwd",
        " /etc/passwd",
    ];
    for way in WAYS {
        for policy in [&inside, &elsewhere] {
            let agent = AttackClient::start(way, shim(policy, &[]));
            for path in paths {
                agent.is_refused(-32014, "tools/call", write(json!({ "path": path })));
            }
            assert!(agent.call("write", json!({"path": "/data/a/../b"}))["result"].is_object());
            agent.is_unharmed();
        }
    }
}

#[test]
fn a_name_or_uri_is_what_a_server_reads_in_it() {
    let policy = "schema: 1\ngovernance:\n  defaults: { action: forward }\n  rules:\n    \
                  - { match: [danger, \"file:///etc/*\", \"x://a b\", \"x://\u{fc}\"], action: deny }\n";
    for way in WAYS {
        let agent = AttackClient::start(way, shim(policy, &[]));
        for name in ["danger", " danger", "danger\n", "\u{ff44}anger", "\u{feff}danger"] {
            agent.is_refused(-32014, "tools/call", json!({"name": name, "arguments": {}}));
        }
        for uri in [
            "file:///etc/passwd",
            "file:///%65tc/passwd",
            "file:///%2565tc/passwd",
            "file:///data/../etc/passwd",
            "file:///data/%2e%2e/etc/passwd",
            "file%3A///etc/passwd",
            "FILE:/etc/passwd",
            "x://a%20b",
            "x://%C3%BC",
            "x://u\u{308}",
            "x://@a b",
            "x://u:@a b:",
        ] {
            agent.is_refused(-32014, "resources/read", json!({ "uri": uri }));
            agent.is_refused(-32014, "resources/subscribe", json!({ "uri": uri }));
        }
        agent.is_unharmed();
    }
}

#[test]
fn under_default_deny_a_method_that_the_protocol_lacks_is_refused() {
    let policy = "schema: 1\ngovernance:\n  defaults: { action: deny }\n  rules:\n    \
                  - { match: safe, action: forward }\n";
    for way in WAYS {
        let agent = AttackClient::start(way, shim(policy, &[]));
        for method in ["admin/run", "tools/execute", "tools/calls", "x", "resources/write"] {
            // A server would answer that it does not know the method.
            agent.is_refused(-32014, method, json!({"name": "danger"}));
            event(agent.run().folder(), &[("method", method), ("governance_decision", "deny")]);
        }
        agent.is_unharmed();
    }
}

#[test]
fn a_call_that_names_our_own_files_is_refused() {
    for way in WAYS {
        let agent = AttackClient::start(way, shim(FORWARD, &[]));
        let own = |name: &str| agent.run().folder().join(name).display().to_string();
        for path in [
            "tapegate.yaml".to_owned(),
            "./tape%67ate.yaml".to_owned(),
            "a/../tapegate.lock".to_owned(),
            own("tapegate.yaml"),
            own("tapegate.lock"),
            format!("file://{}", own("tapegate.yaml")),
            state(agent.run()).join("activity.jsonl").display().to_string(),
            state(agent.run()).join("private/key").display().to_string(),
        ] {
            agent.is_refused(-32014, "tools/call", write(json!({ "path": path })));
        }
        agent.is_unharmed();
    }
}
