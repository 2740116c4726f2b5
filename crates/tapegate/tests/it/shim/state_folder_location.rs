//! A `.tapegate` folder created later does not hide the log.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::setup::{FORWARD, answer, call, rules};
use crate::support::{at_terminal, shim, tapegate};

/// Runs a command in a project, with the user's state below `place`.
fn run(project: &Path, place: &Path, arguments: &[&str]) -> Output {
    let mut command = tapegate();
    command.args(arguments).current_dir(project);
    command.env_remove("TAPEGATE_HOME").env("XDG_STATE_HOME", place).env("HOME", place);
    command.output().unwrap()
}

/// How many calls the project's log shows, and the standard error.
fn shown(project: &Path, place: &Path) -> (usize, String) {
    let done = run(project, place, &["log", "--format", "json"]);
    let text = String::from_utf8(done.stdout).unwrap();
    let calls = text.lines().filter(|line| line.contains("\"tool\":\"a\"")).count();
    (calls, String::from_utf8(done.stderr).unwrap())
}

#[test]
fn a_folder_that_an_agent_makes_does_not_move_the_log_and_a_person_s_init_does() {
    let places = tempfile::tempdir().unwrap();
    let place = places.path().to_str().unwrap().to_owned();
    let setup = shim(FORWARD, &["serve"]);
    let mut first = setup.env("TAPEGATE_HOME", "").env("XDG_STATE_HOME", &place).start();
    first.send(call(1, "a").as_bytes());
    assert_eq!(answer(&first, 1)["result"]["for"], 1);
    let project = first.folder().to_owned();
    let (before, _) = shown(&project, places.path());
    assert!(before > 0);
    fs::create_dir(project.join(".tapegate")).unwrap();
    let (after, said) = shown(&project, places.path());
    assert_eq!(after, before, "{said}");
    assert!(said.contains(".tapegate` is not used"), "{said}");
    // Nor does a bare folder below the project.
    fs::create_dir_all(project.join("sub/.tapegate")).unwrap();
    assert_eq!(shown(&project.join("sub"), places.path()).0, before);
    // Running `init` without a terminal does not move it either.
    fs::rename(project.join("tapegate.yaml"), project.join("kept.yaml")).unwrap();
    let init = run(&project, places.path(), &["init"]);
    let said = String::from_utf8(init.stderr).unwrap();
    assert!(said.contains(".tapegate` is not used"), "{said}");
    assert_eq!(shown(&project, places.path()).0, before);
    let mut command = tapegate();
    command.args(["init", "--force"]).current_dir(&project);
    command.env("XDG_STATE_HOME", &place).env("HOME", &place);
    let (code, said) = at_terminal(&command, "y\n");
    assert_eq!(code, 0, "{said}");
    let (calls, said) = shown(&project, places.path());
    assert_eq!(calls, 0, "{said}");
    let former = places.path().join("tapegate").canonicalize().unwrap();
    assert!(said.contains(&format!("tapegate log --state {}", former.display())), "{said}");
    first.end_of_input().exits(0);
}

#[test]
fn calls_that_wait_in_the_folder_of_before_are_told_of() {
    let places = tempfile::tempdir().unwrap();
    let place = places.path().to_str().unwrap().to_owned();
    let setup = shim(&rules(&[("ask", "approve, approval: people")]), &["serve"]);
    let mut first = setup.env("TAPEGATE_HOME", "").env("XDG_STATE_HOME", &place).start();
    first.send(call(1, "ask").as_bytes());
    let project = first.folder().to_owned();
    let listed = || {
        let done = run(&project, places.path(), &["approvals", "--format", "jsonl"]);
        let out = String::from_utf8(done.stdout).unwrap();
        (out.lines().count(), String::from_utf8(done.stderr).unwrap())
    };
    first.until("the call to be held", |_| listed().0 == 1);
    assert!(!listed().1.contains("where its state was before"), "{}", listed().1);
    let mut command = tapegate();
    command.args(["init", "other.yaml"]).current_dir(&project);
    command.env("XDG_STATE_HOME", &place).env("HOME", &place);
    let (code, said) = at_terminal(&command, "y\n");
    assert_eq!(code, 0, "{said}");
    let (count, said) = listed();
    assert_eq!(count, 0, "it waits in another folder: {said}");
    let former = places.path().join("tapegate").canonicalize().unwrap();
    let output_text = format!(
        "1 call of this project waits in `{0}`, where its state was before: tapegate approvals --state {0}",
        former.display()
    );
    assert!(said.contains(&output_text), "{said}");
    // Other projects that share the folder are not warned.
    let other = tempfile::tempdir().unwrap();
    let done = run(other.path(), places.path(), &["approvals"]);
    assert!(!String::from_utf8(done.stderr).unwrap().contains("where its state was before"));
    first.end_of_input().exits(0);
}
