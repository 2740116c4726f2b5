//! `shim --entry ID`: command lines that a client would not pass on as they are written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::process::{Signal, kill_process};

use crate::wrap_machine::{WrapMachine, WrapProcess};

const CURSOR: [&str; 2] = ["--agent-type", "cursor"];
const START: &str = "start=~/.cursor/mcp.json#mcpServers";

/// A config of Cursor with a server whose arguments have blanks and quotes, and one without.
fn config(machine: &WrapMachine) -> PathBuf {
    let text = machine.config(&["spaced", "plain"]);
    let odd = r#"["serve", "my files", "it's \"so\"", ""]"#;
    machine.write("home/.cursor/mcp.json", &text.replacen("[\"serve\"]", odd, 1))
}

/// The stored command lines.
fn stored(machine: &WrapMachine) -> Vec<PathBuf> {
    let entries = fs::read_dir(machine.state().join("entries")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn arguments_that_a_client_may_split_are_kept_out_of_its_config() {
    let machine = WrapMachine::new();
    let path = config(&machine);
    let before = machine.files();
    let cat = format!("cat={}", path.display());
    let mut session = machine.start(&CURSOR, &[START, &cat, "call", "say=ready", "line", "close"]);
    session.says("ready");
    let [file] = &stored(&machine)[..] else { panic!("{:?}", stored(&machine)) };
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o7777, 0o600);
    // The server got the arguments as they are written.
    let lines = machine
        .processes()
        .into_iter()
        .filter_map(|pid| fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_pid())).ok());
    let lines: Vec<String> = lines.collect();
    let expected = "\0serve\0my files\0it's \"so\"\0\0";
    assert!(lines.iter().any(|line| line.ends_with(expected)), "{lines:?}");
    drop(session.input.take());
    let ended = session.end().exits(0).said("spaced {").said("plain {");
    let entry: serde_json::Value =
        serde_json::from_str(&ended.output[..=ended.output.rfind("\n}").unwrap() + 1]).unwrap();
    let words = |name: &str| entry["mcpServers"][name]["args"].as_array().unwrap().clone();
    assert_eq!(words("spaced").len(), 3, "{entry}");
    assert_eq!(words("spaced")[..2], ["shim", "--entry"]);
    assert!(words("plain").contains(&"--governance-endpoint".into()));
    ended.complained("2 servers, 2 calls");
    assert_eq!(machine.files(), before);
    assert_eq!(stored(&machine), Vec::<PathBuf>::new());
    machine.leaves_no_process();
}

#[test]
fn an_id_is_enough_where_the_state_folder_is_in_its_usual_place() {
    let machine = WrapMachine::new();
    let path = config(&machine);
    let cat = format!("cat={}", path.display());
    let mut command = machine.wrap(&CURSOR, &[START, &cat, "call", "close"]);
    command.env_remove("TAPEGATE_HOME").env_remove("XDG_STATE_HOME");
    let ended = WrapProcess::start(command).end().exits(0).said("spaced {");
    assert!(ended.output.contains("\"--entry\", \"spaced."), "{ended:?}");
}

#[test]
fn what_others_change_meanwhile_is_merged_and_a_copy_loses_its_shim() {
    let machine = WrapMachine::new();
    let path = config(&machine);
    let original = fs::read_to_string(&path).unwrap();
    let named = path.display();
    let renamed = format!("replace={named}|\"spaced\": {{|\"renamed\": {{");
    machine.start(&CURSOR, &[&renamed]).end().exits(0).complained("has changed in it is kept");
    assert_eq!(fs::read_to_string(&path).unwrap(), original.replace("spaced", "renamed"));
    let changed = format!("replace={named}|\"A\": \"1\"|\"A\": \"2\"");
    machine.start(&CURSOR, &[&changed]).end().exits(0).complained("has changed in it is kept");
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let expected = original.replace("spaced", "renamed").replace("\"1\"", "\"2\"");
    assert_eq!(read(&fs::read_to_string(&path).unwrap()), read(&expected));
}

#[test]
fn after_a_kill_the_config_and_the_stored_command_lines_are_put_right() {
    let machine = WrapMachine::new();
    config(&machine);
    let before = machine.files();
    for is_next in [true, false] {
        let mut session = machine.start(&CURSOR, &["say=ready", "linger"]);
        session.says("ready");
        for pid in machine.processes() {
            kill_process(pid, Signal::KILL).ok();
        }
        session.end().exits(-9);
        machine.ends_every_process();
        assert_eq!(stored(&machine).len(), 1);
        match is_next {
            true => drop(machine.start(&CURSOR, &[START, "call", "close"]).end().exits(0)),
            false => assert!(machine.command(&["unwrap"]).status().unwrap().success()),
        }
        assert_eq!(machine.files(), before);
        assert_eq!(stored(&machine), Vec::<PathBuf>::new());
    }
}

#[test]
fn a_dry_run_stores_nothing_and_a_second_session_is_refused() {
    let machine = WrapMachine::new();
    config(&machine);
    let before = machine.files();
    let done = machine.wrap(&[&CURSOR[..], &["--dry-run"]].concat(), &[]).output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && text.contains("stands for: shim --governance"), "{text}");
    assert_eq!((machine.files(), stored(&machine)), (before.clone(), Vec::new()));
    // Left as it is, and nothing left that tells what it was: the entries are seen to be ours.
    machine.start(&[&CURSOR[..], &["--no-restore"]].concat(), &[]).end().exits(0);
    fs::remove_file(machine.home(".cursor/mcp.json.tapegate-backup")).unwrap();
    fs::remove_dir_all(machine.state().join("wrapped")).unwrap();
    let ended = machine.start(&CURSOR, &["say=started"]).end().exits(1);
    ended.complained("config already managed by Tapegate: the server `spaced`");
}

#[test]
fn an_entry_that_is_not_stored_is_an_answer_to_the_client() {
    let machine = WrapMachine::new();
    let mut command = machine.command(&["shim", "--entry", "gone.1.2"]);
    command.env_remove("TAPEGATE_HOME");
    let mut session = WrapProcess::start(command);
    let message = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}\n";
    std::io::Write::write_all(session.input.as_mut().unwrap(), message.as_bytes()).unwrap();
    session.says("there is no entry");
    drop(session.input.take());
    let ended = session.end();
    assert_ne!(ended.code, Some(0), "{ended:?}");
}
