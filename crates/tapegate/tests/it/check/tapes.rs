//! Folders of tapes, tapes on standard input, and counts.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use super::{ANSWER, ASK, HEADER, footer, message};
use crate::support::tapegate;

fn good() -> String {
    [HEADER, &message(1, "c2s", ASK), &message(2, "s2c", ANSWER), &footer(2, 1, 1)].join("\n")
        + "\n"
}

fn check(folder: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut command = tapegate();
    command.arg("check").args(args).current_dir(folder).env("TAPEGATE_HOME", folder.join("home"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn says(done: &Output, code: i32, text: &str) {
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(said, text, "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(code));
}

#[test]
fn standard_input_is_looked_over_whatever_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let done = check(folder.path(), &["-"], good().as_bytes());
    says(&done, 0, "-: ok, 2 messages (1 client, 1 server), 0 anomalies\n");
    // More than is read to detect the kind of file.
    let (head, tail) = good().split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let note =
        message(0, "c2s", &format!(r#"{{"method":"n","params":"{}"}}"#, "x".repeat(3 << 20)));
    let done = check(folder.path(), &["-"], format!("{head}\n{note}\n{tail}").as_bytes());
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("3 messages (2 client, 1 server)"), "{said}");
    let done = check(folder.path(), &["-"], b"server: {name: x}\ntools: 7\n");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.starts_with("-:2:8: error: "), "{said}");
    let done = check(folder.path(), &["-"], b"schema: 1\ngovernance: {defaults: {action: deny}}\n");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("-: ok") && said.contains("version "), "{said}");
}

#[test]
fn every_tape_in_a_folder_is_looked_over() {
    let folder = tempfile::tempdir().unwrap();
    let tapes = folder.path().join("tapes/deep");
    fs::create_dir_all(&tapes).unwrap();
    fs::write(folder.path().join("tapes/b.jsonl"), good()).unwrap();
    fs::write(tapes.join("c.jsonl"), format!("{}nonsense\n{HEADER}\n", good())).unwrap();
    fs::write(folder.path().join("tapes/notes.txt"), "not a tape").unwrap();
    let done = check(folder.path(), &["tapes"], b"");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("tapes/b.jsonl: ok, 2 messages"), "{said}");
    assert!(said.contains("tapes/deep/c.jsonl:5: error: not JSON"), "{said}");
    assert!(!said.contains("notes.txt"), "{said}");
    assert_eq!(done.status.code(), Some(1));
    fs::create_dir(folder.path().join("empty")).unwrap();
    let done = check(folder.path(), &["empty"], b"");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(
        said.starts_with("error: there is no tape, log or policy in `empty`\n\nhint: "),
        "{said}"
    );
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn frames_beside_a_tape_are_anomalies_too() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), good()).unwrap();
    let frame = r#"{"ts":"2026-01-01T00:00:00Z","direction":"server_to_client","raw":"hi","parse_error":"not JSON"}"#;
    fs::write(folder.path().join("t.jsonl.anomalies.jsonl"), format!("{frame}\n{frame}\n"))
        .unwrap();
    let done = check(folder.path(), &["t.jsonl"], b"");
    let note = "t.jsonl: note: `t.jsonl.anomalies.jsonl` holds 2 frames that could not be recorded as \
                messages\n";
    let text = format!("{note}t.jsonl: ok, 2 messages (1 client, 1 server), 2 anomalies\n");
    says(&done, 0, &text);
}

#[test]
fn a_request_without_an_answer_is_named_in_every_recording_of_a_tape() {
    let call = r#"{"jsonrpc":"2.0","id":"c-7","method":"tools/call","params":{"name":"echo"}}"#;
    let ask = r#"{"jsonrpc":"2.0","id":3,"method":"roots/list"}"#;
    let one = [HEADER, &message(1, "c2s", call), &footer(1, 1, 0)].join("\n");
    let two = [HEADER, &message(1, "s2c", ask), &footer(1, 0, 1)].join("\n");
    let folder = tempfile::tempdir().unwrap();
    let done = check(folder.path(), &["-"], format!("{one}\n{two}\n").as_bytes());
    let said = String::from_utf8_lossy(&done.stdout);
    let first = "-:2: note: request \"c-7\" (`tools/call` of `echo`) was never answered\n";
    let second = "-:5: note: the server's request 3 (`roots/list`) was never answered\n";
    assert!(said.contains(first) && said.contains(second), "{said}");
}
