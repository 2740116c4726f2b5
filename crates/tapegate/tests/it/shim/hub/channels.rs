//! Channels of a hub, end to end: a real shim and hub, and local servers that speak the protocols.

mod channel_people;
mod clock_steps;
mod desktop;
mod desktop_session;
mod escalation;
mod every_channel;
mod hostile_posts;
mod link_pages;
mod sdk_session;
mod slack_answers;
mod slack_buttons;
mod slack_fake;
mod tls;

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::setup::{answer, ask, call, call_with};
use super::{HubProcess, endpoint_in};
use crate::http_peers::{self, ReceivedRequest, WebServer, json as reply};
use crate::support::{
    RunningSession, accept_policy, approvals_of, hang, key_flags, shim, tapegate, wait_for,
    wait_until,
};
use slack_fake::FakeSlack;
use tapegate_store::approvals::ApprovalOutcome;

const SECRET: &str = "hook-secret-1";
const TOKEN: &str = "xoxb-token-1";
const SIGNING_SECRET: &str = "signing-secret-1";

/// A policy that asks about calls of `ask*` in this workflow, with these channels.
fn policy(workflow: &str, channels: &str) -> String {
    let rules = "schema: 1\ngovernance:\n  defaults: { action: forward }\n  rules:\n    - { match: 'ask*', action: approve }\n";
    format!("{rules}approval:\n  default: {{ {workflow} }}\nchannels:\n{channels}")
}

fn webhook(name: &str, server: &WebServer) -> String {
    format!(
        "  {name}: {{ type: webhook, url: \"{}\", secret_env: HOOK_SECRET }}\n",
        server.url("/hook?x=1")
    )
}

fn slack(server: &FakeSlack) -> String {
    format!(
        "  ops: {{ type: slack, url: \"{}\", room: C1, secret_env: SLACK_TOKEN, users: {{ U1: ann }} }}\n",
        server.url()
    )
}

/// Starts a hub with an accepted policy and the secrets of the channels.
fn start_accepted(policy: &str) -> HubProcess {
    start_accepted_with(policy, &[])
}

/// The same with these variables in the hub's environment.
fn start_accepted_with(policy: &str, environment: &[(&str, &str)]) -> HubProcess {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tapegate.yaml"), policy).unwrap();
    let accepted = accept_policy(folder.path(), &folder.path().join("state"), &[]);
    assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
    start_again(folder, 0, environment)
}

/// Starts a hub in a folder, whose standard error is kept in a file.
fn start_again(folder: TempDir, port: u16, environment: &[(&str, &str)]) -> HubProcess {
    let state = folder.path().join("state");
    fs::remove_file(state.join("hub/endpoint")).ok();
    let process = spawn_hub(&folder, port, environment);
    let url = wait_for("the hub", || endpoint_in(&state.join("hub/endpoint")));
    HubProcess { process, folder, url }
}

