//! Real processes that write concurrently and are killed at any moment.
//!
//! Each process is this test binary again: the tests named `as_a_…` do nothing unless an
//! environment variable tells them to act as such a process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_store::activity::{
    ActivityLog, ActivityLogOptions, ChainFault, LogReport, LogVerifier, LoggedEvents, open_file,
    parts,
};
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalError, ApprovalOutcome, ApprovalRecord, ApprovalStore, new_id,
};
use tapegate_store::user_state::ProjectKey;

const FOLDER: &str = "TAPEGATE_TEST_FOLDER";
const NAME: &str = "TAPEGATE_TEST_NAME";

/// Starts a process that runs one of the tests below.
fn start(test: &str, folder: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(FOLDER, folder)
        .env(NAME, name)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("waited for {what}");
}

/// A number that differs each time, and is printed when a test fails.
fn dice() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    (now ^ now >> 17).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

fn key() -> ProjectKey {
    ProjectKey::new([3; 32])
}

fn options() -> ActivityLogOptions {
    ActivityLogOptions { rotate_bytes: 40_000, retention: None }
}

fn event(name: &str, number: u64, padding: usize) -> ActivityEvent<'_> {
    ActivityEvent {
        wall_us: 1,
        level: EventLevel::Info,
        kind: ActivityKind::Decision,
        server_id: name.into(),
        policy_reason: Some("p".repeat(padding).into()),
        tape_seq: Some(number),
        ..ActivityEvent::default()
    }
}

/// Writes events in batches, and records after each in its own file how many are in the log.
#[test]
fn as_a_writer() {
    let (Ok(folder), Ok(name)) = (std::env::var(FOLDER), std::env::var(NAME)) else { return };
    let mut log = ActivityLog::open(Path::new(&folder), options()).unwrap();
    let said = Path::new(&folder).join(format!("{name}.said"));
    let mut number = 0;
    for round in 0..800u64 {
        for _ in 0..1 + round % 7 {
            log.append(&event(&name, number, (round % 5) as usize * 300));
            number += 1;
        }
        log.commit().unwrap();
        fs::write(&said, number.to_string()).unwrap();
    }
}

fn said(folder: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(folder.join(format!("{name}.said"))).unwrap_or_default();
    text.parse().unwrap_or(0)
}

fn verified(folder: &Path) -> LogReport {
    let mut verifier = LogVerifier::default();
    for part in parts(folder).unwrap() {
        verifier.file(open_file(&part.path).unwrap()).unwrap();
    }
    verifier.finish()
}

/// The numbers of a writer's events in the log.
fn written(folder: &Path, name: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    for part in parts(folder).unwrap() {
        let events = LoggedEvents::new(open_file(&part.path).unwrap()).filter_map(Result::ok);
        let theirs = events.filter(|event| event.str("server_id").as_deref() == Some(name));
        numbers.extend(theirs.filter_map(|event| event.number("tape_seq")));
    }
    numbers
}

#[test]
fn four_processes_write_at_once_and_files_are_put_aside_under_them() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a", "b", "c", "d"];
    let writers = names.map(|name| start("as_a_writer", folder.path(), name));
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let report = verified(folder.path());
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    for name in names {
        let expected: Vec<u64> = (0..said(folder.path(), name)).collect();
        assert_eq!(written(folder.path(), name), expected, "{name}");
    }
    assert!(parts(folder.path()).unwrap().len() > 20);
}

