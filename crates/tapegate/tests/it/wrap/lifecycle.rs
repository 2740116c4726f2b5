//! How a session ends: by its agent, by signals, and without its hub.

use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::support::wait_until;
use crate::wrap_machine::WrapMachine;

/// The steps of an agent that has called its server, and runs until it is ended.
const RUN_ON: [&str; 4] = ["start=~/.claude.json#mcpServers", "call", "say=ready", "linger"];

#[test]
fn ec_stdio_011_an_agent_that_crashes_ends_the_session() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let steps = ["start=~/.claude.json#mcpServers", "call", "raise=SIGKILL"];
    let ended = machine.start(&[], &steps).end().exits(137).said("s {");
    ended.complained("0 denied, 0 approved");
    assert_eq!(machine.files(), before);
    machine.leaves_no_process();
}

#[test]
fn ec_stdio_012_sigterm_is_passed_on_and_the_configs_are_restored() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let mut session = machine.start(&[], &RUN_ON);
    session.says("ready");
    session.signal(Signal::TERM);
    session.end().exits(143);
    assert_eq!(machine.files(), before);
    machine.leaves_no_process();
}

#[test]
fn ec_stdio_012_an_agent_that_ignores_sigterm_is_killed_at_the_second_one() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let mut session = machine.start(&[], &[&["report=SIGTERM"], &RUN_ON[..]].concat());
    session.says("ready");
    session.signal(Signal::TERM);
    session.says("got SIGTERM");
    session.signal(Signal::TERM);
    session.end().exits(137);
    assert_eq!(machine.files(), before);
    machine.leaves_no_process();
}

#[test]
fn ec_stdio_013_other_signals_are_passed_on_too_and_the_agent_decides_what_they_mean() {
    for (signal, name, code) in [
        (Signal::INT, "SIGINT", 130),
        (Signal::HUP, "SIGHUP", 129),
        (Signal::QUIT, "SIGQUIT", 131),
        (Signal::USR1, "SIGUSR1", 138),
    ] {
        let machine = WrapMachine::new();
        machine.claude(&["s"]);
        let before = machine.files();
        // Python turns Ctrl-C into an exception, and exits with the signal.
        let mut session = machine.start(&[], &RUN_ON);
        session.says("ready");
        session.signal(signal);
        session.end().exits(code);
        assert_eq!(machine.files(), before, "{name}");
        let mut session = machine.start(&[], &[&format!("report={name}"), "say=ready", "line"]);
        session.says("ready");
        session.signal(signal);
        session.says(&format!("got {name}"));
        drop(session.input.take());
        session.end().exits(0);
        assert_eq!(machine.files(), before, "{name}");
        machine.leaves_no_process();
    }
}

#[test]
fn ec_stdio_022_a_call_that_waits_for_approval_does_not_hold_up_the_end() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let policy = "schema: 1\nsources: [{ id: \"*\", kind: mcp }]\n\
                  governance: { defaults: { action: approve } }\n";
    machine.write("project/tapegate.yaml", policy);
    let before = machine.files();
    let steps = ["start=~/.claude.json#mcpServers", "send=x", "say=ready", "linger"];
    let mut session = machine.start(&[], &steps);
    session.says("ready");
    wait_until("a call that waits", || machine.log().contains("pending_approval"));
    session.signal(Signal::INT);
    session.end().exits(130).complained("1 server, 1 call, ");
    // The call is over, and so is its request: an approver would decide about nothing.
    let log = machine.log();
    assert!(log.contains("\"the session ended\""), "{log}");
    assert!(log.contains("\"governance_decision\":\"closed\""), "{log}");
    let list = machine.command(&["approvals", "list", "--format", "json"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&list.stdout).trim(), "[]");
    assert_eq!(machine.files(), before);
    machine.leaves_no_process();
}

#[test]
fn ec_stdio_041_idle_shims_that_nothing_else_ends_are_ended_within_seconds_of_sigterm() {
    let machine = WrapMachine::new();
    machine.claude(&["one", "two"]);
    let before = machine.files();
    // The servers' input stays open in a process that the agent leaves behind.
    let steps = [&RUN_ON[..2], &["leave", "say=ready", "linger"]].concat();
    let mut session = machine.start(&[], &steps);
    session.says("ready");
    assert_eq!(machine.processes_of("shim").len(), 2);
    let begin = Instant::now();
    session.signal(Signal::TERM);
    let ended = session.end().exits(143);
    assert!(begin.elapsed() < Duration::from_secs(10), "{ended:?}");
    assert!(!ended.errors.contains("did not shut down"), "{ended:?}");
    machine.ends_every_session();
    assert_eq!(machine.files(), before);
}

#[test]
fn a_shim_that_was_killed_does_not_hold_up_the_end() {
    let machine = WrapMachine::new();
    machine.claude(&["one", "two"]);
    let before = machine.files();
    let mut session = machine.start(&[], &RUN_ON);
    session.says("ready");
    // Its agent has not waited for it.
    kill_process(machine.processes_of("shim")[0], Signal::KILL).unwrap();
    wait_until("the end of a shim", || machine.processes_of("shim").len() == 1);
    let begin = Instant::now();
    session.signal(Signal::TERM);
    let ended = session.end().exits(143);
    assert!(begin.elapsed() < Duration::from_secs(10), "{ended:?}");
    assert!(!ended.errors.contains("did not shut down"), "{ended:?}");
    assert_eq!(machine.files(), before);
    machine.ends_every_process();
}

#[test]
fn a_hub_that_is_told_to_end_ends_the_shims() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let mut session = machine.start(&[], &RUN_ON);
    session.says("ready");
    let [hub] = machine.processes_of("hub")[..] else { panic!("one hub") };
    kill_process(hub, Signal::TERM).unwrap();
    wait_until("the end of the shim", || machine.processes_of("shim").is_empty());
    session.complains("the hub has ended");
    machine.has_no_zombie();
    session.signal(Signal::TERM);
    session.end().exits(143);
    machine.leaves_no_process();
}

#[test]
fn ec_stdio_042_without_its_hub_the_shims_end_and_the_configs_are_still_restored() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let mut session = machine.start(&[], &RUN_ON);
    session.says("ready");
    let [hub] = machine.processes_of("hub")[..] else { panic!("one hub") };
    kill_process(hub, Signal::KILL).unwrap();
    wait_until("the end of the shim", || machine.processes_of("shim").is_empty());
    session.complains("the hub has ended");
    // The agent may run on for hours.
    machine.has_no_zombie();
    session.signal(Signal::TERM);
    session.end().exits(143);
    assert_eq!(machine.files(), before);
    machine.leaves_no_process();
}

#[test]
fn if_wrap_is_killed_or_aborts_its_hub_puts_the_configs_back_and_nothing_is_left() {
    // A panic that cannot unwind ends in SIGABRT.
    for (signal, code) in [(Signal::KILL, -9), (Signal::ABORT, -6)] {
        let machine = WrapMachine::new();
        machine.claude(&["s"]);
        let before = machine.files();
        let mut session = machine.start(&[], &RUN_ON);
        session.says("ready");
        session.signal(signal);
        machine.ends_every_process();
        session.end().exits(code);
        assert_eq!(machine.files(), before);
    }
}
