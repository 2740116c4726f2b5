//! `tapegate policy accept` at a terminal: the question, and every answer to it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tapegate_store::accepted::{AcceptedPolicies, PolicyPaths};
use tempfile::TempDir;

use crate::support::{accept_policy, at_terminal, at_terminal_typing_ahead, tapegate};

const STRICT: &str = "schema: 1\ngovernance: { defaults: { action: deny } }\n";
const LOOSE: &str = "schema: 1\ngovernance: { defaults: { action: forward } }\n";

/// A project whose accepted policy is strict, and whose file has become loose.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new() -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(project.home()).unwrap();
        fs::write(project.policy(), STRICT).unwrap();
        let done = accept_policy(project.folder.path(), &project.home(), &[]);
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        fs::write(project.policy(), LOOSE).unwrap();
        project
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn policy(&self) -> PathBuf {
        self.folder.path().join("tapegate.yaml")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tapegate();
        command.arg("policy").args(arguments).env("TAPEGATE_HOME", self.home());
        command.current_dir(self.folder.path());
        command
    }

    /// The text that is in force, if one was accepted.
    fn in_force(&self) -> Option<String> {
        let paths = PolicyPaths::of(&self.policy(), None);
        let accepted = AcceptedPolicies::new(&self.home()).get(&paths).unwrap()?;
        accepted.texts.get("tapegate.yaml").cloned()
    }
}

#[test]
fn a_yes_at_the_terminal_puts_the_shown_change_in_force() {
    for answer in ["y\n", "yes\n", " Y \n"] {
        let project = Project::new();
        let (code, said) = at_terminal(&project.command(&["accept"]), answer);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("+governance: { defaults: { action: forward } }"), "{said}");
        assert!(said.contains("Accept this policy? [y/N]"), "{said}");
        assert_eq!(project.in_force().as_deref(), Some(LOOSE));
    }
}

#[test]
fn anything_else_leaves_what_was_in_force() {
    let project = Project::new();
    for (ahead, answer, expected) in [
        ("", "n\n", 1),
        ("", "\n", 1),
        ("", "yesterday\n", 1),
        ("", "\u{4}", 1),
        ("", "\u{3}", 130),
        // An answer that was there before the question is not one to it.
        ("y\n", "\u{4}", 1),
        ("y\ny\ny\n", "n\n", 1),
    ] {
        for arguments in [&["accept"][..], &["accept", "--forget"]] {
            let command = project.command(arguments);
            let (code, said) = at_terminal_typing_ahead(&command, ahead, answer);
            assert_eq!(code, expected, "{answer:?}: {said}");
            assert!(said.contains("[y/N]"), "{said}");
            assert_eq!(project.in_force().as_deref(), Some(STRICT), "{answer:?}");
        }
    }
    let (code, said) = at_terminal(&project.command(&["accept", "--forget"]), "y\n");
    assert_eq!(code, 0, "{said}");
    assert_eq!(project.in_force(), None);
}

#[test]
fn a_refused_acceptance_is_logged_as_an_attempt() {
    let project = Project::new();
    let log = project.home().join("activity.jsonl");
    let attempts = || -> Vec<Value> {
        let text = fs::read_to_string(&log).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["event"] == "refused").collect()
    };
    assert_eq!(attempts().len(), 0);
    for arguments in [&["accept"][..], &["accept", "--forget"]] {
        let done = project.command(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(done.status.code(), Some(1));
    }
    let (code, _) = at_terminal(project.command(&["accept"]).env("CLAUDECODE", "1"), "y\n");
    assert_eq!(code, 1);
    let found = attempts();
    assert_eq!(found.len(), 3, "{found:?}");
    for (event, reason) in found.iter().zip(["no terminal", "no terminal", "CLAUDECODE is set"]) {
        assert_eq!((&event["kind"], &event["level"]), (&"policy".into(), &"error".into()));
        assert_eq!(event["governance_decision"], "refused", "{event}");
        assert!(event["policy_reason"].as_str().unwrap().contains(reason), "{event}");
    }
    assert!(found[1]["command"].as_str().unwrap().starts_with("policy accept --forget "));
    assert_eq!(project.in_force().as_deref(), Some(STRICT));
}

#[test]
fn a_command_that_writes_over_an_accepted_policy_asks_before_it_is_in_force() {
    let project = Project::new();
    let init = || {
        fs::remove_file(project.policy()).unwrap();
        let mut command = tapegate();
        command.arg("init").env("TAPEGATE_HOME", project.home());
        command.env("HOME", project.folder.path()).current_dir(project.folder.path());
        command
    };
    let (code, said) = at_terminal_typing_ahead(&init(), "y\n", "n\n");
    assert!(code == 0 && said.contains("not in force"), "{said}");
    assert_eq!(project.in_force().as_deref(), Some(STRICT));
    let (code, said) = at_terminal(&init(), "y\n");
    assert_eq!(code, 0, "{said}");
    assert_eq!(project.in_force(), Some(fs::read_to_string(project.policy()).unwrap()));
}
