//! The writer: alone, with other writers, and after failures.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;
use crate::activity::chain::{ChainedLine, SealHasher};
use crate::activity::parts;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel, Profile};

fn event(number: usize) -> ActivityEvent<'static> {
    ActivityEvent {
        wall_us: 1_774_016_531_804_012 + number as i64,
        level: EventLevel::Info,
        kind: ActivityKind::Decision,
        component: Some(EventComponent::Shim),
        tool: Some(format!("tool {number}").into()),
        profile: Some(Profile::Production),
        ..ActivityEvent::default()
    }
}

fn small(rotate_bytes: u64) -> ActivityLogOptions {
    ActivityLogOptions { rotate_bytes, retention: None }
}

fn write(log: &mut ActivityLog, numbers: std::ops::Range<usize>) {
    numbers.for_each(|number| log.append(&event(number)));
    log.commit().unwrap();
}

/// The lines of all files, oldest first. They must be numbered, and each write must be sealed.
fn chained(folder: &Path) -> Vec<String> {
    let files = parts(folder).unwrap();
    let text: Vec<u8> = files.iter().flat_map(|part| fs::read(&part.path).unwrap()).collect();
    let (mut link, mut number, mut sealing) = (ChainLink::START, 0, SealHasher::default());
    let mut lines = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap();
        let chained = ChainedLine::read(line).unwrap();
        number += 1;
        assert_eq!(chained.seq, number);
        match chained.seal {
            Some(seal) => {
                assert_eq!((seal.prev, sealing.close(&seal)), (link.hash, seal.hash));
                link = chained.link().unwrap();
            }
            None => sealing.line(line),
        }
        lines.push(String::from_utf8(line.to_vec()).unwrap());
    }
    assert_eq!(link.seq, number);
    lines
}

/// The tool names in the lines that have one.
fn tools(lines: &[String]) -> Vec<&str> {
    let named = lines.iter().filter_map(|line| line.split_once("\"tool\":\""));
    named.filter_map(|(_, rest)| rest.split('"').next()).collect()
}

#[test]
fn a_line_has_its_keys_in_the_order_of_the_manual() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
    write(&mut log, 0..1);
    let text = fs::read_to_string(log.path()).unwrap();
    let start = "{\"timestamp\":\"2026-03-20T14:22:11.804012Z\",\"level\":\"info\",\"kind\":\"decision\",\
                 \"component\":\"shim\",\"tool\":\"tool 0\",\"profile\":\"production\",\"seq\":1,\"prev\":\"";
    assert!(text.starts_with(start), "{text}");
    assert_eq!(log.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(log.head().text(), &text[text.len() - 67..text.len() - 3]);
}

#[test]
fn writers_take_turns_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let open = || ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
    let (mut one, mut two) = (open(), open());
    for round in 0..5 {
        write(&mut one, round * 10..round * 10 + 3);
        write(&mut one, round * 10 + 3..round * 10 + 4);
        write(&mut two, round * 10 + 4..round * 10 + 6);
    }
    write(&mut open(), 100..101);
    assert_eq!(chained(folder.path()).len(), 31);
}

#[test]
fn nothing_is_written_before_a_commit_and_nothing_by_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
    log.append(&event(0));
    log.append(&event(1));
    assert_eq!(log.path().metadata().unwrap().len(), 0);
    log.commit().unwrap();
    let bytes = log.path().metadata().unwrap().len();
    log.commit().unwrap();
    assert_eq!(log.path().metadata().unwrap().len(), bytes);
    assert_eq!(tools(&chained(folder.path())), ["tool 0", "tool 1"]);
}

#[test]
fn a_large_file_is_put_aside_and_the_next_one_links_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let open = || ActivityLog::open(folder.path(), small(1000)).unwrap();
    let (mut one, mut two) = (open(), open());
    for number in 0..20 {
        write(if number % 3 == 0 { &mut two } else { &mut one }, number..number + 1);
    }
    let files = parts(folder.path()).unwrap();
    assert!(files.len() > 4, "{files:?}");
    assert_eq!(files[0].number, 1);
    let lines = chained(folder.path());
    assert_eq!(tools(&lines).len(), 20);
    let first = fs::read_to_string(&files[1].path).unwrap();
    let message = "\"kind\":\"log\",\"event\":\"continued\",\"previous_file\":\"activity-1.jsonl\"";
    assert!(first.lines().next().unwrap().contains(message), "{first}");
}

#[test]
fn what_a_killed_writer_left_is_cut_off_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
    write(&mut log, 0..2);
    let mut file = fs::OpenOptions::new().append(true).open(log.path()).unwrap();
    file.write_all(b"{\"timestamp\":\"2026-\xff").unwrap();
    write(&mut log, 2..3);
    let lines = chained(folder.path());
    assert_eq!(lines.len(), 4);
    let message = "\"level\":\"warn\",\"kind\":\"log\",\"event\":\"torn_tail\",\"torn_bytes\":20,\
                 \"torn\":\"{\\\"timestamp\\\":\\\"2026-\u{fffd}\"";
    assert!(lines[2].contains(message), "{}", lines[2]);
}

