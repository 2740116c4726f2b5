//! `--overlay`: the agent gets its servers from us, and no config is touched.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use rustix::process::{Signal, kill_process};

use crate::support::wait_until;
use crate::wrap_machine::{AGENT, EndedWrap, WrapMachine, WrapProcess};

/// The steps of an agent that calls all of its servers.
const CALL_ALL: [&str; 3] = ["start=~/.claude.json#mcpServers", "call", "close"];

/// A session around the scripted agent, which is started as Claude Code is.
pub(super) fn start(machine: &WrapMachine, flags: &[&str], steps: &[&str]) -> WrapProcess {
    let program = machine.folder().join("bin/claude");
    fs::remove_file(&program).ok();
    fs::write(&program, format!("#!/bin/sh\nexec python3 '{AGENT}' \"$@\"\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = machine.command(&["wrap", "--overlay"]);
    command.args(flags).arg("--").arg(program).args(steps);
    WrapProcess::start(command)
}

/// What would differ if a file had been written, even with the same text.
fn identity(path: &PathBuf) -> (u64, i64, i64) {
    let about = fs::metadata(path).unwrap();
    (about.ino(), about.mtime_nsec(), about.ctime_nsec())
}

/// The private folders of sessions.
pub(super) fn folders(machine: &WrapMachine) -> Vec<PathBuf> {
    let entries = fs::read_dir(machine.state().join("overlays")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[track_caller]
fn is_refused(machine: &WrapMachine, ended: EndedWrap, reason: &str) {
    let ended = ended.exits(2).complained(reason).complained("without --overlay");
    assert_eq!(ended.output, "");
    assert_eq!(folders(machine), Vec::<PathBuf>::new());
}

#[test]
fn two_sessions_of_one_agent_run_side_by_side_and_no_config_is_touched() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["one", "two"]);
    let (before, own) = (machine.files(), identity(&path));
    let home = identity(&machine.home(""));
    let steps = [&CALL_ALL[..2], &["say=ready", "line", "close", "exit=7"]].concat();
    let mut first = start(&machine, &[], &steps);
    first.says("ready");
    let mut second = start(&machine, &[], &steps);
    second.says("ready");
    assert_eq!(folders(&machine).len(), 2);
    for folder in folders(&machine) {
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700);
        let file = fs::metadata(folder.join("mcp.json")).unwrap();
        assert_eq!(file.mode() & 0o7777, 0o600);
    }
    // One that rewrites the configs is not kept away either.
    machine.start(&["--dry-run"], &[]).end().exits(0);
    for mut session in [first, second] {
        drop(session.input.take());
        let ended = session.end().exits(7).said("one {").said("two {");
        ended.complained("2 servers, 2 calls, 0 denied, 0 approved, 2 tapes");
    }
    assert_eq!(machine.files(), before);
    assert_eq!((identity(&path), identity(&machine.home(""))), (own, home));
    assert_eq!(folders(&machine), Vec::<PathBuf>::new());
    machine.leaves_no_process();
}

#[test]
fn whoever_is_killed_the_private_folder_is_removed() {
    let steps = [&CALL_ALL[..2], &["say=ready", "linger"]].concat();
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    // By the hub.
    let mut session = start(&machine, &[], &steps);
    session.says("ready");
    session.signal(Signal::KILL);
    session.end().exits(-9);
    machine.ends_every_process();
    assert_eq!(folders(&machine), Vec::<PathBuf>::new());
    // By the next session, or by hand.
    for is_next in [true, false] {
        let mut session = start(&machine, &[], &steps);
        session.says("ready");
        for pid in machine.processes() {
            kill_process(pid, Signal::KILL).ok();
        }
        session.end().exits(-9);
        machine.ends_every_process();
        assert_eq!(folders(&machine).len(), 1);
        match is_next {
            true => drop(start(&machine, &[], &CALL_ALL).end().exits(0).said("s {")),
            false => assert!(machine.command(&["unwrap"]).status().unwrap().success()),
        }
        assert_eq!(folders(&machine), Vec::<PathBuf>::new());
        assert_eq!(machine.files(), before);
    }
}

#[test]
fn signals_and_an_agent_that_crashes_end_such_a_session_like_any_other() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    for (step, code) in [("raise=SIGKILL", 137), ("exit=3", 3)] {
        start(&machine, &[], &[&CALL_ALL[..2], &[step]].concat()).end().exits(code);
    }
    let mut session = start(&machine, &[], &["say=ready", "linger"]);
    session.says("ready");
    session.signal(Signal::TERM);
    session.end().exits(143);
    assert_eq!(machine.files(), before);
    assert_eq!(folders(&machine), Vec::<PathBuf>::new());
    machine.leaves_no_process();
}

