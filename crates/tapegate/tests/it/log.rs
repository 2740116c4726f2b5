//! `tapegate log`, and `tapegate check` of what it reads.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;
use tapegate_core::activity::{
    ActivityEvent, ActivityKind, EventComponent, EventLevel, GateName, Profile,
};
use tapegate_core::decision::LoggedDecision;
use tapegate_core::side::Side;
use tapegate_store::activity::{ActivityLog, ActivityLogOptions, parts};
use tempfile::TempDir;

use crate::support::tapegate;
use crate::tape_faults::SmallFileSystem;

fn event(number: u64) -> ActivityEvent<'static> {
    ActivityEvent {
        wall_us: 1_774_016_531_804_012 + number as i64 * 1_000_000,
        level: if number.is_multiple_of(2) { EventLevel::Info } else { EventLevel::Warn },
        kind: ActivityKind::Decision,
        component: Some(EventComponent::Shim),
        server_id: if number < 5 { "files" } else { "github" }.into(),
        direction: Some(Side::Client),
        method: Some("tools/call".into()),
        tool: Some(format!("tool_{number}").into()),
        governance_decision: Some(match number.is_multiple_of(2) {
            true => LoggedDecision::Forward,
            false => LoggedDecision::Deny,
        }),
        gate: Some(GateName::Governance),
        profile: Some(Profile::Production),
        forwarded: Some(number.is_multiple_of(2)),
        ..ActivityEvent::default()
    }
}

/// A state folder with a log of ten events in several files.
fn logged() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 1200, 0..10);
    folder
}

fn write(folder: &Path, rotate_bytes: u64, numbers: std::ops::Range<u64>) {
    let options = ActivityLogOptions { rotate_bytes, retention: None };
    let mut log = ActivityLog::open(folder, options).unwrap();
    for number in numbers {
        log.append(&event(number));
        log.commit().unwrap();
    }
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = tapegate();
    command.args(args).env("TAPEGATE_HOME", folder).current_dir(folder);
    command.env("TZ", "UTC0").env_remove("COLUMNS").output().unwrap()
}

#[track_caller]
fn says(folder: &Path, args: &[&str], code: i32) -> String {
    let done = run(folder, args);
    let (out, err) =
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!(done.status.code(), Some(code), "{out}{err}");
    out + &err
}

/// The numbers of the tools in the output, in order.
#[track_caller]
fn tools(folder: &Path, args: &[&str]) -> Vec<u64> {
    let out = says(folder, args, 0);
    let number = |line: &str| {
        line.split_once("tool_")?
            .1
            .chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .ok()
    };
    out.lines().filter_map(number).collect()
}

fn aside(folder: &Path) -> Vec<PathBuf> {
    parts(folder).unwrap().into_iter().map(|part| part.path).collect()
}

#[test]
fn a_log_that_is_put_aside_while_it_is_checked_is_no_tampering() {
    let folder = logged();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let rounds = (10..2000).take_while(|_| !stop.load(order));
            rounds.for_each(|number| write(folder.path(), 1200, number..number + 1));
        });
        let checks: Vec<_> = (0..5)
            .map(|_| run(folder.path(), &["check", folder.path().to_str().unwrap()]))
            .collect();
        stop.store(true, order);
        for done in checks {
            let output_text = String::from_utf8_lossy(&done.stdout).into_owned();
            assert_eq!(done.status.code(), Some(0), "{output_text}");
        }
    });
}

#[test]
fn a_log_is_shown_over_all_its_files() {
    let folder = logged();
    assert!(aside(folder.path()).len() > 3);
    assert_eq!(tools(folder.path(), &["log"]), (0..10).collect::<Vec<_>>());
    let out = says(folder.path(), &["log", "--tail", "1"], 0);
    assert_eq!(out, "03-20 14:22:20 denied               github tool_9\n");
}

