//! Malformed messages: refused in production, forwarded and logged in development. They never stop
//! the stream.

use serde_json::Value;

use super::setup::{FORWARD, answer_in, ask, call, event, events, messages, server_got};
use crate::support::{EndedSession, shim};

const PROFILES: [&str; 2] = ["production", "development"];

/// Sends lines between two valid calls, in a profile.
fn sent(profile: &str, policy: &str, lines: &[u8]) -> EndedSession {
    let setup = shim(policy, &["log=log", "serve"]).flags(&["--profile", profile]);
    let text =
        [call("\"before\"", "a").as_bytes(), lines, call("\"after\"", "b").as_bytes()].concat();
    let end = setup.run(&text).exits(0);
    for id in ["before", "after"] {
        assert_eq!(answer_in(&end.stdout, &id.into())["result"]["for"], id, "the stream goes on");
    }
    end
}

/// Whether part of the lines has reached the server.
fn arrived(end: &EndedSession, part: &str) -> bool {
    server_got(end.run.folder()).contains(part)
}

/// The framing decisions in the activity log.
fn noted(end: &EndedSession) -> Vec<String> {
    let events = events(end.run.folder());
    let framing = events.iter().filter(|event| event["kind"] == "framing");
    framing
        .map(|event| event["governance_decision"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn ec_stdio_014_a_message_over_10_mb_is_refused_in_both_profiles_and_the_next_one_passes() {
    for profile in PROFILES {
        let big = call(7, &"x".repeat(10 * 1024 * 1024 + 1));
        let end = sent(profile, FORWARD, big.as_bytes());
        let error = answer_in(&end.stdout, &7.into());
        assert_eq!(error["error"]["code"], -32010, "{error}");
        assert!(!arrived(&end, "xxxx"));
        assert!(!noted(&end).is_empty(), "it is in the activity log");
    }
}

#[test]
fn ec_stdio_015_malformed_json_is_dropped_in_production_and_passes_with_a_word_in_development() {
    let lines = b"{\"jsonrpc\":\"2.0\",\"method\":\"broken\n\xff\xfe broken\n";
    let end = sent("production", FORWARD, lines);
    assert!(!arrived(&end, "broken"));
    assert_eq!(noted(&end).len(), 2, "{:?}", events(end.run.folder()));
    let end = sent("development", FORWARD, lines);
    assert!(arrived(&end, "broken"));
    assert!(noted(&end).iter().all(|word| word.starts_with("WOULD_")), "{:?}", noted(&end));
}

#[test]
fn ec_stdio_015_without_a_policy_malformed_json_passes_byte_for_byte_and_is_logged() {
    let lines = b"{\"jsonrpc\":\"2.0\",\"method\":\"broken\nplain words\n[{}]\n";
    for profile in PROFILES {
        let end = sent(profile, "", lines);
        let got = server_got(end.run.folder());
        assert!(got.contains(std::str::from_utf8(lines).unwrap()), "{got}");
        let noted = noted(&end);
        assert!(noted.len() >= 3 && noted.iter().all(|word| word == "warn"), "{noted:?}");
    }
}

#[test]
fn ec_stdio_015_what_cannot_be_parsed_and_has_an_id_is_answered_so_that_nobody_waits() {
    let end =
        sent("production", FORWARD, b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"} x\n");
    let error = answer_in(&end.stdout, &5.into());
    assert!([-32600, -32700].contains(&error["error"]["code"].as_i64().unwrap()), "{error}");
}

#[test]
fn ec_stdio_016_a_message_without_jsonrpc_is_refused_in_production() {
    let line = b"{\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":\"hidden\"}}\n";
    let end = sent("production", FORWARD, line);
    assert_eq!(answer_in(&end.stdout, &5.into())["error"]["code"], -32600);
    assert!(!arrived(&end, "hidden"));
    let end = sent("development", FORWARD, line);
    assert!(arrived(&end, "hidden"));
}

#[test]
fn ec_stdio_017_neither_method_nor_id_is_dropped_or_would_be() {
    let line = b"{\"jsonrpc\":\"2.0\",\"params\":{\"odd\":1}}\n";
    let end = sent("production", FORWARD, line);
    assert!(!arrived(&end, "odd"));
    assert_eq!(messages(&end.stdout).len(), 2);
    let end = sent("development", FORWARD, line);
    assert!(arrived(&end, "odd"));
    assert_eq!(noted(&end), ["WOULD_DROP"]);
}

/// Ways to hide a call from a reader that parses differently from the server.
fn smuggled() -> Vec<Vec<u8>> {
    let inner =
        r#"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}"#;
    let mut lines: Vec<Vec<u8>> = ["\\n", "\\u2028", "\\u2029", "\\u0085"]
        .iter()
        .map(|cut| {
            format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"rm","arguments":{{"t":"x{cut}{inner}"}}}}}}"#).into_bytes()
        })
        .collect();
    let plain: [&[u8]; 9] = [
        br#"{"jsonrpc":"2.0","id":5,"method":"ping"}{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"rm"}}"#,
        br#"{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/call","params":{"name":"rm"}}"#,
        br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ok","name":"rm"}}"#,
        br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"rm"},"params":{"name":"ok"}}"#,
        br#"{"jsonrpc":"2.0","id":5,"method":"ping","Method":"tools/call","params":{"name":"rm"}}"#,
        br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ok","Name":"rm"}}"#,
        br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ok"},"PARAMS":{"name":"rm"}}"#,
        b"{\"jsonrpc\":\"2.0\",\"id\":5,\r\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\0{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}",
    ];
    lines.extend(plain.iter().map(|line| line.to_vec()));
    lines
}