#[test]
fn what_a_killed_session_has_left_is_put_right_first_and_a_running_one_is_left_alone() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let mut other = machine.start(&[], &["say=ready", "linger"]);
    other.says("ready");
    let during = machine.files();
    start(&machine, &[], &["say=started"])
        .end()
        .exits(1)
        .complained("is in use by another session");
    assert_eq!(machine.files(), during);
    for pid in machine.processes() {
        kill_process(pid, Signal::KILL).ok();
    }
    other.end().exits(-9);
    let ended = start(&machine, &[], &CALL_ALL).end().exits(0).said("s {");
    ended.complained("was left rewritten by a session that was killed; it is restored");
    assert_eq!(machine.files(), before);
}

#[test]
fn a_session_in_which_a_server_would_be_lost_is_refused() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let refused = |machine: &WrapMachine, flags: &[&str], steps: &[&str], reason: &str| {
        is_refused(machine, start(machine, flags, steps).end(), reason);
    };
    refused(&machine, &[], &["mcp", "list"], "the agent's command `mcp` takes servers");
    let extra = machine.write("project/extra.json", &machine.config(&["x"]));
    let extra = extra.display().to_string();
    refused(&machine, &[], &["--mcp-config", &extra], "has `--mcp-config`");
    let plugin = machine.write("home/.claude/plugins/cache/m/p/.mcp.json", "{}");
    refused(&machine, &[], &[], "p/.mcp.json` may define servers");
    fs::remove_file(plugin).unwrap();
    machine.write("project/.mcp.json", &machine.config(&["p"]));
    refused(&machine, &[], &[], "`p` is a server of the project");
    // By an unknown name, the agent might not take the arguments.
    fs::remove_file(machine.project(".mcp.json")).unwrap();
    let unknown = machine.start(&["--overlay"], &["say=started"]).end();
    is_refused(&machine, unknown, "does not name a program of Claude Code");
    machine.write("project/.cursor/mcp.json", &machine.config(&["c"]));
    let cursor = machine.start(&["--overlay", "--agent-type", "cursor"], &["say=started"]).end();
    is_refused(&machine, cursor, "Cursor has no way to take its servers from elsewhere");
    for flags in [["--no-restore"].as_slice(), &["--config-path", &extra]] {
        let ended = start(&machine, flags, &["say=started"]).end().exits(64);
        ended.complained("cannot be used with");
    }
}

#[test]
fn a_dry_run_prints_what_the_agent_gets_but_no_secret() {
    let machine = WrapMachine::new();
    machine.write("home/.claude.json", &machine.config(&["s"]).replace("\"1\"", "\"horse\""));
    let before = machine.files();
    let ended = start(&machine, &["--dry-run"], &["say=x"]).end().exits(0);
    let ended = ended.said("argument --mcp-config").said("argument --strict-mcp-config");
    let ended = ended.said("argument say=x").said("mcp.json");
    assert!(!format!("{ended:?}").contains("horse"));
    assert_eq!(machine.files(), before);
    assert!(!machine.state().exists());
}

#[test]
fn what_the_agent_changes_in_its_private_config_is_named() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let mut session = start(&machine, &[], &["say=ready", "line"]);
    session.says("ready");
    wait_until("the folder", || folders(&machine).len() == 1);
    fs::write(folders(&machine)[0].join("mcp.json"), "{}").unwrap();
    drop(session.input.take());
    session.end().exits(0).complained("such changes are not kept");
    assert_eq!(folders(&machine), Vec::<PathBuf>::new());
}
