//! Many calls that wait at once in many shims, which are killed and started again while several
//! people decide at random: a call is sent at most once for each approval, never without one, and
//! none is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tapegate_store::approvals::{ApprovalDecision, ApprovalError, ApprovalOutcome};

use super::setup::{call_with, messages, rules};
use crate::support::{RunningSession, SeededRandom, approvals_of, shim, wait_until, within};

/// The number of shims; each has [`CALLS`] calls.
pub(super) const SHIMS: u64 = 50;
const CALLS: u64 = 20;
/// How often each shim is killed at most.
const KILLS_MAX: u64 = 3;
/// How long all of it may take.
const RUN_MAX: Duration = Duration::from_secs(1200);

/// Starts a shim whose server logs to the file with this name.
pub(super) type ShimStarter<'a> = dyn Fn(&str) -> RunningSession + Sync + 'a;

/// The decisions that counted: the number of the call, and whether it was approved.
type Decisions = Mutex<Vec<(u64, bool)>>;

/// Decides whatever waits, at random, until it is told to stop.
fn decide_all(state: &Path, stop: &AtomicBool, decisions: &Decisions, mut dice: SeededRandom) {
    let approvals = approvals_of(state);
    while !stop.load(Ordering::Relaxed) {
        let pending = approvals.pending(i64::MAX / 4).expect("a list of requests");
        for request in pending {
            // Some wait for longer, so that shims are killed while their calls are held.
            if dice.below(3) == 0 {
                continue;
            }
            let approves = dice.below(2) == 0;
            let ruling = if approves { ApprovalOutcome::Approved } else { ApprovalOutcome::Denied };
            let at_us = request.created_us + 1;
            let decided =
                ApprovalDecision { ruling, by: "a person".to_owned(), at_us, reason: None };
            match approvals.decide(&request.id, &decided) {
                Ok(()) => {
                    let arguments = request.arguments().expect("arguments");
                    let arguments: Value = serde_json::from_str(arguments).expect("JSON");
                    let call = arguments["n"].as_u64().expect("a number");
                    decisions.lock().expect("the decisions").push((call, approves));
                }
                // The other person was first, or the shim that waited has ended in order.
                Err(ApprovalError::AlreadyDecided { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        dice.pause_us(10_000);
    }
}

/// Whether an answer tells what was decided. A hub that is killed ends its shims, which then answer
/// that no approver is reachable; such a call is made again.
fn is_final(answer: &Value) -> bool {
    answer["result"].is_object() || answer["error"]["code"] == -32007
}

/// Runs the calls of one shim until each is answered, and returns how many times it was killed.
/// `start` starts a shim whose server logs to the file with this name.
fn run_shim(start: &ShimStarter<'_>, number: u64, mut dice: SeededRandom) -> u64 {
    let mut open: BTreeSet<u64> = (number * CALLS..(number + 1) * CALLS).collect();
    let mut kills = 0;
    for round in 0.. {
        let mut run = start(&format!("log-{number}-{round}"));
        for call in &open {
            run.send(call_with(call, "ask", &format!("{{\"n\":{call}}}")).as_bytes());
        }
        let is_killed = kills < KILLS_MAX && dice.below(4) > 0;
        let limit = if is_killed { Duration::from_millis(dice.below(400)) } else { RUN_MAX };
        let answers = |bytes: &[u8]| -> Vec<Value> {
            // The last line of a killed shim may be cut.
            let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            messages(&bytes[..end])
        };
        // A shim ends when its hub was killed.
        let is_over =
            |run: &mut RunningSession| answers(&run.got()).len() == open.len() || !run.lives();
        let ended = within(limit, || is_over(&mut run).then_some(()));
        assert!(is_killed || ended.is_some(), "shim {number} has forgotten a call");
        if ended.is_none() {
            kills += 1;
            run.signal(Signal::KILL);
        }
        for answer in answers(&run.end_of_input().stdout).iter().filter(|answer| is_final(answer)) {
            open.remove(&answer["id"].as_u64().expect("the id of a call"));
        }
        if open.is_empty() {
            return kills;
        }
    }
    kills
}

/// How many times each call has reached a server.
fn sent(folder: &Path) -> BTreeMap<u64, usize> {
    let mut sent = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        if !entry.file_name().to_string_lossy().starts_with("log-") {
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a log");
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for call in lines.filter_map(|line| line["params"]["arguments"]["n"].as_u64()) {
            *sent.entry(call).or_default() += 1;
        }
    }
    sent
}

/// Has many shims make calls in one folder while people decide, and checks what reached the servers.
#[expect(clippy::print_stderr, reason = "how much the run was disturbed")]
pub(super) fn check_many_shims(folder: &Path, start: &ShimStarter<'_>) {
    let state = folder.join("state");
    approvals_of(&state);
    let (stop, decisions) = (AtomicBool::new(false), Decisions::default());
    let kills: u64 = thread::scope(|scope| {
        let people: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| decide_all(&state, &stop, &decisions, SeededRandom::roll())))
            .collect();
        let shims: Vec<_> = (0..SHIMS)
            .map(|number| scope.spawn(move || run_shim(start, number, SeededRandom::roll())))
            .collect();
        let kills: Vec<_> = shims.into_iter().map(thread::ScopedJoinHandle::join).collect();
        // A request whose caller was killed may still wait.
        wait_until("everything is decided", || {
            approvals_of(&state).pending(i64::MAX / 4).is_ok_and(|pending| pending.is_empty())
        });
        stop.store(true, Ordering::Relaxed);
        people.into_iter().for_each(|person| person.join().expect("a person decides"));
        kills.into_iter().map(|kills| kills.expect("every call is answered")).sum()
    });
    let (mut approved, mut decided) = (BTreeMap::<u64, usize>::new(), BTreeSet::new());
    for (call, approves) in decisions.into_inner().expect("the decisions") {
        *approved.entry(call).or_default() += usize::from(approves);
        decided.insert(call);
    }
    assert_eq!(decided.len() as u64, SHIMS * CALLS, "a call was never decided");
    let sent = sent(folder);
    for (call, count) in &sent {
        assert!(count <= &approved[call], "{call} was sent {count} times: {approved:?}");
    }
    let total: usize = sent.values().sum();
    assert!(total > 0);
    eprintln!("{} calls, {kills} kills, {total} sent", SHIMS * CALLS);
}

#[test]
fn calls_of_many_shims_are_sent_once_for_each_approval_and_never_without() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tapegate.yaml"), rules(&[("ask", "approve")])).unwrap();
    check_many_shims(folder.path(), &|log| {
        shim("", &[&format!("log={log}"), "serve"]).within(folder.path()).start()
    });
}
