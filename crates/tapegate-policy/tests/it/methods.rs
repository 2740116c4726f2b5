//! Methods that are not gated: those of the protocol pass, all others follow the default.

use tapegate_core::gate::Verdict;
use tapegate_core::side::Side;
use tapegate_policy::gated_requests::GatedMethod;
use tapegate_policy::methods::{MethodTreatment, PROTOCOL};
use tapegate_policy::model::Profile;

use crate::gate_harness::{GateHarness, policy, refused, request, shown};

fn under(action: &str) -> GateHarness {
    let text = format!("schema: 1\ngovernance: {{defaults: {{action: {action}}}}}\n");
    GateHarness::new(Some(policy(&text)), Profile::Production)
}

fn notification(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{}}}}"#)
}

/// Methods that no revision of the protocol has, or has only from the other side.
const UNKNOWN: [(Side, &str); 11] = [
    (Side::Client, "admin/run"),
    (Side::Client, "tools/execute"),
    (Side::Client, "tools/call/now"),
    (Side::Client, "Tools/List"),
    (Side::Client, ""),
    (Side::Client, "sampling/createMessage"),
    (Side::Client, "notifications/vendor/run"),
    (Side::Server, "tools/call"),
    (Side::Server, "initialize"),
    (Side::Server, "vendor/event"),
    (Side::Server, "notifications/vendor"),
];

#[test]
fn methods_that_nobody_knows_follow_the_default_and_are_logged() {
    for (from, method) in UNKNOWN {
        for text in [request(method, "{}"), notification(method)] {
            let mut harness = under("deny");
            let refusal = refused(harness.judge(from, None, text.as_bytes()));
            assert_eq!(refusal.code, -32014, "{text}");
            assert!(refusal.data.contains("governance_rule_denied"), "{}", refusal.data);
            assert_eq!(harness.noted(), [format!("decision deny {method}")], "{text}");

            let mut open = under("forward");
            assert_eq!(shown(&open.judge(from, None, text.as_bytes())), "forward", "{text}");
            assert_eq!(open.noted(), [format!("decision forward {method}")], "{text}");
        }
    }
}

#[test]
fn an_unknown_request_can_wait_for_a_person_and_a_notification_cannot() {
    for (from, method) in UNKNOWN {
        let mut harness = under("approve");
        let held = harness.judge(from, None, request(method, "{}").as_bytes());
        assert!(matches!(held, Verdict::Hold(_)), "{method}: {held:?}");
        let told = harness.judge(from, None, notification(method).as_bytes());
        assert_eq!(shown(&told), "refuse -32600", "{method}");
    }
}

#[test]
fn development_says_what_would_become_of_unknown_methods() {
    let deny = "schema: 1\ngovernance: {defaults: {action: deny}}\n";
    let mut harness = GateHarness::new(Some(policy(deny)), Profile::Development);
    assert_eq!(shown(&harness.client(&request("admin/run", "{}"))), "forward");
    assert_eq!(shown(&harness.server(&notification("vendor/event"))), "forward");
    assert_eq!(
        harness.noted(),
        ["decision WOULD_BLOCK admin/run", "decision WOULD_BLOCK vendor/event"]
    );
}

#[test]
fn the_protocols_own_methods_pass_under_default_deny() {
    for method in PROTOCOL {
        let name = method.name.replace('*', "status");
        for (from, treatment) in
            [(Side::Client, method.from_client), (Side::Server, method.from_server)]
        {
            let mut harness = under("deny");
            let verdict = shown(&harness.judge(from, None, request(&name, "{}").as_bytes()));
            let (passes, logged) = match treatment {
                MethodTreatment::Conversation | MethodTreatment::Housekeeping => {
                    ("forward", vec![])
                }
                MethodTreatment::Logged => ("forward", vec![format!("decision forward {name}")]),
                _ => ("refuse -32014", vec![format!("decision deny {name}")]),
            };
            assert_eq!((verdict.as_str(), harness.noted()), (passes, logged), "{from:?} {name}");
        }
    }
}