/// Everything passes except messages inside messages.
const REFUSE_EMBEDDED: &str =
    "schema: 1\ngovernance: { embedded_messages: refuse, defaults: { action: forward } }\n";

#[test]
fn ec_stdio_018_a_message_in_a_message_is_refused_in_production_and_logged_in_development() {
    for line in smuggled() {
        let shown = line.escape_ascii().to_string();
        let text = [&line[..], b"\n"].concat();
        let end = sent("production", REFUSE_EMBEDDED, &text);
        assert!(!arrived(&end, "rm"), "{shown}");
        let mut ids: Vec<String> =
            messages(&end.stdout).into_iter().map(|one| one["id"].to_string()).collect();
        ids.sort();
        // Two messages on one line are two requests, and each expects an answer.
        let two = shown.contains("}{") || shown.contains("}\\x00{");
        let expected: &[&str] = if two { &["5", "9"] } else { &["5"] };
        let expected = [&["\"after\"", "\"before\""][..], expected].concat();
        assert_eq!(ids, expected, "exactly one answer to each: {shown}");
        assert_eq!(noted(&end).len(), 1, "{shown}");
        let end = sent("development", REFUSE_EMBEDDED, &text);
        assert!(arrived(&end, "rm"), "{shown}");
        assert_eq!(noted(&end), ["WOULD_REJECT"], "{shown}");
    }
}

#[test]
fn ec_stdio_018_reading_a_log_of_messages_passes_with_one_finding() {
    let log = r#"first line\n{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}\n"#;
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{{\"name\":\"write\",\"arguments\":{{\"text\":\"{log}\"}}}}}}\n"
    );
    for policy in [FORWARD, ""] {
        let end = sent("production", policy, line.as_bytes());
        assert!(arrived(&end, line.trim_end()), "byte for byte");
        assert_eq!(answer_in(&end.stdout, &5.into())["result"]["for"], 5);
        assert_eq!(noted(&end), ["warn"]);
    }
}

#[test]
fn ec_stdio_018_text_with_lines_in_it_is_no_smuggling() {
    let line = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"write","arguments":{"text":"a\nb {\n \"x\": 1\n}\n","id":1,"Name":"twin"}}}"#;
    let end = sent("production", FORWARD, format!("{line}\n").as_bytes());
    assert!(arrived(&end, line));
    assert!(noted(&end).is_empty());
}

