//! Decisions about calls, the answers to their callers, and the log events.

use std::fs;

use serde_json::Value;

use super::setup::{
    FORWARD, answer_in, ask, call, call_with, event, events, is_refused, messages, rules,
    server_got, tapes,
};
use crate::support::{EndedSession, check, kept, shim, tapegate};

/// Sends lines through a policy.
fn sent(policy: &str, flags: &[&str], lines: &str) -> EndedSession {
    shim(policy, &["log=log", "mcp=a,b"]).flags(flags).run(lines.as_bytes()).exits(0)
}

/// A policy that hides `b_*` on the server `s`, denies `no`, and has Cedar decide about `c_*`.
const ALL_GATES: &str = "\
schema: 1
sources:
  - { id: s, kind: mcp, expose: { mode: blocklist, tools: [\"b_*\"] } }
governance:
  defaults: { action: forward }
  rules:
    - { match: \"no\", action: deny }
    - { match: \"c_*\", action: policy, policy_id: p }
cedar:
  inline: |
    permit (principal, action, resource);
    @id(\"no-deletes\") forbid (principal, action, resource) when { resource.name == \"c_delete\" };
";

#[test]
fn each_gate_has_its_own_code_and_names_the_tool() {
    // The earlier tool answered -32003 with an empty name, whichever gate had refused.
    let lines =
        [call(1, "b_x"), call(2, "no"), call(3, "c_delete"), call(4, "c_read"), call(5, "yes")]
            .concat();
    let end = sent(ALL_GATES, &[], &lines);
    let answer = |id: i64| answer_in(&end.stdout, &id.into());
    is_refused(&answer(1), -32015, "visibility", "b_x", "tool_not_exposed");
    is_refused(&answer(2), -32014, "governance", "no", "governance_rule_denied");
    is_refused(&answer(3), -32003, "policy", "c_delete", "policy_denied");
    assert!(answer(4)["result"].is_object() && answer(5)["result"].is_object());
    assert_eq!(server_got(end.run.folder()), [call(4, "c_read"), call(5, "yes")].concat());
    // Callers learn which gate and rule refused, never a pattern or the text of a policy.
    assert_eq!(answer(2)["error"]["data"]["rule"], "rules[0]");
    for id in 1..=3 {
        let text = answer(id).to_string();
        assert!(text.contains("Tapegate: "), "{text}");
        assert!(!text.contains("no-deletes") && !text.contains("b_*"), "{text}");
    }
}

#[test]
fn what_was_decided_is_logged_with_its_reasons_and_found_again_by_the_caller_s_id() {
    let end = sent(ALL_GATES, &[], &[call(2, "no"), call(3, "c_delete"), call(5, "yes")].concat());
    let told = answer_in(&end.stdout, &2.into())["error"]["data"]["correlation_id"].clone();
    let noted = event(end.run.folder(), &[("tool", "no")]);
    assert_eq!(noted["request_id"], told);
    for (name, value) in [
        ("component", "shim"),
        ("server_id", "s"),
        ("direction", "agent_to_server"),
        ("method", "tools/call"),
        ("message_id", "2"),
        ("governance_decision", "deny"),
        ("gate", "governance"),
        ("profile", "production"),
        ("kind", "decision"),
    ] {
        assert_eq!(noted[name], value, "{name} in {noted}");
    }
    assert_eq!(noted["forwarded"], false);
    assert!(
        noted["latency_us"].is_u64()
            && noted["rule"].is_string()
            && noted["policy_version"].is_string()
    );
    let cedar = event(end.run.folder(), &[("tool", "c_delete")]);
    assert_eq!(cedar["policies"], serde_json::json!(["no-deletes"]));
    let forwarded = event(end.run.folder(), &[("tool", "yes")]);
    assert_eq!(
        (&forwarded["governance_decision"], &forwarded["forwarded"]),
        (&"forward".into(), &true.into())
    );
    // The log is valid, and every event refers to the tape.
    let log = end.run.folder().join("state/activity.jsonl");
    let done = tapegate().arg("check").arg(log).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    assert!(events(end.run.folder()).iter().all(|event| event["tape_session_id"].is_string()));
    check(&tapes(end.run.folder())[0], 0);
}

#[test]
fn ec_stdio_033_development_logs_what_production_would_have_done_and_sends_it_on() {
    let lines = [call(1, "b_x"), call(2, "no"), call(3, "c_delete"), ask(4, "tools/list")].concat();
    let end = sent(ALL_GATES, &["--profile", "development", "--log-format", "json"], &lines);
    assert_eq!(
        server_got(end.run.folder()),
        lines,
        "gates 1 and 2 of the earlier tool still blocked"
    );
    for tool in ["b_x", "no", "c_delete"] {
        let noted = event(end.run.folder(), &[("tool", tool)]);
        assert_eq!(noted["governance_decision"], "WOULD_BLOCK", "{noted}");
        assert_eq!((&noted["forwarded"], &noted["profile"]), (&true.into(), &"development".into()));
        assert!(noted["policy_reason"].is_string(), "{noted}");
    }
    let logged = end.stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let logged: Vec<_> =
        logged.filter(|line| line["governance_decision"] == "WOULD_BLOCK").collect();
    assert_eq!(logged.len(), 3, "{}", end.stderr);
    assert!(logged.iter().all(|line| line["level"] == "warn" && line["timestamp"].is_string()));
}

#[test]
fn a_policy_that_does_not_load_stops_the_start_in_every_profile_with_all_its_errors() {
    // The earlier tool fell back to forwarding everything.
    let broken = "schema: 1\ngovernance:\n  defaults: { action: alow }\n  rules:\n    - { mtach: x, action: deny }\n";
    for profile in ["production", "development"] {
        let end = shim(broken, &["log=log", "serve"])
            .flags(&["--profile", profile])
            .run(call(1, "a").as_bytes());
        let end = end.exits(2).complains("alow").complains("mtach").complains("tapegate.yaml:3");
        assert_eq!(server_got(end.run.folder()), "", "no server was started");
        assert_eq!(answer_in(&end.stdout, &1.into())["error"]["code"], -32013);
    }
    for missing in ["--config", "--thoughtgate-config"] {
        let end = shim(FORWARD, &["serve"]).flags(&[missing, "no-such.yaml"]).run(b"");
        end.exits(2).complains("no-such.yaml");
    }
}

#[test]
fn many_servers_can_be_governed_and_an_unknown_one_is_denied_only_without_a_star() {
    // The earlier tool knew only one server, and denied everything on others.
    let named = "schema: 1\nsources:\n  - { id: other, kind: mcp }\nSTARgovernance: { defaults: { action: forward } }\n";
    let end = sent(&named.replace("STAR", ""), &[], &call(1, "a"));
    is_refused(&answer_in(&end.stdout, &1.into()), -32015, "visibility", "a", "tool_not_exposed");
    let star = named
        .replace("STAR", "  - { id: \"*\", kind: mcp, expose: { mode: blocklist, tools: [b] } }\n");
    let end = sent(&star, &[], &[call(1, "a"), call(2, "b")].concat());
    assert!(answer_in(&end.stdout, &1.into())["result"].is_object());
    is_refused(&answer_in(&end.stdout, &2.into()), -32015, "visibility", "b", "tool_not_exposed");
}

#[test]
fn rules_look_at_arguments() {
    let policy = "schema: 1\ngovernance:\n  defaults: { action: deny }\n  rules:\n    - { match: write, action: forward, arguments: { path: \"/tmp/*\" } }\n";
    let lines = [
        call_with(1, "write", r#"{"path":"/tmp/x"}"#),
        call_with(2, "write", r#"{"path":"/etc/passwd"}"#),
        call_with(3, "write", r#"{"path":["/tmp/x"]}"#),
        call(4, "write"),
    ]
    .concat();
    let end = sent(policy, &[], &lines);
    assert!(answer_in(&end.stdout, &1.into())["result"].is_object());
    for id in 2..=4 {
        is_refused(
            &answer_in(&end.stdout, &id.into()),
            -32014,
            "governance",
            "write",
            "governance_rule_denied",
        );
    }
}

#[test]
fn what_is_refused_is_on_the_tape_and_marked_as_not_delivered() {
    let end = sent(&rules(&[("no", "deny")]), &[], &[call(1, "no"), call(2, "yes")].concat());
    let tape = &tapes(end.run.folder())[0];
    check(tape, 0);
    let text = fs::read_to_string(tape).unwrap();
    assert!(text.contains("\\\"no\\\"") || text.contains("\"no\""), "{text}");
    let ours: Vec<_> = kept(tape).into_iter().filter(|kept| kept.ours).collect();
    assert_eq!(ours.len(), 1, "{text}");
}

#[test]
fn secrets_stand_neither_on_the_tape_nor_in_the_log() {
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
    let policy = format!("{FORWARD}redaction: {{ enabled: true }}\n");
    let line = call_with(1, "a", &format!("{{\"t\":\"{secret}\"}}"));
    let end = sent(&policy, &["--verbose"], &line);
    assert!(server_got(end.run.folder()).contains(secret), "the server gets what was sent");
    let tape = fs::read_to_string(&tapes(end.run.folder())[0]).unwrap();
    assert!(!tape.contains(secret), "{tape}");
    // A name is needed to replay a tape and stays there; logs do not need it.
    let end = sent(&policy, &["--verbose"], &call(1, secret));
    assert!(!end.stderr.contains(secret), "{}", end.stderr);
    for event in events(end.run.folder()) {
        assert!(!event.to_string().contains(secret), "{event}");
    }
}

#[test]
fn if_the_activity_log_cannot_be_written_production_refuses_and_development_goes_on() {
    for (profile, refused) in [("production", true), ("development", false)] {
        let setup = shim(FORWARD, &["log=log", "serve"]).flags(&["--profile", profile]);
        let state = setup.folder().join("state");
        fs::create_dir(&state).unwrap();
        // A folder in place of the file cannot be written, even by root.
        fs::create_dir(state.join("activity.jsonl")).unwrap();
        let end = setup.run([ask(1, "ping"), call(2, "a")].concat().as_bytes());
        let end = end.complains("activity.jsonl");
        assert_eq!(!server_got(end.run.folder()).contains("tools/call"), refused, "{profile}");
        let answers = messages(&end.stdout);
        if refused {
            let answer = answers.iter().find(|answer| answer["id"] == 2).expect("an answer");
            assert_eq!(answer["error"]["code"], -32013, "{answer}");
        }
    }
}

#[test]
fn by_its_other_name_the_command_line_of_the_specification_works() {
    let setup = shim("", &["log=log", "serve"]);
    let folder = setup.folder().to_owned();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tapegate"), folder.join("thoughtgate")).unwrap();
    fs::write(folder.join("thoughtgate.yaml"), "schema: 1\nsources: [{ kind: mcp, id: files, url: \"http://x\" }]\ngovernance: { defaults: { action: deny } }\n").unwrap();
    let script = format!(
        "exec ./thoughtgate shim --server-id files --profile development -- {} log=log serve",
        crate::support::fake_server().display()
    );
    let line = call(1, "a");
    let mut child = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(&folder)
        .env("TAPEGATE_HOME", folder.join("state"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), line.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(server_got(&folder), line);
    event(
        &folder,
        &[("tool", "a"), ("server_id", "files"), ("governance_decision", "WOULD_BLOCK")],
    );
}
