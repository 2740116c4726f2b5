//! What an event costs: `cargo bench -p tapegate-store --bench activity`.
//!
//! One event a commit is what a lone call waits for; a hundred are what a flood of calls gathers.
//! Beside it stands what the kernel takes for the same bytes without lock, look and hash. Times are
//! of the processor, not of the clock on the wall, because the machines this runs on are shared.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use tapegate_core::activity::{
    ActivityEvent, ActivityKind, EventComponent, EventLevel, GateName, Profile,
};
use tapegate_core::side::Side;
use tapegate_store::activity::{ActivityLog, ActivityLogOptions, open_file, verify};

const ROUNDS: usize = 5;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    for (commits, events) in [(100_000, 1), (20_000, 10), (2_000, 100)] {
        let us =
            best(|round| write(&folder.path().join(format!("{events}-{round}")), commits, events));
        println!("{events:>4} events a commit {us:>7.2} us an event");
    }
    let us = best(|_| look_over(&folder.path().join("log"), 100_000));
    println!("looking over      {us:>7.2} us an event");
    let bare = best(|round| append(&folder.path().join(format!("bare-{round}")), 100_000, 500));
    println!("500 bytes by a bare write {bare:>7.2} us");
}

/// How long this thread has been on a processor.
fn cpu_us() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let ns: f64 = text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number");
    ns / 1e3
}

/// The best of several rounds, in microseconds.
fn best(mut round: impl FnMut(usize) -> f64) -> f64 {
    (0..ROUNDS).map(&mut round).fold(f64::MAX, f64::min)
}

fn write(folder: &Path, commits: usize, events: usize) -> f64 {
    let mut log = ActivityLog::open(folder, ActivityLogOptions::default()).expect("a log");
    let event = event();
    let started = cpu_us();
    for _ in 0..commits {
        (0..events).for_each(|_| log.append(&event));
        log.commit().expect("room");
    }
    let us = (cpu_us() - started) / (commits * events) as f64;
    std::fs::remove_dir_all(folder).expect("a folder");
    us
}

/// What `tapegate check` does, an event.
fn look_over(folder: &Path, events: usize) -> f64 {
    let mut log = ActivityLog::open(folder, ActivityLogOptions::default()).expect("a log");
    let event = event();
    (0..events).for_each(|_| log.append(&event));
    log.commit().expect("room");
    let text = open_file(&log.path()).expect("a log");
    let started = cpu_us();
    let report = verify(text).expect("a log");
    let us = (cpu_us() - started) / events as f64;
    assert!(report.findings.is_empty());
    std::fs::remove_dir_all(folder).expect("a folder");
    us
}

fn append(path: &Path, writes: usize, bytes: usize) -> f64 {
    let mut file = OpenOptions::new().append(true).create(true).open(path).expect("a file");
    let text = vec![b'x'; bytes];
    let started = cpu_us();
    (0..writes).for_each(|_| file.write_all(&text).expect("room"));
    (cpu_us() - started) / writes as f64
}

fn event() -> ActivityEvent<'static> {
    ActivityEvent {
        wall_us: 1_774_016_531_804_012,
        level: EventLevel::Info,
        kind: ActivityKind::Decision,
        component: Some(EventComponent::Shim),
        server_id: "filesystem".into(),
        direction: Some(Side::Client),
        method: Some("tools/call".into()),
        tool: Some("read_file".into()),
        message_id: Some("42".into()),
        governance_decision: Some(tapegate_core::decision::LoggedDecision::Forward),
        gate: Some(GateName::Governance),
        rule: Some("read_*".into()),
        policy_version: Some("0123456789abcdef".into()),
        profile: Some(Profile::Production),
        forwarded: Some(true),
        latency_us: Some(3),
        connection_id: "c_0123456789abcdef".into(),
        request_id: Some("r_0123456789abcdef".into()),
        tape_session_id: Some("0123456789abcdef".into()),
        tape_seq: Some(17),
        ..ActivityEvent::default()
    }
}