#[test]
fn a_server_that_is_off_or_not_known_takes_no_unknown_method() {
    for source in ["{id: fs, kind: mcp, enabled: false}", "{id: other, kind: mcp}"] {
        let text = format!(
            "schema: 1\nsources: [{source}]\ngovernance: {{defaults: {{action: forward}}}}\n"
        );
        let mut harness = GateHarness::new(Some(policy(&text)), Profile::Production);
        assert_eq!(
            shown(&harness.client(&request("admin/run", "{}"))),
            "refuse -32015",
            "{source}"
        );
        assert_eq!(shown(&harness.client(&request("tools/list", "{}"))), "forward", "{source}");
    }
}

#[test]
fn rules_name_methods_in_any_case_and_with_blanks_around_them() {
    let text = "
schema: 1
governance:
  defaults: {action: forward}
  rules:
    - {id: level, method: Logging/setLevel, action: deny}
    - {id: admin, method: 'ADMIN/*', action: deny}
    - {id: model, method: 'sampling/*', action: deny}
";
    let mut harness = GateHarness::new(Some(policy(text)), Profile::Production);
    for method in
        ["logging/setLevel", "LOGGING/SETLEVEL", " logging/setlevel\\t", "admin/run", "Admin/RUN"]
    {
        assert_eq!(shown(&harness.client(&request(method, "{}"))), "refuse -32014", "{method}");
    }
    let spelled = request("Sampling/CreateMessage", "{}");
    assert_eq!(shown(&harness.server(&spelled)), "refuse -32014");
    assert_eq!(shown(&harness.client(&request("logging", "{}"))), "forward");
}

#[test]
fn a_rule_opens_an_unknown_method_under_default_deny() {
    let text = "
schema: 1
governance:
  defaults: {action: deny}
  rules: [{id: vendor, method: 'vendor/*', action: forward}]
";
    let mut harness = GateHarness::new(Some(policy(text)), Profile::Production);
    assert_eq!(shown(&harness.client(&request("vendor/run", "{}"))), "forward");
    assert_eq!(shown(&harness.server(&notification("vendor/event"))), "forward");
    assert_eq!(shown(&harness.client(&request("admin/run", "{}"))), "refuse -32014");
}

#[test]
fn no_glob_ends_a_conversation_but_a_rule_that_gives_the_whole_name_decides() {
    let rule = |method: &str| {
        let text = format!(
            "schema: 1\ngovernance: {{defaults: {{action: forward}}, rules: [{{method: '{method}', action: deny}}]}}\n"
        );
        GateHarness::new(Some(policy(&text)), Profile::Production)
    };
    for method in ["ping", "initialize", "server/discover", "notifications/initialized"] {
        assert_eq!(shown(&rule("*").client(&request(method, "{}"))), "forward", "{method}");
        assert_eq!(
            shown(&rule(method).client(&request(method, "{}"))),
            "refuse -32014",
            "{method}"
        );
    }
    assert_eq!(shown(&rule("*").client(&request("tools/list", "{}"))), "refuse -32014");
}

/// The word for a method's treatment in the documentation.
fn word(treatment: MethodTreatment) -> &'static str {
    match treatment {
        MethodTreatment::Gated(_) => "decided",
        MethodTreatment::Conversation => "always passes",
        MethodTreatment::Housekeeping => "passes",
        MethodTreatment::Logged => "passes, logged",
        MethodTreatment::Unknown => "default",
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a page is a file")]
fn the_table_of_methods_is_the_one_in_the_docs() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policy.md");
    let page = std::fs::read_to_string(path).unwrap();
    let gated = GatedMethod::ALL
        .map(|gated| (gated.method(), MethodTreatment::Gated(gated), MethodTreatment::Unknown));
    let others = PROTOCOL.iter().map(|known| (known.name, known.from_client, known.from_server));
    let rows = gated.into_iter().chain(others).map(|(name, client, server)| {
        format!("| `{name}` | {} | {} |", word(client), word(server))
    });
    let table = rows.collect::<Vec<_>>().join("\n");
    let start = "| method | from the client | from the server |\n|---|---|---|\n";
    let found = page.split_once(start).map_or("", |(_, rest)| rest);
    let found = found.split_once("\n\n").map_or(found, |(rows, _)| rows);
    assert!(found == table, "the table in docs/policy.md must be\n{start}{table}");
}

