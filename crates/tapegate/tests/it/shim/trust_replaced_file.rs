//! The accepted policy stays in force even if a link, a pipe or nothing at all is in its place.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;

use super::setup::{FORWARD, answer, ask, call, events};
use crate::support::{RunningSession, SessionSetup, fake_server, shim};

const DENY: &str = "schema: 1\ngovernance: { defaults: { action: deny } }\n";
const BY_PATH: [&str; 2] = ["--config", "conf/pol.yaml"];

/// Whether the server answers a call.
fn passes(run: &mut RunningSession, id: u32) -> bool {
    run.send(call(id, "rm").as_bytes());
    answer(run, id)["result"].is_object()
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn again(folder: &Path) -> SessionSetup {
    shim("", &["serve"]).within(folder)
}

/// Runs a session with a policy that denies everything, to its end.
fn first_use(setup: SessionSetup) -> RunningSession {
    let mut run = setup.start();
    assert!(!passes(&mut run, 1));
    run.end_of_input().exits(0).run
}

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_folder_that_becomes_a_link_brings_in_no_other_policy() {
    let setup = shim("", &["serve"]).flags(&BY_PATH);
    put(setup.folder(), "conf/pol.yaml", DENY);
    put(setup.folder(), "conf2/pol.yaml", FORWARD);
    let mut run = setup.start();
    assert!(!passes(&mut run, 1));
    let folder = run.folder().to_owned();
    fs::rename(folder.join("conf"), folder.join("was")).unwrap();
    symlink("conf2", folder.join("conf")).unwrap();
    run.signal(Signal::HUP);
    run.says("tapegate policy accept");
    assert!(!passes(&mut run, 2), "the session goes on under what was accepted");
    let over = run.end_of_input().exits(0).run;
    // Under the path as written the accepted policy is in force; at its new target nothing starts.
    for (name, exit) in [("conf/pol.yaml", 0), ("conf2/pol.yaml", 2)] {
        let mut run = again(over.folder()).flags(&["--config", name]).start();
        assert!(!passes(&mut run, 1), "{name}");
        run.end_of_input().exits(exit).complains("tapegate policy accept");
    }
}

#[test]
fn a_users_policy_behind_a_link_is_not_replaced_with_the_link() {
    let setup = shim("", &["serve"]);
    put(setup.folder(), "one/tapegate.yaml", DENY);
    put(setup.folder(), "two/tapegate.yaml", FORWARD);
    fs::create_dir(setup.folder().join("config")).unwrap();
    let link = setup.folder().join("config/tapegate");
    symlink("../one", &link).unwrap();
    let over = first_use(setup);
    fs::remove_file(&link).unwrap();
    symlink("../two", &link).unwrap();
    let config = over.folder().join("config").display().to_string();
    let mut run = again(over.folder()).env("XDG_CONFIG_HOME", &config).start();
    assert!(!passes(&mut run, 1));
    run.end_of_input().exits(0).complains("tapegate policy accept");
}

#[test]
fn a_project_that_becomes_a_link_brings_in_no_other_policy() {
    let place = tempfile::tempdir().unwrap();
    let (project, other) = (place.path().join("project"), place.path().join("other"));
    put(&project, "tapegate.yaml", DENY);
    put(&other, "tapegate.yaml", FORWARD);
    let state = place.path().join("state").display().to_string();
    let session = || shim("", &["serve"]).within(&project).env("TAPEGATE_HOME", &state);
    first_use(session());
    fs::rename(&project, place.path().join("was")).unwrap();
    symlink(&other, &project).unwrap();
    let mut run = session().start();
    assert!(!passes(&mut run, 1));
    run.end_of_input().exits(2).complains("tapegate policy accept");
}

#[test]
fn a_required_policy_that_cannot_be_kept_starts_nothing() {
    let homeless = |setup: SessionSetup| {
        fs::create_dir(setup.folder().join(".tapegate")).unwrap();
        let unset = ["TAPEGATE_HOME", "HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];
        unset.into_iter().fold(setup, |setup, name| setup.env(name, ""))
    };
    let mut run = homeless(shim(DENY, &["serve"])).flags(&["--require-policy"]).start();
    run.send(ask(1, "initialize").as_bytes());
    let refused = answer(&run, 1);
    let output_text = refused["error"]["message"].as_str().unwrap();
    assert!(output_text.contains("cannot be kept"), "{refused}");
    run.end_of_input().exits(2);
    // If none is required, first use takes effect with a warning.
    let mut run = homeless(shim(DENY, &["serve"])).start();
    assert!(!passes(&mut run, 1));
    run.end_of_input().exits(0).complains("cannot be kept");
}

#[test]
fn a_pipe_in_the_place_of_a_policy_holds_up_nothing() {
    let mut run = shim(DENY, &["serve"]).start();
    assert!(!passes(&mut run, 1));
    let policy = run.folder().join("tapegate.yaml");
    fs::remove_file(&policy).unwrap();
    pipe(&policy);
    run.until("that it is logged", |run| {
        events(run.folder()).iter().any(|event| event["event"] == "refused")
    });
    run.signal(Signal::HUP);
    assert!(!passes(&mut run, 2), "the policy in force stays");
    run.end_of_input().exits(0).complains("not a regular file");
    for (name, made) in [("pipe", true), ("/dev/zero", false)] {
        let setup = shim("", &["serve"]).flags(&["--config", name]);
        if made {
            pipe(&setup.folder().join(name));
        }
        let mut run = setup.start();
        run.send(ask(1, "initialize").as_bytes());
        let refused = answer(&run, 1);
        let output_text = refused["error"]["message"].as_str().unwrap();
        assert!(output_text.contains("not a regular file"), "{refused}");
        run.end_of_input().exits(2);
    }
}

#[test]
fn a_way_to_an_accepted_policy_that_cannot_be_kept_is_warned_of_or_starts_nothing() {
    // Large enough that its copy does not fit where the log and the tape of a short session do.
    let policy = format!("{DENY}# {}\n", "x".repeat(64 << 10));
    let setup = shim("", &["serve"]).flags(&BY_PATH);
    put(setup.folder(), "conf/pol.yaml", &policy);
    symlink("conf", setup.folder().join("link")).unwrap();
    let over = first_use(setup);
    for required in [false, true] {
        let mut command = Command::new("sh");
        // Blocks of 512 bytes or 1 KiB; anything beyond fails, as on a full disk.
        let limited = "trap '' XFSZ; ulimit -f 60; exec \"$@\"";
        command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_tapegate"), "shim"]);
        command.args(["--server-id", "s", "--config", "link/pol.yaml"]);
        command.args(required.then_some("--require-policy"));
        command.arg("--").arg(fake_server()).arg("serve");
        command.env("TAPEGATE_HOME", over.folder().join("state")).current_dir(over.folder());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let line = if required { ask(1, "initialize") } else { call(1, "rm") };
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let got = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(got.contains("\"error\""), "{got} {said}");
        assert_eq!(done.status.code(), Some(if required { 2 } else { 0 }), "{got} {said}");
        let told = if required { &got } else { &said };
        assert!(told.contains("cannot be kept"), "{got} {said}");
    }
    // If it can be stored, there is no warning.
    let mut run = again(over.folder()).flags(&["--config", "link/pol.yaml"]).start();
    assert!(!passes(&mut run, 1));
    let ended = run.end_of_input().exits(0);
    assert!(!ended.stderr.contains("cannot be kept"), "{}", ended.stderr);
}
