//! `tapegate redact`

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::wait_until;

const TOKEN: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4";

fn redact(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    command.arg("redact").args(args).current_dir(folder).output().unwrap()
}

fn tape() -> String {
    format!(
        "{}\n{{\"type\":\"message\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"c2s\",\"msg\":{{\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"x\",\"arguments\":{{\"t\":\"{TOKEN}\"}}}}}}}}\n",
        r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"srv --token abc","thoughtjack_version":"1"}"#
    )
}

#[test]
fn a_redacted_copy_is_private_and_holds_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), tape()).unwrap();
    let bad = format!(
        "{{\"ts\":\"2026-01-01T00:00:00Z\",\"direction\":\"client_to_server\",\"raw\":\"{TOKEN}\",\"parse_error\":\"x\"}}\n"
    );
    fs::write(folder.path().join("t.jsonl.anomalies.jsonl"), bad).unwrap();
    let run = redact(folder.path(), &["t.jsonl", "-o", "o.jsonl", "--redact", "secrets"]);
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    let output = "o.jsonl: 2 values masked, on 2 of 2 lines\n\
                  o.jsonl.anomalies.jsonl: 1 value masked, on 1 of 1 line\n";
    assert_eq!(String::from_utf8_lossy(&run.stdout), output);
    for name in ["o.jsonl", "o.jsonl.anomalies.jsonl"] {
        let path = folder.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("[REDACTED:github:") && !text.contains(TOKEN), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(fs::read_to_string(folder.path().join("t.jsonl")).unwrap(), tape());
    let check = Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .arg("check")
        .arg("o.jsonl")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(check.status.success());
}

#[test]
fn an_existing_file_is_overwritten_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), tape()).unwrap();
    fs::write(folder.path().join("o.jsonl"), "mine").unwrap();
    let args = ["t.jsonl", "-o", "o.jsonl", "--redact", "secrets"];
    let run = redact(folder.path(), &args);
    assert_eq!(run.status.code(), Some(3));
    assert_eq!(
        String::from_utf8_lossy(&run.stderr),
        "error: `o.jsonl` exists already\n\nhint: choose another name, or pass --force to overwrite it\n"
    );
    assert_eq!(fs::read(folder.path().join("o.jsonl")).unwrap(), b"mine");
    assert!(redact(folder.path(), &[&args[..], &["--force"]].concat()).status.success());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn without_a_place_for_the_result_both_ways_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = redact(folder.path(), &["t.jsonl", "--redact", "secrets"]);
    assert_eq!(run.status.code(), Some(64));
    let output_text = String::from_utf8_lossy(&run.stderr);
    assert!(output_text.contains("<--output <FILE>|--in-place>"), "{output_text}");
}

#[test]
fn in_place_replaces_the_tape_and_twice_is_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    fs::write(&path, tape()).unwrap();
    let args = ["t.jsonl", "--in-place", "--redact", "secrets"];
    assert!(redact(folder.path(), &args).status.success());
    let once = fs::read_to_string(&path).unwrap();
    assert!(!once.contains(TOKEN) && !once.contains("--token abc"), "{once}");
    assert!(redact(folder.path(), &args).status.success());
    assert_eq!(fs::read_to_string(&path).unwrap(), once);
}

#[test]
fn in_place_keeps_a_tape_with_lines_that_would_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let text = tape().replace('\n', "\n{\"odd\":1}\n");
    fs::write(&path, &text).unwrap();
    let run = redact(folder.path(), &["t.jsonl", "--in-place", "--redact", "secrets"]);
    assert_eq!(run.status.code(), Some(1));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let run = redact(folder.path(), &["t.jsonl", "-o", "o.jsonl", "--redact", "secrets"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&run.stderr)
            .starts_with("tapegate: warning: t.jsonl:2: left out: not a tape entry")
    );
}

#[test]
fn in_place_keeps_a_torn_last_line_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let torn = tape() + "{\"type\":\"mess";
    fs::write(folder.path().join("t.jsonl"), &torn).unwrap();
    let arguments = ["t.jsonl", "--in-place", "--redact", "secrets"];
    let done = redact(folder.path(), &arguments);
    assert_eq!(done.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(stderr.contains("has lines that are not entries and would be lost"), "{stderr}");
    assert_eq!(fs::read_to_string(folder.path().join("t.jsonl")).unwrap(), torn);
    let done = redact(folder.path(), &[&arguments[..], &["--force"]].concat());
    assert_eq!(done.status.code(), Some(1));
    assert!(!fs::read_to_string(folder.path().join("t.jsonl")).unwrap().ends_with("mess"));
}

#[test]
fn a_dash_is_not_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let done = redact(folder.path(), &["-", "-o", "x.jsonl", "--redact", "secrets"]);
    assert_eq!(done.status.code(), Some(64));
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(stderr.contains("does not read standard input as `-`"), "{stderr}");
    assert!(stderr.contains("/dev/stdin"), "{stderr}");
}

#[test]
fn a_bad_rule_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let run = redact(folder.path(), &["t.jsonl", "--in-place", "--redact", "params.[0]"]);
    assert_eq!(run.status.code(), Some(64));
    let output_text = String::from_utf8(run.stderr).unwrap();
    assert!(output_text.starts_with("error: redaction rule `params.[0]`: `[` must not follow `.` at character 8\n\nhint: a rule is a path"), "{output_text}");
}