#[test]
fn filters_choose_what_is_shown() {
    let folder = logged();
    for (args, expected) in [
        (&["log", "--server", "files", "--decision", "deny"][..], &[1, 3][..]),
        (&["log", "--decision", "DENY,would_block", "--tail", "2"], &[7, 9]),
        (&["log", "--tool", "tool_[23]"], &[2, 3]),
        (&["log", "--since", "2026-03-20T14:22:19.804012Z"], &[8, 9]),
        (&["log", "--since", "1h", "--kind", "decision"], &[]),
        (&["log", "--kind", "session,policy"], &[]),
        (&["log", "--tail", "0"], &[]),
    ] {
        assert_eq!(tools(folder.path(), args), expected, "{args:?}");
    }
    let out = says(folder.path(), &["log", "--since", "soon"], 64);
    assert!(out.contains("`soon` is not a valid time"), "{out}");
    says(folder.path(), &["log", "--tool", "[a"], 64);
}

#[test]
fn json_is_what_stands_in_the_log_and_ocsf_has_its_class() {
    let folder = logged();
    let all: Vec<u8> =
        aside(folder.path()).iter().flat_map(|path| fs::read(path).unwrap()).collect();
    assert_eq!(says(folder.path(), &["log", "--format", "jsonl"], 0).as_bytes(), all);
    let out = says(folder.path(), &["log", "--format", "ocsf", "--kind", "decision"], 0);
    assert_eq!(out.lines().count(), 10);
    for (number, line) in out.lines().enumerate() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            (event["class_uid"].as_u64(), event["type_uid"].as_u64()),
            (Some(6003), Some(600_399))
        );
        assert_eq!(event["action_id"], if number % 2 == 0 { 1 } else { 2 });
        assert_eq!(event["resources"][0]["name"], format!("tool_{number}"));
    }
}

#[test]
fn files_are_read_by_their_names() {
    let folder = logged();
    let first = aside(folder.path())[0].to_str().unwrap().to_owned();
    assert_eq!(tools(folder.path(), &["log", &first]).first(), Some(&0));
    let mixed = folder.path().join("mixed.jsonl");
    fs::write(&mixed, "{\"kind\":\"decision\",\"tool\":\"tool_3\"}\nnonsense\n{\"kind\":").unwrap();
    let out = says(folder.path(), &["log", "mixed.jsonl"], 1);
    assert!(out.contains("tool_3") && out.contains("line 2 is not an event"), "{out}");
    assert!(says(folder.path(), &["log", "none.jsonl"], 3).contains("cannot read `none.jsonl`"));
    let empty = tempfile::tempdir().unwrap();
    assert!(says(empty.path(), &["log"], 0).contains("there is no activity log in `"));
}

#[test]
fn a_file_that_is_not_a_log_gets_one_error() {
    let folder = tempfile::tempdir().unwrap();
    for (text, code, message) in [
        ("nonsense\n".repeat(1000), 2, "`x` is not an activity log: nothing in it is an event\n"),
        ("{\"a\":1}\n".to_owned(), 2, "`x` is not an activity log: nothing in it is an event\n"),
        (String::new(), 0, "`x` has no events\n"),
    ] {
        fs::write(folder.path().join("x"), text).unwrap();
        let out = says(folder.path(), &["log", "x"], code);
        assert!(out.ends_with(message) && out.lines().count() == 1, "{out}");
    }
    let text = "{\"kind\":\"decision\"}\n".to_owned() + &"nonsense\n".repeat(1000);
    fs::write(folder.path().join("x"), text).unwrap();
    let out = says(folder.path(), &["log", "x"], 1);
    assert!(out.contains("x: 980 more lines are not events"), "{out}");
    assert!(out.lines().count() < 30, "{out}");
}

#[test]
fn a_tape_is_not_taken_for_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let thoughtjack = r#"{"type":"header","version":"1.0","name":"s","recorded_at":"2026-03-20T14:22:11.000000Z","upstream":"x","thoughtjack_version":"0.1.0"}"#;
    let overwatch = r#"{"ts":"2026-11-15T10:02:35.931Z","direction":"client_to_server","parsed":{"jsonrpc":"2.0","id":1,"method":"ping"}}"#;
    for tape in [thoughtjack, overwatch] {
        fs::write(folder.path().join("t.jsonl"), format!("{tape}\n")).unwrap();
        let expected = "error: `t.jsonl` is a tape, not an activity log\n\n\
                        hint: `tapegate show t.jsonl` shows it\n";
        assert_eq!(says(folder.path(), &["log", "t.jsonl"], 2), expected);
    }
}

