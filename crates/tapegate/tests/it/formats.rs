//! `--format json` is one document in every command, and `jsonl` one object per line.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::tapegate;

const POLICY: &str = "\
schema: 1
governance:
  defaults: { action: forward }
";

#[track_caller]
fn printed(folder: &Path, arguments: &[&str]) -> String {
    let done = tapegate()
        .args(arguments)
        .current_dir(folder)
        .env("TAPEGATE_HOME", folder)
        .env("HOME", folder)
        .stdin(fs::File::open(folder.join("t.jsonl")).map_or(Stdio::null(), Stdio::from))
        .output()
        .unwrap();
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn json_is_one_document_and_jsonl_the_same_objects_a_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let tape = concat!(
        r#"{"ts":"2026-03-20T14:22:11Z","direction":"client_to_server","parsed":{"jsonrpc":"2.0","id":1,"method":"ping"}}"#,
        "\n"
    );
    fs::write(folder.path().join("t.jsonl"), tape).unwrap();
    let tapes = folder.path().join("tapes");
    fs::create_dir(&tapes).unwrap();
    fs::write(tapes.join("a.jsonl"), tape).unwrap();
    fs::write(tapes.join("b.jsonl"), tape).unwrap();
    fs::write(folder.path().join("tapegate.yaml"), POLICY).unwrap();
    for arguments in [
        &["show", "t.jsonl"][..],
        &["check", "t.jsonl", "t.jsonl"],
        &["check", "tapes"],
        &["check", "-"],
        &["serve", "--list"],
        &["policy", "backtest", "--show", "forward", "t.jsonl"],
    ] {
        let with =
            |format: &str| printed(folder.path(), &[arguments, &["--format", format]].concat());
        let document: Vec<Value> = serde_json::from_str(&with("json"))
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {}", with("json")));
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let lines: Vec<Value> = with("jsonl").lines().map(read).collect();
        assert_eq!(document, lines, "{arguments:?}");
        assert!(!lines.is_empty(), "{arguments:?}");
    }
}

#[test]
fn an_empty_list_is_a_document_too() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["approvals"][..], &["log"]] {
        let with =
            |format: &str| printed(folder.path(), &[arguments, &["--format", format]].concat());
        assert_eq!(with("json"), "[]\n", "{arguments:?}");
        assert_eq!(with("jsonl"), "", "{arguments:?}");
    }
    let follow = ["log", "--follow", "--format", "json"];
    let done = tapegate().args(follow).env("TAPEGATE_HOME", folder.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(64));
}
