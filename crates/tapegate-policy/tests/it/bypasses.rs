//! Known ways to bypass a gate, none of which may work here.

use tapegate_core::gate::Verdict;
use tapegate_core::side::Side;
use tapegate_policy::decide::GateName;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::Profile;

use crate::gate_harness::{GateHarness, call, policy, refused, request, shown};

/// Everything but `rm` passes.
const POLICY: &str = "
schema: 1
governance:
  defaults: {action: forward}
  rules:
    - {match: [rm, 'file:///etc/*'], action: deny}
    - {match: ask, action: approve}
    - {match: write, action: deny, arguments: {path: {not: {glob: '/data/*'}}}}
";

pub(crate) fn harness() -> GateHarness {
    GateHarness::new(Some(policy(POLICY)), Profile::Production)
}

/// Asserts that production refuses a client's message with this code, and that development passes
/// it and logs what production would have done.
#[track_caller]
pub(crate) fn stopped(text: &[u8], code: i32) {
    let output_text = String::from_utf8_lossy(text).into_owned();
    let refusal = refused(harness().judge(Side::Client, None, text));
    assert_eq!(refusal.code, code, "{output_text}: {refusal:?}");
    let mut lax = GateHarness::new(Some(policy(POLICY)), Profile::Development);
    assert!(matches!(lax.judge(Side::Client, None, text), Verdict::Forward), "{output_text}");
    let noted = lax.noted();
    assert!(noted.iter().any(|note| note.contains("WOULD_")), "{output_text}: {noted:?}");
}

#[test]
fn what_is_denied_says_so_with_the_tool_the_gate_and_an_id() {
    let refusal = refused(harness().client(&call("rm")));
    assert!(
        refusal.message.starts_with("Tapegate: tool `rm` is denied by "),
        "{}",
        refusal.message
    );
    let data = r#"{"gate":"governance","tool":"rm","correlation_id":"c-1","error_type":"governance_rule_denied""#;
    assert!(refusal.data.starts_with(data), "{}", refusal.data);
    assert_eq!(shown(&harness().client(&call("ls"))), "forward");
}

#[test]
fn a_call_sent_as_a_notification_is_dropped() {
    for tool in ["rm", "ls"] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","method":"tools/call","params":{{"name":"{tool}"}}}}"#);
        stopped(text.as_bytes(), -32600);
    }
}

#[test]
fn a_call_that_does_not_name_anything_is_invalid() {
    for params in ["{}", "[]", "null", "7", r#"["rm"]"#, r#"{"name":7}"#, r#"{"name":["rm"]}"#] {
        stopped(request("tools/call", params).as_bytes(), -32602);
        stopped(request("prompts/get", params).as_bytes(), -32602);
        stopped(request("resources/read", params).as_bytes(), -32602);
    }
    stopped(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602);
    for reference in [
        "{}",
        r#""x""#,
        r#"{"type":"ref/prompt"}"#,
        r#"{"type":"ref/prompt","name":7}"#,
        r#"{"type":"ref/other","name":"x"}"#,
        r#"{"type":"ref/prompt","name":"x","uri":"file:///etc/a"}"#,
        r#"{"name":"x"}"#,
    ] {
        let params = format!(r#"{{"ref":{reference},"argument":{{"name":"a","value":""}}}}"#);
        stopped(request("completion/complete", &params).as_bytes(), -32602);
    }
}

#[test]
fn a_member_that_occurs_twice_is_refused_wherever_a_reader_may_take_the_other_one() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls","name":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm","name":"ls"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls","n\u0061me":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"},"params":{"name":"ls"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call","params":{"name":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"ls"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"/data/a","path":"/etc/a"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"a":[{"b":1,"b":2}]}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"/data/a"},"arguments":{"path":"/etc/a"}}}"#,
    ] {
        stopped(text.as_bytes(), -32600);
    }
}

