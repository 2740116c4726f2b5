//! `tapegate policy accept` at a terminal: the question, and every answer to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tapegate_store::accepted_policies::{AcceptedPolicies, PolicyPaths};
use tempfile::TempDir;

use crate::shim::setup::{answer, call};
use crate::support::{accept_policy, at_terminal, at_terminal_typing_ahead, shim, tapegate};

const STRICT: &str = "schema: 1\ngovernance: { defaults: { action: deny } }\n";
const LOOSE: &str = "schema: 1\ngovernance: { defaults: { action: forward } }\n";

/// A project whose accepted policy is strict, and whose file has become loose.
struct LoosenedProject {
    folder: TempDir,
}

impl LoosenedProject {
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

    /// The text in force, if one was accepted.
    fn in_force(&self) -> Option<String> {
        let paths = PolicyPaths::of(&self.policy(), None);
        let accepted = AcceptedPolicies::new(&self.home()).get(&paths).unwrap()?;
        accepted.texts.get("tapegate.yaml").cloned()
    }
}

#[test]
fn a_yes_at_the_terminal_puts_the_shown_change_in_force() {
    for answer in ["y\n", "yes\n", " Y \n"] {
        let project = LoosenedProject::new();
        let (code, said) = at_terminal(&project.command(&["accept"]), answer);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("+governance: { defaults: { action: forward } }"), "{said}");
        assert!(said.contains("Accept this policy? [y/N]"), "{said}");
        assert_eq!(project.in_force().as_deref(), Some(LOOSE));
    }
}

