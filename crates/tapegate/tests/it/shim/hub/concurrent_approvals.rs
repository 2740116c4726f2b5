//! Many held calls of several shims, random decisions, and hubs that are killed.

use std::collections::BTreeMap;
use std::process::Command;
use std::thread;

use rustix::process::Signal;
use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome, ApprovalStore};

use super::super::many_holds::check_many_shims;
use super::super::setup::{answer, call_with, rules, server_got};
use super::{HubProcess, endpoint_in};
use crate::support::{RunningSession, SeededRandom, approvals_of, key_flags, shim, wait_for};

const SHIMS: u64 = 4;
const CALLS: u64 = 12;
const ROUNDS: u64 = 4;
/// How often the hub of many shims is killed.
const HUB_KILLS: u64 = 4;

/// The hub again, at the same address, after it was killed.
pub(super) fn restart(hub: &mut HubProcess) {
    hub.signal(Signal::KILL);
    hub.process.wait().unwrap();
    let endpoint = hub.state().join("hub/endpoint");
    std::fs::remove_file(&endpoint).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    command.args(["hub", "--port", &hub.port().to_string(), "--state"]).arg(hub.state());
    command.args(key_flags(&hub.state())).env("TAPEGATE_HOME", hub.state());
    command.env("XDG_CONFIG_HOME", hub.folder.path()).current_dir(hub.folder.path());
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    hub.process = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    wait_for("the hub", || endpoint_in(&endpoint));
}

/// Decides about everything that waits, one way or the other.
fn decide_some(approvals: &ApprovalStore, random: &mut SeededRandom, share: u64) {
    for request in approvals.pending(0).unwrap() {
        if random.below(100) >= share {
            continue;
        }
        let approves = random.below(2) == 0;
        let ruling = if approves { ApprovalOutcome::Approved } else { ApprovalOutcome::Denied };
        let at_us = request.created_us + 1;
        let decided = ApprovalDecision { ruling, by: "ann".to_owned(), at_us, reason: None };
        // A call that was withdrawn meanwhile is decided already.
        approvals.decide(&request.id, &decided).ok();
    }
}

/// What every call is marked with.
fn mark(round: u64, shim: u64, number: u64) -> String {
    format!("call-{round}-{shim}-{number}.")
}

#[test]
fn each_call_is_sent_at_most_once_and_only_if_it_was_approved_and_none_is_forgotten() {
    let mut hub = HubProcess::start_deciding(&rules(&[("ask", "approve")]));
    let mut random = SeededRandom::roll();
    let approvals = approvals_of(&hub.state());
    let mut rounds: Vec<Vec<RunningSession>> = Vec::new();
    for round in 0..ROUNDS {
        let mut runs: Vec<RunningSession> =
            (0..SHIMS).map(|_| hub.shim(&["log=log", "serve"]).start()).collect();
        for (shim, run) in runs.iter_mut().enumerate() {
            let line = |number| {
                let arguments = format!("{{\"n\":\"{}\"}}", mark(round, shim as u64, number));
                call_with(number + 1, "ask", &arguments)
            };
            run.send((0..CALLS).map(line).collect::<String>().as_bytes());
        }
        wait_for("held calls", || (!approvals.pending(0).unwrap().is_empty()).then_some(()));
        decide_some(&approvals, &mut random, 40);
        // A shim that cannot reach its hub ends its session, so the next round has new ones. The last
        // round has no kill, so that its decisions all reach their callers.
        if round + 1 < ROUNDS {
            restart(&mut hub);
        }
        // Every call is answered: sent, refused, or given up because the hub was gone.
        for (shim, run) in runs.iter().enumerate() {
            for number in 0..CALLS {
                let id = number + 1;
                wait_for(&format!("the answer to {}", mark(round, shim as u64, number)), || {
                    decide_some(&approvals, &mut random, 100);
                    String::from_utf8_lossy(&run.got())
                        .contains(&format!("\"id\":{id},"))
                        .then_some(())
                });
                let answered = answer(run, id);
                assert!(answered["result"].is_object() || answered["error"].is_object());
            }
        }
        rounds.push(runs);
    }
    let mut rulings: BTreeMap<String, Option<ApprovalOutcome>> = BTreeMap::new();
    for entry in approvals.entries().unwrap() {
        let params = entry.request.params.unwrap();
        rulings.insert(params, entry.decided.map(|decided| decided.ruling));
    }
    let mut sent = 0;
    let runs = rounds.iter().enumerate().flat_map(|(round, runs)| {
        runs.iter().enumerate().map(move |(shim, run)| (round as u64, shim as u64, run))
    });
    for (round, shim, run) in runs {
        let got = server_got(run.folder());
        for number in 0..CALLS {
            let mark = mark(round, shim, number);
            let times = got.matches(&mark).count();
            assert!(times <= 1, "{mark} was sent {times} times");
            let is_approved = rulings.iter().any(|(params, ruling)| {
                params.contains(&mark) && *ruling == Some(ApprovalOutcome::Approved)
            });
            assert!(times == 0 || is_approved, "{mark} was sent without an approval");
            sent += times;
        }
    }
    assert!(sent > 0, "nothing was sent at all");
}

#[test]
fn calls_of_many_shims_are_sent_once_for_each_approval_though_shims_and_hubs_are_killed() {
    let mut hub = HubProcess::start_deciding(&rules(&[("ask", "approve")]));
    let (folder, state, url) = (hub.folder.path().to_owned(), hub.state(), hub.url.clone());
    let start = |log: &str| {
        let setup = shim("", &[&format!("log={log}"), "serve"]);
        let state = state.to_str().unwrap();
        let setup = setup.flags(&["--governance-endpoint", &url]).within(&folder);
        setup.env("TAPEGATE_HOME", state).start()
    };
    thread::scope(|scope| {
        let check = scope.spawn(|| check_many_shims(&folder, &start));
        let (mut random, approvals) = (SeededRandom::roll(), approvals_of(&hub.state()));
        for _ in 0..HUB_KILLS {
            // While calls wait, and others are on their way.
            wait_for("held calls", || {
                let is_over = check.is_finished();
                let held = approvals.pending(0).unwrap().len() as u64;
                (is_over || held > random.below(40)).then_some(())
            });
            restart(&mut hub);
        }
        check.join().expect("the checks pass");
    });
}