#[test]
fn a_key_of_ones_own_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), tape()).unwrap();
    fs::write(folder.path().join("key"), "0123456789abcdef0123456789abcdef\n").unwrap();
    let args = ["t.jsonl", "--in-place", "--redact", "secrets"];
    let own = [&args[..], &["--redact-key-file", "key"]].concat();
    assert!(redact(folder.path(), &own).status.success());
    let text = fs::read_to_string(folder.path().join("t.jsonl")).unwrap();
    assert!(text.contains("\"key_id\":\"") && !text.contains("\"key\":"), "{text}");
    let without = redact(folder.path(), &args);
    assert_eq!(without.status.code(), Some(2));
    assert!(redact(folder.path(), &own).status.success());
}

#[test]
fn record_masks_the_tape_and_never_the_wire() {
    let folder = tempfile::tempdir().unwrap();
    for (command, name) in [("record", "-o"), ("tape", "--tape")] {
        let path = folder.path().join(command);
        let mut run = Command::new(env!("CARGO_BIN_EXE_tapegate"))
            .arg(command)
            .arg(name)
            .arg(&path)
            .args(["--redact", "secrets", "--redact", "params.p", "--upstream"])
            .arg(format!("sh -c cat --token={TOKEN}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{{\"t\":\"{TOKEN}\",\"p\":7}}}}\n{TOKEN}\n"
        );
        run.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        let done = run.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(done.stdout).unwrap(), line);
        for file in fs::read_dir(folder.path()).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(!text.contains(TOKEN), "{text}");
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(r#""redacted":["/params/t","/params/p"]"#), "{text}");
    }
}

#[test]
fn the_name_and_tags_of_a_recording_are_masked_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    command.args(["record", "-o", "t.jsonl", "--redact", "secrets", "--name", TOKEN, "--tags"]);
    let run = command.arg(format!("a,{TOKEN}")).args(["--", "cat"]).current_dir(folder.path());
    assert!(run.stdin(Stdio::null()).output().unwrap().status.success());
    let text = fs::read_to_string(folder.path().join("t.jsonl")).unwrap();
    assert!(text.matches("[REDACTED:github:").count() == 2 && !text.contains(TOKEN), "{text}");
}

#[test]
fn what_is_not_a_tape_is_refused_after_a_few_lines_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), "x\n".repeat(100_000)).unwrap();
    let done = redact(folder.path(), &["t.jsonl", "-o", "o.jsonl", "--redact", "secrets"]);
    let output_text = "error: cannot redact `t.jsonl`: it is not a tape: none of its first 20 lines is an \
                 entry\n";
    assert_eq!(String::from_utf8_lossy(&done.stderr), output_text);
    assert_eq!(done.status.code(), Some(2));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn of_very_many_lines_that_are_left_out_the_first_are_told_and_the_others_counted() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), tape() + &"x\n".repeat(1_500) + &tape()).unwrap();
    let done = redact(folder.path(), &["t.jsonl", "-o", "o.jsonl", "--redact", "secrets"]);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains(": omitted 500 more lines that are not entries\n"), "{said}");
    assert_eq!(said.matches("not JSON").count(), 1_000);
    assert_eq!(done.status.code(), Some(1));
}

/// The temporary files in a folder.
fn temporary_files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

/// A `redact` that has started to write, and waits for more of its tape.
fn begun(folder: &Path, output: &str) -> (std::process::Child, fs::File) {
    let fifo = folder.join(format!("{output}.fifo"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let before = temporary_files(folder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    command.arg("redact").arg(&fifo).args(["-o", output, "--redact", "secrets"]);
    let child = command.current_dir(folder).stderr(Stdio::null()).spawn().unwrap();
    let mut input = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    input.write_all(tape().as_bytes()).unwrap();
    wait_until("a temporary file", || temporary_files(folder) != before);
    (child, input)
}

#[test]
fn what_a_killed_redact_has_left_is_removed_by_the_next_and_what_a_live_one_writes_is_not() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), tape()).unwrap();
    fs::write(folder.path().join(".mine.1.tmp"), "not ours").unwrap();
    let (mut killed, _input) = begun(folder.path(), "a.jsonl");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(temporary_files(folder.path()).len(), 2, "a killed one cannot clean up");
    let (mut live, input) = begun(folder.path(), "b.jsonl");
    let run = redact(folder.path(), &["t.jsonl", "--in-place", "--redact", "secrets"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut left = temporary_files(folder.path());
    left.sort();
    assert!(left.len() == 2 && left[0].starts_with(".b.jsonl."), "{left:?}");
    drop(input);
    assert!(live.wait().unwrap().success());
    assert_eq!(temporary_files(folder.path()), [".mine.1.tmp"]);
    assert!(!fs::read_to_string(folder.path().join("b.jsonl")).unwrap().contains(TOKEN));
}

#[test]
fn what_has_no_entry_is_not_a_tape_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["", "\n\n", "schema: 1\ngovernance:\n  defaults: { action: deny }\n"] {
        fs::write(folder.path().join("t"), text).unwrap();
        for target in [&["-o", "o.jsonl"][..], &["--in-place", "--force"]] {
            let run = redact(folder.path(), &[&["t", "--redact", "secrets"], target].concat());
            let said = "error: cannot redact `t`: it is not a tape: nothing in it is an entry\n";
            assert_eq!(String::from_utf8_lossy(&run.stderr), said);
            assert_eq!(run.status.code(), Some(2));
            assert_eq!(fs::read_to_string(folder.path().join("t")).unwrap(), text);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
