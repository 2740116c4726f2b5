//! The tapes of a session are found by `show` and `stats`, however it has ended.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::wrap_machine::{EndedWrap, WrapMachine};

/// The steps of an agent that calls a tool of each server once.
const CALL: [&str; 2] = ["start=~/.claude.json#mcpServers", "call"];
const POLICY: &str = "schema: 1\nsources: [{ id: \"*\", kind: mcp }]\ngovernance:\n  \
                      defaults: { action: forward }\n  rules: [{ match: no, action: deny }]\n";

/// What a command prints, and its exit code.
fn run(machine: &WrapMachine, arguments: &[&str]) -> (Option<i32>, String, String) {
    let done = machine.command(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

/// What a command that succeeds prints.
#[track_caller]
fn printed(machine: &WrapMachine, arguments: &[&str]) -> String {
    let (code, out, err) = run(machine, arguments);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    out
}

/// The listed sessions.
#[track_caller]
fn listed(machine: &WrapMachine) -> Vec<Value> {
    serde_json::from_str(&printed(machine, &["show", "--format", "json"])).unwrap()
}

/// The session that `wrap` has named at its end.
fn session_of(ended: &EndedWrap) -> String {
    let line = ended.errors.lines().find_map(|line| line.strip_prefix("session ")).unwrap();
    line.split(';').next().unwrap().to_owned()
}

#[test]
fn a_session_is_listed_and_its_tapes_are_shown_by_its_id() {
    let machine = WrapMachine::new();
    machine.claude(&["a", "b"]);
    machine.write("project/tapegate.yaml", POLICY);
    assert_eq!(listed(&machine), [Value::Null; 0]);
    assert_eq!(printed(&machine, &["show", "--format", "jsonl"]), "");
    assert_eq!(printed(&machine, &["show"]), "no session is recorded in this project\n");
    let first = session_of(&machine.start(&[], &CALL).end().exits(0));
    let denied = [&CALL[..], &["call=no"]].concat();
    let second = session_of(&machine.start(&[], &denied).end().exits(0));
    let sessions = listed(&machine);
    let column = |key: &str| -> Vec<&Value> { sessions.iter().map(|one| &one[key]).collect() };
    assert_eq!(column("session"), [&second, &first]);
    assert_eq!(json!([column("calls"), column("denials")]), json!([[4, 2], [2, 0]]));
    for session in &sessions {
        assert_eq!(session["agent"], "claude-code");
        assert_eq!(session["servers"], json!(["a", "b"]));
        assert_eq!(session["tapes"].as_array().unwrap().len(), 2);
    }
    let text = printed(&machine, &["show"]);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains(&second) && text.contains("claude-code      4       2  a, b"), "{text}");
    // By `last`, by the start of the id, and by the files.
    let files: Vec<&str> = sessions[0]["tapes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tape| tape.as_str().unwrap())
        .collect();
    let by_files = printed(&machine, &[&["show"], &files[..]].concat());
    assert_eq!(by_files.matches("tools/call no").count(), 2, "{by_files}");
    assert_eq!(by_files.matches("denied by rule rules[0] ·").count(), 2, "{by_files}");
    assert_eq!(printed(&machine, &["show", "last"]), by_files);
    assert_eq!(printed(&machine, &["show", &second[..12]]), by_files);
    assert_ne!(printed(&machine, &["show", &first]), by_files);
    let stats = printed(&machine, &["stats", "last", "--format", "json"]);
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!((&stats["total"]["count"], &stats["total"]["denied"]), (&4.into(), &2.into()));
}

#[test]
fn a_file_goes_before_a_session_and_an_unclear_id_is_an_error_with_the_candidates() {
    let machine = WrapMachine::new();
    let place = |id: &str| format!("state/tapes/s/2026-01-01T00-00-01-000Z-{id}.jsonl");
    let header = |id: &str| {
        format!(
            "{{\"type\":\"header\",\"version\":\"1.0\",\"name\":\"s\",\
             \"recorded_at\":\"2026-01-01T00:00:01.000000Z\",\"upstream\":\"x\",\
             \"thoughtjack_version\":\"0.1.0\",\"folder\":{:?},\"agent_session\":\"{id}\"}}\n",
            machine.project("").canonicalize().unwrap()
        )
    };
    for id in ["ab01", "ab02", "ab"] {
        machine.write(&place(id), &header(id));
    }
    let (code, _, err) = run(&machine, &["show", "ab0"]);
    assert_eq!(code, Some(64), "{err}");
    assert!(err.contains("`ab0` is the start of 2 sessions:") && err.contains("  ab01  "), "{err}");
    // A whole id is clear.
    assert!(printed(&machine, &["show", "ab"]).contains("-ab.jsonl"));
    let (code, _, err) = run(&machine, &["show", "cd"]);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("there is no file and no recorded session `cd`"), "{err}");
    for name in ["ab0", "last"] {
        machine.write(&format!("project/{name}"), &header("x"));
        assert!(printed(&machine, &["show", name]).starts_with(&format!("{name} ")));
    }
    let (code, _, err) = run(&machine, &["show", "--errors"]);
    assert_eq!(code, Some(64), "{err}");
}

#[test]
fn a_session_whose_wrap_was_killed_is_found() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let mut session = machine.start(&[], &[&CALL[..], &["say=ready", "linger"]].concat());
    session.says("ready");
    session.signal(Signal::KILL);
    session.end().exits(-9);
    machine.ends_every_session();
    let sessions = listed(&machine);
    assert_eq!((sessions.len(), &sessions[0]["calls"]), (1, &1.into()));
    assert!(printed(&machine, &["show", "last"]).contains("tools/call x"));
}

