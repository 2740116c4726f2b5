//! What a session says before it starts: which policy it would have, and why it does not start.

use std::fs;

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

#[test]
fn a_dry_run_names_the_policy_as_a_start_does() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let policy_of = |flags: &[&str]| {
        let ended = machine.start(flags, &[]).end().exits(0);
        let line = ended.errors.lines().find(|line| line.contains("Claude Code ")).unwrap();
        line.split_once("; ").unwrap().1.to_owned()
    };
    let both = |flags: &[&str]| {
        let [before, started, after] = [vec!["--dry-run"], vec![], vec!["--dry-run"]]
            .map(|more| policy_of(&[flags, &more].concat()));
        assert_eq!((&before, &after), (&started, &started));
        started
    };
    assert_eq!(both(&[]), "no policy: observing only, nothing is refused");
    let ended = machine.start(&["--dry-run", "--require-policy"], &[]).end().exits(2);
    ended.complained("no policy found, and one is required");
    let deny = "schema: 1\ngovernance:\n  defaults: { action: forward }\n  rules: [{ match: rm, action: deny }]\n";
    let policy = machine.write("project/tapegate.yaml", deny);
    let first = both(&[]);
    assert!(first.starts_with("policy ") && first.ends_with(", profile production"), "{first}");
    assert_eq!(both(&["--profile", "development"]), first.replace("production", "development"));
    // A change that permits more is not in force until a person accepts it.
    fs::write(&policy, deny.replace("deny", "forward")).unwrap();
    let ended = machine.start(&["--dry-run"], &[]).end().exits(0).complained(&first);
    ended.complained("is not the policy in force");
    fs::remove_file(&policy).unwrap();
    machine.start(&["--dry-run"], &[]).end().exits(0).complained(&first);
    fs::write(&policy, "schema: 7\n").unwrap();
    for flags in [&["--dry-run"][..], &[]] {
        machine.start(flags, &["say=started"]).end().exits(2).complained("schema");
    }
}
