//! How a governed session ends: servers that never start or crash, signals, clients that leave.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::{Signal, kill_process};

use super::setup::{
    FORWARD, answer, answer_in, ask, call, events, held, is_refused, messages, rules, server_got,
    waiting,
};
use crate::support::{SessionSetup, StepGate, shim};

#[test]
fn ec_stdio_009_a_server_that_cannot_be_started_answers_every_request_until_the_client_leaves() {
    for server in ["/no/such/server", "no-such-server-on-the-path"] {
        let mut run = shim(FORWARD, &[]).server(&[server]).start();
        run.send(ask(1, "initialize").as_bytes());
        let first = answer(&run, 1);
        assert_eq!(first["error"]["code"], -32000, "{first}");
        assert!(first["error"]["message"].as_str().unwrap().contains(server), "{first}");
        run.send([call("\"two\"", "t"), ask(3.5, "ping")].concat().as_bytes());
        assert_eq!(answer(&run, "\"two\"")["error"]["code"], -32000);
        assert_eq!(answer(&run, 3.5)["error"]["code"], -32000);
        run.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\nno message\n");
        assert!(run.lives());
        let end = run.end_of_input().exits(4).complains(server);
        assert_eq!(messages(&end.stdout).len(), 3);
    }
}

#[test]
fn ec_stdio_009_a_program_that_cannot_be_executed_is_answered_for_too() {
    for (name, text, mode) in
        [("plain", "no program", 0o600), ("broken", "#!/no/such/interpreter\n", 0o700)]
    {
        let setup = shim(FORWARD, &[]);
        let path = setup.folder().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let mut run = setup.server(&[path.to_str().unwrap()]).start();
        run.send(ask(1, "initialize").as_bytes());
        assert_eq!(answer(&run, 1)["error"]["code"], -32000);
        run.end_of_input().exits(4).complains(name);
    }
}

#[test]
fn ec_stdio_010_pending_and_held_requests_get_an_error_when_the_server_crashes_and_its_code_is_ours()
 {
    let policy = rules(&[("ask_*", "approve")]);
    let setup = shim(&policy, &[]);
    let gate = StepGate::new(setup.folder(), "gate");
    let mut run = setup.steps(&["answer=1", "read=1", &gate.step(), "exit=7"]).start();
    run.send([call(1, "a"), call("\"held\"", "ask_me"), call(3, "b")].concat().as_bytes());
    held(&run, 1);
    gate.open();
    let end = run.end().exits(7).leaves_no_process();
    assert_eq!(answer_in(&end.stdout, &1.into())["result"]["for"], 1);
    for id in [serde_json::json!("held"), 3.into()] {
        let error = answer_in(&end.stdout, &id);
        assert_eq!(error["error"]["code"], -32000, "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("exit status: 7"), "{error}");
    }
    assert_eq!(waiting(&end.run).len(), 0, "nobody is asked any more");
}

#[test]
fn ec_stdio_010_a_server_that_is_killed_leaves_no_request_unanswered() {
    for signal in [Signal::KILL, Signal::ABORT] {
        let mut run = shim(FORWARD, &["answer=1", "eof"]).start();
        run.send([call(1, "a"), call(2, "b")].concat().as_bytes());
        answer(&run, 1);
        run.others().into_iter().for_each(|pid| _ = kill_process(pid, signal));
        let end = run.end().exits(128 + signal.as_raw()).leaves_no_process();
        assert_eq!(answer_in(&end.stdout, &2.into())["error"]["code"], -32000);
    }
}

/// A server that records what ends it, in order, and ends only when killed.
fn stubborn(setup: SessionSetup) -> SessionSetup {
    setup.sh("trap 'echo term >>order' TERM; echo up >>order; cat >/dev/null; echo eof >>order; \
              while :; do sleep 300; done")
}

fn ends_in_order(signal: Signal) {
    let run = stubborn(shim(FORWARD, &[])).start();
    let order = run.folder().join("order");
    run.until("the server", |_| order.exists());
    run.signal(signal);
    let end = run.end().exits(128 + signal.as_raw()).leaves_no_process();
    let kept = fs::read_to_string(end.run.folder().join("order")).unwrap();
    assert_eq!(kept, "up\neof\nterm\n");
}

#[test]
fn ec_stdio_012_sigterm_closes_the_input_waits_asks_and_kills() {
    ends_in_order(Signal::TERM);
}

#[test]
fn ec_stdio_013_sigint_does_the_same() {
    ends_in_order(Signal::INT);
}

#[test]
fn the_order_of_an_end_is_end_of_input_then_sigterm_then_sigkill() {
    let run = stubborn(shim(FORWARD, &[])).start();
    let order = run.folder().join("order");
    run.until("the server", |_| order.exists());
    let end = run.end_of_input().leaves_no_process();
    let kept = fs::read_to_string(end.run.folder().join("order")).unwrap();
    assert_eq!(kept, "up\neof\nterm\n");
    // The client has left and nothing was unanswered, so that the server had to be killed is no failure.
    assert_eq!(end.status.code(), Some(0));
    assert!(end.stderr.contains("so it was ended (signal: 9 (SIGKILL))"), "{}", end.stderr);
}

#[test]
fn ec_stdio_012_013_what_the_server_is_at_is_finished_before_the_end() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut run = shim(FORWARD, &["hold=1", "eof", "release=1"]).start();
        run.send(call(1, "slow").as_bytes());
        run.until("the call to be on its way", |run| {
            events(run.folder()).iter().any(|event| event["tool"] == "slow")
        });
        run.signal(signal);
        let end = run.end().exits(128 + signal.as_raw()).leaves_no_process();
        assert_eq!(answer_in(&end.stdout, &1.into())["result"]["for"], 1);
    }
}

