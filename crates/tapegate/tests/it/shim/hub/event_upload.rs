//! Shims whose hub is on another machine: their events are written locally first, and are in the
//! hub's log once and in order, whichever process is killed in between.
//!
//! The hub reaches its state folder through a link. Once it has started, an empty folder replaces
//! the link, so that shims find something at that path that is not the hub's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel, Profile};
use tapegate_hub::hub_lock::token_file;
use tapegate_store::activity::parts;
use tapegate_store::outbox::Outbox;
use tapegate_store::user_state::PrivateDir;
use tempfile::TempDir;

use super::{HubProcess, endpoint_in};
use crate::shim::setup::{FORWARD, answer, call};
use crate::support::{RunningSession, SeededRandom, SessionSetup, shim, tapegate, wait_for};

/// A remote hub, and the state folder of the shims.
struct RemoteHub {
    folder: TempDir,
    process: Option<Child>,
    url: String,
}

impl RemoteHub {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tapegate.yaml"), FORWARD).unwrap();
        fs::create_dir_all(folder.path().join("real/state")).unwrap();
        fs::create_dir(folder.path().join("near")).unwrap();
        Self { folder, process: None, url: String::new() }
    }

    /// The hub's actual state folder.
    fn state(&self) -> PathBuf {
        self.folder.path().join("real/state")
    }

    fn start(&mut self) {
        let (at, endpoint) = (self.folder.path().join("at"), self.state().join("hub/endpoint"));
        fs::remove_file(&endpoint).ok();
        fs::remove_dir_all(&at).ok();
        symlink(self.folder.path().join("real"), &at).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
        command.arg("hub").arg("--state").arg(at.join("state"));
        command.env("TAPEGATE_HOME", self.folder.path().join("home"));
        command.env("XDG_CONFIG_HOME", self.folder.path()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
        self.url = wait_for("the hub", || endpoint_in(&endpoint));
        fs::remove_file(&at).unwrap();
        fs::create_dir_all(at.join("state")).unwrap();
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().ok();
            process.wait().ok();
        }
    }

    fn shim(&self) -> SessionSetup {
        let token = token_file(&self.folder.path().join("home"), &self.state());
        let near = self.folder.path().join("near");
        shim("", &["serve"])
            .flags(&["--governance-endpoint", &self.url])
            .flags(&["--token-file", token.to_str().unwrap()])
            .env("TAPEGATE_HOME", near.to_str().unwrap())
    }

    /// The only outbox of the shims.
    fn outbox(&self) -> Outbox {
        let near = self.folder.path().join("near");
        let all = PrivateDir::path_of(&near, &near).join("to-hub");
        let mut found = fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path());
        let outbox = found.next().expect("an outbox");
        assert_eq!(found.next(), None, "one outbox for one hub");
        Outbox::open(&outbox).unwrap()
    }

    /// How many lines wait to be sent.
    fn waiting(&self) -> u64 {
        let outbox = self.outbox();
        outbox.waiting_count(outbox.last_line_number().unwrap())
    }

    /// The lines of the hub's log that came from shims, with their numbers.
    fn shipped(&self) -> Vec<(u64, Value)> {
        let parts = parts(&self.state()).unwrap();
        let texts = parts.iter().map(|part| fs::read_to_string(&part.path).unwrap());
        let text: String = texts.collect();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|line| Some((line["shipped_seq"].as_u64()?, line.clone()))).collect()
    }
}

