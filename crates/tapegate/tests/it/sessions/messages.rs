//! The messages of the document, and what is asked at a terminal.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{SessionsFixture, text};
use crate::support::{TerminalStep, at_terminal, at_terminal_in_steps};

#[test]
fn messages_are_those_of_the_document() {
    let recorded = SessionsFixture::new();
    for (line, code, expected) in [
        (
            "show nonexistent_session",
            1,
            "Error: Session 'nonexistent_session' not found\n\nHint: Use 'cuff record list' to see available sessions\n",
        ),
        (
            "list --since invalid",
            2,
            "Error: Invalid date format 'invalid'\n\nExpected: YYYY-MM-DD or relative format (e.g., '7d', '2w', '1m')\n",
        ),
        (
            "show 143052 --output",
            2,
            "Error: --output requires --entries\n\nHint: add --entries, which shows the commands that the output belongs to\n",
        ),
        (
            "show 20260118",
            1,
            "Error: '20260118' matches 2 sessions\n\nHint: Use more of the id:\n  20260118_143052_a7b3c9d2-e4f5\n  20260118_160315_b8c4d0e3-f6a7\n",
        ),
    ] {
        assert_eq!(recorded.fails(line), (code, expected.to_owned()), "{line}");
    }
    let empty = "No recordings found.\n\nRecordings are created when the BashRecorder plugin executes commands.\nConfigure the plugin in settings.yml to start recording.\n";
    let nothing = SessionsFixture::empty();
    for line in ["stats", "list", "export all"] {
        assert_eq!(nothing.record(line), empty, "{line}");
    }
    assert_eq!(nothing.record("list --format json"), "[]\n");
}

#[test]
fn recordings_of_another_user_are_not_deleted_and_the_message_is_that_of_the_document() {
    let recorded = SessionsFixture::new();
    fs::set_permissions(recorded.path(), Permissions::from_mode(0o755)).unwrap();
    let before = fs::read_dir(recorded.recordings().join("sessions")).unwrap().count();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=61236", "--regid=61236", "--clear-groups"]);
    command.arg(recorded.path().join("cuff")).args(["record", "clean", "--force"]);
    command.current_dir(recorded.path()).env("HOME", recorded.path()).stdin(Stdio::null());
    let done = command.output().unwrap();
    let folder = recorded.recordings().canonicalize().unwrap();
    assert_eq!(
        text(&done.stderr),
        format!(
            "Error: Cannot delete recordings in {}\n\n\
             Permission denied. Try running with appropriate permissions.\n",
            folder.display()
        ),
        "these tests run as root"
    );
    assert_eq!((done.status.code(), done.stdout.is_empty()), (Some(1), true));
    assert_eq!(fs::read_dir(recorded.recordings().join("sessions")).unwrap().count(), before);
}

#[test]
fn a_person_at_a_terminal_is_asked_before_recordings_are_deleted() {
    let recorded = SessionsFixture::new();
    let mut command = Command::new(recorded.path().join("cuff"));
    command.args(["record", "clean"]).current_dir(recorded.path());
    let sessions = || fs::read_dir(recorded.recordings().join("sessions")).unwrap().count();
    for answer in ["n\n", "\n", "maybe\n"] {
        let (code, said) = at_terminal(&command, answer);
        assert!(said.contains("Delete 2 sessions (") && said.contains(")? [y/N] "), "{said}");
        assert!(said.ends_with("Nothing was deleted.\n") && code == 0, "{said}");
        assert_eq!(sessions(), 3);
    }
    let (code, said) = at_terminal(&command, "y\n");
    assert!(said.contains("Deleted 2 sessions (") && code == 0, "{said}");
    assert_eq!(sessions(), 0);
}