#[test]
fn a_file_that_was_torn_in_its_first_lines_goes_on_from_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), small(400)).unwrap();
    write(&mut log, 0..3);
    write(&mut log, 3..6);
    assert_eq!(numbers(folder.path()), [1]);
    let text = fs::read(log.path()).unwrap();
    for cut in [5, text.len() / 2, text.len() - 20] {
        fs::write(log.path(), &text[..cut]).unwrap();
        let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
        write(&mut log, 6..7);
        assert_eq!(tools(&chained(folder.path())), ["tool 0", "tool 1", "tool 2", "tool 6"]);
    }
}

#[test]
fn a_line_that_lacks_only_its_end_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
    write(&mut log, 0..2);
    let bytes = log.path().metadata().unwrap().len();
    fs::OpenOptions::new().write(true).open(log.path()).unwrap().set_len(bytes - 1).unwrap();
    write(&mut log, 2..3);
    assert_eq!(tools(&chained(folder.path())), ["tool 0", "tool 1", "tool 2"]);
}

#[test]
fn a_file_that_is_no_log_or_no_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(CURRENT);
    fs::write(&path, "my notes\n").unwrap();
    let error = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap_err();
    assert!(matches!(error, ActivityError::NotALog { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "my notes\n");
    fs::remove_file(&path).unwrap();
    for target in ["/dev/null", "elsewhere"] {
        symlink(target, &path).unwrap();
        let error = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap_err();
        assert!(
            error.to_string().ends_with("it is a symbolic link, not a regular file"),
            "{error}"
        );
        fs::remove_file(&path).unwrap();
    }
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn a_log_that_was_removed_or_emptied_goes_on_with_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
    write(&mut log, 0..3);
    fs::remove_file(log.path()).unwrap();
    write(&mut log, 3..4);
    assert!(fs::read_to_string(log.path()).unwrap().contains("\"seq\":4,"));
    fs::File::create(log.path()).unwrap();
    write(&mut log, 4..5);
    assert!(fs::read_to_string(log.path()).unwrap().contains("\"seq\":5,"));
}

#[test]
fn a_log_that_is_cut_off_under_its_writer_tells_of_it() {
    for cut in [1, 40] {
        let folder = tempfile::tempdir().unwrap();
        let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
        write(&mut log, 0..3);
        // The last line is gone entirely, or half of it and more.
        let text = fs::read(log.path()).unwrap();
        let lines: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let kept = text.len() - lines[2].len() + cut - 1;
        fs::OpenOptions::new().write(true).open(log.path()).unwrap().set_len(kept as u64).unwrap();
        write(&mut log, 3..4);
        let report = report(folder.path());
        assert!(report.is_bad(), "{report:?}");
    }
}

/// Makes a file look as if it was written long ago.
fn age(path: &Path, days: u64) {
    let then = std::time::SystemTime::now() - Duration::from_secs(days * 86_400);
    fs::File::options().append(true).open(path).unwrap().set_modified(then).unwrap();
}

fn report(folder: &Path) -> crate::activity::LogReport {
    let mut verifier = crate::activity::LogVerifier::default();
    for part in parts(folder).unwrap() {
        verifier.file(crate::activity::open_file(&part.path).unwrap()).unwrap();
    }
    verifier.finish()
}

fn numbers(folder: &Path) -> Vec<u64> {
    let aside = parts(folder).unwrap().into_iter().filter(|part| !part.is_current());
    aside.map(|part| part.number).collect()
}

fn lately(number: usize) -> ActivityEvent<'static> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    ActivityEvent { wall_us: now.as_micros() as i64, ..event(number) }
}

#[test]
fn files_whose_time_is_over_are_removed_and_that_is_no_tampering() {
    let folder = tempfile::tempdir().unwrap();
    let month = Some(Duration::from_secs(30 * 86_400));
    let mut log = ActivityLog::open(folder.path(), small(700)).unwrap();
    for number in 0..8 {
        log.append(&lately(number));
        log.commit().unwrap();
    }
    let files = parts(folder.path()).unwrap();
    assert!(files.len() > 3);
    age(&files[0].path, 40);
    age(&files[1].path, 31);
    // The fourth is old, but the third is not: removal leaves no gap.
    age(&files[2].path, 1);
    let options = ActivityLogOptions { rotate_bytes: u64::MAX, retention: month };
    let mut log = ActivityLog::open(folder.path(), options).unwrap();
    assert_eq!(numbers(folder.path())[0], 1, "nothing is removed before it is said");
    log.append(&lately(9));
    log.commit().unwrap();
    assert_eq!(numbers(folder.path())[0], 3);
    let found = report(folder.path()).findings;
    assert!(found.is_empty(), "{found:?}");
    // Removing one more file is not covered by any notice.
    fs::remove_file(&files[2].path).unwrap();
    assert!(report(folder.path()).is_bad());
}