#[test]
fn a_name_that_go_folds_to_another_is_refused() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call","params":{"name":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"Method":"tools/call","Params":{"Name":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls"},"PARAMS":{"name":"rm"}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"ls\"},\"param\u{17f}\":{\"name\":\"rm\"}}",
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls","Name":"rm"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"/data/a"},"ARGUMENTS":{"path":"/etc/a"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"/data/a","Path":"/etc/a"}}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"ls\",\"tas\u{212a}\":{}}}",
    ] {
        stopped(text.as_bytes(), -32600);
    }
    // Deeper objects are maps whose keys are data, and so are names that a server makes up.
    for map in [
        r#"{"name":"ls","arguments":{"map":{"May":1,"may":2}}}"#,
        r#"{"name":"ls","inputResponses":{"aB":{},"Ab":{}},"requestState":"s"}"#,
    ] {
        assert_eq!(shown(&harness().client(&request("tools/call", map))), "forward", "{map}");
    }
}

#[test]
fn bytes_after_the_message_are_refused() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for tail in [call("rm").as_str(), "x", "]", ",{}", "null"] {
        stopped(format!("{ping}{tail}").as_bytes(), -32700);
        stopped(format!("{ping} {tail}").as_bytes(), -32700);
    }
    stopped(format!("{ping}\0").as_bytes(), -32600);
    stopped(format!("\u{feff}{ping}").as_bytes(), -32700);
}

#[test]
fn a_carriage_return_inside_a_line_is_refused_and_one_at_its_end_is_not() {
    let text = call("ls");
    assert_eq!(shown(&harness().client(&format!("{text}\r"))), "forward");
    stopped(format!("{text}\r\r").as_bytes(), -32600);
    stopped(text.replacen(',', ",\r", 1).as_bytes(), -32600);
    // In an HTTP body any white space is allowed.
    let mut http =
        GateHarness::over(TransportKind::Http, Some(policy(POLICY)), Profile::Production);
    assert_eq!(shown(&http.client(&text.replacen(',', ",\r\n", 1))), "forward");
}

