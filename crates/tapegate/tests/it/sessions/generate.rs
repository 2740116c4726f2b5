//! `sessions generate`: policies from recordings, and recordings under a policy.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::{ONE, SessionsFixture, entry, text};

/// Recordings of these commands, each once.
fn recorded(commands: &[&str]) -> SessionsFixture {
    let recorded = SessionsFixture::empty();
    let sessions = recorded.recordings().join("sessions");
    fs::create_dir_all(&sessions).unwrap();
    let lines: Vec<String> = (1..)
        .zip(commands)
        .map(|(number, command)| entry(ONE, number, command, Some(0), 1))
        .collect();
    fs::write(sessions.join(format!("{ONE}.jsonl")), lines.join("\n") + "\n").unwrap();
    recorded
}

fn generate(recorded: &SessionsFixture, arguments: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_tapegate"));
    recorded.run(program, &[&["sessions", "generate"], arguments].concat())
}

const COMMANDS: [&str; 11] = [
    "git status",
    "git status",
    "git diff a",
    "git diff --stat b",
    "cd sub && git status",
    "cargo test -q",
    "timeout 60 cargo test",
    "rm a",
    "rm a",
    "$TOOL x",
    "ls",
];

#[test]
fn a_policy_has_the_form_of_the_document_and_lists_what_it_leaves_out() {
    let recorded = recorded(&COMMANDS);
    let done = generate(&recorded, &[]);
    assert!(done.status.success(), "{done:?}");
    let all = text(&done.stdout);
    let (head, rest) = all.split_once("# Generated: ").unwrap();
    assert_eq!(head, "# Auto-generated policy from recordings\n");
    // After the time.
    let rest = rest.split_once('\n').unwrap().1;
    let (facts, policy) = rest.split_once("\n\n").unwrap();
    assert_eq!(
        facts,
        "# Source sessions: 1\n# Commands analyzed: 11\n# Coverage: covers 7 of 11 commands, 63.6%"
    );
    let (groups, _) = policy.split_once("\n# Everything else").unwrap();
    assert_eq!(
        groups,
        "policies:
  - name: git-operations
    description: Git version control commands
    commands:
      - pattern: \"git status\"
        frequency: 3
        class: read-only
      - pattern: \"git diff *\"
        frequency: 2
        class: read-only

  - name: cargo-commands
    description: Rust build and package commands
    commands:
      - pattern: \"cargo test *\"
        frequency: 2
        class: runs-commands

  - name: file-changes
    description: Creating, moving and removing files
    commands:
      - pattern: \"rm a\"
        frequency: 2
        class: writes
        review: true
"
    );
    assert!(
        all.ends_with(
            "# Commands that wait for a person:\n#   2x rm a\n#   1x $TOOL x\n#   1x ls\n"
        ),
        "{all}"
    );
}

#[test]
fn a_generated_policy_is_checked_against_the_recordings() {
    let recorded = recorded(&COMMANDS);
    for (format, file) in [("yaml", "p.yml"), ("json", "p.json")] {
        let done = generate(&recorded, &["--format", format, "--output", file]);
        assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
        let again = generate(&recorded, &["--format", format, "--output", file]);
        assert_eq!(again.status.code(), Some(2), "{again:?}");
        let done = generate(&recorded, &["--check", file]);
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        let listed = text(&done.stdout);
        assert!(listed.starts_with("approve      2  rm a\n"), "{listed}");
        assert!(
            listed.ends_with("4 of 11 recorded commands would have been stopped\n"),
            "{listed}"
        );
    }
    let done = generate(&recorded, &["--check", "p.yml", "--format", "json"]);
    let value: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&value["stopped"], &value["lines"][0]["command"]), (&json!(4), &json!("rm a")));
}

#[test]
fn every_strategy_gives_a_policy_that_loads() {
    let recorded = recorded(&COMMANDS);
    for strategy in ["exact", "pattern", "semantic"] {
        let arguments =
            ["--strategy", strategy, "--min-frequency", "1", "--output", "p.yml", "--force"];
        let done = generate(&recorded, &arguments);
        assert!(done.status.success(), "{done:?}");
        let listed = text(&generate(&recorded, &["--check", "p.yml"]).stdout);
        assert!(
            listed.contains("$TOOL x") && !listed.contains("git status"),
            "{strategy}: {listed}"
        );
    }
}

#[test]
fn without_recordings_nothing_is_generated() {
    let done = generate(&SessionsFixture::empty(), &[]);
    assert!(done.status.success() && text(&done.stdout).starts_with("No recordings found.\n"));
}