fn spawn_hub(folder: &TempDir, port: u16, environment: &[(&str, &str)]) -> Child {
    let state = folder.path().join("state");
    let errors = fs::File::options().create(true).append(true).open(folder.path().join("err"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    command.args(["hub", "--port", &port.to_string(), "--state"]).arg(&state);
    command
        .args(key_flags(&state))
        .env("TAPEGATE_HOME", &state)
        .env("XDG_CONFIG_HOME", folder.path());
    command.env("HOOK_SECRET", SECRET).env("SLACK_TOKEN", TOKEN).current_dir(folder.path());
    command.env("SIGNING_SECRET", SIGNING_SECRET).env_remove("DBUS_SESSION_BUS_ADDRESS");
    command.envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors.unwrap());
    command.spawn().unwrap()
}

impl HubProcess {
    fn errors(&self) -> String {
        fs::read_to_string(self.folder.path().join("err")).unwrap_or_default()
    }

    fn says(&self, text: &str) {
        wait_until(text, || self.errors().contains(text));
    }

    fn channels(&self) -> Value {
        serde_json::from_str::<Value>(&self.ask("GET /readyz", "").body).unwrap()["channels"]
            .clone()
    }

    /// Sends a POST without a token, as people's clients do.
    fn follow(&self, link: &str) -> u16 {
        let path = link.strip_prefix(&self.url).expect("a link to this hub");
        http_peers::ask(self.port(), &format!("POST {path}"), &[], "").status
    }

    /// Kills the hub and starts it again at the same address.
    fn restart(mut self, environment: &[(&str, &str)]) -> Self {
        let port = self.port();
        self.signal(Signal::KILL);
        self.process.wait().unwrap();
        // Takes over the folder; the old value must not remove it.
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        start_again(folder, port, environment)
    }

    /// Waits until the hub knows which message of a channel is about a request.
    fn has_told(&self, channel: &str, id: &str) {
        let projects = self.state().join("private");
        wait_until("the receipt", || {
            let projects = fs::read_dir(&projects).unwrap().flatten();
            projects
                .map(|project| project.path().join("channels").join(channel).join(id))
                .any(|path| fs::metadata(path).is_ok_and(|found| found.len() > 0))
        });
    }

    fn ruling(&self, id: &str) -> Option<(ApprovalOutcome, String)> {
        let decided = approvals_of(&self.state()).decision(id).unwrap();
        decided.map(|decided| (decided.ruling, decided.by))
    }

    fn pending(&self, count: usize) -> Vec<String> {
        wait_for("requests", || {
            let pending = approvals_of(&self.state()).pending(0).unwrap();
            let ids: Vec<String> = pending.into_iter().map(|request| request.id).collect();
            (ids.len() == count).then_some(ids)
        })
    }
}

/// A receiver of webhooks, which answers with this status.
fn receiver(status: &'static str) -> WebServer {
    WebServer::start(move |_, stream| {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).is_ok()
    })
}

