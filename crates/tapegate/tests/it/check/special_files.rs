//! Pipes and devices in place of files: no command waits for them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{GUARD, tapegate, within};

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs a command that must not wait for a writer of a pipe.
fn at_once(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = tapegate();
    command.args(args).current_dir(folder).env("TAPEGATE_HOME", folder.join("state"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    if within(GUARD, || child.try_wait().unwrap()).is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("{args:?} waits for the pipe");
    }
    let done = child.wait_with_output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_pipe_or_a_device_is_refused_whatever_it_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["tapegate.yaml", "p.test.yaml", "tapegate.lock", "s.yaml", "t.jsonl", "t"];
    for name in names.into_iter().chain(["activity.jsonl"]) {
        mkfifo(&folder.path().join(name));
        let (code, said) = at_once(folder.path(), &["check", name]);
        assert_eq!(code, Some(3), "{said}");
        if name != "activity.jsonl" {
            let text = format!("error: cannot read `{name}`: it is a pipe, not a regular file\n");
            assert!(said.starts_with(&text), "{said}");
        }
    }
    let (code, said) = at_once(folder.path(), &["check", "/dev/zero"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("`/dev/zero`: it is a device, not a regular file"), "{said}");
}

#[test]
fn a_pipe_that_a_policy_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("conf")).unwrap();
    mkfifo(&folder.path().join("conf/pipe.cedar"));
    let policy = "schema: 1\ncedar: {policies: [conf/pipe.cedar]}\n";
    fs::write(folder.path().join("tapegate.yaml"), policy).unwrap();
    for args in [&["check", "tapegate.yaml"][..], &["policy", "explain", "x"]] {
        let (code, said) = at_once(folder.path(), args);
        assert_ne!(code, Some(0), "{said}");
        assert!(said.contains("it is not a regular file"), "{said}");
    }
    mkfifo(&folder.path().join("cases.yaml"));
    let (code, said) = at_once(folder.path(), &["policy", "test", "cases.yaml"]);
    assert!(code != Some(0) && said.contains("it is not a regular file"), "{said}");
}