#[test]
fn a_log_is_followed_while_files_are_put_aside() {
    let folder = logged();
    let mut command = tapegate();
    command.args(["log", "-f", "--tail", "1"]).env("TAPEGATE_HOME", folder.path());
    let mut follower = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().ends_with("tool_9"));
    for round in 1..5 {
        write(folder.path(), 1200, round * 10..round * 10 + 10);
        for number in round * 10..round * 10 + 10 {
            let next = lines.by_ref().map(Result::unwrap).find(|line| line.contains("tool_"));
            assert!(next.unwrap().ends_with(&format!("tool_{number}")));
        }
    }
    follower.kill().unwrap();
    follower.wait().unwrap();
}

#[test]
fn check_tells_a_log_that_nobody_touched_from_one_that_somebody_has() {
    let folder = logged();
    let current = folder.path().join("activity.jsonl");
    let out = says(folder.path(), &["check", "activity.jsonl"], 0);
    let head = fs::read_to_string(&current)
        .unwrap()
        .trim_end()
        .trim_end_matches("\"}")
        .rsplit('"')
        .next()
        .unwrap()
        .to_owned();
    let count = fs::read_dir(folder.path()).unwrap().count();
    let events = out.split(", ").nth(1).unwrap().to_owned();
    assert_eq!(out, format!("activity.jsonl: ok, {events}, head {head}\n"));
    assert!(events.ends_with(&format!(" in {count} files")));
    assert!(says(folder.path(), &["check", "."], 0).starts_with(".: ok, "));
    let out = says(folder.path(), &["check", "activity.jsonl", "--expect-head", &head], 0);
    assert!(out.contains(", 0 since the expected head, head "), "{out}");

    let first = &aside(folder.path())[0];
    let text = fs::read_to_string(first).unwrap();
    fs::write(first, text.replace("tool_1", "tool_7")).unwrap();
    let out = says(folder.path(), &["check", "activity.jsonl"], 1);
    let output_text =
        "activity-1.jsonl:2: error: the line was changed: its hash does not match its text\n";
    assert!(out.contains(output_text) && out.contains("activity.jsonl: 1 error, "), "{out}");
    let out = says(folder.path(), &["check", "--format", "jsonl", "activity.jsonl"], 1);
    let found: Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!((found["line"].as_u64(), found["fault"].as_str()), (Some(2), Some("changed")));
    let totals: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(
        (totals["errors"].as_u64(), totals["head"].as_str()),
        (Some(1), Some(head.as_str()))
    );

    fs::remove_file(first).unwrap();
    let out = says(folder.path(), &["check", "activity.jsonl"], 1);
    assert!(out.contains("are missing, and no event records that they expired"), "{out}");
    let alone = aside(folder.path())[0].file_name().unwrap().to_str().unwrap().to_owned();
    assert!(says(folder.path(), &["check", &alone], 0).contains("note: events 1 to "));
}

#[test]
fn check_of_a_project_checks_its_policy_its_lock_and_its_log() {
    let project = tempfile::tempdir().unwrap();
    let folder = project.path();
    write(&folder.join(".tapegate"), 1200, 0..10);
    let policy = "schema: 1\ngovernance: {defaults: {action: deny}}\n";
    fs::write(folder.join("tapegate.yaml"), policy).unwrap();
    let out = says(folder, &["check", "."], 0);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("./tapegate.yaml: ok, ") && lines.len() == 2, "{out}");
    assert!(lines[1].starts_with("./.tapegate: ok, 13 events in "), "{out}");
    fs::write(folder.join("tapegate.yaml"), format!("{policy}sourcs: []\n")).unwrap();
    fs::write(folder.join("tapegate.lock"), "nonsense").unwrap();
    let current = folder.join(".tapegate/activity.jsonl");
    let text = fs::read_to_string(&current).unwrap();
    fs::write(&current, text.replace("tool_9", "tool_7")).unwrap();
    let out = says(folder, &["check", "."], 1);
    for expected in [
        "./tapegate.yaml:3:1: error: there is no key `sourcs` here",
        "./tapegate.yaml: 2 errors",
        "./tapegate.lock: 1 error",
        "./.tapegate/activity.jsonl:1: error: one of the lines 1 to 2 was changed: ",
        "./.tapegate: 1 error, 13 events",
    ] {
        assert!(out.contains(expected), "{expected}\n--\n{out}");
    }
    // The log of a project below, whatever its folder is called.
    fs::create_dir(folder.join("sub")).unwrap();
    fs::rename(folder.join(".tapegate"), folder.join("sub/state")).unwrap();
    let out = says(folder, &["check", "sub"], 1);
    assert!(out.contains("sub/state: 1 error, 13 events"), "{out}");
}