#[test]
fn explain_tells_a_file_that_was_not_accepted_from_the_policy_in_force() {
    let project = LoosenedProject::new();
    let explain = |more: &[&str]| {
        let done = project.command(&[&["explain", "x"], more].concat()).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    let expected = "tools/call x on server *\n  production: forward (rules), once this file is \
                    accepted; the policy in force: deny\n  development: forward\n";
    assert!(explain(&[]).starts_with(expected), "{}", explain(&[]));
    let json: Value = serde_json::from_str(&explain(&["--format", "json"])).unwrap();
    assert_eq!((&json["production"], &json["in_force"]), (&"forward".into(), &"deny".into()));
    let (code, said) = at_terminal(&project.command(&["accept"]), "y\n");
    assert_eq!(code, 0, "{said}");
    assert!(explain(&[]).contains("  production (in force): forward (rules)\n"));
    let json: Value = serde_json::from_str(&explain(&["--format", "json"])).unwrap();
    assert_eq!(json.get("in_force"), None);
}

#[test]
fn anything_else_leaves_what_was_in_force() {
    let project = LoosenedProject::new();
    for (ahead, answer, expected) in [
        ("", "n\n", 1),
        ("", "\n", 1),
        ("", "yesterday\n", 1),
        ("", "\u{4}", 1),
        ("", "\u{3}", 130),
        // Input typed before the question does not count as an answer.
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
    let project = LoosenedProject::new();
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
    let project = LoosenedProject::new();
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

/// Calls a tool in a session of this project, with all its state in `home`.
fn call_in(project: &Path, home: &Path, tool: &str) {
    let setup = shim("", &["serve"]).within(project);
    let mut run = setup.env("TAPEGATE_HOME", &home.display().to_string()).start();
    run.send(call(1, tool).as_bytes());
    assert!(answer(&run, 1)["error"].is_object(), "the accepted policy denies it");
    run.end_of_input().exits(0);
}

#[test]
fn a_change_is_tried_on_the_tapes_of_its_own_project_alone() {
    let project = LoosenedProject::new();
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("tapegate.yaml"), STRICT).unwrap();
    call_in(project.folder.path(), &project.home(), "ours");
    call_in(other.path(), &project.home(), "theirs");
    // A project inside the project, with its own policy.
    let nested = project.folder.path().join("nested");
    fs::create_dir(&nested).unwrap();
    fs::write(nested.join("tapegate.yaml"), STRICT).unwrap();
    call_in(&nested, &project.home(), "nested");
    // A folder of the project, without a policy.
    let below = project.folder.path().join("below");
    fs::create_dir(&below).unwrap();
    call_in(&below, &project.home(), "ours");
    let done = accept_policy(project.folder.path(), &project.home(), &[]);
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("\n2 tapes are skipped"), "{said}");
    assert!(said.contains("\ncalls on 2 tapes that it treats less strictly: 2\n"), "{said}");
    assert!(said.contains("2× tools/call ours: deny → forward"), "{said}");
    assert!(!said.contains("theirs") && !said.contains("nested"), "{said}");
}

#[test]
fn what_was_accepted_and_cannot_be_read_is_replaced_only_by_who_saw_all_of_the_new_text() {
    let project = LoosenedProject::new();
    let paths = PolicyPaths::of(&project.policy(), None);
    let copy = AcceptedPolicies::new(&project.home()).copy_paths(&paths).remove(0);
    fs::write(&copy, "damaged").unwrap();
    let init = || {
        let mut command = tapegate();
        command.args(["init", "--force"]).env("TAPEGATE_HOME", project.home());
        command.env("HOME", project.folder.path()).current_dir(project.folder.path());
        command
    };
    // The difference cannot be shown, so a yes would accept something unseen.
    let (code, said) = at_terminal(&init(), "y\n");
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("is written, but not accepted") && !said.contains("[y/N]"), "{said}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "damaged");
    let (code, said) = at_terminal(&project.command(&["accept"]), "n\n");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("replacing it"), "{said}");
    let written = fs::read_to_string(project.policy()).unwrap();
    let first = written.lines().find(|line| !line.is_empty()).unwrap();
    assert!(said.contains(&format!("+{first}")), "all of it is shown: {said}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "damaged");
    let (code, said) = at_terminal(&project.command(&["accept"]), "y\n");
    assert_eq!(code, 0, "{said}");
    assert_eq!(project.in_force(), Some(written));
}

#[test]
fn a_tighter_policy_that_cannot_be_compared_waits_for_a_person() {
    let rule = |text: &str| {
        format!(
            "schema: 1\ngovernance:\n  defaults: {{ action: forward }}\n  rules:\n    \
             - {{ match: a, action: deny, arguments: {{ path: \"{text}\" }} }}\n"
        )
    };
    let more = "    - { match: b, action: deny }\n";
    // This character surrounds the marks of variables when policies are compared.
    for (text, is_taken) in [("x", true), ("x\\uf8ffy\\uf8ff", false)] {
        let project = LoosenedProject::new();
        fs::write(project.policy(), rule(text)).unwrap();
        let done = accept_policy(project.folder.path(), &project.home(), &[]);
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        let tighter = format!("{}{more}", rule(text));
        fs::write(project.policy(), &tighter).unwrap();
        let setup = shim("", &["serve"]).within(project.folder.path());
        let home = project.home().display().to_string();
        let mut run = setup.env("TAPEGATE_HOME", &home).start();
        run.send(call(1, "b").as_bytes());
        assert_eq!(answer(&run, 1)["error"].is_object(), is_taken, "{text}");
        run.end_of_input().exits(0);
        assert_eq!(project.in_force() == Some(tighter), is_taken, "{text}");
    }
}

#[test]
fn a_script_that_writes_over_an_accepted_policy_is_told_that_it_is_not_in_force() {
    let project = LoosenedProject::new();
    let init = |flags: &[&str]| {
        let mut command = tapegate();
        command.arg("init").args(flags).env("TAPEGATE_HOME", project.home());
        command.env("HOME", project.folder.path()).current_dir(project.folder.path());
        let done = command.stdin(Stdio::null()).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    assert_eq!(init(&[]).0, Some(3), "nothing is overwritten unasked");
    let (code, said) = init(&["--force"]);
    assert_eq!(code, Some(0), "{said}");
    let output_text = "tapegate.yaml` is not the policy in force: `tapegate.yaml` has changed";
    assert!(said.contains(output_text), "{said}");
    assert!(said.contains("tapegate policy accept "), "{said}");
    assert_eq!(project.in_force().as_deref(), Some(STRICT));
}
