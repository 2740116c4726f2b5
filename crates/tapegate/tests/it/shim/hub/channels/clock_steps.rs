//! A clock that is set while calls wait, by libfaketime from Debian.

use std::fs;
use std::path::Path;

use serde_json::json;
use tapegate_store::approvals::ApprovalOutcome;

use super::super::super::setup::{answer, call, messages, server_got};
use super::channel_people::request_id;
use super::slack_fake::FakeSlack;
use super::{
    HubProcess, TOKEN, event, policy, receiver, slack, start_accepted_with, text, webhook,
};
use crate::http_peers::WebServer;
use crate::support::{RunningSession, key_flags, replace_file, tapegate, wait_for, wait_until};

const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// Variables that have a process read its clock's offset from a file.
fn faked(offset: &Path) -> Vec<(&'static str, String)> {
    assert!(Path::new(LIBRARY).exists(), "libfaketime is missing; `scripts/peers` installs it");
    vec![
        ("LD_PRELOAD", LIBRARY.to_owned()),
        ("FAKETIME_TIMESTAMP_FILE", offset.to_string_lossy().into_owned()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// A hub and a shim whose clock is read from this file, for calls that a webhook is told of.
fn stepped(offset: &Path, hooks: &WebServer, workflow: &str) -> (HubProcess, RunningSession) {
    let workflow = format!("channels: [hook]{workflow}");
    stepped_with(offset, &policy(&workflow, &webhook("hook", hooks)))
}

/// The same with any policy.
fn stepped_with(offset: &Path, policy: &str) -> (HubProcess, RunningSession) {
    fs::write(offset, "+0").unwrap();
    let variables = faked(offset);
    let environment: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let hub = start_accepted_with(policy, &environment);
    let mut setup = hub.shim(&["log=log", "serve"]);
    for (name, value) in &environment {
        setup = setup.env(name, value);
    }
    let run = setup.start();
    (hub, run)
}

#[test]
fn a_call_runs_out_of_time_also_if_the_clock_was_set_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let hooks = receiver("200 OK");
    let (hub, mut run) = stepped(&offset, &hooks, ", timeout: 5s");
    for (at, step) in ["-3h", "+2d"].into_iter().enumerate() {
        let id = at as u64 + 1;
        run.send(call(id, &format!("ask_{id}")).as_bytes());
        let asked = event(&hooks.wait(2 * at + 1)[2 * at]);
        replace_file(&offset, step);
        assert_eq!(answer(&run, id)["error"]["code"], -32008, "{step}");
        let settled = event(&hooks.wait(2 * at + 2)[2 * at + 1]);
        assert_eq!(text(&settled["outcome"]), "expired", "{step}");
        assert_eq!(hub.follow(text(&asked["approve_url"])), 409, "{step}");
    }
    assert!(!server_got(run.folder()).contains("ask_"));
}

#[test]
fn an_answer_counts_also_if_the_clock_was_set_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let hooks = receiver("200 OK");
    let (hub, mut run) = stepped(&offset, &hooks, "");
    for (at, step) in ["+5m", "-3h", "+2d"].into_iter().enumerate() {
        let id = at as u64 + 1;
        run.send(call(id, &format!("ask_{id}")).as_bytes());
        let asked = event(&hooks.wait(2 * at + 1)[2 * at]);
        replace_file(&offset, step);
        assert_eq!(hub.follow(text(&asked["approve_url"])), 200, "{step}");
        assert_eq!(answer(&run, id)["result"]["for"], id, "{step}");
        hooks.wait(2 * at + 2);
    }
}

fn without_channels(workflow: &str) -> String {
    policy(workflow, "").replace("channels:\n", "")
}

/// Makes calls, sets the clock while each waits, has it answered then, and checks that the answer counts.
fn each_step_counts(
    offset: &Path,
    (hub, run): (&HubProcess, &mut RunningSession),
    answers: impl Fn(&mut RunningSession, &str, bool),
) {
    for (at, step) in ["+1h", "-1h", "-3h", "+2d"].into_iter().enumerate() {
        for approves in [true, false] {
            let id = 2 * at as u64 + u64::from(approves) + 1;
            let tool = format!("ask_{id}");
            run.send(call(id, &tool).as_bytes());
            let request = request_id(hub, &tool);
            replace_file(offset, step);
            answers(run, &tool, approves);
            let answered = answer(run, id);
            match approves {
                true => assert_eq!(answered["result"]["for"], id, "{step}: {answered}"),
                false => assert_eq!(answered["error"]["code"], -32007, "{step}: {answered}"),
            }
            replace_file(offset, "+0");
            let expected =
                if approves { ApprovalOutcome::Approved } else { ApprovalOutcome::Denied };
            assert_eq!(hub.ruling(&request).map(|(ruling, _)| ruling), Some(expected), "{step}");
        }
    }
    let got = server_got(run.folder());
    assert_eq!(got.matches("ask_").count(), 4, "each approved call, once: {got}");
}

#[test]
fn an_answer_at_a_terminal_counts_also_if_the_clock_was_set_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let (hub, mut run) = stepped_with(&offset, &without_channels(""));
    each_step_counts(&offset, (&hub, &mut run), |_, tool, approves| {
        let verb = if approves { "approve" } else { "deny" };
        let mut command = tapegate();
        command.args(["approvals", verb, &request_id(&hub, tool)]);
        command.args(key_flags(&hub.state())).env("TAPEGATE_HOME", hub.state());
        command.current_dir(hub.folder.path());
        // The machine of the hub, or one whose clock was not set.
        if approves {
            command.envs(faked(&offset));
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    });
}

#[test]
fn a_reaction_in_slack_counts_also_if_the_clock_was_set_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let fake = FakeSlack::start(TOKEN);
    let (hub, mut run) = stepped_with(&offset, &policy("channels: [ops]", &slack(&fake)));
    each_step_counts(&offset, (&hub, &mut run), |_, tool, approves| {
        let message = fake.about(tool);
        fake.react(&message.ts, if approves { "+1" } else { "-1" }, "U1");
        let word = if approves { "approved" } else { "denied" };
        fake.updated(&message.ts, &format!("{word}: s {tool}"));
    });
}

#[test]
fn an_answer_in_the_agent_counts_also_if_the_clock_was_set_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let (hub, mut run) = stepped_with(&offset, &without_channels("in_agent: [cc]"));
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"cc","version":"1"}}}"#;
    run.send(format!("{hello}\n").as_bytes());
    answer(&run, 0);
    each_step_counts(&offset, (&hub, &mut run), |run, tool, approves| {
        let about = format!("tool: {tool}\n");
        let question = wait_for("the question", || {
            let asked = messages(&run.got()).into_iter();
            asked.filter(|one| one["method"] == "elicitation/create").find(|question| {
                question["params"]["message"].as_str().is_some_and(|text| text.contains(&about))
            })
        });
        let decision = if approves { "approve" } else { "deny" };
        let result = json!({ "action": "accept", "content": { "decision": decision } });
        let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
        run.send(format!("{reply}\n").as_bytes());
        wait_until("the decision", || hub.ruling(&request_id(&hub, tool)).is_some());
    });
}