fn event(received: &ReceivedRequest) -> Value {
    serde_json::from_slice(&received.body).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn a_webhook_is_told_of_a_call_and_its_links_decide_once() {
    let hooks = receiver("204 No Content");
    let hub = start_accepted(&policy("channels: [hook]", &webhook("hook", &hooks)));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    for (at, (word, link, ruling)) in [
        ("approved", "approve_url", ApprovalOutcome::Approved),
        ("denied", "deny_url", ApprovalOutcome::Denied),
    ]
    .into_iter()
    .enumerate()
    {
        let id = at as u64 + 1;
        run.send(call_with(id, "ask", &format!("{{\"n\":12345678901234567890{id}}}")).as_bytes());
        let seen = hooks.wait(2 * at + 1)[2 * at].clone();
        assert!(seen.head.starts_with("POST /hook?x=1 "), "{}", seen.head);
        let signature = seen.header("tapegate-signature").unwrap();
        assert!(signature.starts_with("t=") && signature.contains(",v1="), "{signature}");
        let asked = event(&seen);
        assert_eq!(asked["event"], "approval.requested");
        assert!(
            String::from_utf8_lossy(&seen.body).contains("\"n\":12345678901234567890"),
            "{asked}"
        );
        // A link for something else, or one that was changed, decides nothing.
        let url = text(&asked[link]);
        let swapped = match word {
            "approved" => url.replace(".approve.", ".deny."),
            _ => url.replace(".deny.", ".approve."),
        };
        for wrong in [&swapped, &url[..url.len() - 1], &format!("{url}0")] {
            assert_eq!(hub.follow(wrong), 403, "{wrong}");
        }
        assert_eq!(hub.follow(url), 200);
        assert_eq!(hub.follow(url), 409, "a link decides once");
        let expected = if word == "approved" { Value::Null } else { json!(-32007) };
        assert_eq!(answer(&run, id)["error"]["code"], expected);
        assert_eq!(hub.ruling(text(&asked["id"])), Some((ruling, "hook".to_owned())));
        let settled = event(&hooks.wait(2 * at + 2)[2 * at + 1]);
        assert_eq!(
            (text(&settled["event"]), text(&settled["outcome"])),
            ("approval.settled", word)
        );
    }
    let log = fs::read_to_string(hub.state().join("activity.jsonl")).unwrap();
    assert!(log.contains("\"channel\":\"hook\""), "{log}");
    assert!(!log.contains(SECRET) && !hub.errors().contains(SECRET));
    let metrics = hub.ask("GET /metrics", "").body;
    let line = "thoughtgate_approval_requests_total{channel=\"webhook\",outcome=\"approved\"} 1";
    assert!(metrics.contains(line), "{metrics}");
}

#[test]
fn a_slow_or_dead_channel_delays_no_call_and_no_other_channel() {
    let (good, dead) = (receiver("200 OK"), WebServer::start(|_, _| hang()));
    let failing = receiver("500 Internal Server Error");
    let channels =
        [webhook("good", &good), webhook("dead", &dead), webhook("bad", &failing)].concat();
    let hub = start_accepted(&policy("channels: [dead, bad, good]", &channels));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send([call(1, "ask"), ask(2, "ping")].concat().as_bytes());
    answer(&run, 2);
    let asked = event(&good.wait(1)[0]);
    dead.wait(1);
    // Tried again, with a pause.
    failing.wait(2);
    hub.says("channel `bad` does not work: the server answered 500");
    let health = hub.channels();
    let bad = health.as_array().unwrap().iter().find(|one| one["name"] == "bad").unwrap().clone();
    assert!(text(&bad["fault"]).contains("500"), "{health}");
    assert_eq!(hub.ask("GET /readyz", "").status, 200);
    // People at a terminal are told, too.
    let mut list = tapegate();
    list.args(["approvals", "list"]).env("TAPEGATE_HOME", hub.state());
    let listed = list.current_dir(hub.folder.path()).output().unwrap();
    let warned = String::from_utf8_lossy(&listed.stderr);
    assert!(warned.contains("channel `bad` does not work: the server answered 500"), "{warned}");
    assert_eq!(hub.follow(text(&asked["approve_url"])), 200);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    // What was never told is not told that it has ended, either.
    assert!(failing.seen().iter().all(|seen| event(seen)["event"] == "approval.requested"));
}

#[test]
fn a_receiver_that_comes_back_is_told_then() {
    let failures = Arc::new(AtomicUsize::new(2));
    let left = Arc::clone(&failures);
    let hooks = WebServer::start(move |_, stream| {
        let fails =
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
        let status = if fails { "503 Service Unavailable\r\nretry-after: 1" } else { "200 OK" };
        stream
            .write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes())
            .is_ok()
    });
    let hub = start_accepted(&policy("channels: [hook]", &webhook("hook", &hooks)));
    let mut run = hub.shim(&["serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let asked = event(&hooks.wait(3)[2]);
    hub.says("channel `hook` works again");
    assert_eq!(hub.follow(text(&asked["deny_url"])), 200);
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
}

#[test]
fn nothing_is_sent_for_a_policy_that_no_person_has_accepted() {
    let hooks = receiver("200 OK");
    let policy = policy("channels: [hook]", &webhook("hook", &hooks));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tapegate.yaml"), &policy).unwrap();
    let hub = start_again(folder, 0, &[]);
    hub.says("the channels are off, since no person has accepted the policy");
    let mut run = hub.shim(&["serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let id = hub.pending(1).remove(0);
    let path = format!("POST /approvals/{id}/deny");
    assert_eq!(hub.ask(&path, r#"{"by":"a person"}"#).status, 200);
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
    assert!(hooks.seen().is_empty());
    assert_eq!(hub.channels(), Value::Null);
}

#[test]
fn a_hub_that_no_person_has_started_sends_no_links() {
    let hooks = receiver("200 OK");
    let folder = tempfile::tempdir().unwrap();
    let policy = policy("channels: [hook]", &webhook("hook", &hooks));
    fs::write(folder.path().join("tapegate.yaml"), &policy).unwrap();
    assert!(accept_policy(folder.path(), &folder.path().join("state"), &[]).status.success());
    let hub = HubProcess::start_at(folder, &policy, &[]);
    let mut run = hub.shim(&["serve"]).start();
    run.send(call(1, "ask").as_bytes());
    hub.pending(1);
    let health = hub.channels();
    assert!(text(&health[0]["fault"]).contains("does not accept approvals"), "{health}");
    drop(run);
    assert!(hooks.seen().is_empty());
}

#[test]
fn an_ntfy_server_gets_buttons_that_send_the_links() {
    let phone =
        WebServer::start(|_, stream| stream.write_all(&reply("", "{\"id\":\"n1\"}")).is_ok());
    let gate = "https://gate.example.invalid";
    let channels = format!(
        "  phone: {{ type: ntfy, url: \"{}\", links: \"{gate}\", approver: ann, secret_env: HOOK_SECRET }}\n",
        phone.url("/alerts")
    );
    let hub = start_accepted(&policy("channels: [phone], approvers: [ann, bob]", &channels));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let seen = phone.wait(1).remove(0);
    assert!(seen.head.starts_with("POST / "), "{}", seen.head);
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    let message = event(&seen);
    assert_eq!((text(&message["topic"]), text(&message["title"])), ("alerts", "Approve s ask?"));
    let button = &message["actions"][0];
    assert_eq!((text(&button["label"]), text(&button["method"])), ("Approve", "POST"));
    let path = text(&button["url"]).strip_prefix(gate).unwrap().to_owned();
    assert_eq!(hub.follow(&format!("{}{path}", hub.url)), 200);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    let id = path.split(['/', '.']).find(|part| part.starts_with("ap_")).unwrap().to_owned();
    assert_eq!(hub.ruling(&id), Some((ApprovalOutcome::Approved, "ann".to_owned())));
    assert!(text(&event(&phone.wait(2)[1])["message"]).contains("approved by ann"));
}

#[test]
fn of_two_channels_and_two_approvers_the_first_answer_counts() {
    let (fake, hooks) = (FakeSlack::start(TOKEN), receiver("200 OK"));
    let channels = [slack(&fake), webhook("hook", &hooks)].concat();
    let hub = start_accepted(&policy("channels: [ops, hook]", &channels));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let first = fake.posted(1).remove(0);
    let asked = event(&hooks.wait(1)[0]);
    let (approve, deny) = (text(&asked["approve_url"]), text(&asked["deny_url"]));
    let codes = std::thread::scope(|scope| {
        let one = scope.spawn(|| hub.follow(approve));
        let two = scope.spawn(|| hub.follow(deny));
        let mut codes = [one.join().unwrap(), two.join().unwrap()];
        codes.sort_unstable();
        codes
    });
    assert_eq!(codes, [200, 409]);
    let (ruling, _) = hub.ruling(text(&asked["id"])).unwrap();
    let is_approved = ruling == ApprovalOutcome::Approved;
    assert_eq!(answer(&run, 1)["result"].is_object(), is_approved);
    fake.updated(&first.ts, if is_approved { "approved: s ask" } else { "denied: s ask" });
}

/// A session whose caller waits no longer once its hub is gone.
fn without_hub(run: &RunningSession, id: u64) {
    assert_eq!(answer(run, id)["error"]["code"], -32013);
}

#[test]
fn a_hub_that_is_killed_asks_nobody_twice_and_still_takes_the_answer() {
    let (fake, hooks) = (FakeSlack::start(TOKEN), receiver("200 OK"));
    let channels = [slack(&fake), webhook("hook", &hooks)].concat();
    let hub = start_accepted(&policy("channels: [ops, hook]", &channels));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let first = fake.posted(1).remove(0);
    let id = hub.pending(1).remove(0);
    hooks.wait(1);
    ["ops", "hook"].iter().for_each(|channel| hub.has_told(channel, &id));
    let again = hub.restart(&[]);
    without_hub(&run, 1);
    fake.react(&first.ts, "+1", "U1");
    wait_until("the decision", || again.ruling(&id).is_some());
    assert_eq!(again.ruling(&id), Some((ApprovalOutcome::Approved, "ann".to_owned())));
    fake.updated(&first.ts, "approved: s ask");
    assert_eq!(event(&hooks.wait(2)[1])["event"], "approval.settled");
    assert_eq!(fake.posted(1).len(), 1);
}

#[test]
fn a_trial_goes_through_every_channel_and_lets_nothing_pass() {
    let (fake, hooks) = (FakeSlack::start(TOKEN), receiver("500 Internal Server Error"));
    let channels = [slack(&fake), webhook("hook", &hooks)].concat();
    let hub = start_accepted(&policy("channels: [ops, hook]", &channels));
    let test = |options: &[&str]| {
        let mut command = tapegate();
        command.args(["approvals", "test"]).args(options).args(key_flags(&hub.state()));
        command.env("TAPEGATE_HOME", hub.state()).current_dir(hub.folder.path());
        let done = command.output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        (done.status.code().unwrap(), String::from_utf8(said).unwrap())
    };
    let (code, said) = test(&["default"]);
    assert!(code == 1 && said.contains("ops (slack): told\n"), "{said}");
    for line in ["terminal: listed as ap_", "API: answers about ap_", "in the agent: no agent"] {
        assert!(said.contains(line), "{said}");
    }
    assert!(said.contains("hook (webhook): failed: the server answered 500"), "{said}");
    let first = fake.posted(1).remove(0);
    fake.updated(&first.ts, "cancelled: tapegate trial");
    let (code, said) = test(&["none"]);
    assert!(code == 2 && said.contains("the policy of the hub has no workflow `none`"), "{said}");
    assert!(hub.pending(0).is_empty());
    hub.signal(Signal::TERM);
    wait_until("the end of the hub", || fs::metadata(hub.state().join("hub/endpoint")).is_err());
    let (code, said) = test(&["default"]);
    assert!(code == 4 && said.contains("only a hub has channels"), "{said}");
}

#[test]
fn a_person_answers_a_trial() {
    let fake = FakeSlack::start(TOKEN);
    let hub = start_accepted(&policy("channels: [ops]", &slack(&fake)));
    let done = std::thread::scope(|scope| {
        let test = scope.spawn(|| {
            let mut command = tapegate();
            command.args(["approvals", "test", "default", "--wait"]).args(key_flags(&hub.state()));
            command
                .env("TAPEGATE_HOME", hub.state())
                .current_dir(hub.folder.path())
                .output()
                .unwrap()
        });
        let first = fake.posted(1).remove(0);
        fake.react(&first.ts, "+1", "U1");
        test.join().unwrap()
    });
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(said.ends_with("ops (slack): told\nanswer: approved by ann through `ops`\n"), "{said}");
    assert_eq!(done.status.code(), Some(0));
}

#[test]
fn a_shim_without_a_hub_warns_that_nobody_is_told() {
    let channels = "  c: { type: ntfy, url: \"http://127.0.0.1:1/t\" }\n";
    let ended = shim(&policy("channels: [c]", channels), &[]).run(b"");
    assert_eq!(ended.stderr.matches("which only a hub uses").count(), 1, "{}", ended.stderr);
    let mut check = tapegate();
    check
        .arg("check")
        .arg(ended.run.folder().join("tapegate.yaml"))
        .env_remove("TAPEGATE_ENDPOINT");
    let done = check.output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("only a hub tells channels of calls"), "{said}");
}
