//! What a session says before it starts: why it does not start.

use crate::wrap_machine::WrapMachine;

#[test]
fn after_an_installation_a_session_is_refused_with_the_way_out() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    machine.write(
        "project/tapegate.yaml",
        "schema: 1\ngovernance: { defaults: { action: forward } }\n",
    );
    let original = machine.files();
    let run = |line: &[&str]| machine.command(line).output().unwrap();
    assert!(run(&["agents", "install", "claude-code"]).status.success());
    let ended = machine.start(&[], &["say=started"]).end().exits(1);
    let ended = ended.complained("was put behind a shim by `agents install`");
    let ended = ended.complained("run the agent without `wrap`, because its servers are governed");
    let ended = ended.complained("run `tapegate agents uninstall claude-code` first");
    assert_eq!(ended.output, "");
    assert!(run(&["agents", "uninstall", "claude-code"]).status.success());
    machine.start(&[], &["say=started"]).end().exits(0).said("started");
    assert_eq!(machine.files(), original);
    // An entry of a session that is left rewritten is put back by another command.
    machine.start(&["--no-restore"], &[]).end().exits(0);
    let ended = machine.start(&["--dry-run"], &[]).end().exits(1);
    ended.complained("is behind the shim of a session").complained("`tapegate unwrap`");
}
