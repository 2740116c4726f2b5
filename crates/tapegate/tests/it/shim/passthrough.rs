//! What passes as if there were no shim.

use super::setup::{
    FORWARD, answer, answer_in, ask, call, call_with, event, events, server_got, tapes,
};
use crate::support::{StepGate, check, kept, request, shim, wait_until_read};
use tapegate_core::side::Side;

/// A policy under which no call passes.
const DENY: &str = "schema: 1\ngovernance: { defaults: { action: deny } }\n";

#[test]
fn ec_stdio_019_a_request_of_the_server_and_its_answer_pass_and_are_logged() {
    let ask = r#"{"jsonrpc":"2.0","id":"s-1","method":"sampling/createMessage","params":{"messages":[]}}"#;
    let reply = "{\"jsonrpc\":\"2.0\",\"id\":\"s-1\",\"result\":{\"role\":\"assistant\"}}\n";
    let mut run = shim(DENY, &["log=log", &format!("say={ask}"), "read=1", "exit=0"]).start();
    assert_eq!(run.line_with("sampling/createMessage"), ask);
    run.send(reply.as_bytes());
    let end = run.end().exits(0);
    assert_eq!(server_got(end.run.folder()), reply);
    let noted = event(end.run.folder(), &[("method", "sampling/createMessage")]);
    assert_eq!(noted["direction"], "server_to_agent");
    assert_eq!(noted["message_id"], "s-1");
    let tape = &tapes(end.run.folder())[0];
    let answers = kept(tape).into_iter().filter(|kept| kept.from == Side::Client);
    assert!(answers.into_iter().all(|kept| kept.latency_ms.is_some()), "the answer is paired");
}

#[test]
fn ec_stdio_019_a_rule_that_names_the_method_can_refuse_what_a_server_asks() {
    let policy = "schema: 1\ngovernance:\n  defaults: { action: forward }\n  rules:\n    - { method: \"sampling/*\", action: deny }\n";
    let ask = r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#;
    let run = shim(policy, &["log=log", &format!("say={ask}"), "read=1", "exit=0"]).start();
    let end = run.end().exits(0);
    assert_eq!(end.stdout, b"", "the agent is not asked");
    let told = server_got(end.run.folder());
    assert!(told.starts_with(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32014,"#), "{told}");
}

#[test]
fn ec_stdio_020_news_of_changed_lists_pass_whatever_the_policy() {
    let news: Vec<String> = [
        "tools/list_changed",
        "resources/list_changed",
        "prompts/list_changed",
        "resources/updated",
        "progress",
        "cancelled",
    ]
    .iter()
    .map(|name| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{name}\"}}"))
    .collect();
    let steps: Vec<String> = news.iter().map(|line| format!("say={line}")).collect();
    let mut steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    steps.push("eof");
    let end = shim(DENY, &steps).run(b"").exits(0);
    assert_eq!(end.stdout, format!("{}\n", news.join("\n")).as_bytes());
    assert!(
        events(end.run.folder())
            .iter()
            .all(|event| event["kind"] == "session" || event["kind"] == "policy")
    );
}

#[test]
fn f_017_the_protocol_s_own_messages_pass_a_policy_that_denies_everything() {
    let lines = [
        ask(1, "initialize"),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n".to_owned(),
        ask(2, "ping"),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\n".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":99}}\n".to_owned(),
        ask(3, "server/discover"),
        ask(4, "logging/setLevel"),
    ]
    .concat();
    let end = shim(DENY, &["log=log", "serve"]).run(lines.as_bytes()).exits(0);
    assert_eq!(server_got(end.run.folder()), lines);
}

