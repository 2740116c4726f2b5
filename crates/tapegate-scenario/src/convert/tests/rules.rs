//! The rules of conversion, one by one.

use super::*;
use crate::model::{ScenarioAction, ScenarioScope, UnknownMethods};

#[test]
fn ec_rec_001_a_tape_of_a_header_alone_becomes_a_minimal_scenario() {
    let it = made(&TestTape::new(), &SIMPLE);
    assert_eq!(it.summary, ConversionSummary::default());
    assert!(it.text.contains("server:\n  name: replay-session\n"), "{}", it.text);
    assert!(it.scenario.baseline.tools.is_empty() && it.scenario.phases.is_empty());
    assert_eq!(it.scenario.unknown_methods, UnknownMethods::Error);
    let phased = made(&TestTape::new(), &PHASED);
    assert_eq!(phased.scenario.phases.len(), 2);
}

#[test]
fn ec_rec_010_tools_are_inferred_from_calls_with_a_warning() {
    let tape = TestTape::new().hello().call("read", "a").call("write", "b").call("read", "c");
    let it = made(&tape, &SIMPLE);
    assert_eq!(it.summary.tools, 2);
    assert!(it.summary.warnings[0].starts_with("the tape has no tools/list: "));
    let read = tool(&it.scenario.baseline.tools, "read");
    assert_eq!(texts(read), ["a", "c"]);
    assert_eq!(read.definition.get("inputSchema").unwrap().to_json(), br#"{"type":"object"}"#);
}

#[test]
fn the_sample_of_the_document_becomes_a_sequence_and_a_single_answer() {
    let tape = TestTape::new()
        .hello()
        .tools(&["read_file", "list_directory"])
        .call("read_file", "hosts")
        .call("list_directory", "files")
        .call("read_file", "passwd");
    let it = made(&tape, &SIMPLE);
    for part in [
        "# Made by `tapegate convert` from session.jsonl\n# Recorded: 2025-02-04T10:00:00Z\n# Upstream: npx server --token [REDACTED]\n",
        "interpolate: none\n",
        "server:\n  name: files\n  version: \"2.1\"\n",
        "tools:\n  - tool:\n      name: read_file\n      description: The tool read_file\n      inputSchema:\n        type: object\n        properties:\n          path:\n            type: string\n        required: [\"path\"]\n    response:\n",
        "      sequence:\n        # for {\"path\":\"/hosts\"}\n        - content:\n            - type: text\n              text: hosts\n",
        "      on_exhausted: last\n\n  - tool:\n      name: list_directory\n",
        "    response:\n      # for {\"path\":\"/files\"}\n      content:\n        - type: text\n          text: files\n",
        "unknown_methods: error\n",
    ] {
        assert!(it.text.contains(part), "{part}\n--- in ---\n{}", it.text);
    }
}

#[test]
fn pages_are_put_together_and_a_list_in_another_order_is_the_same_list() {
    let page = |names: &str, next: &str| format!(r#""result":{{"tools":[{names}]{next}}}"#);
    let one = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
    let two = [one("a"), one("b")].join(",");
    let tape = TestTape::new()
        .hello()
        .ask("tools/list", "{}")
        .give(&page(&two, r#","nextCursor":"2""#))
        .ask("tools/list", r#"{"cursor":"2"}"#)
        .give(&page(&one("c"), ""))
        .ask("tools/list", "{}")
        .give(&page(&[one("c"), two.clone()].join(","), ""))
        .ask("tools/list", "{}")
        .give(&page(&one("half"), r#","nextCursor":"9""#));
    let it = made(&tape, &SIMPLE);
    let names: Vec<_> = it.scenario.baseline.tools.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!((it.scenario.server.page_size, it.summary.warnings.len()), (Some(2), 0));
}

#[test]
fn what_the_server_did_before_it_answered_is_done_again() {
    let tape = TestTape::new()
        .hello()
        .tools(&["a"])
        .ask("tools/call", r#"{"name":"a","arguments":{},"_meta":{"progressToken":7}}"#)
        .server(r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1,"total":2,"message":"m"}}"#)
        .server(r#"{"method":"notifications/message","params":{"level":"info","logger":"l","data":{"x":1}}}"#)
        .server(r#"{"id":"s1","method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{}}}}"#)
        .client(r#"{"id":"s1","result":{"action":"accept","content":{}}}"#)
        .server(r#"{"method":"notifications/custom"}"#)
        .give(r#""result":{"content":[]}"#)
        .server(r#"{"method":"notifications/resources/updated","params":{"uri":"u"}}"#)
        .server(r#"{"id":"s2","method":"roots/list"}"#);
    let it = made(&tape, &SIMPLE);
    let expected = "      before:
        - progress:
            progress: 1
            total: 2
            message: m
        - log_message:
            level: info
            logger: l
            data:
              x: 1
        - send_request:
            method: elicitation/create
            params:
              message: \"Name?\"
              requestedSchema:
                type: object
                properties: {}
        - send_notification: notifications/custom
        - send_notification:
            method: notifications/resources/updated
            params:
              uri: u
      content: []
";
    assert!(it.text.contains(expected), "{}", it.text);
    assert_eq!(it.summary.left_out, 1);
}

#[test]
fn what_the_server_did_when_the_client_was_ready_is_done_again() {
    let tape = TestTape::new()
        .hello()
        .server(r#"{"id":"s1","method":"roots/list"}"#)
        .client(r#"{"id":"s1","result":{"roots":[]}}"#)
        .server(r#"{"method":"notifications/message","params":{"level":"info","data":"Roots updated"}}"#)
        .tools(&["a"]);
    let it = made(&tape, &SIMPLE);
    assert_eq!(it.scenario.phases.len(), 1);
    assert!(matches!(
        &it.scenario.phases[0].on_enter[..],
        [ScenarioAction::Ask { .. }, ScenarioAction::Message { .. }]
    ));
    let phased = made(&tape, &PHASED);
    assert_eq!(phased.scenario.phases[0].on_enter.len(), 2);
}

#[test]
fn errors_flags_structure_and_silence_are_kept() {
    let tape = TestTape::new()
        .hello()
        .tools(&["a"])
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""error":{"code":-32602,"message":"No","data":{"x":[1]}}"#)
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""result":{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource_link","uri":"u","name":"n"}],"isError":true,"structuredContent":{"n":1.50},"_meta":{"k":"v"}}"#)
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""result":{"task":{"taskId":"t","status":"working"}}"#)
        .ask("tools/call", r#"{"name":"a"}"#);
    let it = made(&tape, &SIMPLE);
    let given = answers(tool(&it.scenario.baseline.tools, "a"));
    assert_eq!(
        given,
        [
            serde_json::json!({"error":{"code":-32602,"message":"No","data":{"x":[1]}}}),
            serde_json::json!({"result":{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource_link","uri":"u","name":"n"}],"isError":true,"structuredContent":{"n":1.50},"_meta":{"k":"v"}}}),
            serde_json::json!({"result":{"task":{"taskId":"t","status":"working"}}}),
            serde_json::Value::Null,
        ]
    );
    assert!(it.text.contains("\"n\": 1.50\n"), "{}", it.text);
}

#[test]
fn resources_templates_prompts_and_other_methods_are_there() {
    let tape = TestTape::new()
        .hello()
        .ask("resources/list", "{}")
        .give(r#""result":{"resources":[{"uri":"a://1","name":"one","mimeType":"text/plain"},{"uri":"a://2","name":"two"}]}"#)
        .ask("resources/templates/list", "{}")
        .give(r#""result":{"resourceTemplates":[{"uriTemplate":"t://{id}","name":"t"}]}"#)
        .ask("resources/read", r#"{"uri":"a://1"}"#)
        .give(r#""result":{"contents":[{"uri":"a://1","mimeType":"text/plain","text":"one"}]}"#)
        .ask("resources/read", r#"{"uri":"t://7/x.txt"}"#)
        .give(r#""result":{"contents":[{"uri":"t://7/x.txt","blob":"AAAA"}]}"#)
        .ask("resources/read", r#"{"uri":"no://such"}"#)
        .give(r#""error":{"code":-32002,"message":"Resource not found"}"#)
        .ask("prompts/list", "{}")
        .give(r#""result":{"prompts":[{"name":"p","title":"P","arguments":[{"name":"x","required":true}]}]}"#)
        .ask("prompts/get", r#"{"name":"p","arguments":{"x":"1"}}"#)
        .give(r#""result":{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}"#)
        .ask("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"x","value":"a"}}"#)
        .give(r#""result":{"completion":{"values":["ab"],"total":1,"hasMore":false}}"#)
        .ask("logging/setLevel", r#"{"level":"debug"}"#)
        .give(r#""result":{}"#)
        .ask("tools/list", "{}")
        .give(r#""error":{"code":-32601,"message":"Method not found"}"#);
    let it = made(&tape, &SIMPLE);
    let Scenario { baseline, methods, .. } = &it.scenario;
    let uris: Vec<_> = baseline.resources.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(uris, ["a://1", "a://2", "t://7/x.txt", "no://such"]);
    let listed: Vec<_> = baseline.resources.iter().map(|item| item.listed).collect();
    assert_eq!(listed, [true, true, false, false]);
    assert_eq!(answers(&baseline.resources[3])[0]["error"]["code"], -32002);
    assert_eq!(baseline.resources[2].definition.get("name").unwrap().as_text(), Some("x.txt"));
    assert_eq!(answers(&baseline.resources[0])[0]["result"]["contents"][0]["text"], "one");
    assert_eq!((baseline.templates.len(), baseline.prompts.len()), (1, 1));
    assert_eq!(answers(&baseline.prompts[0])[0]["result"]["description"], "d");
    let methods: Vec<_> = methods.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(methods, ["completion/complete", "tools/list"]);
    assert_eq!((it.summary.reads, it.summary.gets, it.summary.methods), (3, 1, 2));
}

#[test]
fn a_server_without_sessions_is_converted_too() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let tape = TestTape::new()
        .ask("server/discover", &format!("{{{meta}}}"))
        .give(r#""result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"m","version":"1"},"instructions":"Be good."}"#)
        .ask("tools/list", &format!("{{{meta}}}"))
        .give(r#""result":{"resultType":"complete","tools":[{"name":"a","inputSchema":{"type":"object"}}],"ttlMs":1000,"cacheScope":"public"}"#)
        .ask("tools/call", &format!(r#"{{"name":"a",{meta}}}"#))
        .give(r#""result":{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?"}}},"requestState":"s1"}"#)
        .ask("tools/call", &format!(r#"{{"name":"a","inputResponses":{{"who":{{"action":"accept"}}}},"requestState":"s1",{meta}}}"#))
        .give(r#""result":{"resultType":"complete","content":[{"type":"text","text":"you"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m"}}}"#)
        .ask("tools/call", &format!(r#"{{"name":"a",{meta}}}"#))
        .give(r#""result":{"resultType":"complete","content":[{"type":"text","text":"again"}]}"#);
    let it = made(&tape, &SIMPLE);
    assert_eq!(it.summary.calls, 2);
    assert_eq!(texts(tool(&it.scenario.baseline.tools, "a")), ["you", "again"]);
    assert!(it.text.contains("        - before:\n            - send_request:\n                method: elicitation/create\n                params:\n                  message: \"Who?\"\n                as: who\n"), "{}", it.text);
    assert!(!it.text.contains("resultType") && !it.text.contains("ttlMs"), "{}", it.text);
    assert_eq!(it.scenario.server.protocol_versions, ["2026-07-28"]);
    assert_eq!(it.scenario.server.instructions.as_deref(), Some("Be good."));
}

#[test]
fn a_server_of_the_old_era_stays_one() {
    let tape = TestTape::new()
        .ask("server/discover", "{}")
        .give(r#""error":{"code":-32601,"message":"Method not found"}"#)
        .hello();
    let it = made(&tape, &SIMPLE);
    assert_eq!(it.scenario.server.protocol_versions, ["2025-06-18"]);
    assert_eq!(it.scenario.methods[0].0, "server/discover");
}

#[test]
fn large_texts_go_to_files_and_come_back_from_there() {
    let large = "line of text\\n".repeat(3000);
    let image = "iVBORw0KGgo=";
    let blob = tapegate_core::tape::base64_encode(&[7u8; 20_000]);
    let tape = TestTape::new()
        .hello()
        .tools(&["a"])
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(&format!(r#""result":{{"content":[{{"type":"text","text":"{large}"}},{{"type":"image","data":"{blob}","mimeType":"image/png"}},{{"type":"image","data":"{image}","mimeType":"image/png"}}]}}"#))
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(&format!(r#""result":{{"content":[{{"type":"text","text":"{large}"}}],"structuredContent":{{"data":"{blob}","deep":["{large}"]}}}}"#));
    let it = made(&tape, &SIMPLE);
    let mut names: Vec<_> = it.files.0.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["s.yaml", "s.yaml.assets/a-1.png", "s.yaml.assets/a-1.txt"]);
    assert_eq!(it.summary.spilled, (2, 39_000 + 20_000));
    let given = answers(tool(&it.scenario.baseline.tools, "a"));
    let plain = large.replace("\\n", "\n");
    assert_eq!(given[0]["result"]["content"][0]["text"], plain);
    assert_eq!(given[0]["result"]["content"][1]["data"], blob);
    assert_eq!(
        given[1]["result"]["structuredContent"],
        serde_json::json!({"data": blob, "deep": [plain]})
    );
    assert!(it.text.len() < 40_000);
}

#[test]
fn the_old_schema_gets_text_for_what_it_has_no_word_for() {
    let tape = TestTape::new()
        .hello()
        .ask("tools/list", "{}")
        .give(r#""result":{"tools":[{"name":"a","title":"A","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#)
        .ask("tools/call", r#"{"name":"a","arguments":{"x":"$HOME"}}"#)
        .give(r#""result":{"content":[{"type":"text","text":"${HOME} $$ $ ${","annotations":{"priority":1}}],"isError":true}"#)
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""error":{"code":-32000,"message":"broken ${x}"}"#)
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""result":{"content":[{"type":"audio","data":"AAAA","mimeType":"audio/wav"}]}"#);
    let it = made(&tape, &STRICT);
    assert!(!it.text.contains("interpolate") && !it.text.contains("title"), "{}", it.text);
    assert!(it.text.contains(r#"text: "$$$${HOME} $$$$ $$ $$$${""#), "{}", it.text);
    assert!(it.text.contains("# Recorded instead: {\"code\":-32000"), "{}", it.text);
    assert!(it.text.contains("# Recorded as audio"), "{}", it.text);
    assert!(it.text.contains("# Also recorded: isError true"), "{}", it.text);
    let phased = made(&tape, &ConversionOptions { strict: true, ..PHASED });
    assert_eq!(phased.scenario.phases.len(), 2);
}

#[test]
fn what_is_not_listed_as_it_must_be_can_be_used_all_the_same() {
    let tape = TestTape::new()
        .hello()
        .ask("tools/list", "{}")
        .give(r#""result":{"tools":[{"name":"a"},{"name":"b","inputSchema":{},"description":7},{"name":"c","inputSchema":{"type":"object"}}]}"#)
        .call("a", "x")
        .call("b", "y")
        .ask("resources/list", "{}")
        .give(r#""result":{"resources":[{"uri":"r:1","name":["n"]}]}"#)
        .ask("resources/read", r#"{"uri":"r:1"}"#)
        .give(r#""result":{"contents":[{"uri":"r:1","text":"z"}]}"#);
    let it = made(&tape, &SIMPLE);
    let tools = &it.scenario.baseline.tools;
    assert_eq!(texts(tool(tools, "a")), ["x"]);
    assert_eq!(texts(tool(tools, "b")), ["y"]);
    assert!(!tool(tools, "a").listed && tool(tools, "c").listed);
    assert_eq!(it.scenario.baseline.resources.len(), 1);
    assert_eq!(it.summary.warnings.len(), 3, "{:?}", it.summary.warnings);
    made(&tape, &STRICT);
}

#[test]
fn the_old_schema_gets_whatever_a_tape_has() {
    let tape = TestTape::new()
        .hello()
        .ask("tools/list", "{}")
        .give(r#""result":{"tools":[{"name":"a","inputSchema":{"type":"object"},"override":{},"\ud800":1}]}"#)
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""result":{"content":[{"type":"odd","text":"${HOME} ${"}]}"#)
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""result":{"content":[{"type":"odd","more":"${"}]}"#)
        .ask("resources/read", r#"{"uri":"r:1"}"#)
        .give(r#""result":{"contents":[{"uri":"r:1","text":"x","text":"${y"}]}"#)
        .ask("prompts/get", r#"{"name":"p"}"#)
        .give(r#""result":{"messages":[{"role":"user","role":"user","content":{"type":"text","text":"${z"}}]}"#);
    let it = made(&tape, &STRICT);
    assert_eq!(it.scenario.baseline.tools[0].name, "a");
    let text = r#"text: "$$$${HOME} $$$${""#;
    assert!(it.text.contains(text), "{}", it.text);
}

#[test]
fn sessions_are_counted_together_or_one_is_chosen() {
    let mut tape = TestTape::new().hello().tools(&["a"]).call("a", "one");
    let second = TestTape { seq: tape.seq, ..TestTape::default() }.hello().call("a", "two").lines;
    tape.lines += &second.replace("\"dir\"", "\"session\":\"s2\",\"dir\"");
    let it = made(&tape, &SIMPLE);
    assert_eq!(it.scenario.server.scope, ScenarioScope::Global);
    assert_eq!(texts(tool(&it.scenario.baseline.tools, "a")), ["one", "two"]);
    let it = made(&tape, &ConversionOptions { session: Some(2), ..SIMPLE });
    assert_eq!(it.scenario.server.scope, ScenarioScope::Connection);
    assert_eq!(texts(tool(&it.scenario.baseline.tools, "a")), ["two"]);
}

#[test]
fn the_same_answer_at_the_end_is_said_once() {
    let tape = TestTape::new()
        .hello()
        .tools(&["a"])
        .call("a", "x")
        .call("a", "y")
        .call("a", "x")
        .call("a", "x")
        .call("a", "x");
    let it = made(&tape, &SIMPLE);
    assert_eq!(texts(tool(&it.scenario.baseline.tools, "a")), ["x", "y", "x"]);
    assert!(it.text.contains("# and the same 2 times more\n"), "{}", it.text);
}

#[test]
fn answers_may_go_by_arguments() {
    let tape = TestTape::new().hello().tools(&["a"]).call("a", "x").call("a", "y").call("a", "x");
    let it = made(&tape, &ConversionOptions { match_arguments: true, ..SIMPLE });
    let response = &tool(&it.scenario.baseline.tools, "a").response;
    assert_eq!(response.branches.len(), 3, "{}", it.text);
    assert!(response.branches[2].when.is_none());
}

#[test]
fn what_no_scenario_can_say_is_told_and_left_out() {
    let tape = TestTape::new()
        .hello()
        .ask("tools/list", "{}")
        .give(r#""result":{"tools":[{"name":"","inputSchema":{}},{"name":"s"},{"name":"a","inputSchema":{"type":"object","properties":{"override":{},"$file":{"type":"string"}}}},{"name":"a","inputSchema":{}}]}"#)
        .call("unlisted", "x")
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""result":[1]"#)
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""error":"no""#)
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""result":{"content":[{"no":"type"},7],"isError":"perhaps"}"#);
    let it = made(&tape, &SIMPLE);
    assert_eq!(it.summary.tools, 3);
    assert_eq!(it.summary.warnings.len(), 2, "{:?}", it.summary.warnings);
    let last = &it.scenario.baseline.tools[1];
    assert!(last.listed && !tool(&it.scenario.baseline.tools, "unlisted").listed);
    assert_eq!(answers(last)[0], serde_json::json!({"result":[1]}));
    assert_eq!(answers(last)[1]["error"]["code"], -32603);
    assert!(it.text.contains("isError: perhaps"), "{}", it.text);
    let schema = it.scenario.baseline.tools[0].definition.get("inputSchema").unwrap().to_json();
    assert_eq!(
        schema,
        br#"{"type":"object","properties":{"override":{},"$file":{"type":"string"}}}"#
    );
}

#[test]
fn a_tool_that_only_json_can_say_keeps_its_name() {
    for odd in [r#""override":{}"#, r#""\ud800":1"#, r#""title":"a","title":"b""#] {
        let listed = format!(r#"{{"name":"\u0061","inputSchema":{{"type":"object"}},{odd}}}"#);
        let tape = TestTape::new()
            .hello()
            .ask("tools/list", "{}")
            .give(&format!(r#""result":{{"tools":[{listed}]}}"#))
            .call("a", "x");
        let it = made(&tape, &SIMPLE);
        let found = tool(&it.scenario.baseline.tools, "a");
        assert_eq!(found.definition.to_json(), listed.as_bytes());
        assert_eq!(answers(found)[0]["result"]["content"][0]["text"], "x");
    }
}

#[test]
fn half_a_surrogate_pair_and_keys_that_come_twice_are_kept_to_the_letter() {
    let tape = TestTape::new()
        .hello()
        .tools(&["a"])
        .ask("tools/call", r#"{"name":"a"}"#)
        .give(r#""result":{"content":[{"type":"text","text":"\ud800 $"}],"structuredContent":{"k":1,"k":2}}"#);
    let it = made(&tape, &SIMPLE);
    let AnswerSource::Reply(reply) = &tool(&it.scenario.baseline.tools, "a").response.otherwise
    else {
        panic!("{}", it.text)
    };
    let ReplyOutcome::Result(form) = &reply.outcome else { panic!("{}", it.text) };
    let [crate::template::TemplatePiece::Json(json)] = &form.pieces[..] else { panic!("{form:?}") };
    let json = String::from_utf8_lossy(json);
    assert!(json.contains(r#""text":"\ud800 $""#), "{json}");
    assert!(json.contains(r#""structuredContent":{"k":1,"k":2}"#), "{json}");
}

#[test]
fn very_many_answers_go_to_a_file_or_are_left_out_with_a_warning() {
    let mut tape = TestTape::new().hello().tools(&["a", "b"]).call("b", "once");
    for n in 0..300 {
        tape = tape.call("a", &format!("answer {n} ${{HOME}}"));
    }
    let few = made(&tape, &ConversionOptions { bytes_max: 10_000, ..SIMPLE });
    let kept = texts(tool(&few.scenario.baseline.tools, "a"));
    assert!((10..200).contains(&kept.len()), "{}", kept.len());
    let output_text =
        format!("`a` has more answers than a scenario can hold; {} are left out", 300 - kept.len());
    assert_eq!(few.summary.warnings, [output_text]);
    let all =
        made(&tape, &ConversionOptions { bytes_max: 10_000, sequences_in_files: true, ..SIMPLE });
    let kept = texts(tool(&all.scenario.baseline.tools, "a"));
    assert_eq!((kept.len(), kept[299].as_str()), (300, "answer 299 ${HOME}"));
    assert_eq!((all.summary.warnings.len(), all.summary.spilled.0), (0, 1));
    assert!(
        all.text.contains("sequence:\n        - $file: s.yaml.assets/a-answers-1.json\n"),
        "{}",
        all.text
    );
    assert_eq!(texts(tool(&all.scenario.baseline.tools, "b")), ["once"]);
}

#[test]
fn answers_that_fill_several_files_are_all_there_in_their_order() {
    let mut tape = TestTape::new().hello().tools(&["a"]);
    for n in 0..100 {
        tape = tape.call("a", &format!("{n} {}", "x".repeat(200_000)));
    }
    let all =
        made(&tape, &ConversionOptions { bytes_max: 10_000, sequences_in_files: true, ..SIMPLE });
    assert_eq!((all.summary.warnings.len(), all.summary.spilled.0), (0, 3), "{}", all.text);
    let kept = texts(tool(&all.scenario.baseline.tools, "a"));
    let numbers: Vec<_> = kept.iter().map(|text| text.split(' ').next().unwrap()).collect();
    assert_eq!(numbers, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn what_the_server_said_of_a_subscription_is_said_again() {
    let tape = TestTape::new()
        .hello()
        .ask("resources/subscribe", r#"{"uri":"a://1"}"#)
        .server(
            r#"{"method":"notifications/message","params":{"level":"info","data":"subscribed"}}"#,
        )
        .give(r#""result":{}"#)
        .ask("resources/unsubscribe", r#"{"uri":"a://1"}"#)
        .give(r#""result":{}"#);
    let it = made(&tape, &SIMPLE);
    let methods: Vec<_> = it.scenario.methods.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(methods, ["resources/subscribe"]);
    assert!(it.text.contains("    before:\n      - log_message:\n"), "{}", it.text);
}

#[test]
fn a_server_that_was_not_asked_names_itself_in_its_results() {
    let tape = TestTape::new()
        .ask("resources/read", r#"{"uri":"a://1"}"#)
        .give(r#""result":{"resultType":"complete","contents":[],"ttlMs":60000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"3"}}}"#);
    let it = made(&tape, &SIMPLE);
    assert!(it.text.contains("server:\n  name: m\n  version: \"3\"\n"), "{}", it.text);
    // Cache settings that differ from the engine's own are kept.
    let expected =
        serde_json::json!({"result": {"contents": [], "ttlMs": 60000, "cacheScope": "public"}});
    assert_eq!(answers(&it.scenario.baseline.resources[0]), [expected]);
}