#[test]
fn numbers_of_files_are_not_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), small(400)).unwrap();
    for number in 0..4 {
        log.append(&lately(number));
        log.commit().unwrap();
    }
    let newest = *numbers(folder.path()).last().unwrap();
    parts(folder.path())
        .unwrap()
        .iter()
        .filter(|part| !part.is_current())
        .for_each(|part| age(&part.path, 2));
    let day = Some(Duration::from_secs(86_400));
    let options = ActivityLogOptions { rotate_bytes: 400, retention: day };
    let mut log = ActivityLog::open(folder.path(), options).unwrap();
    for number in 0..3 {
        log.append(&lately(number));
        log.commit().unwrap();
    }
    assert!(numbers(folder.path())[0] > newest, "{:?}", numbers(folder.path()));
    assert!(report(folder.path()).findings.is_empty());
}

#[test]
fn a_file_that_was_begun_before_retention_is_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
    write(&mut log, 0..1);
    let hour = ActivityLogOptions {
        retention: Some(Duration::from_secs(3600)),
        ..ActivityLogOptions::default()
    };
    let mut log = ActivityLog::open(folder.path(), hour).unwrap();
    log.append(&lately(1));
    log.commit().unwrap();
    assert_eq!(numbers(folder.path()), [1]);
    assert!(report(folder.path()).findings.is_empty());
}

#[test]
fn a_writer_that_is_stopped_does_not_stop_the_others_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
    let held = fs::File::open(log.path()).unwrap();
    held.lock().unwrap();
    log.append(&event(0));
    let error = log.commit().unwrap_err();
    assert!(matches!(error, ActivityError::Busy { .. }), "{error}");
    drop(held);
    write(&mut log, 1..2);
    let lines = chained(folder.path());
    assert!(lines[0].contains("\"event\":\"lost\",\"lost\":1"), "{}", lines[0]);
    assert_eq!(tools(&lines), ["tool 1"]);
}

#[test]
fn texts_are_cut_and_what_is_no_json_does_not_spoil_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), ActivityLogOptions::default()).unwrap();
    let long = Some("é".repeat(5_000_000).into());
    for extra in ["\"a\":1},{\"b\":2", "nonsense\n", "\"a\":\n[1, 2]", " ", "\"hash\":\"x\""] {
        let event = ActivityEvent { tool: long.clone(), extra: extra.into(), ..event(0) };
        log.append(&event);
    }
    let extra = format!("\"a\":\"{}\"", "x".repeat(100_000));
    log.append(&ActivityEvent { extra: extra.into(), ..event(1) });
    log.commit().unwrap();
    let lines = chained(folder.path());
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| line.len() < 5000));
    let read = |line: &String| crate::activity::LoggedEvent::read(1, line.as_bytes()).unwrap();
    assert_eq!(read(&lines[0]).str("extra").as_deref(), Some("\"a\":1},{\"b\":2"));
    assert_eq!(read(&lines[2]).raw("a"), Some(&b"[1,2]"[..]));
    assert_eq!(read(&lines[5]).number("extra_bytes"), Some(100_006));
    assert!(report(folder.path()).findings.is_empty());
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(60))]

    /// Any writer, any amount at a time, with rotations and torn ends in between.
    #[test]
    fn whatever_several_writers_do_the_chain_holds(
        writers in 1usize..5,
        rotate_bytes in 300u64..4000,
        steps in proptest::collection::vec((0usize..4, 1usize..6, 0u8..12), 1..40),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let open = || ActivityLog::open(folder.path(), small(rotate_bytes)).unwrap();
        let mut logs: Vec<ActivityLog> = (0..writers).map(|_| open()).collect();
        let (mut expected, mut torn) = (Vec::new(), 0);
        for (step, (writer, events, odd)) in steps.into_iter().enumerate() {
            let log = &mut logs[writer % writers];
            write(log, step * 10..step * 10 + events);
            expected.extend((step * 10..step * 10 + events).map(|number| format!("tool {number}")));
            match odd {
                0 => *log = open(),
                1 => {
                    let mut file = fs::OpenOptions::new().append(true).open(log.path()).unwrap();
                    file.write_all(&b"{\"timestamp\":\"2026"[..1 + step % 15]).unwrap();
                    torn += 1;
                }
                _ => {}
            }
        }
        write(&mut logs[0], 9000..9001);
        expected.push("tool 9000".to_owned());
        let lines = chained(folder.path());
        proptest::prop_assert_eq!(tools(&lines), expected);
        let found = report(folder.path()).findings;
        proptest::prop_assert_eq!(found.len(), torn, "{:?}", found);
    }
}
