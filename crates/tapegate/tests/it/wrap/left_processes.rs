//! Shims and servers that do not end by themselves do not outlive the session.

use rustix::process::{Pid, Signal, kill_process};

use crate::support::wait_until;
use crate::wrap_machine::WrapMachine;

const START: &str = "start=~/.claude.json#mcpServers";

/// A server that ignores signals, and after a call only writes.
const FLOOD: &str = "\
import os, signal, sys
for name in ('SIGTERM', 'SIGINT', 'SIGHUP', 'SIGPIPE'):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
sys.stdin.readline()
os.write(1, b'{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\\n')
while True:
    try:
        os.write(1, sys.argv[1].encode() * 1000)
    except OSError:
        pass
";

/// A machine with a server that writes this without end.
fn flooding(text: &str) -> WrapMachine {
    let machine = WrapMachine::new();
    let script = machine.write("flood.py", FLOOD);
    let entry = serde_json::json!({ "command": "python3", "args": [script, text] });
    let config = serde_json::json!({ "mcpServers": { "s": entry } });
    machine.write("home/.claude.json", &config.to_string());
    machine
}

#[test]
fn a_server_that_writes_without_end_is_gone_with_its_session() {
    for text in ["x", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n"] {
        let machine = flooding(text);
        let before = machine.files();
        machine.start(&[], &[START, "call"]).end().exits(0).said("s {");
        // At once, not after a while.
        assert_eq!(machine.processes(), Vec::<Pid>::new());
        assert_eq!(machine.files(), before);
    }
}

#[test]
fn a_shim_that_is_stopped_does_not_outlive_its_session() {
    let machine = WrapMachine::new();
    machine.claude(&["one", "two"]);
    let before = machine.files();
    let mut session = machine.start(&[], &[START, "call", "say=ready", "line"]);
    session.says("ready");
    // With its server, and with the process that would end that.
    let stopped = machine.processes_of("shim")[0];
    let children = format!("/proc/{0}/task/{0}/children", stopped.as_raw_pid());
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?));
    let stopped: Vec<Pid> = children.chain([stopped]).collect();
    stopped.iter().for_each(|pid| kill_process(*pid, Signal::STOP).unwrap());
    drop(session.input.take());
    wait_until("the end of the agent", || machine.agents().is_empty());
    // A second signal ends the wait for shims.
    wait_until("the end of the session", || {
        session.signal(Signal::TERM);
        machine.processes_of("hub").is_empty()
    });
    session.end().exits(0);
    assert_eq!(machine.processes(), Vec::<Pid>::new());
    for pid in stopped {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
        assert!(state.is_err() || state.unwrap().contains(") Z "), "{pid:?} is left");
    }
    assert_eq!(machine.files(), before);
}

#[test]
fn a_shim_that_was_stopped_before_its_hub_knew_it_is_found_as_well() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let mut session = machine.start(&[], &[START, "stop", "say=ready", "line"]);
    session.says("ready");
    assert_eq!(machine.processes_of("shim").len(), 1);
    drop(session.input.take());
    wait_until("the end of the agent", || machine.agents().is_empty());
    wait_until("the end of the session", || {
        session.signal(Signal::TERM);
        machine.processes_of("hub").is_empty()
    });
    session.end().exits(0);
    assert_eq!(machine.processes(), Vec::<Pid>::new());
    assert_eq!(machine.files(), before);
}
