//! The writer: alone, with others, and after things went wrong.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;
use crate::activity::chain::Sealed;
use crate::activity::parts;

fn event(number: usize) -> Event {
    Event {
        wall_us: 1_774_016_531_804_012 + number as i64,
        level: "info",
        kind: "decision",
        component: "shim",
        tool: Some(format!("tool {number}")),
        profile: "production",
        ..Event::default()
    }
}

fn small(rotate_bytes: u64) -> Options {
    Options { rotate_bytes, retention: None }
}

fn write(log: &mut ActivityLog, numbers: std::ops::Range<usize>) {
    numbers.for_each(|number| log.append(&event(number)));
    log.commit().unwrap();
}

/// The lines of all files, oldest first. Each must be linked to the one before.
fn chained(folder: &Path) -> Vec<String> {
    let files = parts(folder).unwrap();
    let text: Vec<u8> = files.iter().flat_map(|part| fs::read(&part.path).unwrap()).collect();
    assert!(text.is_empty() || text.ends_with(b"\n"));
    let mut link = Link::START;
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let sealed = Sealed::read(line).unwrap();
            assert_eq!((sealed.seq, sealed.prev), (link.seq + 1, link.hash));
            assert_eq!(sealed.computed(), sealed.hash);
            link = sealed.link();
            String::from_utf8(line.to_vec()).unwrap()
        })
        .collect()
}

/// The tools of the lines that name one.
fn tools(lines: &[String]) -> Vec<&str> {
    let named = lines.iter().filter_map(|line| line.split_once("\"tool\":\""));
    named.filter_map(|(_, rest)| rest.split('"').next()).collect()
}

#[test]
fn a_line_has_its_keys_in_the_order_of_the_manual() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), Options::default()).unwrap();
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
    let open = || ActivityLog::open(folder.path(), Options::default()).unwrap();
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
    let mut log = ActivityLog::open(folder.path(), Options::default()).unwrap();
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
    let words = "\"kind\":\"log\",\"event\":\"continued\",\"previous_file\":\"activity-1.jsonl\"";
    assert!(first.lines().next().unwrap().contains(words), "{first}");
}

#[test]
fn what_a_killed_writer_left_is_cut_off_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), Options::default()).unwrap();
    write(&mut log, 0..2);
    let mut file = fs::OpenOptions::new().append(true).open(log.path()).unwrap();
    file.write_all(b"{\"timestamp\":\"2026-\xff").unwrap();
    write(&mut log, 2..3);
    let lines = chained(folder.path());
    assert_eq!(lines.len(), 4);
    let words = "\"level\":\"warn\",\"kind\":\"log\",\"event\":\"torn_tail\",\"torn_bytes\":20,\
                 \"torn\":\"{\\\"timestamp\\\":\\\"2026-\u{fffd}\"";
    assert!(lines[2].contains(words), "{}", lines[2]);
}

#[test]
fn a_line_that_lacks_only_its_end_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = ActivityLog::open(folder.path(), Options::default()).unwrap();
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
    let error = ActivityLog::open(folder.path(), Options::default()).unwrap_err();
    assert!(matches!(error, ActivityError::NotALog { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "my notes\n");
    fs::remove_file(&path).unwrap();
    for target in ["/dev/null", "elsewhere"] {
        symlink(target, &path).unwrap();
        let error = ActivityLog::open(folder.path(), Options::default()).unwrap_err();
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
    let mut log = ActivityLog::open(folder.path(), Options::default()).unwrap();
    write(&mut log, 0..3);
    fs::remove_file(log.path()).unwrap();
    write(&mut log, 3..4);
    assert!(fs::read_to_string(log.path()).unwrap().contains("\"seq\":4,"));
    fs::File::create(log.path()).unwrap();
    write(&mut log, 4..5);
    assert!(fs::read_to_string(log.path()).unwrap().contains("\"seq\":5,"));
}
