//! Terminal output and failed starts: no control characters, and no panic.

use std::fs;
use std::process::{Command, Output, Stdio};

const TAPEGATE: &str = env!("CARGO_BIN_EXE_tapegate");

/// Characters that a terminal would interpret, or a reader would miss.
const ODD: &str = "\x1b[31mX\x07\r\n\u{202e}Y";

fn run(folder: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(TAPEGATE);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("HOME", folder).env("TAPEGATE_HOME", folder.join("state")).output().unwrap()
}

#[test]
fn control_characters_in_names_flags_and_values_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(format!("{ODD}.yaml")), "schema: 1\n").unwrap();
    fs::write(folder.path().join(format!("{ODD}.jsonl")), "{}\n").unwrap();
    let (policy, tape) = (format!("{ODD}.yaml"), format!("{ODD}.jsonl"));
    let (flag, value) = (format!("--{ODD}"), format!("--format={ODD}"));
    for arguments in [
        &["check", &policy][..],
        &["check", &tape],
        &["check", "nothing-is-here", ODD],
        &[ODD],
        &[&flag],
        &["record", &flag],
        &["record", "-o", &format!("{ODD}/"), "--", "true"],
        &["record", "-o", "ok/", "--", ODD],
        &["record", "-o", "ok/", "--upstream-http", ODD],
        &["shim", "--config", &policy, "--", ODD],
        &["replay", "-r", &tape],
        &["replay", "-r", ODD],
        &["convert", "-r", &tape, "-o", &policy],
        &["serve", &policy],
        &["policy", "explain", ODD],
        &["policy", "test", ODD],
        &["policy", "pin", "--server-id", ODD, "--", ODD],
        &["approvals", "approve", ODD],
        &["log", "--state", ODD],
        &["check", &value, "x"],
    ] {
        let output = run(folder.path(), arguments);
        let output_text = [output.stdout, output.stderr].concat();
        let output_text = String::from_utf8_lossy(&output_text);
        let odd = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
        assert!(!output_text.contains(odd), "{arguments:?}: {output_text:?}");
        // A line break in a name does not start a line of our own.
        assert!(
            !output_text.lines().any(|line| line.starts_with("\\u202e")),
            "{arguments:?}: {output_text}"
        );
    }
}

#[test]
fn too_few_descriptors_are_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for limit in [6, 7, 8, 9, 10, 12, 14, 16] {
        for arguments in ["record -o t/ -- cat", "shim -- cat", "serve --scenario rug-pull", "hub"]
        {
            // A hub that does start is ended.
            let script = format!("ulimit -n {limit}; exec timeout 60 \"$0\" {arguments}");
            let mut command = Command::new("bash");
            command.args(["-c", &script, TAPEGATE]).current_dir(folder.path()).stdin(Stdio::null());
            command.env("HOME", folder.path()).env("TAPEGATE_HOME", folder.path().join("state"));
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("panicked"), "{limit} {arguments}: {said}");
            let named = said.contains("file descriptors") || said.contains("open files");
            let code = output.status.code().unwrap();
            assert!(named && code == 3, "{limit} {arguments}: {code} {said}");
        }
    }
}