#[test]
fn colours_are_used_on_a_terminal_and_when_they_are_forced() {
    let recorded = SessionsFixture::new();
    let colours = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    for line in ["show 143052 --entries --output", "stats"] {
        let plain = recorded.record(line);
        assert!(!plain.contains('\u{1b}'), "{plain}");
        let forced = recorded.record(&format!("{line} --color always"));
        assert!(forced.contains("\u{1b}["), "{forced}");
        let bare = colours.replace_all(&forced, "").into_owned();
        assert_eq!(bare, plain);
        let mut command = Command::new(recorded.path().join("cuff"));
        command.arg("record").args(line.split(' ')).arg("--no-pager");
        command.current_dir(recorded.path()).env("TERM", "xterm").env("COLUMNS", "100");
        let (code, shown) = at_terminal(&command, "");
        assert_eq!((code, shown), (0, forced));
    }
}

#[test]
fn the_progress_of_a_large_store_is_shown_on_a_terminal() {
    let recorded = SessionsFixture::new();
    let sessions = recorded.recordings().join("sessions");
    // More than a second of work, even for a fast machine.
    for number in 0..150 {
        let id = format!("20260117_{:02}{:02}00_{number:08x}-0000", number / 60, number % 60);
        let line =
            super::entry(&id, 1, "for i in 1 2 3; do echo \"$(date)\" | wc -l; done", Some(0), 5);
        fs::write(sessions.join(format!("{id}.jsonl")), format!("{line}\n").repeat(1000)).unwrap();
    }
    let mut command = Command::new(recorded.path().join("cuff"));
    command.args(["record", "stats", "--no-pager"]).current_dir(recorded.path());
    let steps =
        [TerminalStep::typed("%", 2, ""), TerminalStep::typed("Total Commands: 150,004", 1, "")];
    let (code, shown) = at_terminal_in_steps(&command, (100, 40), &steps);
    assert_eq!(code, 0);
    let percents: Vec<u64> = shown
        .split('\r')
        .filter_map(|part| part.split_once(".cuff/recordings: ")?.1.strip_suffix('%')?.parse().ok())
        .collect();
    assert!(percents.len() >= 2 && percents.is_sorted(), "{percents:?}");
    assert!(shown.contains("\r\u{1b}[K"), "the line is cleared at the end");
}

#[test]
fn exports_name_what_is_missing_and_filter_by_date() {
    let (recorded, today) = SessionsFixture::with_today();
    assert_eq!(
        recorded.fails("export all --format sqlite"),
        (
            2,
            "Error: --format sqlite requires --output\n\nExample: --format sqlite --output recordings.db\n"
                .to_owned()
        )
    );
    let (code, said) = recorded.fails("export 143052 --since 7d");
    assert!(
        code == 2 && said.starts_with("Error: --since filters only the export of all\n"),
        "{said}"
    );
    let ids = |line: &str| -> Vec<String> {
        let all: serde_json::Value = serde_json::from_str(&recorded.record(line)).unwrap();
        let sessions = all["sessions"].as_array().unwrap().iter();
        sessions.map(|one| one["session_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("export all --since 7d"), [today.as_str()]);
    assert_eq!(ids("export all --since 2026-01-18"), [super::ONE, super::TWO, &today]);
    let csv = recorded.record("export all --since 1m --format csv");
    assert!(csv.matches("\ne_").count() == 3 && !csv.contains(super::ONE), "{csv}");
    assert_eq!(recorded.fails("export all --since soon").0, 2);
    assert_eq!(ids("export last"), [today.as_str()]);
    assert!(recorded.record("show last").starts_with(&format!("Session: {today}\n")));
}

#[test]
fn a_month_is_not_taken_for_a_minute() {
    let recorded = SessionsFixture::new();
    let ours = Path::new(env!("CARGO_BIN_EXE_tapegate"));
    let note = "tapegate: note: `1m` means 30 days; for minutes, write `1min`\n";
    for line in ["list --since 1m", "stats --since 1m", "clean --older-than 1m --dry-run"] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let done = recorded.run(ours, &[&["sessions"], &words[..]].concat());
        assert_eq!(text(&done.stderr), note, "{line}");
    }
    let done = recorded.run(ours, &["sessions", "list", "--since", "1min"]);
    assert_eq!(text(&done.stderr), "");
}