#[test]
fn a_second_signal_does_not_wait() {
    let run = shim(FORWARD, &[]).sh("trap '' TERM; exec sleep 300").start();
    run.until("the server", |run| !run.others().is_empty());
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    run.signal(Signal::TERM);
    run.end().leaves_no_process();
}

#[test]
fn ec_stdio_022_ctrl_c_while_somebody_is_asked_cancels_the_question_and_answers_the_caller() {
    let mut run = shim(&rules(&[("*", "approve")]), &["log=log", "serve"]).start();
    run.send([call(1, "a"), call(2, "b")].concat().as_bytes());
    held(&run, 2);
    run.signal(Signal::INT);
    let end = run.end().exits(130).leaves_no_process();
    for id in [1, 2] {
        let error = answer_in(&end.stdout, &id.into());
        assert!(error["error"]["code"].is_i64(), "{error}");
    }
    assert_eq!(waiting(&end.run).len(), 0);
    assert_eq!(server_got(end.run.folder()), "");
}

#[test]
fn a_client_that_is_killed_leaves_no_server_behind() {
    // The client is a shell between pipes that we kill; the shim is in its own session.
    let setup = shim(FORWARD, &[]);
    let script = format!(
        "exec 0</dev/null; while :; do echo x; sleep 0.05; done | TAPEGATE_HOME=inner setsid {} shim -q -- \
         sh -c 'echo up >inner-up; exec sleep 300' | cat >/dev/null",
        env!("CARGO_BIN_EXE_tapegate")
    );
    let run = setup.sh(&script).start();
    run.until("the inner server", |run| run.folder().join("inner-up").exists());
    for pid in run.others() {
        let path = format!("/proc/{}/cmdline", pid.as_raw_pid());
        let line = fs::read(path).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // All processes of the client are killed; the shim and its server must end by themselves.
        if line.starts_with("cat") || line.starts_with("sh -c exec") {
            kill_process(pid, Signal::KILL).ok();
        }
    }
    run.until("the end of every process", |run| run.others().is_empty());
}

#[test]
fn killing_the_shim_ends_a_server_that_only_waits() {
    let mut run = shim(FORWARD, &["answer=1", "hang"]).start();
    run.send(call(1, "a").as_bytes());
    answer(&run, 1);
    run.signal(Signal::KILL);
    run.end().leaves_no_process();
}

#[test]
fn the_last_reply_is_never_lost_when_the_input_closes_at_once() {
    // The earlier tool lost it in 9 of 60 runs.
    for _ in 0..60 {
        let end = shim(FORWARD, &["serve"]).run(call(1, "a").as_bytes()).exits(0);
        assert_eq!(answer_in(&end.stdout, &1.into())["result"]["for"], 1);
    }
}

#[test]
fn calls_that_are_held_when_the_input_closes_are_answered_at_once_and_nobody_is_asked_any_more() {
    let mut run =
        shim(&rules(&[("no", "deny"), ("ask*", "approve")]), &["log=log", "serve"]).start();
    let lines = [call(1, "ask_a"), call(4, "ask_b"), call(2, "no"), call(3, "yes")].concat();
    run.send(lines.as_bytes());
    held(&run, 2);
    run.close_input();
    let end = run.end().exits(0).leaves_no_process();
    for id in [1, 4] {
        let answer = answer_in(&end.stdout, &id.into());
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
    }
    let refused = answer_in(&end.stdout, &2.into());
    is_refused(&refused, -32014, "governance", "no", "governance_rule_denied");
    assert_eq!(answer_in(&end.stdout, &3.into())["result"]["for"], 3);
    assert_eq!(waiting(&end.run).len(), 0);
    assert_eq!(server_got(end.run.folder()), call(3, "yes"));
}

#[test]
fn the_server_does_not_get_our_variables_nor_the_client_s_channel() {
    let run = shim(FORWARD, &[])
        .env("TAPEGATE_TOKEN_FILE", "secret-token-path")
        .env("THOUGHTGATE_SERVER_ID", "x")
        .env("THOUGHTGATE_CONFIG", "")
        .env("THOUGHTGATE_ACTIVE", "1")
        .env("CLAUDE_CODE_MESSAGING_SOCKET", "/tmp/socket")
        .env("OPENCODE_CONFIG_CONTENT", "{}")
        .env("KEPT", "yes")
        .sh("env >seen; cat >/dev/null")
        .start();
    let end = run.end_of_input().exits(0);
    let seen = fs::read_to_string(end.run.folder().join("seen")).unwrap();
    assert!(seen.contains("KEPT=yes"), "{seen}");
    // The only variable of ours tells a `tapegate bash` that its calls are judged already.
    let others = seen.lines().filter(|line| *line != "TAPEGATE_BEHIND_SHIM=1");
    let is_hidden = |line: &&str| {
        let hidden = ["TAPEGATE_", "THOUGHTGATE_", "CLAUDE_CODE_MESSAGING", "OPENCODE_CONFIG"];
        hidden.iter().any(|prefix| line.starts_with(prefix))
    };
    assert_eq!(others.filter(is_hidden).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_server_s_exit_code_is_ours() {
    for code in [0, 3] {
        shim(FORWARD, &["answer=1", &format!("exit={code}")])
            .run(call(1, "a").as_bytes())
            .exits(code);
    }
}
