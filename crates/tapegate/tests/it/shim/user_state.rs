//! A person's terminal and a shim that use different user state folders.

use std::fs;
use std::path::Path;

use super::setup::{FORWARD, answer, call};
use crate::support::{RunningSession, shim, tapegate};

/// A shim in a project with its own state folder, whose user state folder is below `place`.
fn started(place: &Path) -> RunningSession {
    let setup = shim(FORWARD, &["serve"]);
    fs::create_dir(setup.folder().join(".tapegate")).unwrap();
    let place = place.to_str().unwrap();
    let mut run = setup.env("TAPEGATE_HOME", "").env("XDG_STATE_HOME", place).start();
    run.send(call(1, "a").as_bytes());
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    run
}

/// The standard error of a command in the project, with this state folder.
fn said(run: &RunningSession, place: &Path, arguments: &[&str]) -> String {
    let mut command = tapegate();
    command.args(arguments).current_dir(run.folder());
    command.env_remove("TAPEGATE_HOME").env("XDG_STATE_HOME", place);
    String::from_utf8(command.output().unwrap().stderr).unwrap()
}

#[test]
fn commands_that_decide_warn_if_the_shim_never_reads_their_folder() {
    let places = tempfile::tempdir().unwrap();
    let (theirs, ours) = (places.path().join("theirs"), places.path().join("ours"));
    let run = started(&theirs);
    let (named, own) = (theirs.join("tapegate"), ours.join("tapegate"));
    for arguments in [&["approvals"][..], &["approvals", "approve", "--all"], &["policy", "accept"]]
    {
        let message = said(&run, &ours, arguments);
        let shim = format!("uses the user state folder `{}`", named.display());
        let terminal = format!("this terminal `{}`", own.display());
        assert!(message.contains(&shim) && message.contains(&terminal), "{message}");
        assert!(message.contains("XDG_STATE_HOME"), "{message}");
        let message = said(&run, &theirs, arguments);
        assert!(!message.contains("user state folder"), "{message}");
    }
    // The next session will use the same folder as this one.
    let end = run.end_of_input().exits(0);
    assert!(said(&end.run, &ours, &["approvals"]).contains("user state folder"));
}

#[test]
fn a_shim_with_another_tapegate_home_is_warned_of_too() {
    let places = tempfile::tempdir().unwrap();
    let setup = shim(FORWARD, &["serve"]);
    fs::create_dir(setup.folder().join(".tapegate")).unwrap();
    let mut run = setup.start();
    run.send(call(1, "a").as_bytes());
    answer(&run, 1);
    let words = said(&run, places.path(), &["approvals"]);
    let shim = format!("uses the user state folder `{}`", run.folder().join("state").display());
    assert!(words.contains(&shim), "{words}");
    run.end_of_input().exits(0);
}

#[test]
fn a_note_that_an_agent_wrote_is_only_shown_and_cannot_dress_up() {
    let places = tempfile::tempdir().unwrap();
    let run = started(places.path());
    let note = run.folder().join(".tapegate/user-state");
    let evil = run.folder().join("evil");
    fs::write(&note, format!("1 {}/\u{1b}[2J\u{202e}x\n", evil.display())).unwrap();
    let words = said(&run, places.path(), &["approvals"]);
    assert!(words.contains("which an agent can write"), "{words}");
    assert!(!words.contains('\u{1b}') && !words.contains('\u{202e}'), "{words:?}");
    assert!(!evil.exists(), "nothing is made where the note points to");
    run.end_of_input().exits(0);
}
