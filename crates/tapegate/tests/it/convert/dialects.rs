//! Tapes of the other dialect, and bash sessions as tapes.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use super::{convert, converted, sample};

const ENTRY: &str = r#"{"entry_id":"e_20250115_143052_001","session_id":"20250115_143052_a7b3c9d2-e4f5","sequence_number":1,"timestamp":"2025-01-15T14:30:52.123456Z","duration_ms":1523,"command":"git status","description":"Check working tree status","working_directory":"/srv","shell":"/bin/bash","timeout_seconds":120,"timed_out":false,"exit_code":0,"stdout":"On branch main\n","stderr":"","output_truncated":false,"output_truncated_bytes":null,"environment":null,"agent_id":null,"conversation_id":null,"tool_call_id":null,"opencuff_version":"0.1.0","plugin_version":"1.0.0"}"#;

#[test]
fn a_tape_goes_to_the_other_dialect_and_comes_back_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let footer = r#"{"type":"footer","total_messages":10,"duration_ms":9000,"client_messages":5,"server_messages":5}"#;
    let tape = format!("{}{footer}\n", sample());
    fs::write(folder.path().join("t.jsonl"), &tape).unwrap();
    let said = converted(folder.path(), &["-r", "t.jsonl", "-o", "o.jsonl", "--to", "overwatch"]);
    assert_eq!(said, "o.jsonl: 10 messages, 0 frames that are not messages\n");
    let other = fs::read_to_string(folder.path().join("o.jsonl")).unwrap();
    assert_eq!(other.lines().count(), 10);
    assert!(other.starts_with(
        r#"{"ts":"2025-02-04T10:00:00.000000Z","direction":"client_to_server","parsed":{"#
    ));
    converted(folder.path(), &["-r", "o.jsonl", "-o", "b.jsonl", "--to", "thoughtjack"]);
    // The latencies, which were not recorded, are now there.
    let back = fs::read_to_string(folder.path().join("b.jsonl")).unwrap();
    assert_eq!(back.replace(",\"latency_ms\":1000}", "}"), tape);
    let run = convert(folder.path(), &["-r", "b.jsonl", "-o", "c.jsonl", "--to", "thoughtjack"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("`b.jsonl` already has that dialect"));
    assert!(!folder.path().join("c.jsonl").exists());
}

#[test]
fn frames_that_are_no_messages_lie_beside_a_thoughtjack_tape_and_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let tape = concat!(
        r#"{"ts":"2026-01-01T00:00:00.000Z","direction":"client_to_server","parsed":{"id":1,"method":"m"},"raw":"{\"id\":1,\"method\":\"m\"}"}"#,
        "\n",
        r#"{"ts":"2026-01-01T00:00:00.000Z","direction":"server_to_client","raw":"oops","parse_error":"no JSON value at byte 0"}"#,
        "\n",
        r#"{"ts":"2026-01-01T00:00:01.000Z","direction":"server_to_client","parsed":[{"id":1,"result":{}}],"raw":"[{\"id\":1,\"result\":{}}]"}"#,
        "\n",
    );
    fs::write(folder.path().join("o.jsonl"), tape).unwrap();
    converted(folder.path(), &["-r", "o.jsonl", "-o", "t.jsonl", "--to", "thoughtjack"]);
    let beside = fs::read_to_string(folder.path().join("t.jsonl.anomalies.jsonl")).unwrap();
    assert_eq!(beside.lines().count(), 2);
    let check = Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(["check", "t.jsonl"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    converted(folder.path(), &["-r", "t.jsonl", "-o", "b.jsonl", "--to", "overwatch"]);
    assert_eq!(fs::read_to_string(folder.path().join("b.jsonl")).unwrap(), tape);
}

#[test]
fn a_bash_session_becomes_a_tape_that_is_played_and_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let second =
        ENTRY.replace("\"sequence_number\":1", "\"sequence_number\":2").replace("git status", "ls");
    // Entries are in the order in which they ended, and a crash may have torn the last one.
    fs::write(folder.path().join("bash.jsonl"), format!("{second}\n{ENTRY}\n{}", &ENTRY[..99]))
        .unwrap();
    let run = convert(folder.path(), &["-r", "bash.jsonl", "-o", "t.jsonl", "--to", "thoughtjack"]);
    assert!(run.status.success());
    assert!(
        String::from_utf8_lossy(&run.stderr)
            .contains("bash.jsonl:3: the session ends in the middle")
    );
    let mut player = Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(["replay", "-r", "t.jsonl", "-q"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = player.stdin.take().unwrap();
    for line in [
        r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"bash_recorder.execute","arguments":{"command":"git status"}}}"#,
    ] {
        writeln!(stdin, "{line}").unwrap();
    }
    drop(stdin);
    let said = String::from_utf8(player.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains(r#""id":"c","result":{"content":["#), "{said}");
    assert!(said.contains(r#""structuredContent":{"stdout":"On branch main\n""#), "{said}");
    converted(folder.path(), &["-r", "bash.jsonl", "-o", "s.yaml"]);
    let text = fs::read_to_string(folder.path().join("s.yaml")).unwrap();
    assert!(text.contains("name: bash_recorder.execute\n"), "{text}");
    assert!(text.contains("# for {\"command\":\"git status\",\"timeout\":120"), "{text}");
}
