//! Reactions in Slack: what they decide, and how messages end.

use std::fs;

use tapegate_store::approvals::ApprovalOutcome;

use super::super::super::setup::{answer, call, call_with};
use super::slack_fake::FakeSlack;
use super::{TOKEN, event, policy, receiver, slack, start_accepted, text};

#[test]
fn reactions_in_slack_decide_and_the_message_says_so() {
    let fake = FakeSlack::start(TOKEN);
    let hub = start_accepted(&policy("channels: [ops]", &slack(&fake)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call_with(1, "ask", r#"{"path":"/a"}"#).as_bytes());
    let first = fake.posted(1).remove(0);
    assert!(first.text().contains("Approval needed: s ask"), "{}", first.text());
    assert!(
        first.blocks().contains("path: \\\"/a\\\"") || first.blocks().contains("/a"),
        "{}",
        first.blocks()
    );
    fake.react(&first.ts, "eyes", "U9");
    fake.react(&first.ts, "+1::skin-tone-2", "U1");
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    fake.updated(&first.ts, "approved: s ask");
    run.send(call(2, "ask_2").as_bytes());
    let second = fake.posted(2).remove(1);
    fake.react(&second.ts, "+1", "U1");
    fake.react(&second.ts, "x", "U7");
    // Both may be read in one poll, in which the denial counts; or the approval was read before.
    let code = answer(&run, 2)["error"]["code"].clone();
    let outcome = if code == -32007 { "denied: s ask_2" } else { "approved: s ask_2" };
    fake.updated(&second.ts, outcome);
    assert!(!fake.token_was_elsewhere(), "the token is only in its header");
    let log = fs::read_to_string(hub.state().join("activity.jsonl")).unwrap();
    assert!(log.contains("\"decided_by\":\"ann\"") && !log.contains(TOKEN), "{log}");
}

#[test]
fn a_message_in_slack_ends_with_its_call() {
    let fake = FakeSlack::start(TOKEN);
    let hub = start_accepted(&policy("channels: [ops], timeout: 5s", &slack(&fake)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let first = fake.posted(1).remove(0);
    run.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
    fake.updated(&first.ts, "cancelled: s ask");
    run.send(call(2, "ask_late").as_bytes());
    let second = fake.posted(2).remove(1);
    assert_eq!(answer(&run, 2)["error"]["code"], -32008);
    fake.updated(&second.ts, "expired: s ask_late");
    // A reaction after the end changes nothing.
    fake.react(&second.ts, "+1", "U1");
    run.send(call(3, "ask_late").as_bytes());
    fake.posted(3);
    assert!(answer(&run, 3)["error"]["code"].is_number());
}

#[test]
fn two_people_approve_by_different_channels_where_two_are_needed() {
    let (fake, hooks) = (FakeSlack::start(TOKEN), receiver("200 OK"));
    let hook = format!(
        "  hook: {{ type: webhook, url: \"{}\", secret_env: HOOK_SECRET, approver: bob }}\n",
        hooks.url("/")
    );
    let workflow = "channels: [ops, hook], approvers: [ann, bob], quorum: 2";
    let hub = start_accepted(&policy(workflow, &[slack(&fake), hook].concat()));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let first = fake.posted(1).remove(0);
    let asked = event(&hooks.wait(1)[0]);
    assert_eq!(hub.follow(text(&asked["approve_url"])), 200);
    assert_eq!(hub.ruling(text(&asked["id"])), None, "one is not enough");
    fake.react(&first.ts, "+1", "U1");
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert_eq!(hub.ruling(text(&asked["id"])), Some((ApprovalOutcome::Approved, "ann".to_owned())));
}

#[test]
fn slack_may_limit_fail_and_come_back() {
    let fake = FakeSlack::start(TOKEN);
    fake.fail_next(&["HTTP/1.1 429 Too Many Requests\r\nretry-after: 1", "HTTP/1.1 500 Oops"]);
    let hub = start_accepted(&policy("channels: [ops]", &slack(&fake)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    hub.says("channel `ops` does not work: the server answered 429");
    let first = fake.posted(1).remove(0);
    hub.says("channel `ops` works again");
    // While it is polled, too.
    fake.fail_next(&["HTTP/1.1 503 Down"]);
    fake.react(&first.ts, "white_check_mark", "U1");
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert_eq!(fake.posted(1).len(), 1, "it was posted once");
    fake.updated(&first.ts, "approved: s ask");
}

#[test]
fn many_calls_at_once_keep_to_the_limits_of_slack() {
    let fake = FakeSlack::start(TOKEN);
    let hub = start_accepted(&policy("channels: [ops]", &slack(&fake)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    let calls: Vec<String> = (1..=6).map(|id| call(id, &format!("ask_{id}"))).collect();
    run.send(calls.concat().as_bytes());
    // Answers are read while the other messages still wait for their turn.
    let first = fake.posted(1).remove(0);
    fake.react(&first.ts, "+1", "U1");
    fake.updated(&first.ts, &first.text().replace("Approval needed", "approved"));
    fake.posted(6);
    assert_eq!(fake.refused(), 0);
}

#[test]
fn an_answer_in_a_busy_room_is_seen() {
    let fake = FakeSlack::start(TOKEN);
    let hub = start_accepted(&policy("channels: [ops]", &slack(&fake)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let first = fake.posted(1).remove(0);
    fake.chatter(40);
    run.send(call(2, "ask_2").as_bytes());
    let second = fake.about("ask_2");
    fake.chatter(40);
    for message in [&first, &second] {
        fake.react(&message.ts, "+1", "U1");
    }
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    assert_eq!(fake.refused(), 0);
}

#[test]
fn who_is_not_an_approver_reacts_in_vain() {
    let fake = FakeSlack::start(TOKEN);
    let hub = start_accepted(&policy("channels: [ops], approvers: [ann]", &slack(&fake)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let first = fake.posted(1).remove(0);
    fake.react(&first.ts, "+1", "U2");
    hub.says("the answer of `slack:U2` about ");
    fake.react(&first.ts, "+1", "U1");
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert_eq!(hub.errors().matches("the answer of `slack:U2`").count(), 1, "{}", hub.errors());
}