#[test]
fn what_is_no_utf_8_or_no_json_or_no_message_is_refused() {
    stopped(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"r\xffm\"}}", -32700);
    stopped(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",", -32700);
    stopped(b"rm -rf", -32700);
    stopped(b"7", -32600);
    stopped(b"{}", -32600);
    stopped(br#"{"jsonrpc":"2.0","id":1}"#, -32600);
    stopped(br#"{"id":1,"method":"ping"}"#, -32600);
    stopped(br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600);
    stopped(br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600);
    stopped(br#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#, -32600);
    stopped(br#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600);
    for id in ["1", "1.5", "-1", "\"\"", "\"a\"", "18446744073709551616"] {
        let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_eq!(shown(&harness().client(&ping)), "forward");
    }
}

#[test]
fn reading_a_log_of_messages_is_ordinary_work_and_leaves_a_finding() {
    let hidden = call("rm").replace('"', "\\\"");
    let params = format!(r#"{{"name":"ls","arguments":{{"a":"x\n{hidden}"}}}}"#);
    let result = format!(r#"{{"content":[{{"type":"text","text":"a\n{hidden}"}}]}}"#);
    let reply = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    for policy in [Some(policy(POLICY)), None] {
        let mut harness = GateHarness::new(policy, Profile::Production);
        assert_eq!(shown(&harness.client(&request("tools/call", &params))), "forward");
        assert_eq!(harness.noted(), ["decision forward ls", "framing warn ls"]);
        assert_eq!(shown(&harness.server(&reply)), "forward");
        assert_eq!(harness.noted(), ["framing warn "]);
    }
    // The anomaly does not keep the call from being denied.
    let mut harness = harness();
    let refusal =
        refused(harness.client(&request("tools/call", &params.replace("\"ls\"", "\"rm\""))));
    assert_eq!(refusal.code, -32014);
    assert_eq!(harness.noted(), ["decision deny rm", "framing warn rm"]);
}

#[test]
fn a_message_hidden_in_a_string_is_refused_where_the_policy_says_so() {
    let strict = POLICY.replace("governance:\n", "governance:\n  embedded_messages: refuse\n");
    let harness = |profile| GateHarness::new(Some(policy(&strict)), profile);
    let stopped = |text: &[u8], code: i32| {
        let output_text = String::from_utf8_lossy(text).into_owned();
        let refusal = refused(harness(Profile::Production).judge(Side::Client, None, text));
        assert_eq!(refusal.code, code, "{output_text}: {refusal:?}");
        let mut lax = harness(Profile::Development);
        assert_eq!(shown(&lax.judge(Side::Client, None, text)), "forward", "{output_text}");
        assert!(lax.noted()[0].starts_with("framing WOULD_REJECT"), "{output_text}");
    };
    let hidden = call("rm").replace('"', "\\\"");
    for end in [r"\n", r"\r", r"\u000a", r"\u2028", r"\u0085", "\u{2028}", "\u{2029}", "\u{85}"] {
        for blank in ["", " ", r"\t"] {
            let params = format!(r#"{{"name":"ls","arguments":{{"a":"x{end}{blank}{hidden}"}}}}"#);
            stopped(request("tools/call", &params).as_bytes(), -32600);
        }
    }
    let spelled = hidden.replace("jsonrpc", r"\u006asonrpc");
    let params = format!(r#"{{"name":"ls","arguments":{{"a":"x\n{spelled}"}}}}"#);
    stopped(request("tools/call", &params).as_bytes(), -32600);
    let key = format!(r#"{{"name":"ls","arguments":{{"x\n{hidden}":1}}}}"#);
    stopped(request("tools/call", &key).as_bytes(), -32600);
    // Prose about messages, and lines of other JSON, are content.
    for text in [
        r#"a \"jsonrpc\" member\nand {more}"#,
        r#"x\n{\"a\":1}\n{\"b\":\"jsonrpc\"}"#,
        hidden.as_str(),
    ] {
        let params = format!(r#"{{"name":"ls","arguments":{{"a":"{text}"}}}}"#);
        let mut harness = harness(Profile::Production);
        assert_eq!(shown(&harness.client(&request("tools/call", &params))), "forward", "{text}");
    }
    let reply = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"a\n{hidden}"}}}}"#);
    assert_eq!(shown(&harness(Profile::Production).server(&reply)), "refuse -32600");
}

#[test]
fn a_server_that_prints_something_else_than_messages_is_not_heard() {
    for text in ["Listening on stdio", "{\"a\":1}", "\u{1b}[32mINFO"] {
        assert!(matches!(harness().server(text), Verdict::Refuse(_)), "{text}");
    }
}

#[test]
fn names_that_readers_read_differently_are_refused() {
    for name in [r"rm\u0000", r"\u0000", r"r\ud800m", r"\udc00"] {
        stopped(call(name).as_bytes(), -32600);
    }
    stopped(request(r"tools/\ud800call", r#"{"name":"rm"}"#).as_bytes(), -32600);
    // Escapes that all readers decode alike are only a matter of spelling.
    assert_eq!(shown(&harness().client(&call(r"\u0072m"))), "refuse -32014");
    assert_eq!(
        shown(&harness().client(&request(r"tools\/call", r#"{"name":"rm"}"#))),
        "refuse -32014"
    );
    assert_eq!(
        shown(&harness().client(&request("Tools/Call", r#"{"name":"rm"}"#))),
        "refuse -32014"
    );
    assert_eq!(
        shown(&harness().client(&request("tools/call ", r#"{"name":"rm"}"#))),
        "refuse -32014"
    );
}

#[test]
fn a_request_that_is_an_answer_too_is_refused() {
    let both = r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{"tools":[{"name":"rm"}]}}"#;
    assert_eq!(shown(&harness().server(both)), "refuse -32600");
    assert_eq!(shown(&harness().client(both)), "refuse -32600");
    let nulls = r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":null,"error":null}"#;
    assert_eq!(shown(&harness().client(nulls)), "forward");
}

#[test]
fn a_batch_is_refused_on_stdio_and_passes_over_http_only_as_a_whole() {
    let batch = |calls: &[&str]| {
        let calls: Vec<String> = calls.iter().map(|tool| call(tool)).collect();
        format!("[{}]", calls.join(","))
    };
    stopped(batch(&["ls"]).as_bytes(), -32600);
    let mut http =
        GateHarness::over(TransportKind::Http, Some(policy(POLICY)), Profile::Production);
    assert_eq!(shown(&http.client(&batch(&["ls", "cat"]))), "forward");
    assert_eq!(shown(&http.client(&batch(&["ls", "rm"]))), "refuse -32014");
    assert_eq!(shown(&http.client(&batch(&["ls", "ask"]))), "refuse -32600");
    // An element that would pass by itself is not logged as sent.
    http.memory.notes.lock().unwrap().clear();
    http.client(&batch(&["ls", "rm"]));
    let told: Vec<_> = http.memory.notes.lock().unwrap().drain(..).collect();
    let told: Vec<_> = told
        .iter()
        .map(|note| (note.event.tool.as_deref().unwrap_or_default(), note.event.forwarded))
        .collect();
    assert_eq!(told, [("ls", Some(false)), ("rm", Some(false))]);
    assert_eq!(http.people(), [""; 0]);
    for odd in ["[7]", "[[]]", r#"[{"id":1}]"#, "[\"x\"]"] {
        assert!(matches!(http.client(odd), Verdict::Refuse(_)), "{odd}");
    }
}

#[test]
fn resources_are_gated_by_every_way_to_them() {
    for (method, params) in [
        ("resources/read", r#"{"uri":"file:///etc/passwd"}"#),
        ("resources/subscribe", r#"{"uri":"file:///etc/passwd"}"#),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/resource","uri":"file:///etc/{x}"},"argument":{"name":"x","value":""}}"#,
        ),
        (
            "subscriptions/listen",
            r#"{"notifications":{"resourceSubscriptions":["file:///a","file:///etc/passwd"]}}"#,
        ),
    ] {
        assert_eq!(shown(&harness().client(&request(method, params))), "refuse -32014", "{method}");
    }
    let listen = r#"{"notifications":{"toolsListChanged":true}}"#;
    assert_eq!(shown(&harness().client(&request("subscriptions/listen", listen))), "forward");
    for odd in [
        r#"{"notifications":{"resourceSubscriptions":"file:///etc/a"}}"#,
        r#"{"notifications":{"resourceSubscriptions":[7]}}"#,
    ] {
        stopped(request("subscriptions/listen", odd).as_bytes(), -32602);
    }
}

#[test]
fn a_uri_is_denied_if_what_a_server_makes_of_it_is() {
    for uri in [
        "file:///data/../etc/passwd",
        "file:///data/%2e%2E/etc/passwd",
        "file:///data/..%2fetc/passwd",
        "file:///data/..%5Cetc%5Cpasswd",
        r"file:///data\\..\\etc\\passwd",
        "file:///data//../../etc/passwd",
        "file:///./etc/passwd",
        "file:////etc/passwd",
        "file:///%65tc/passwd",
        "FILE:///etc/passwd",
        "file:/etc/passwd",
        "file://localhost/etc/passwd",
        "file:///e\\tt\\nc/passwd",
        " file:///etc/passwd",
    ] {
        for method in ["resources/read", "resources/subscribe"] {
            let said = request(method, &format!(r#"{{"uri":"{uri}"}}"#));
            assert_eq!(shown(&harness().client(&said)), "refuse -32014", "{said}");
        }
        let listens = format!(r#"{{"notifications":{{"resourceSubscriptions":["{uri}"]}}}}"#);
        let said = request("subscriptions/listen", &listens);
        assert_eq!(shown(&harness().client(&said)), "refuse -32014", "{said}");
    }
    for uri in
        ["file:///data/a%20b..c", "note://Team/../etc/x", "urn:a/../b", "x", "file:///etcetera"]
    {
        let said = request("resources/read", &format!(r#"{{"uri":"{uri}"}}"#));
        assert_eq!(shown(&harness().client(&said)), "forward", "{said}");
    }
}

#[test]
fn a_method_hides_behind_no_mark_that_readers_take_off() {
    for method in ["\\ufefftools/call", "tools/call\\u00a0"] {
        let said = request(method, r#"{"name":"rm"}"#);
        assert_eq!(shown(&harness().client(&said)), "refuse -32014", "{said}");
    }
}

#[test]
fn the_retry_of_a_call_is_gated_like_the_call() {
    let params = r#"{"name":"rm","arguments":{},"inputResponses":{"a":{}},"requestState":"s"}"#;
    assert_eq!(shown(&harness().client(&request("tools/call", params))), "refuse -32014");
    let task = r#"{"name":"rm","task":{"ttl":1000}}"#;
    assert_eq!(shown(&harness().client(&request("tools/call", task))), "refuse -32014");
}

#[test]
fn params_nested_without_end_are_refused_in_bounded_memory() {
    let deep = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        request("tools/call", &format!(r#"{{"name":"ls","arguments":{{"a":{open}{close}}}}}"#))
    };
    assert_eq!(shown(&harness().client(&deep(500))), "forward");
    stopped(deep(100_000).as_bytes(), -32600);
}

#[test]
fn without_a_policy_nothing_is_refused_and_what_is_odd_is_logged() {
    let twice =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
    let batch = format!("[{},7]", call("rm"));
    let odd: [&[u8]; 9] = [
        b"{}{}",
        b"Listening on stdio",
        b"\xff",
        b"7",
        br#"{"id":1,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"rm"}}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        twice.as_bytes(),
        batch.as_bytes(),
    ];
    for profile in [Profile::Production, Profile::Development] {
        for carrier in [TransportKind::Lines, TransportKind::Http] {
            let mut harness = GateHarness::over(carrier, None, profile);
            assert_eq!(shown(&harness.client(&call("rm"))), "forward");
            assert_eq!(harness.noted(), ["decision forward rm"]);
            for text in odd {
                for from in [Side::Client, Side::Server] {
                    let output_text = String::from_utf8_lossy(text).into_owned();
                    let verdict = harness.judge(from, None, text);
                    assert!(matches!(verdict, Verdict::Forward), "{output_text}: {verdict:?}");
                    let told = harness.noted();
                    let calls = from == Side::Client || text == odd[0];
                    let warned = told.iter().filter(|note| note.starts_with("framing warn"));
                    assert!(warned.count() > 0 || !calls, "{output_text}: {told:?}");
                }
            }
        }
    }
    // The calls of a batch are logged individually.
    let mut harness = GateHarness::new(None, Profile::Production);
    harness.client(&batch);
    assert_eq!(harness.noted(), ["decision forward rm", "framing warn ", "framing warn "]);
}

#[test]
fn a_denied_call_in_a_batch_is_logged_by_its_name_in_development() {
    let batch = format!("[{},{},{}]", call("ls"), call("rm"), call("ask"));
    let mut harness =
        GateHarness::over(TransportKind::Http, Some(policy(POLICY)), Profile::Development);
    assert_eq!(shown(&harness.client(&batch)), "forward");
    let notes: Vec<_> = harness.memory.notes.lock().unwrap().drain(..).collect();
    let told: Vec<_> = notes
        .iter()
        .map(|note| {
            (
                note.decision().as_str(),
                note.event.tool.as_deref().unwrap_or_default(),
                note.event.gate.unwrap(),
            )
        })
        .collect();
    // A call that needs approval cannot wait in a batch, so production refuses it.
    assert_eq!(
        told,
        [
            ("forward", "ls", GateName::Governance),
            ("WOULD_BLOCK", "rm", GateName::Governance),
            ("WOULD_BLOCK", "ask", GateName::Approval),
        ]
    );
    // On stdio, production refuses the batch itself too.
    let mut lines = GateHarness::new(Some(policy(POLICY)), Profile::Development);
    assert_eq!(shown(&lines.client(&batch)), "forward");
    let told = lines.noted();
    assert_eq!(told[0], "framing WOULD_REJECT ");
    assert!(told.contains(&"decision WOULD_BLOCK rm".to_owned()), "{told:?}");
}

#[test]
fn a_list_in_a_batch_is_filtered_where_it_stands() {
    let hiding = "
schema: 1
sources: [{id: fs, kind: mcp, expose: {mode: blocklist, tools: [rm]}}]
governance: {defaults: {action: forward}}
";
    let mut http =
        GateHarness::over(TransportKind::Http, Some(policy(hiding)), Profile::Production);
    let ok = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let list =
        |tools: &str| format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"tools":[{tools}]}}}}"#);
    let reply = format!("[{ok}, {}]", list(r#"{"name":"rm"},{"name":"ls"}"#));
    let filtered = format!("rewrite [{ok}, {}]", list(r#"{"name":"ls"}"#));
    assert_eq!(shown(&http.server(&reply)), filtered);
}