#[test]
fn a_name_in_an_unknown_method_is_read_in_every_way() {
    let text = "
schema: 1
governance:
  defaults: {action: forward}
  rules: [{id: etc, method: 'vendor/*', match: 'file:///etc/*', action: deny}]
";
    for uri in ["file:///etc/a", "file:///data/../etc/a", "file:///%65tc/a"] {
        let mut harness = GateHarness::new(Some(policy(text)), Profile::Production);
        let message = request("vendor/read", &format!(r#"{{"uri":"{uri}"}}"#));
        assert_eq!(shown(&harness.client(&message)), "refuse -32014", "{uri}");
    }
}

#[test]
fn a_method_that_nobody_knows_does_not_touch_our_own_files() {
    for params in [
        r#"{"path":".tapegate/approvals"}"#,
        r#"{"arguments":{},"file":{"name":"tapegate.yaml"}}"#,
        r#"["tapegate.lock"]"#,
    ] {
        let mut harness = under("forward");
        let text = request("fs/write", params);
        let refusal = refused(harness.judge(Side::Client, None, text.as_bytes()));
        assert!(refusal.data.contains("tapegate:own-files"), "{}", refusal.data);
    }
    for (method, params) in [
        (
            "tasks/update",
            r#"{"taskId":"1","inputResponses":{"a":{"content":{"path":"tapegate.yaml"}}}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"path","value":".tapegate/"}}"#,
        ),
    ] {
        let mut harness = under("forward");
        let plain = params.replace("tapegate", "plain");
        assert_eq!(shown(&harness.client(&request(method, &plain))), "forward", "{plain}");
        let refusal = refused(harness.client(&request(method, params)));
        assert!(refusal.data.contains("tapegate:own-files"), "{}", refusal.data);
    }
    let mut harness = under("forward");
    let text = request("fs/write", r#"{"path":"README.md","content":"see tapegate.yaml"}"#);
    assert_eq!(shown(&harness.judge(Side::Client, None, text.as_bytes())), "forward");
}

#[test]
fn a_mention_of_our_own_files_that_passes_is_logged_once() {
    let warnings = |method: &str, params: &str| {
        let mut harness = under("forward");
        let verdict = shown(&harness.client(&request(method, params)));
        let noted = harness.noted();
        (verdict, noted.iter().filter(|note| note.starts_with("framing warn")).count())
    };
    let both = r#"{"name":"w","arguments":{"path":"a","content":"tapegate.yaml, .tapegate/"}}"#;
    assert_eq!(warnings("tools/call", both), ("forward".to_owned(), 1));
    let told = r#"{"note":"we need tapegate.yaml"}"#;
    assert_eq!(warnings("vendor/tell", told), ("forward".to_owned(), 1));
    let named = r#"{"name":"w","arguments":{"path":"tapegate.yaml","content":"tapegate.yaml"}}"#;
    assert_eq!(warnings("tools/call", named), ("refuse -32014".to_owned(), 0));
    let tool = r#"{"name":"tapegate.yaml","arguments":{"path":"a"}}"#;
    assert_eq!(warnings("tools/call", tool), ("forward".to_owned(), 0));
}

#[test]
fn a_root_inside_of_our_own_folders_is_not_passed_on() {
    let roots = |uri: &str| format!(r#"{{"roots":[{{"uri":"file://{uri}"}}]}}"#);
    let answer = |uri: &str| format!(r#"{{"jsonrpc":"2.0","id":0,"result":{}}}"#, roots(uri));
    let brought = |uri: &str| {
        let params = format!(r#"{{"name":"ls","inputResponses":{{"a":{}}}}}"#, roots(uri));
        request("tools/call", &params)
    };
    for message in [&answer as &dyn Fn(&str) -> String, &brought] {
        let mut harness = under("forward");
        for uri in ["/home/u", "/home/u/.local/state", "/srv/data"] {
            assert_eq!(shown(&harness.client(&message(uri))), "forward", "{uri}");
        }
        for uri in ["/home/u/.local/state/tapegate", "/srv/.tapegate/private"] {
            let refusal = refused(harness.client(&message(uri)));
            assert!(refusal.data.contains("tapegate:own-files"), "{}", refusal.data);
        }
    }
}