#[test]
fn check_tells_a_log_whose_end_was_cut_off_by_its_head_alone() {
    let folder = logged();
    let current = folder.path().join("activity.jsonl");
    let text = fs::read_to_string(&current).unwrap();
    let head = text.trim_end().trim_end_matches("\"}").rsplit('"').next().unwrap();
    let shorter = text.trim_end().rsplit_once('\n').map_or("", |(before, _)| before);
    fs::write(&current, shorter.to_owned() + if shorter.is_empty() { "" } else { "\n" }).unwrap();
    says(folder.path(), &["check", "activity.jsonl"], 0);
    let out = says(folder.path(), &["check", "activity.jsonl", "--expect-head", head], 1);
    assert!(out.contains(&format!("error: the head {head} is not in the log")), "{out}");
    says(folder.path(), &["check", "activity.jsonl", "--expect-head", "abc"], 64);
    fs::write(folder.path().join("t.jsonl"), "").unwrap();
    says(folder.path(), &["check", "t.jsonl", "--expect-head", head], 64);
}

#[test]
fn check_calls_a_torn_end_torn_and_something_else_invalid() {
    let folder = logged();
    let current = folder.path().join("activity.jsonl");
    let text = fs::read(&current).unwrap();
    fs::write(&current, &text[..text.len() - 20]).unwrap();
    let out = says(folder.path(), &["check", "activity.jsonl"], 0);
    assert!(
        out.contains("warning: the last line, of ") && out.contains("ok with 1 warning"),
        "{out}"
    );
    says(folder.path(), &["check", "--strict", "activity.jsonl"], 1);
    write(folder.path(), u64::MAX, 10..11);
    let out = says(folder.path(), &["check", "activity.jsonl"], 0);
    assert!(out.contains("warning: a writer was killed here; "), "{out}");
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("activity.jsonl"), "my notes\n").unwrap();
    says(other.path(), &["check", "activity.jsonl"], 2);
    says(other.path(), &["check", "activity-3.jsonl"], 3);
    let pipe = other.path().join("activity-4.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    says(other.path(), &["check", "activity-4.jsonl"], 3);
    // Under another name, a log is recognized by its lines.
    fs::copy(aside(folder.path())[0].as_path(), other.path().join("kept.txt")).unwrap();
    assert!(says(other.path(), &["check", "kept.txt"], 0).contains("kept.txt: ok, "));
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_half_written() {
    let disk = SmallFileSystem::new("64k");
    let filler = disk.path().join("filler");
    fs::write(&filler, vec![0; 20_000]).unwrap();
    let mut log = ActivityLog::open(disk.path(), ActivityLogOptions::default()).unwrap();
    let mut whole = 0;
    let error = loop {
        assert!(whole < 10_000, "the disk is not full");
        (0..10).for_each(|number| log.append(&event(number)));
        match log.commit() {
            Ok(()) => whole += 10,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("No space left on device"), "{error}");
    let check = says(disk.path(), &["check", "activity.jsonl"], 0);
    assert!(check.starts_with(&format!("activity.jsonl: ok, {whole} events, ")), "{check}");
    // When there is space again, the log records how much was lost.
    fs::remove_file(filler).unwrap();
    log.append(&event(0));
    log.commit().unwrap();
    let out = says(disk.path(), &["log", "--kind", "log"], 0);
    assert!(out.contains("log lost") && out.contains("lost=10"), "{out}");
    let check = says(disk.path(), &["check", "activity.jsonl"], 0);
    assert!(check.contains("warning: 10 events before this one could not be written"), "{check}");
}

#[test]
fn a_word_that_no_log_has_is_refused() {
    let folder = logged();
    for (flag, word) in [("--decision", "nonsense"), ("--kind", "decisions")] {
        let said = says(folder.path(), &["log", flag, word], 64);
        assert!(said.contains("possible values: ") && said.contains(word), "{said}");
    }
}

#[test]
fn every_word_that_a_log_can_have_is_taken_and_documented() {
    let folder = logged();
    let docs = fs::read_to_string(crate::tidy::root().join("docs/activity-log.md")).unwrap();
    let section = docs.split("### Decisions").nth(1).unwrap().split("### Events").next().unwrap();
    for decision in LoggedDecision::ALL {
        let word = decision.as_str();
        says(folder.path(), &["log", "--decision", word], 0);
        says(folder.path(), &["log", "--decision", &word.to_ascii_lowercase()], 0);
        assert!(section.contains(&format!("`{word}`")), "docs/activity-log.md lacks `{word}`");
    }
    let row = docs.lines().find(|line| line.starts_with("| `kind` | `decision`")).unwrap();
    for kind in ActivityKind::WORDS {
        says(folder.path(), &["log", "--kind", kind], 0);
        assert!(row.contains(&format!("`{kind}`")), "docs/activity-log.md lacks `{kind}`");
    }
}

/// The output of `log` at 80 and 120 columns is a golden (`tests/golden/log`), with the arguments
/// of calls from the tape beside the log; `UPDATE_GOLDEN=1` rewrites it.
#[test]
fn events_have_arguments_and_fit_at_every_width() {
    let folder = crate::tidy::root().join("tests/golden/log");
    for (columns, log, golden) in [
        (80, "activity.jsonl", "log-80.txt"),
        (120, "activity.jsonl", "log-120.txt"),
        (80, "odd.jsonl", "odd-80.txt"),
        (120, "odd.jsonl", "odd-120.txt"),
    ] {
        let done = crate::show::command(&columns.to_string())
            .args(["log", log])
            .current_dir(&folder)
            .output()
            .unwrap();
        let text = crate::show::out(&done);
        crate::show::compare(&format!("../log/{golden}"), &text, columns);
        let is_unsafe = |letter: char| {
            letter != '\n' && letter.is_control()
                || matches!(letter, '\u{200d}' | '\u{202e}' | '\u{2066}')
        };
        assert!(!text.chars().any(is_unsafe), "{text:?}");
    }
}

#[test]
fn arguments_come_from_the_tape_masked_as_it_is_and_a_log_without_a_tape_has_none() {
    let folder = crate::tidy::root().join("tests/golden/log");
    let state = tempfile::tempdir().unwrap();
    fs::copy(folder.join("activity.jsonl"), state.path().join("activity.jsonl")).unwrap();
    let show = |columns: &str| {
        let mut command = crate::show::command(columns);
        command.args(["log", "--tail", "5", "--state", "."]).current_dir(state.path());
        let done = command.env("TAPEGATE_HOME", state.path()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap()
    };
    assert!(!show("200").contains("/srv/shop"), "{}", show("200"));
    let tapes = state.path().join("tapes/some-server");
    fs::create_dir_all(&tapes).unwrap();
    let name = "2026-03-20T14-22-11-804Z-0123456789abcdef.jsonl";
    fs::copy(folder.join("tapes/files").join(name), tapes.join(name)).unwrap();
    let text = show("200");
    let denied = text.lines().find(|line| line.contains("delete_file")).unwrap();
    assert!(denied.contains("[REDACTED:1f]") && denied.contains("(rule `no-deletes`"), "{denied}");
    assert!(!denied.contains('\u{1b}'), "{denied:?}");
    // An event that names anything but a tape in the folder reads nothing.
    let forged = r#"{"timestamp":"2026-03-20T14:22:30Z","kind":"decision","tool":"x","tape_session_id":"../../other","tape_seq":1}"#;
    fs::write(state.path().join("activity.jsonl"), format!("{forged}\n")).unwrap();
    fs::copy(tapes.join(name), state.path().join("other.jsonl")).unwrap();
    assert_eq!(show("200"), "03-20 15:22:30 decision             x\n");
}