#[test]
fn killing_writers_loses_nothing_they_were_told_is_written_and_is_never_called_tampering() {
    let folder = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for round in 0..25 {
        let name = format!("w{round}");
        let mut writers = [&name, "other"].map(|name| start("as_a_writer", folder.path(), name));
        until("a commit", || said(folder.path(), &name) > 0);
        std::thread::sleep(Duration::from_micros(dice() % 20_000));
        for writer in &mut writers {
            // One of them may be waiting for the other's lock.
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
        let report = verified(folder.path());
        assert!(!report.is_bad(), "{:?}", report.findings);
        assert!(
            report.findings.iter().all(|found| found.fault == ChainFault::Torn),
            "{:?}",
            report.findings
        );
        names.push(name);
    }
    let mut log = ActivityLog::open(folder.path(), options()).unwrap();
    log.append(&event("last", 0, 0));
    log.commit().unwrap();
    assert!(!verified(folder.path()).is_bad());
    for name in &names {
        let found = written(folder.path(), name);
        let committed = said(folder.path(), name);
        assert!(
            found.len() as u64 >= committed,
            "{name} was told of {committed}, {} are there",
            found.len()
        );
        assert!(found.iter().copied().eq(0..found.len() as u64), "{name}");
    }
}

fn request(name: &str) -> ApprovalRecord {
    ApprovalRecord {
        id: new_id().unwrap(),
        created_us: 1,
        // Their age is that of their files, so they must not expire while the test runs.
        expires_us: 3_600_000_000,
        server_id: "files".to_owned(),
        tool: "rm".to_owned(),
        call_hash: name.to_owned(),
        ..ApprovalRecord::default()
    }
}

/// Asks again and again.
#[test]
fn as_somebody_who_asks() {
    let (Ok(folder), Ok(name)) = (std::env::var(FOLDER), std::env::var(NAME)) else { return };
    let approvals = ApprovalStore::open(Path::new(&folder), &key()).unwrap();
    for number in 0..500 {
        approvals.publish_request(&request(&format!("{name}-{number}"))).unwrap();
    }
}

/// Decides about all requests until there are no new ones for a while, and records in a file what
/// this process decided.
#[test]
fn as_somebody_who_decides() {
    let (Ok(folder), Ok(name)) = (std::env::var(FOLDER), std::env::var(NAME)) else { return };
    let approvals = ApprovalStore::open(&Path::new(&folder).join("approvals"), &key()).unwrap();
    let mut won = String::new();
    for _ in 0..3 {
        for request in approvals.pending(5).unwrap() {
            let ruling = ApprovalOutcome::Approved;
            let decided = ApprovalDecision { ruling, by: name.clone(), at_us: 5, reason: None };
            match approvals.decide(&request.id, &decided) {
                Ok(()) => won.push_str(&format!("{}\n", request.id)),
                Err(ApprovalError::AlreadyDecided { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    fs::write(Path::new(&folder).join(format!("{name}.won")), won).unwrap();
}

#[test]
fn of_processes_that_decide_at_once_the_first_one_has_decided() {
    let folder = tempfile::tempdir().unwrap();
    let approvals = ApprovalStore::open(&folder.path().join("approvals"), &key()).unwrap();
    (0..300).for_each(|number| approvals.publish_request(&request(&number.to_string())).unwrap());
    let names = ["a", "b", "c"];
    let deciders = names.map(|name| start("as_somebody_who_decides", folder.path(), name));
    for mut decider in deciders {
        assert!(decider.wait().unwrap().success());
    }
    let mut count = 0;
    for name in names {
        let won = fs::read_to_string(folder.path().join(format!("{name}.won"))).unwrap();
        for id in won.lines() {
            assert_eq!(approvals.decision(id).unwrap().unwrap().by, name);
            count += 1;
        }
    }
    assert_eq!(count, 300, "each has one decider");
}

#[test]
fn killing_whoever_asks_or_decides_leaves_whole_requests_and_whole_decisions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("approvals");
    let approvals = ApprovalStore::open(&path, &key()).unwrap();
    for round in 0..20 {
        let mut asker = start("as_somebody_who_asks", &path, &format!("r{round}"));
        until("a request", || !approvals.entries().unwrap().is_empty());
        let mut decider = start("as_somebody_who_decides", folder.path(), "x");
        std::thread::sleep(Duration::from_micros(dice() % 20_000));
        for process in [&mut asker, &mut decider] {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        approvals.remove_left_over();
        let left = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> =
            left.filter(|name| name.to_str().unwrap().starts_with(".tmp-")).collect();
        assert!(left.is_empty(), "{left:?}");
        approvals.entries().unwrap();
        assert_eq!(approvals.take_refused(), []);
        // Others can continue where they were killed.
        if let Some(request) = approvals.pending(5).unwrap().first() {
            approvals.withdraw(&request.id, "test", 6).unwrap();
        }
        approvals.remove_expired(i64::MAX, Duration::ZERO).unwrap();
        assert!(approvals.entries().unwrap().is_empty());
    }
}