#[test]
fn ec_stdio_027_a_partial_line_waits_for_its_end() {
    let setup = shim(FORWARD, &[]);
    let gate = StepGate::new(setup.folder(), "gate");
    let half = r#"raw={"jsonrpc":"2.0","met"#;
    let mut run = setup.steps(&[half, &gate.step(), r#"raw=hod":"n"}\n"#, "eof"]).start();
    gate.open_after(|| wait_until_read(&run.server_output()));
    run.close_input();
    run.end().exits(0).client_got(b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
}

#[test]
fn ec_stdio_028_what_the_server_says_on_standard_error_is_said_on_ours() {
    let setup = shim(FORWARD, &["err=hello from the server\n", "err-flood=300000", "serve"]);
    let end = setup.run(call(1, "a").as_bytes()).exits(0).complains("hello from the server\n");
    assert!(end.stderr.len() > 300_000);
}

#[test]
fn ec_stdio_030_versions_are_negotiated_without_us_byte_for_byte() {
    let hello = "{ \"id\":1,  \"jsonrpc\":\"2.0\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"1999-01-01\",\"x\":1e2}}\n";
    let reply = r#"{"jsonrpc":"2.0", "id":1,"result":{"protocolVersion":"2077-01-01","capabilities":{},"z":[1.0]}}"#;
    let setup = shim(DENY, &["log=log", "read=1", &format!("say={reply}"), "eof"]);
    let end = setup.run(hello.as_bytes()).exits(0);
    assert_eq!(server_got(end.run.folder()), hello);
    assert_eq!(end.stdout, format!("{reply}\n").as_bytes());
}

#[test]
fn ec_stdio_032_a_reply_of_5_mb_passes() {
    let mut run = shim(FORWARD, &["read=1", "big=1,5000000", "eof"]).start();
    run.send(call(1, "picture").as_bytes());
    assert_eq!(answer(&run, 1)["result"]["t"].as_str().unwrap().len(), 5_000_000);
    run.end_of_input().exits(0);
}

#[test]
fn a_call_of_3_mb_passes() {
    // The earlier tool's service refused bodies over 2 MiB, although its wire accepted 10 MiB.
    let line = call_with(1, "write", &format!("{{\"text\":\"{}\"}}", "z".repeat(3_000_000)));
    let end = shim(FORWARD, &["log=log", "serve"]).run(line.as_bytes()).exits(0);
    assert_eq!(server_got(end.run.folder()), line);
    assert_eq!(answer_in(&end.stdout, &1.into())["result"]["for"], 1);
}

#[test]
fn without_a_policy_everything_passes_is_recorded_and_logged_and_that_is_said_once() {
    let lines = [call(1, "a"), call(2, "b")].concat();
    let end = shim("", &["log=log", "serve"]).run(lines.as_bytes()).exits(0);
    assert_eq!(server_got(end.run.folder()), lines);
    assert_eq!(end.stderr.matches("observing only").count(), 1, "{}", end.stderr);
    assert!(end.stderr.contains("tapegate init"), "{}", end.stderr);
    for tool in ["a", "b"] {
        let noted = event(end.run.folder(), &[("tool", tool)]);
        assert_eq!(noted["governance_decision"], "forward");
        assert_eq!(noted["forwarded"], true);
    }
    let tapes = tapes(end.run.folder());
    assert_eq!(tapes.len(), 1);
    check(&tapes[0], 0);
    assert_eq!(kept(&tapes[0]).len(), 4);
}

#[test]
fn bytes_are_not_rewritten() {
    // The earlier tool rebuilt messages to remove trace context, and lost members it did not know.
    let line = "{\"extra\":[1.0,{}], \"jsonrpc\" : \"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":{\"traceparent\":\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"},\"name\":\"\\u0061\",\"arguments\":{\"n\":1e2,\"b\":18446744073709551616}}}\n";
    let end = shim(FORWARD, &["log=log", "serve"]).run(line.as_bytes()).exits(0);
    assert_eq!(server_got(end.run.folder()), line);
    let noted = event(end.run.folder(), &[("tool", "a")]);
    assert_eq!(noted["traceparent"], "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
}

#[test]
fn every_request_gets_one_answer_also_when_many_are_on_their_way() {
    let lines: String = (0..3000).map(request).collect();
    let end = shim(FORWARD, &["reverse=3000", "eof"]).run(lines.as_bytes()).exits(0);
    assert_eq!(end.stdout.iter().filter(|byte| **byte == b'\n').count(), 3000);
}

#[test]
fn a_client_that_does_not_read_our_log_is_served_all_the_same() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;

    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tapegate.yaml"), DENY).unwrap();
    let mut command = crate::support::tapegate();
    command.args(["shim", "--verbose", "--"]).arg(crate::support::fake_server()).arg("serve");
    command.current_dir(folder.path()).env("TAPEGATE_HOME", folder.path().join("state"));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Held open but never read: a pipe holds some hundred lines.
    let errors = child.stderr.take();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        (0..3000).for_each(|id| input.write_all(call(id, "a").as_bytes()).unwrap());
    });
    let output = BufReader::new(child.stdout.take().unwrap());
    let answers = output.lines().map_while(Result::ok).filter(|line| line.contains("-32014"));
    assert_eq!(answers.count(), 3000);
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    drop(errors);
}
