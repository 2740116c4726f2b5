//! `tapegate check`: every fault with its line.

mod policy;
mod scenario;
mod special_files;
mod tapes;

use std::fs;

use crate::support::tapegate;

const HEADER: &str = r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"x","thoughtjack_version":"1"}"#;

fn message(seq: u64, dir: &str, msg: &str) -> String {
    format!(
        r#"{{"type":"message","seq":{seq},"ts":"2026-01-01T00:00:00.000001Z","dir":"{dir}","msg":{msg}}}"#
    )
}

fn footer(total: u64, client: u64, server: u64) -> String {
    format!(
        r#"{{"type":"footer","total_messages":{total},"duration_ms":5,"client_messages":{client},"server_messages":{server}}}"#
    )
}

const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"n"}"#;

/// The output of `check` for a tape of these lines, and its exit code.
fn check(text: &str, format: &str) -> (String, i32) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t"), text).unwrap();
    let mut command = tapegate();
    command.args(["check", "--format", format, "t"]).current_dir(&folder);
    let done = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    (String::from_utf8(done.stdout).unwrap(), done.status.code().unwrap())
}

/// Asserts that a tape of these lines has exactly this finding, in both formats.
#[track_caller]
fn finds(lines: &[&str], line: u64, severity: &str, output_text: &str) {
    let text = lines.join("\n") + "\n";
    let place = if line == 0 { String::new() } else { format!(":{line}") };
    let (out, code) = check(&text, "text");
    let wanted = format!("t{place}: {severity}: {output_text}\n");
    assert!(out.contains(&wanted), "{wanted} is not in\n{out}");
    assert_eq!(code, i32::from(out.contains(": error: ")), "{out}");
    let (out, json_code) = check(&text, "jsonl");
    let output_text = output_text.replace('\\', "\\\\").replace('"', "\\\"");
    let wanted = format!(
        r#"{{"tape":"t","line":{line},"severity":"{severity}","finding":"{output_text}"}}"#
    );
    assert!(out.lines().any(|got| got == wanted), "{wanted} is not in\n{out}");
    assert_eq!(json_code, code);
}