#[test]
fn tapes_in_another_folder_are_found_and_other_projects_are_only_counted() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    machine.start(&["--record=own"], &CALL).end().exits(0);
    let sessions = listed(&machine);
    let tape = PathBuf::from(sessions[0]["tapes"][0].as_str().unwrap());
    assert!(tape.starts_with(machine.project("own").canonicalize().unwrap()), "{tape:?}");
    assert!(printed(&machine, &["show", "last"]).contains("tools/call x"));
    // The state folder of the machine is that of all its projects.
    let other = machine.folder().join("other");
    fs::create_dir(&other).unwrap();
    let show = |arguments: &[&str]| {
        let done = machine.command(&["show"]).args(arguments).current_dir(&other).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    assert!(show(&[]).ends_with("1 session of other projects; --state DIR lists all\n"));
    assert_eq!(show(&["--format", "json"]), "[]\n");
    let id = sessions[0]["session"].as_str().unwrap();
    assert!(show(&[id]).contains("tools/call x"));
    let state = machine.state().display().to_string();
    assert!(show(&["--state", &state]).contains(id));
    // A tape that is gone takes its session with it.
    fs::remove_file(tape).unwrap();
    assert_eq!(listed(&machine), [Value::Null; 0]);
}

#[test]
fn a_folder_that_cannot_take_tapes_is_refused_before_anything_is_started() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    machine.write("project/file", "");
    let shared = machine.project("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    symlink("shared", machine.project("link")).unwrap();
    let before = machine.files();
    for (folder, reason) in [
        ("file", "/file` is not a folder"),
        ("file/below", "/file` is not a folder"),
        ("link", "it is a symbolic link"),
        ("shared", "it is shared with other users"),
    ] {
        let record = format!("--record={folder}");
        for flags in [&[&*record][..], &[&record, "--dry-run"], &[&record, "--overlay"]] {
            let ended = machine.start(flags, &["say=started"]).end().exits(3);
            let ended = ended.complained("cannot record to `").complained(reason);
            assert_eq!(ended.complained("name a folder of your own").output, "", "{flags:?}");
        }
    }
    // No permission tells that nothing can be created there.
    let record = format!("--record=/proc/self/{}", "tapes");
    machine.start(&[&record], &["say=started"]).end().exits(3).complained("cannot record to");
    for (value, reason) in [("", "a value is required"), ("-", "name a folder")] {
        let ended = machine.start(&[&format!("--record={value}")], &["say=started"]).end();
        assert_eq!(ended.exits(64).complained(reason).output, "");
    }
    assert_eq!(machine.files(), before);
    assert_eq!(fs::metadata(shared).unwrap().permissions().mode() & 0o7777, 0o1777);
    let made = "--record=made/here";
    machine.start(&[made], &CALL).end().exits(0).complained("/made/here/s/");
}
