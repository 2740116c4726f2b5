//! Real tapes, and the examples of `docs/tape-format.md`, are checked against the published schemas
//! by a real validator (Python's `jsonschema`).

mod policy;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tapegate_policy::pins::PinLock;

use crate::http_peers::{WebRecorder, WebServer, ask, json};
use crate::lockstep::talk;
use crate::peers::{self, peer};
use crate::support::shim;

const TAPEGATE: &str = env!("CARGO_BIN_EXE_tapegate");
/// Small, so that a message over the limit is small too.
const LIMIT: [&str; 2] = ["--max-message-bytes", "4KB"];

/// The client's lines, and how many lines it then waits for.
const TALK: [(&str, usize); 10] = [
    (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, 1),
    (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 0),
    ("no JSON at all", 1),
    (r#"[{"jsonrpc":"2.0","id":2,"method":"ping"},7,{"jsonrpc":"2.0","method":"n"}]"#, 1),
    (r#"{"jsonrpc":"2.0","id":"3","method":"test/progress"}"#, 2),
    (r#"{"jsonrpc":"2.0","id":4,"method":"test/ask"}"#, 1),
    (r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#, 1),
    (r#"{"jsonrpc":"2.0","id":5,"method":"test/bytes"}"#, 4),
    (r#"{"jsonrpc":"2.0","id":6,"method":"test/big"}"#, 1),
    (r#"{"jsonrpc":"2.0","id":7,"method":"test/leave"}"#, 1),
];

#[test]
fn a_thoughtjack_tape_of_everything_odd_fits_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    converse(&["record", "-o"], &tape);
    assert_fits(&tape, "thoughtjack", "written");
    assert_fits(&tape, "thoughtjack", "");
    assert_has(&tape, &["\"batch\":1", "\"batch\":2", "\"by\":\"tapegate\"", "\"latency_ms\":"]);
    assert_has(&tape, &["roots/list", "1e309 , \"n\":18446744073709551616", "\"type\":\"footer\""]);
    let beside = beside(&tape);
    assert_fits(&beside, "overwatch", "written_anomaly");
    let check = Command::new(TAPEGATE).arg("check").arg(&tape).output().unwrap();
    let note = format!("note: `{}` holds ", beside.display());
    assert!(String::from_utf8_lossy(&check.stdout).contains(&note));
    assert_has(&beside, &["message_too_large", "\"bytes\":", "\"raw_b64\":\"//4A\"", "\"batch\""]);
    assert_has(&beside, &["empty_frame", "unterminated_frame_at_close", "neither an object"]);
}

#[test]
fn an_overwatch_tape_of_everything_odd_fits_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    for (name, options) in [("raw.jsonl", &[][..]), ("no-raw.jsonl", &["--no-raw"])] {
        let tape = folder.path().join(name);
        converse(&[&["tape"], options, &["--tape"]].concat(), &tape);
        assert_fits(&tape, "overwatch", "written");
        assert_fits(&tape, "overwatch", "");
        assert_has(&tape, &["\"parsed\":[", "\"by\":\"tapegate\"", "message_too_large", "raw_b64"]);
        assert_has(&tape, &["empty_frame", "unterminated_frame_at_close", "neither an object"]);
        assert!(!beside(&tape).exists(), "overwatch has a line for everything");
    }
}

#[test]
fn a_tape_of_what_a_gate_refused_held_and_changed_fits_its_schema() {
    let policy = "\
schema: 1
sources:
  - { id: s, kind: mcp, expose: { mode: blocklist, tools: [\"x*\"] } }
governance:
  defaults: { action: forward }
  rules:
    - { match: rm, action: deny }
    - { match: wait, action: approve }
approval:
  people: { destination: { type: cli }, timeout: 5s }
";
    let call = |id: u64, name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#
        )
    };
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_owned();
    let lines = [list, call(2, "rm"), call(3, "wait"), call(4, "a"), String::new()].join("\n");
    let end = shim(policy, &["mcp=a,x1,rm,wait"]).run(lines.as_bytes()).exits(0);
    let tapes = fs::read_dir(end.run.folder().join("state/tapes/s")).unwrap();
    let tape = tapes.map(|entry| entry.unwrap().path()).min().expect("a tape");
    assert_fits(&tape, "thoughtjack", "written");
    assert_has(&tape, &["\"refused\":\"", "\"held\":true", "\"rewritten\":true"]);
    let check = Command::new(TAPEGATE).arg("check").arg(&tape).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

#[test]
fn a_tape_of_a_call_that_waited_for_a_list_fits_its_schema() {
    let policy = "\
schema: 1
governance: { defaults: { action: forward } }
";
    let setup = shim(policy, &["mcp=a"]);
    let mut lock = PinLock::default();
    lock.learn("s", &[br#"{"tools":[{"name":"a"}]}"#]);
    fs::write(setup.folder().join("tapegate.lock"), lock.write()).unwrap();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
    let end = setup.run(format!("{call}\n").as_bytes()).exits(0);
    let tapes = fs::read_dir(end.run.folder().join("state/tapes/s")).unwrap();
    let tape = tapes.map(|entry| entry.unwrap().path()).min().expect("a tape");
    assert_fits(&tape, "thoughtjack", "written");
    assert_has(&tape, &["\"held\":\"list\""]);
}

#[test]
fn a_last_line_without_its_end_fits_both_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.jsonl"), folder.path().join("two.jsonl"));
    let last = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    pipe(&["record", "-o"], &one, last);
    pipe(&["tape", "--tape"], &two, last);
    assert_fits(&one, "thoughtjack", "written");
    assert_has(&one, &["\"unterminated\":true"]);
    assert_fits(&two, "overwatch", "written");
    assert_has(&two, &["unterminated_frame_at_close"]);
}

#[test]
fn what_follows_a_torn_tail_fits_the_overwatch_schema() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    pipe(&["tape", "--tape"], &tape, "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
    let whole = fs::read(&tape).unwrap();
    fs::write(&tape, &whole[..whole.len() - 9]).unwrap();
    pipe(
        &["tape", "--if-exists", "append", "--tape"],
        &tape,
        "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n",
    );
    let check = Command::new(TAPEGATE).arg("check").arg(&tape).output().unwrap();
    let said = String::from_utf8_lossy(&check.stdout);
    assert!(check.status.success(), "{said}");
    assert!(said.contains(":2: warning: a crash cut an entry short; recording continued after it"));
    let text = fs::read_to_string(&tape).unwrap();
    let good: String = text
        .split_inclusive('\n')
        .enumerate()
        .filter(|(line, _)| *line != 1)
        .map(|(_, text)| text)
        .collect();
    assert_eq!(good.lines().count() + 1, text.lines().count());
    fs::write(&tape, good).unwrap();
    assert_fits(&tape, "overwatch", "written");
    assert_has(&tape, &["\"raw\":\"\",\"parse_error\":\"recovered_after_torn_tail\""]);
}

#[test]
fn tapes_that_clients_share_fit_their_schemas() {
    let server = WebServer::start(|seen, stream| {
        let open = String::from_utf8_lossy(&seen.body)
            .split_once("\"open\":\"")
            .map_or(String::new(), |(_, name)| format!("mcp-session-id: {}\r\n", &name[..1]));
        stream
            .write_all(&json(&open, "{\n  \"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {} }"))
            .unwrap();
        true
    });
    for (dialect, texts) in [
        ("thoughtjack", ["\"session\":\"s2\",\"req\":3", "\"session\":\"s3\",\"req\":"]),
        ("overwatch", ["\"session_id\":\"s2\"", "\"session_id\":\"s3\""]),
    ] {
        let url = server.url("/mcp");
        let recorder = WebRecorder::start(&["--dialect", dialect, "--upstream-http", &url]);
        for (session, body) in [
            ("", r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"open":"a"}}"#),
            ("", r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"open":"b"}}"#),
            ("mcp-session-id: a", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            ("mcp-session-id: b", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            ("accept: */*", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        ] {
            let headers: Vec<&str> = ["content-type: application/json", session]
                .into_iter()
                .filter(|h| !h.is_empty())
                .collect();
            assert_eq!(ask(recorder.port, "POST /mcp", &headers, body).status, 200);
        }
        let (_, tape) = recorder.end();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        fs::write(&path, tape).unwrap();
        assert_fits(&path, dialect, "written");
        assert_has(&path, &texts);
    }
}

#[test]
fn masked_tapes_fit_their_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one.jsonl"), folder.path().join("two.jsonl"));
    let call = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"arguments\":{\"password\":\"hunter2\"}}}\n";
    pipe(&["record", "--redact", "..password", "-o"], &one, call);
    pipe(&["tape", "--redact", "..password", "--tape"], &two, call);
    assert_fits(&one, "thoughtjack", "written");
    assert_has(
        &one,
        &["\"redaction\":{\"rules\":", "\"redacted\":[\"/params/arguments/password\"]"],
    );
    assert_fits(&two, "overwatch", "written");
    assert_has(&two, &["\"redacted\":[\"/params/arguments/password\"]"]);
    let three = folder.path().join("three.jsonl");
    let run = Command::new(TAPEGATE)
        .args(["redact", "--redact", "..arguments", "-o"])
        .args([&three, &one])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_fits(&three, "thoughtjack", "written");
    assert_has(&three, &["\"then\":[["]);
}

#[test]
fn the_demo_fits_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("demo.jsonl");
    let run = Command::new(TAPEGATE).args(["demo", "-o"]).arg(&tape).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    assert_fits(&tape, "thoughtjack", "written");
}

/// The original specification of the format has a schema in its appendix; whatever conforms to it
/// must conform to ours, with any keys of other writers.
#[test]
fn tapes_of_other_writers_fit_the_schemas() {
    let good = [
        r#"{"type":"header","version":"1.0","recorded_at":"2025-02-04T10:00:00Z","upstream":"","thoughtjack_version":""}"#,
        r#"{"type":"header","version":"12.34","name":"","tags":[],"recorded_at":"2025-02-04T10:00:00.000+02:00","upstream":"x","thoughtjack_version":"0.3.0","recorder":7,"redaction":null}"#,
        r#"{"type":"message","seq":0,"ts":"2025-02-04T10:00:00.050Z","dir":"c2s","msg":{}}"#,
        r#"{"msg":{"method":"x"},"latency_ms":50,"dir":"s2c","ts":"2025-02-04T10:00:00Z","seq":9,"type":"message"}"#,
        r#"{"type":"message","seq":1,"ts":"2025-02-04T10:00:00Z","dir":"s2c","msg":{},"session":5,"req":"x","batch":null,"by":"me","unterminated":0,"redacted":{},"mine":1}"#,
        r#"{"type":"footer","total_messages":0,"duration_ms":0,"client_messages":0,"server_messages":0,"more":[]}"#,
    ];
    let bad = [
        r#"{"type":"header","version":"1","recorded_at":"2025-02-04T10:00:00Z","upstream":"","thoughtjack_version":""}"#,
        r#"{"type":"message","seq":1,"ts":"yesterday","dir":"c2s","msg":{}}"#,
        r#"{"type":"message","seq":1,"ts":"2025-02-04T10:00:00Z","dir":"c2s","msg":[]}"#,
        r#"{"type":"footer","total_messages":-1,"duration_ms":0,"client_messages":0,"server_messages":0}"#,
        r#"{"type":"chapter"}"#,
    ];
    hold("thoughtjack", &good, &bad);
    let good = [
        r#"{"ts":"2026-03-20T14:22:11.804Z","direction":"client_to_server","parsed":{"jsonrpc":"2.0","id":7}}"#,
        r#"{"ts":"2026-03-20T14:22:11.804Z","direction":"server_to_client","parsed":null,"session_id":"c-1","agent_id":"a"}"#,
        r#"{"ts":"2026-03-20T14:22:12.001Z","direction":"client_to_server","raw":"{\"js","parse_error":"Unexpected end of JSON input"}"#,
    ];
    let bad = [
        r#"{"ts":"2026-03-20T14:22:11.804Z","direction":"c2s","parsed":{}}"#,
        r#"{"ts":"2026-03-20T14:22:11.804Z","direction":"client_to_server"}"#,
        r#"{"ts":"2026-03-20T14:22:11.804Z","direction":"client_to_server","parsed":{},"parse_error":"x"}"#,
    ];
    hold("overwatch", &good, &bad);
}

/// Blocks of the page are marked with what they show: ```` ```jsonl thoughtjack ````.
#[test]
fn the_examples_of_the_page_are_lines_of_real_tapes() {
    let page = fs::read_to_string(repository().join("docs/tape-format.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for block in page.split("\n```jsonl ").skip(1) {
        let (kind, rest) = block.split_once('\n').unwrap();
        let (text, _) = rest.split_once("```").unwrap();
        let tape = folder.path().join(format!("{seen}.jsonl"));
        fs::write(&tape, text).unwrap();
        let (schema, place) = match kind {
            "anomalies" => ("overwatch", "written_anomaly"),
            dialect => (dialect, "written"),
        };
        assert_fits(&tape, schema, place);
        let check = Command::new(TAPEGATE).arg("check").arg(&tape).output().unwrap();
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
        seen += 1;
    }
    assert_eq!(seen, 4);
}

/// The schema sees a scenario before it is assembled, and agrees with the loader on what is allowed
/// where.
#[test]
fn the_schema_of_scenarios_agrees_with_check() {
    let tool = "tool: {name: t, inputSchema: {type: object}}";
    let items =
        |items: &str| format!("server: {{name: s}}\ntools:\n- {tool}\n  response: {items}\n");
    let phase = |phase: &str| format!("server: {{name: s}}\nbaseline: {{}}\nphases:\n- {phase}\n");
    let good = [
        "server: {name: s}\n".to_owned(),
        items("{content: []}"),
        items("{content: [{type: text, text: a, annotations: {}}], is_error: true}"),
        items("{sequence: [{silent: true}, {error: {code: -1, message: m}}], onExhausted: cycle}"),
        items("{match: [{when: {args.x: y}, content: []}, {default: {content: []}}]}"),
        items("{content: [{type: text, $generate: {type: garbage, bytes: 64kb}}]}"),
        items("{handler: {type: http, url: 'http://x', timeout_ms: 500}}"),
        items("{content: [], before: [{wait: 5ms}, {progress: {progress: 1}}, {log: x}]}"),
        phase("{name: a, on_enter: [{send_notification: x}], advance: {on: 'tools/call:t', count: 3}}"),
        phase("{name: a, advance: {after: 5s}}\n- {name: b, behavior: {delivery: slow_loris, chunk_size: 3}}"),
        phase("{name: a, behavior: {delivery: {type: nested_json, depth: 3}, side_effects: [{type: pipe_deadlock, fill_bytes: 1mb}]}}"),
        "server: {name: s}\nexpect: [{id: e, never: {method: tools/call, args: {a: b}}}]\n".to_owned(),
        "server: {name: s, page_size: 3, stateScope: global, capabilities: {x: 1}}\nmetadata: {a: 1}\n".to_owned(),
        "server: {name: s}\nmethods: {a/b: {result: {}}}\nunknown_methods: drop\n".to_owned(),
    ];
    let bad = [
        "server: {}\n".to_owned(),
        "tools: []\n".to_owned(),
        "server: {name: ''}\n".to_owned(),
        "server: {name: s, page_size: 0}\n".to_owned(),
        "server: {name: s}\nunknown_methods: no\n".to_owned(),
        items("{contnet: []}"),
        items("{content: {}}"),
        items("{content: [{text: a}]}"),
        items("{sequence: [{match: []}]}"),
        items("{content: [], error: {code: x, message: m}}"),
        items("{content: [{type: text, text: 5}]}"),
        items("{content: [{type: text, $generate: {type: no}}]}"),
        items("{handler: {type: http, url: 'http://x', timeout_ms: 5}}"),
        items("{content: [], before: [{wait: 5}]}"),
        phase("{name: a, advance: {on: tools/cal}}"),
        phase("{name: a, advance: {on: tools/call, count: 0}}"),
        phase("{advance: {after: 1s}}"),
        phase("{name: a, behavior: {delivery: slow}}"),
        phase("{name: a, behavior: {delivery: {type: normal}, side_effects: [{type: x}]}}"),
        "server: {name: s}\nexpect: [{never: {method: tools/call}}]\n".to_owned(),
        "server: {name: s}\nlogging: {level: loud}\n".to_owned(),
    ];
    agree("scenario", "s.yaml", &good, &bad);
}

/// Asserts that `check` and the schema accept the good and reject the bad, in files of this name.
pub(crate) fn agree(schema: &str, name: &str, good: &[String], bad: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    for (texts, fits) in [(good, true), (bad, false)] {
        for (at, text) in texts.iter().enumerate() {
            let path = folder.path().join(format!("{at}-{fits}"));
            fs::create_dir(&path).unwrap();
            let path = path.join(name);
            fs::write(&path, text).unwrap();
            let run = Command::new(TAPEGATE).arg("check").arg(&path).output().unwrap();
            assert_eq!(
                run.status.success(),
                fits,
                "{text}{}",
                String::from_utf8_lossy(&run.stdout)
            );
        }
    }
    let json = |texts: &[String]| texts.iter().map(|text| as_json(text)).collect::<Vec<_>>();
    let (good, bad) = (json(good), json(bad));
    let good: Vec<&str> = good.iter().map(String::as_str).collect();
    let bad: Vec<&str> = bad.iter().map(String::as_str).collect();
    hold(schema, &good, &bad);
}

#[test]
fn the_scenarios_that_come_with_it_fit_their_schema() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.jsonl");
    let mut all = String::new();
    for entry in fs::read_dir(repository().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "yaml") {
            all += &as_json(&fs::read_to_string(path).unwrap());
            all.push('\n');
        }
    }
    fs::write(&file, all).unwrap();
    assert_fits(&file, "scenario", "");
}

/// YAML as a line of JSON.
fn as_json(text: &str) -> String {
    let node = tapegate_scenario::yaml::parse(text, 0, &mut Default::default()).unwrap();
    String::from_utf8(node.to_json()).unwrap()
}

/// Records the conversation with the odd server.
fn converse(command: &[&str], tape: &Path) {
    let record = bounded(command, tape, &[&python(), &peer("odd-server.py")]);
    let too_large =
        format!(r#"{{"jsonrpc":"2.0","id":8,"method":"x","params":["{}"]}}"#, "a".repeat(5000));
    talk(record, std::iter::once((too_large.as_str(), 1)).chain(TALK));
}

/// Records the output of `cat` for `input`.
fn pipe(command: &[&str], tape: &Path, input: &str) {
    let mut child = bounded(command, tape, &["cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn bounded(command: &[&str], tape: &Path, server: &[&str]) -> Command {
    let mut bounded = Command::new("timeout");
    bounded.args(["-k", "2", "600", TAPEGATE]).args(command).arg(tape).args(LIMIT);
    bounded.arg("--").args(server);
    bounded
}

/// Asserts that some lines conform to a schema and others do not.
fn hold(schema: &str, good: &[&str], bad: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.jsonl");
    fs::write(&file, format!("{}\n", good.join("\n"))).unwrap();
    assert_fits(&file, schema, "");
    fs::write(&file, format!("{}\n", bad.join("\n"))).unwrap();
    let run = validate(&file, schema, "");
    let said = String::from_utf8_lossy(&run.stdout);
    for (at, line) in bad.iter().enumerate() {
        assert!(said.contains(&format!("line {}: ", at + 1)), "fits, but must not: {line}\n{said}");
    }
}

/// Asserts that every line of `file` conforms, and that there is at least one.
fn assert_fits(file: &Path, schema: &str, place: &str) {
    let run = validate(file, schema, place);
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let lines = fs::read_to_string(file).unwrap().lines().count();
    assert!(lines > 0 && said.trim() == lines.to_string(), "{lines} lines, validated {said}");
}

fn validate(file: &Path, schema: &str, place: &str) -> Output {
    let schema = repository().join(format!("docs/schema/{schema}.schema.json"));
    let place = if place.is_empty() { String::new() } else { format!("#/definitions/{place}") };
    let mut command = Command::new(python());
    command.arg(peer("validate.py")).arg(format!("{}{place}", schema.display())).arg(file);
    command.output().unwrap()
}

#[track_caller]
fn assert_has(file: &Path, texts: &[&str]) {
    let tape = fs::read_to_string(file).unwrap();
    for text in texts {
        assert!(tape.contains(text), "no {text} in\n{tape:.4000}");
    }
}

fn beside(tape: &Path) -> PathBuf {
    PathBuf::from(format!("{}.anomalies.jsonl", tape.display()))
}

/// The Python interpreter that has the validator.
fn python() -> String {
    peers::tools("schema/bin/python")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