#[test]
fn a_good_tape_is_ok_and_counted() {
    let text =
        [HEADER, &message(1, "c2s", ASK), &message(2, "s2c", ANSWER), &footer(2, 1, 1)].join("\n");
    assert_eq!(
        check(&text, "text"),
        ("t: ok, 2 messages (1 client, 1 server), 0 anomalies\n".to_owned(), 0)
    );
    let json = r#"{"tape":"t","client_messages":1,"server_messages":1,"anomalies":0,"unanswered":0,"footer":true}"#;
    assert_eq!(check(&text, "jsonl"), (format!("{json}\n"), 0));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a flat list")]
fn every_fault_of_a_thoughtjack_tape_is_found_with_its_line() {
    let (one, two) = (message(1, "c2s", NOTE), message(2, "s2c", NOTE));
    let end = footer(1, 1, 0);
    finds(&[HEADER, "nonsense", &one, &end], 2, "error", "not JSON: no JSON value at byte 0");
    finds(
        &[HEADER, "{\"a\":1}", &one, &end],
        2,
        "error",
        "not a tape entry: an object with the keys `a`",
    );
    finds(&[HEADER, "7", &one, &end], 2, "error", "not a tape entry: not an object");
    finds(
        &["{\"type\":\"header\",\"version\":\"1.0\"}", &one],
        1,
        "error",
        "`recorded_at` is missing",
    );
    finds(
        &[&HEADER.replace("1.0", "2.0"), &one, &end],
        1,
        "error",
        "the tape has format 2.0, but this build reads formats 1.x",
    );
    finds(
        &[&HEADER.replace("1.0", "one"), &one, &end],
        1,
        "error",
        "`version` is `one`, not a number like 1.0",
    );
    finds(
        &[&HEADER.replace("1.0", "1.7"), &one, &end],
        1,
        "note",
        "format 1.7 is newer than 1.0; unknown keys are kept",
    );
    finds(
        &[&HEADER.replace("2026-01", "2026-13"), &one, &end],
        1,
        "error",
        "`recorded_at` is not an RFC 3339 time",
    );
    finds(
        &[HEADER, &one.replace("c2s", "up"), &end],
        2,
        "error",
        "`dir` is neither `c2s` nor `s2c`",
    );
    finds(&[HEADER, &one.replace("\"seq\":1,", ""), &end], 2, "error", "`seq` is missing");
    finds(
        &[HEADER, &one.replace("\"seq\":1", "\"seq\":-1"), &end],
        2,
        "error",
        "`seq` is not a whole number from 0",
    );
    finds(
        &[HEADER, &one.replace("2026-01-01T", "yesterday "), &end],
        2,
        "error",
        "`ts` is not an RFC 3339 time",
    );
    finds(&[HEADER, &one.replace("\"msg\":", "\"m\":"), &end], 2, "error", "`msg` is missing");
    finds(&[HEADER, &message(1, "c2s", "[]"), &end], 2, "error", "`msg` is not an object");
    finds(&[HEADER, &one, &message(3, "s2c", NOTE)], 3, "warning", "`seq` 3 follows 1");
    finds(&[HEADER, &message(5, "c2s", NOTE), &end], 2, "warning", "`seq` starts at 5");
    finds(&[&one, &end], 1, "warning", "there is no header; format 1.0 is assumed");
    finds(
        &[&one, HEADER, &message(1, "c2s", NOTE)],
        2,
        "error",
        "the header is not the first line",
    );
    finds(
        &[HEADER, &one, &end, HEADER, &one, &end],
        4,
        "warning",
        "another header: a second recording begins here",
    );
    finds(&[HEADER, &one, &end, &two], 4, "error", "an entry after the footer of line 3");
    finds(
        &[HEADER, &one, &two, &end],
        4,
        "warning",
        "the footer counts 1 messages (1 client, 0 server), but there are 2 (1, 1)",
    );
    finds(
        &[HEADER, &one, &end.replace("\"duration_ms\":5,", "")],
        3,
        "error",
        "`duration_ms` is missing",
    );
    finds(
        &[HEADER, "{\"type\":\"chapter\"}", &one, &end],
        2,
        "warning",
        "a line of the unknown type `chapter` is skipped",
    );
    finds(
        &[HEADER, &one.replace(NOTE, &format!("{NOTE},\"latency_ms\":3")), &end],
        2,
        "warning",
        "`latency_ms` on a message that is not an answer",
    );
    finds(
        &[HEADER, &message(1, "c2s", "{}"), &end],
        2,
        "note",
        "an object but not a JSON-RPC message",
    );
    finds(
        &[HEADER, &message(1, "c2s", ASK), &end],
        2,
        "note",
        "request 1 (`m`) was never answered",
    );
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let cancelled = [HEADER, &message(1, "c2s", ASK), &message(2, "c2s", cancel), &footer(2, 2, 0)];
    finds(&cancelled, 2, "note", "request 1 (`m`) was cancelled and not answered");
    let (out, _) = check(&cancelled.join("\n"), "jsonl");
    assert!(out.contains(r#""unanswered":0"#), "{out}");
    finds(
        &[HEADER, &message(1, "s2c", ANSWER), &footer(1, 0, 1)],
        2,
        "note",
        "an answer to a request that is not on the tape",
    );
}

#[test]
fn ec_rec_011_a_missing_footer_is_a_note() {
    finds(
        &[HEADER, &message(1, "c2s", NOTE)],
        0,
        "note",
        "there is no footer: the recording did not end normally",
    );
}

#[test]
fn ec_rec_002_a_torn_last_line_is_a_warning() {
    let output_text = "the tape ends in the middle of an entry; 31 bytes are left out";
    finds(
        &[HEADER, &message(1, "c2s", NOTE), &message(2, "c2s", NOTE)[..30]],
        3,
        "warning",
        output_text,
    );
}

#[test]
fn every_fault_of_an_overwatch_tape_is_found_with_its_line() {
    let good = r#"{"ts":"2026-01-01T00:00:00.000Z","direction":"client_to_server","parsed":{"jsonrpc":"2.0","method":"n"}}"#;
    let bad = r#"{"ts":"2026-01-01T00:00:00.000Z","direction":"client_to_server","raw":"x","parse_error":"no"}"#;
    finds(
        &[good, &good.replace("client_to", "client_for")],
        2,
        "error",
        "`direction` is neither `client_to_server` nor `server_to_client`",
    );
    finds(&[good, &good.replace("\"parsed\"", "\"pursed\"")], 2, "error", "`parsed` is missing");
    finds(&[good, &good.replace("\"ts\"", "\"at\"")], 2, "error", "`ts` is missing");
    finds(
        &[good, &good.replace("\"2026-01-01T00:00:00.000Z\"", "5")],
        2,
        "error",
        "`ts` is not a string",
    );
    finds(&[good, &bad.replace("\"raw\":\"x\",", "")], 2, "error", "`raw` is missing");
    finds(&[good, &bad.replace("\"no\"", "5")], 2, "error", "`parse_error` is not a string");
    finds(&[good, HEADER], 2, "error", "two dialects in one tape");
    finds(
        &[good, &good.replace("{\"jsonrpc\":\"2.0\",\"method\":\"n\"}", "7")],
        2,
        "warning",
        "not a JSON-RPC message: neither an object nor an array",
    );
    let (out, code) = check(&[good, bad].join("\n"), "text");
    assert_eq!((out.as_str(), code), ("t: ok, 1 message (1 client, 0 server), 1 anomaly\n", 0));
}

#[test]
fn what_is_no_tape_is_an_error_and_so_is_an_empty_file() {
    for text in ["hi\n", "{\n  \"type\": \"module\"\n}\n", "{}", "[1]\n"] {
        let (out, code) = check(text, "text");
        assert_eq!(code, 1, "{out}");
        assert!(out.contains("this is not a tape"), "{out}");
    }
    let (out, code) = check("", "text");
    assert_eq!((code, out.contains("error: the tape has no entries")), (1, true), "{out}");
}

#[test]
fn a_line_that_a_torn_tail_marker_follows_is_a_warning() {
    let good = r#"{"ts":"2026-01-01T00:00:00.000Z","direction":"client_to_server","parsed":{"jsonrpc":"2.0","method":"n"}}"#;
    let marker = r#"{"ts":"2026-01-01T00:00:00.000Z","direction":"client_to_server","raw":"","parse_error":"recovered_after_torn_tail"}"#;
    finds(
        &[good, &good[..40], marker, good],
        2,
        "warning",
        "a crash cut an entry short; recording continued after it",
    );
}

#[test]
fn a_tape_that_no_command_can_play_is_an_error() {
    finds(&[""], 0, "error", "the tape has no entries");
}

#[test]
fn a_file_that_is_not_there_is_exit_3_and_the_others_are_checked_too() {
    let done = tapegate().args(["check", "no-such.jsonl"]).output().unwrap();
    assert_eq!(done.status.code(), Some(3));
    let output_text =
        "error: cannot read `no-such.jsonl`: No such file or directory (os error 2)\n";
    assert_eq!(String::from_utf8_lossy(&done.stderr), output_text);
}

#[test]
fn a_byte_order_mark_is_a_warning() {
    let mark = "the tape starts with a byte order mark, which is left out";
    let header = format!("\u{feff}{HEADER}");
    finds(&[&header, &footer(0, 0, 0)], 1, "warning", mark);
}

#[test]
fn a_device_is_refused_before_it_is_read() {
    let args = ["redact", "/dev/zero", "-o", "x", "--redact", "secrets"];
    let done = tapegate().args(args).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    let output_text = "cannot read `/dev/zero`: it is a device, not a file or a pipe";
    assert_eq!((done.status.code(), said), (Some(3), format!("error: {output_text}\n")));
}

#[test]
fn a_file_that_cannot_be_read_keeps_nobody_from_looking_at_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let tape = [HEADER, &message(0, "c2s", NOTE), &footer(1, 1, 0)].join("\n") + "\n";
    fs::write(folder.path().join("a"), &tape).unwrap();
    fs::write(folder.path().join("b"), &tape).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (bad, code, output_text) in
        [("nosuch", 3, "cannot read `nosuch`"), ("empty", 2, "no tape, log or policy in")]
    {
        let run = |format: &str| {
            let mut command = tapegate();
            command.args(["check", "--format", format, "a", bad, "b"]).current_dir(&folder);
            let done = command.output().unwrap();
            let said = String::from_utf8(done.stderr).unwrap();
            assert!(said.contains(output_text), "{said}");
            assert_eq!(done.status.code(), Some(code), "{said}");
            String::from_utf8(done.stdout).unwrap()
        };
        let text = run("text");
        assert!(text.contains("a: ok") && text.contains("b: ok"), "{text}");
        let list: serde_json::Value = serde_json::from_str(&run("json")).unwrap();
        let list = list.as_array().unwrap();
        let of = |key: &str, name: &str| list.iter().any(|one| one[key] == name);
        assert!(of("tape", "a") && of("file", bad) && of("tape", "b"), "{list:?}");
    }
}
