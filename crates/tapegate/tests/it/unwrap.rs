//! `tapegate unwrap`: puts configs back that a session has left rewritten.

use std::fs;

use crate::wrap_machine::WrapMachine;

#[test]
fn with_nothing_to_do_it_says_so() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let done = machine.command(&["unwrap"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(done.stdout, b"nothing to restore: no config is left rewritten\n");
}

#[test]
fn what_was_not_restored_is_put_back_by_hand() {
    for flags in [&[][..], &["--agent-type", "claude-code"], &["--all"]] {
        let machine = WrapMachine::new();
        machine.claude(&["s"]);
        let before = machine.files();
        let done = machine.wrap(&["--no-restore"], &[]).output().unwrap();
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && text.contains("unwrap` restores them"), "{text}");
        assert_ne!(machine.files(), before);
        let done = machine.command(&["unwrap"]).args(flags).output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success() && text.contains("/.claude.json: it is restored"), "{text}");
        assert_eq!(machine.files(), before, "{flags:?}");
    }
}

#[test]
fn configs_of_other_projects_are_found_with_all_or_by_name() {
    for by_name in [true, false] {
        let machine = WrapMachine::new();
        let path = machine.write("project/.mcp.json", &machine.config(&["s"]));
        let before = machine.files();
        assert!(machine.wrap(&["--no-restore"], &[]).output().unwrap().status.success());
        let elsewhere = |flags: &[&str]| {
            let mut command = machine.command(&["unwrap"]);
            command.args(flags).current_dir(machine.folder());
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        assert!(elsewhere(&[]).starts_with("nothing to restore"));
        let named = ["--config-path", path.to_str().unwrap()];
        let flags = if by_name { &named[..] } else { &["--all"] };
        assert!(elsewhere(flags).contains(".mcp.json: it is restored"));
        assert_eq!(machine.files(), before);
    }
}

#[test]
fn a_config_that_a_session_uses_is_left_alone() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let mut session = machine.start(&[], &["say=ready", "linger"]);
    session.says("ready");
    let rewritten = fs::read(machine.home(".claude.json")).unwrap();
    let done = machine.command(&["unwrap"]).output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("is in use by another session (process {})", session.id())));
    assert_eq!(fs::read(machine.home(".claude.json")).unwrap(), rewritten);
    session.signal(rustix::process::Signal::TERM);
    session.end();
}