impl Drop for RemoteHub {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Calls each tool once, and returns those whose answers arrived before a random moment.
fn call_for_a_while(
    run: &mut RunningSession,
    names: &[String],
    dice: &mut SeededRandom,
) -> Vec<String> {
    let text: String =
        names.iter().enumerate().map(|(at, name)| call(at as u64 + 1, name)).collect();
    run.send_aside(text.into_bytes());
    run.lines(dice.below(names.len() as u64) as usize);
    dice.pause_us(20_000);
    let got = String::from_utf8(run.got()).unwrap();
    let answers = got.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let passed = answers.filter(|answer| answer["result"]["for"].as_u64() > Some(0));
    passed.map(|answer| names[answer["id"].as_u64().unwrap() as usize - 1].clone()).collect()
}

#[test]
fn every_line_is_in_a_far_hub_s_log_once_and_in_order_whoever_is_killed() {
    let (mut far, mut dice) = (RemoteHub::new(), SeededRandom::roll());
    let mut passed = Vec::new();
    for round in 0..8 {
        if far.process.is_none() {
            far.start();
        }
        let mut run = far.shim().start();
        run.send(call(0, "first").as_bytes());
        answer(&run, 0);
        let names: Vec<String> = (0..300).map(|at| format!("r{round}_{at:03}")).collect();
        passed.extend(call_for_a_while(&mut run, &names, &mut dice));
        match round % 4 {
            0 => far.kill(),
            1 => run.signal(rustix::process::Signal::KILL),
            2 => {
                run.signal(rustix::process::Signal::KILL);
                far.kill();
            }
            _ => {}
        }
        run.close_input();
        run.end();
    }
    far.kill();
    far.start();
    let mut run = far.shim().start();
    run.send(call(1, "last").as_bytes());
    answer(&run, 1);
    run.until("everything is sent", |_| far.waiting() == 0);
    run.end_of_input().exits(0);
    let (end, waiting) = (far.outbox().last_line_number().unwrap(), far.waiting());
    let shipped = far.shipped();
    let numbers: Vec<u64> = shipped.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "each once, in order");
    assert!(numbers.len() as u64 >= end - waiting, "{} of {end}", numbers.len());
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, line) in shipped.iter().filter(|(_, line)| line["kind"] == "decision") {
        *told.entry(line["tool"].as_str().unwrap_or_default()).or_default() += 1;
    }
    assert!(passed.len() > 100, "only {} calls have passed", passed.len());
    for name in &passed {
        assert_eq!(told.get(name.as_str()), Some(&1), "{name}");
    }
    let check = tapegate().arg("check").arg(far.state().join("activity.jsonl")).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

#[test]
fn what_a_killed_hub_did_not_take_waits_for_the_next_shim() {
    let mut far = RemoteHub::new();
    far.start();
    let mut run = far.shim().start();
    run.send(call(1, "before").as_bytes());
    answer(&run, 1);
    far.kill();
    run.end().complains("for the next shim");
    assert!(far.waiting() > 0);
    far.start();
    let mut run = far.shim().start();
    run.send(call(1, "after").as_bytes());
    answer(&run, 1);
    run.until("everything is sent", |_| far.waiting() == 0);
    run.end_of_input().exits(0);
    let shipped = far.shipped();
    let tools: Vec<&str> = shipped
        .iter()
        .filter(|(_, line)| line["kind"] == "decision")
        .map(|(_, line)| line["tool"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["before", "after"]);
    assert!(shipped.iter().all(|(_, line)| line["component"] == "shim"));
    let ended = shipped.iter().filter(|(_, line)| line["event"] == "ended").count();
    assert!(ended >= 1, "the end of the first session is told by the second: {shipped:?}");
}

#[test]
fn a_line_that_the_hub_refuses_is_reported_and_keeps_no_other_line_back() {
    let mut far = RemoteHub::new();
    far.start();
    let mut run = far.shim().start();
    run.send(call(1, "before").as_bytes());
    answer(&run, 1);
    far.kill();
    run.end().complains("for the next shim");
    let before = far.waiting();
    assert!(before > 0, "lines that are sent together with the refused one");
    // A shim of a later version could write such a line, and an older hub does not know its gate.
    let mut log = far.outbox().log().unwrap();
    log.append(&ActivityEvent {
        level: EventLevel::Info,
        kind: ActivityKind::Decision,
        component: Some(EventComponent::Shim),
        profile: Some(Profile::Production),
        extra: r#""gate":"novel""#.into(),
        ..ActivityEvent::default()
    });
    log.commit().unwrap();
    drop(log);
    let refused = far.outbox().last_line_number().unwrap();
    far.start();
    let mut run = far.shim().start();
    run.send(call(1, "after").as_bytes());
    answer(&run, 1);
    run.until("everything is sent", |_| far.waiting() == 0);
    run.end_of_input().exits(0).complains(&format!("the hub refuses line {refused} of "));
    let numbers: Vec<u64> = far.shipped().iter().map(|(seq, _)| *seq).collect();
    let last = numbers.last().copied().unwrap_or_default();
    let expected: Vec<u64> = (1..=last).filter(|seq| *seq != refused).collect();
    assert_eq!(numbers, expected, "all but {refused}");
    assert!(last > refused);
}

#[test]
fn a_shim_that_shares_the_hub_s_folder_writes_there_alone() {
    let hub = HubProcess::start(FORWARD, &[]);
    let mut run = hub.shim(&["serve"]).start();
    run.send(call(1, "near").as_bytes());
    answer(&run, 1);
    run.end_of_input().exits(0);
    let text = fs::read_to_string(hub.state().join("activity.jsonl")).unwrap();
    assert_eq!(text.matches("\"tool\":\"near\"").count(), 1);
    assert!(!text.contains("shipped_from"));
    let private = PrivateDir::path_of(&hub.state(), &hub.state());
    assert!(!private.join("to-hub").exists());
}
