//! Invalid and malicious scenarios, and misbehaving clients.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::convert::{convert, sample};
use crate::http_peers::{ReceivedReply, ask};
use crate::support::tapegate;

const TOOL: &str = "\
server: {name: s}
tools:
- tool: {name: t, inputSchema: {type: object}}
  response: {content: [{type: text, text: hi}]}
";

/// A folder with a scenario in it.
fn folder(scenario: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    folder
}

/// The output of `check` for the scenario in a folder.
fn check(folder: &Path) -> String {
    let run = tapegate().args(["check", "s.yaml"]).current_dir(folder).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    String::from_utf8(run.stdout).unwrap()
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A scenario served over HTTP, with one session. The server is killed on drop.
struct ScenarioProcess {
    process: Child,
    port: u16,
    session: String,
    _folder: TempDir,
}

impl ScenarioProcess {
    fn start(scenario: &str, version: &str) -> Self {
        let folder = folder(scenario);
        let mut command = tapegate();
        command.args(["serve", "s.yaml", "--http", "127.0.0.1:0"]).current_dir(&folder);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let (_, rest) = line.split_once("127.0.0.1:").unwrap();
        let port = rest.split('/').next().unwrap().parse().unwrap();
        let mut served = Self { process, port, session: String::new(), _folder: folder };
        let params = format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}"#
        );
        let hello =
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}"#);
        let got = served.post(&hello);
        served.session = got.header("mcp-session-id").unwrap().to_owned();
        served
    }

    fn post(&self, body: &str) -> ReceivedReply {
        let session = format!("mcp-session-id: {}", self.session);
        let mut headers = vec!["content-type: application/json", "accept: application/json"];
        headers.extend((!self.session.is_empty()).then_some(session.as_str()));
        ask(self.port, "POST /mcp", &headers, body)
    }
}

impl Drop for ScenarioProcess {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn a_pipe_that_nobody_writes_to_is_not_waited_for() {
    let scenario = "server: {name: s}\ntools: [{$include: pipe.yaml}]\n";
    let inside = folder(scenario);
    fs::create_dir(inside.path().join("library")).unwrap();
    mkfifo(&inside.path().join("library/pipe.yaml"));
    let output_text = "s.yaml:2:20: error: `pipe.yaml` cannot be read: it is not a regular file\n";
    let said = check(inside.path());
    assert!(said.contains(output_text), "{said}");
    let scenario = TOOL.replace("text: hi", "text: {$file: pipe}");
    let inside = folder(&scenario);
    mkfifo(&inside.path().join("pipe"));
    let said = check(inside.path());
    assert!(said.contains("`pipe` cannot be read: it is not a regular file\n"), "{said}");
}

#[test]
fn a_batch_to_a_client_of_a_revision_without_batches_is_answered_by_http() {
    let served = ScenarioProcess::start(TOOL, "2025-06-18");
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"b","method":"tools/list"}]"#;
    let refusal = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"this protocol version does not support batches"}}}}"#
        )
    };
    let got = served.post(batch);
    assert_eq!((got.status, got.body), (200, format!("[{},{}]", refusal("1"), refusal("\"b\""))));
}

#[test]
fn ids_of_all_kinds_are_answered_by_http() {
    let served = ScenarioProcess::start(TOOL, "2025-03-26");
    for id in ["true", "[1]", r#"{"a":1}"#, "null"] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let refusal = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"an id must be a string or a number"}}}}"#
        );
        let got = served.post(&request);
        assert_eq!((got.status, got.body), (200, refusal.clone()));
        let got = served.post(&format!("[{request}]"));
        assert_eq!((got.status, got.body), (200, format!("[{refusal}]")));
    }
}

#[test]
fn a_tape_is_never_overwritten_by_what_is_made_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    fs::write(&tape, sample()).unwrap();
    fs::hard_link(&tape, folder.path().join("other.jsonl")).unwrap();
    for (output, to) in [("t.jsonl", None), ("other.jsonl", None), ("t.jsonl", Some("overwatch"))] {
        let mut args = vec!["-r", "t.jsonl", "-o", output, "--force"];
        args.extend(to.map(|to| ["--to", to]).into_iter().flatten());
        let run = convert(folder.path(), &args);
        assert_eq!(run.status.code(), Some(64));
        let output_text = "error: -o names the input tape\n\nhint: choose another file\n";
        assert_eq!(String::from_utf8(run.stderr).unwrap(), output_text);
        assert_eq!(fs::read_to_string(&tape).unwrap(), sample());
    }
}

#[test]
fn a_tape_that_cannot_be_written_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), sample()).unwrap();
    let limited = r#"trap "" XFSZ; ulimit -f 1; exec "$0" "$@""#;
    let mut command = Command::new("bash");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_tapegate")]).current_dir(&folder);
    command.args(["convert", "-r", "t.jsonl", "-o", "o.jsonl", "--to", "overwatch"]);
    let run = command.output().unwrap();
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["t.jsonl"]);
}

#[test]
fn events_never_go_where_the_scenario_or_the_verdict_is() {
    let scenario = TOOL.to_owned() + "expect: [{id: a, must: {method: tools/list}}]\n";
    let inside = folder(&scenario.replace("text: hi", "text: {$file: hi.txt}"));
    fs::write(inside.path().join("hi.txt"), "hi").unwrap();
    let serve = |args: &[&str]| {
        let mut command = tapegate();
        command.args(["serve", "s.yaml"]).args(args).current_dir(&inside).stdin(Stdio::null());
        let run = command.output().unwrap();
        (run.status.code(), String::from_utf8(run.stderr).unwrap())
    };
    for file in ["s.yaml", "hi.txt"] {
        let (code, said) = serve(&["--events-file", file]);
        assert_eq!(code, Some(64), "{said}");
        assert!(said.contains("--events-file names a file of the scenario"), "{said}");
        assert!(fs::metadata(inside.path().join(file)).unwrap().len() > 0);
    }
    let (code, said) = serve(&["--expect", "--report", "v.json", "--events-file", "v.json"]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("--events-file and --report name the same file"), "{said}");
}