#[test]
fn ec_stdio_035_a_batch_on_stdio_is_refused_in_production_and_each_of_its_requests_is_answered() {
    let one = ask(5, "ping");
    let two = call("\"six\"", "in_batch");
    let batch = format!("[{},{}]\n", one.trim_end(), two.trim_end());
    let end = sent("production", FORWARD, batch.as_bytes());
    assert!(!arrived(&end, "in_batch"));
    let array = messages(&end.stdout).into_iter().find(|message| message.is_array());
    let array = array.expect("a batch is answered by a batch");
    let ids: Vec<_> = array.as_array().unwrap().iter().map(|error| error["id"].clone()).collect();
    assert_eq!(ids, [Value::from(5), Value::from("six")]);
    let end = sent("development", FORWARD, batch.as_bytes());
    assert!(arrived(&end, "in_batch"));
}

#[test]
fn a_gated_call_as_a_notification_or_without_a_name_reaches_nobody() {
    // Both bypassed every gate of the earlier tool.
    for line in [
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":["rm"]}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"arguments":{"rm":1}}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":["rm"]}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"name":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"uri":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{"ref":{"type":"rm"}}}"#,
        r#"{"jsonrpc":"2.0","id":[5],"method":"tools/call","params":{"name":"rm"}}"#,
    ] {
        let end = sent("production", FORWARD, format!("{line}\n").as_bytes());
        assert!(!arrived(&end, "rm"), "{line}");
        if line.contains("\"id\":5") {
            assert_eq!(answer_in(&end.stdout, &5.into())["error"]["code"], -32602, "{line}");
        }
    }
}

#[test]
fn under_default_deny_a_method_that_the_protocol_lacks_reaches_neither_side() {
    let deny = "schema: 1\ngovernance: { defaults: { action: deny } }\n";
    let vendor = r#"say={"jsonrpc":"2.0","method":"vendor/event","params":{}}"#;
    let setup = shim(deny, &["log=log", vendor, "serve"]);
    let notice = "{\"jsonrpc\":\"2.0\",\"method\":\"admin/notice\"}\n";
    let text = [&ask(1, "admin/run"), &ask(2, "tools/execute"), notice, &ask(3, "ping")].concat();
    let end = setup.run(text.as_bytes()).exits(0);
    for id in [1, 2] {
        assert_eq!(answer_in(&end.stdout, &id.into())["error"]["code"], -32014);
    }
    assert_eq!(answer_in(&end.stdout, &3.into())["result"]["for"], 3);
    assert!(!arrived(&end, "admin/") && !arrived(&end, "tools/execute"));
    assert!(!String::from_utf8_lossy(&end.stdout).contains("vendor/event"));
    for method in ["admin/run", "tools/execute", "admin/notice", "vendor/event"] {
        let noted = event(end.run.folder(), &[("method", method), ("governance_decision", "deny")]);
        assert_eq!(noted["gate"], "governance", "{noted}");
    }
}

#[test]
fn ids_of_every_spelling_are_kept_as_they_are() {
    // The earlier tool dropped fractional ids silently.
    for id in ["1", "1.5", "1e3", "18446744073709551616", "\"1\"", "-0", "\"\\u0031\""] {
        let line = call(id, "a");
        let end = shim(FORWARD, &["log=log", "serve"]).run(line.as_bytes()).exits(0);
        assert_eq!(server_got(end.run.folder()), line);
        assert!(end.stdout.starts_with(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},").as_bytes()));
    }
}

#[test]
fn a_subscription_that_asks_for_nothing_is_left_to_the_server() {
    // This is how clients find out that 2026-07-28 no longer has the method.
    let asks = |id: u32, params: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"resources/subscribe\",\"params\":{params}}}\n"
        )
    };
    let lines = [asks(1, r#"{"_meta":{}}"#), asks(2, r#"{"_meta":{},"Uri":"x"}"#), asks(3, "{}")];
    let end = sent("production", FORWARD, lines.concat().as_bytes());
    assert_eq!(answer_in(&end.stdout, &1.into())["result"]["for"], 1);
    for id in [2, 3] {
        let refused = answer_in(&end.stdout, &id.into());
        assert!(refused["error"]["code"].is_i64(), "{refused}");
    }
    assert!(!arrived(&end, "Uri"));
}
