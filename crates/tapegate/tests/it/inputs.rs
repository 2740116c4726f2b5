//! Pipes and devices as input: the wait is reported or they are refused, and never read endlessly.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::tapegate;

const TAPE: &str = concat!(
    r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"x","thoughtjack_version":"1"}"#,
    "\n",
    r#"{"type":"message","seq":1,"ts":"2026-01-01T00:00:00Z","dir":"c2s","msg":{"jsonrpc":"2.0","method":"n"}}"#,
    "\n"
);

fn run(folder: &Path, args: &[&str]) -> Command {
    let mut command = tapegate();
    command.args(args).current_dir(folder).env("TAPEGATE_HOME", folder.join("home"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_device_is_refused_wherever_a_file_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), TAPE).unwrap();
    fs::write(
        folder.path().join("tapegate.yaml"),
        "schema: 1\ngovernance: {defaults: {action: forward}}\n",
    )
    .unwrap();
    for args in [
        &["replay", "-r", "/dev/zero"][..],
        &["verify", "-r", "/dev/zero", "--", "true"],
        &["convert", "-r", "/dev/zero", "-o", "s.yaml"],
        &["convert", "-r", "/dev/zero", "-o", "o.jsonl", "--to", "overwatch"],
        &["redact", "/dev/zero", "-o", "o.jsonl", "--redact", "secrets"],
        &[
            "redact",
            "t.jsonl",
            "-o",
            "o.jsonl",
            "--redact",
            "secrets",
            "--redact-key-file",
            "/dev/zero",
        ],
        &["serve", "/dev/zero"],
        &["policy", "generate", "/dev/zero", "-o", "p.yaml"],
        &["policy", "backtest", "/dev/zero"],
        &["policy", "explain", "tool", "--arguments-file", "/dev/zero"],
    ] {
        let done = run(folder.path(), args).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains("it is a device, not a file or a pipe"), "{args:?}: {said}");
        assert_ne!(done.status.code(), Some(0), "{args:?}");
    }
}

#[test]
fn a_pipe_that_is_waited_for_is_told_of_and_read_when_something_comes() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (args, text) in [
        (&["convert", "-r", "pipe", "-o", "s.yaml", "--force"][..], TAPE),
        (&["redact", "pipe", "-o", "o.jsonl", "--redact", "secrets", "--force"], TAPE),
    ] {
        let mut child = run(folder.path(), args).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let output_text = "tapegate: waiting for data in pipe\n";
        assert_eq!(line, output_text, "{args:?}");
        let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        drop(writer);
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {said}");
    }
    // The pipe was read once, and completely.
    let copy = fs::read_to_string(folder.path().join("o.jsonl")).unwrap();
    assert_eq!(copy.lines().count(), TAPE.lines().count(), "{copy}");
}

#[test]
fn what_a_shell_substitutes_is_read_as_a_file_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), TAPE).unwrap();
    let program = env!("CARGO_BIN_EXE_tapegate");
    for line in [
        "$T convert -r <(cat t.jsonl) -o a.yaml",
        "$T convert -r /dev/stdin -o b.yaml < t.jsonl",
        "cat t.jsonl | $T convert -r - -o c.yaml",
        "$T serve <(echo 'server: {name: x}') < /dev/null",
    ] {
        let mut shell = Command::new("bash");
        shell
            .args(["-c", line])
            .current_dir(&folder)
            .env("T", program)
            .env("TAPEGATE_HOME", "home");
        let done = shell.output().unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// Opening a pipe waits for a reader, which may never come, and no signal would end that wait.
#[test]
fn a_report_to_a_pipe_in_a_folder_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), TAPE).unwrap();
    fs::write(folder.path().join("cases.yaml"), "cases: []\n").unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for args in [
        &["replay", "-r", "t.jsonl"][..],
        &["serve", "--scenario", "rug-pull", "--expect"],
        &["verify", "-r", "t.jsonl", "--upstream", "false"],
        &["policy", "test", "cases.yaml"],
    ] {
        let done = run(folder.path(), &[args, &["--report", "pipe"]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains("`pipe` is a pipe, not a regular file"), "{args:?}: {said}");
        assert_eq!(done.status.code(), Some(64), "{args:?}");
    }
}
