//! `tapegate sessions`, and `cuff record`, over recordings that are written here.

mod documented_lines;
mod generate;
mod messages;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The session of the document's samples, and one that was interrupted.
const ONE: &str = "20260118_143052_a7b3c9d2-e4f5";
const TWO: &str = "20260118_160315_b8c4d0e3-f6a7";

/// A folder with recordings, and the binary under both names.
struct SessionsFixture {
    folder: TempDir,
}

fn entry(session: &str, number: u64, command: &str, exit_code: Option<i64>, ms: u64) -> String {
    let time = if session == ONE { "2026-01-18T14:31:00.5Z" } else { "2026-01-18T16:04:00Z" };
    entry_at(time, session, number, command, exit_code, ms)
}

fn entry_at(
    time: &str,
    session: &str,
    number: u64,
    command: &str,
    exit_code: Option<i64>,
    ms: u64,
) -> String {
    json!({
        "entry_id": format!("e_{number}"), "session_id": session, "sequence_number": number,
        "timestamp": time, "duration_ms": ms, "command": command, "description": null,
        "working_directory": "/Users/dev/myproject", "shell": "/bin/bash", "timeout_seconds": 120,
        "timed_out": exit_code.is_none(), "exit_code": exit_code,
        "stdout": format!("\u{1b}[2Jout of {command}\n"), "stderr": "", "output_truncated": false,
        "output_truncated_bytes": null, "environment": {"A": "1"}, "agent_id": "claude-code",
        "conversation_id": null, "tool_call_id": null, "opencuff_version": "0.1.0",
        "plugin_version": "1.0.0",
    })
    .to_string()
}

impl SessionsFixture {
    fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        symlink(env!("CARGO_BIN_EXE_tapegate"), folder.path().join("cuff")).unwrap();
        Self { folder }
    }

    fn new() -> Self {
        let recorded = Self::empty();
        let sessions = recorded.recordings().join("sessions");
        fs::create_dir_all(&sessions).unwrap();
        let one = [
            entry(ONE, 2, "cat package.json", Some(0), 45_300),
            entry(ONE, 1, "git status", Some(0), 1000),
            entry(ONE, 3, "git status -s", Some(1), 107_700),
        ];
        fs::write(sessions.join(format!("{ONE}.jsonl")), one.join("\n") + "\n").unwrap();
        let metadata = json!({
            "session_id": ONE, "created_at": "2026-01-18T14:30:52Z",
            "last_updated": "2026-01-18T14:45:00Z", "entry_count": 3, "total_duration_ms": 154_000,
            "status": "complete", "commands_succeeded": 2, "commands_failed": 1,
            "commands_timed_out": 0, "working_directory": "/Users/dev/myproject",
            "agent_id": "claude-code", "conversation_id": null,
        });
        fs::write(sessions.join(format!("{ONE}.meta.json")), metadata.to_string()).unwrap();
        // Its server was killed: no metadata, and half a line at the end.
        let two = entry(TWO, 1, "npm run build", None, 72_000);
        fs::write(sessions.join(format!("{TWO}.jsonl")), format!("{two}\n{{\"entry_id\":\"e_2"))
            .unwrap();
        recorded
    }

    /// The same, and a session of today with three commands.
    fn with_today() -> (Self, String) {
        let recorded = Self::new();
        let now = tapegate_bash::recording::session_id::timestamp(now_us());
        let stamp: String = now[..19].chars().filter(char::is_ascii_digit).collect();
        let id = format!("{}_{}_c9d5e1f4-a8b9", &stamp[..8], &stamp[8..]);
        let lines = ["git status", "git status", "make all"].map(|command| (command, Some(0)));
        let lines: Vec<String> = (1..)
            .zip(lines)
            .map(|(number, (command, code))| entry_at(&now, &id, number, command, code, 15_000))
            .collect();
        let path = recorded.recordings().join(format!("sessions/{id}.jsonl"));
        fs::write(path, lines.join("\n") + "\n").unwrap();
        (recorded, id)
    }

    fn recordings(&self) -> PathBuf {
        self.path().join(".cuff/recordings")
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command.env("COLUMNS", "100").output().unwrap()
    }

    /// The output of `cuff record`, which must succeed and be that of `tapegate sessions`.
    #[track_caller]
    fn record(&self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        let done = self.run(&self.path().join("cuff"), &[&["record"], &words[..]].concat());
        assert!(done.status.success(), "{line}: {done:?}");
        let ours = Path::new(env!("CARGO_BIN_EXE_tapegate"));
        let same = self.run(ours, &[&["sessions"], &words[..]].concat());
        assert_eq!(text(&done.stdout), text(&same.stdout), "{line}");
        text(&done.stdout)
    }

    /// The exit code and the message of a `cuff record` that fails.
    #[track_caller]
    fn fails(&self, line: &str) -> (i32, String) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let done = self.run(&self.path().join("cuff"), &[&["record"], &words[..]].concat());
        assert!(!done.status.success() && done.stdout.is_empty(), "{line}: {done:?}");
        (done.status.code().unwrap(), text(&done.stderr))
    }
}

fn now_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    since.as_micros() as i64
}

#[track_caller]
fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_list_has_the_form_of_the_document() {
    let recorded = SessionsFixture::new();
    let expected = "\
Session ID                    Started              Commands  Duration   Status
───────────────────────────────────────────────────────────────────────────────
20260118_143052_a7b3c9d2     2026-01-18 14:30:52        3    2m 34s    complete
20260118_160315_b8c4d0e3     2026-01-18 16:03:15        1    1m 12s    interrupted
";
    assert_eq!(recorded.record("list"), expected);
    assert!(!recorded.record("list --limit 1").contains("a7b3c9d2"));
    assert!(!recorded.record("list --since 2026-01-19 --limit 50").contains("a7b3c9d2"));
    assert!(recorded.record("list --since 2026-01-18").contains("a7b3c9d2"));
    let list: Value = serde_json::from_str(&recorded.record("list --format json")).unwrap();
    assert_eq!((&list[0]["session_id"], &list[1]["status"]), (&json!(ONE), &json!("interrupted")));
    assert_eq!(recorded.record("list --format csv").lines().count(), 3);
    assert!(recorded.record("list --verbose").contains("/Users/dev/myproject"));
}

#[test]
fn a_session_is_shown_by_any_part_of_its_id() {
    let recorded = SessionsFixture::new();
    let shown = recorded.record("show 143052");
    for line in [
        "Session: 20260118_143052_a7b3c9d2-e4f5",
        "Started: 2026-01-18 14:30:52",
        "Duration: 2m 34s",
        "Working Directory: /Users/dev/myproject",
        "Commands: 3 total",
        "  ✓ Succeeded: 2",
        "  ✗ Failed: 1",
        "  ⏱ Timed out: 0",
        "Top Commands:",
        "  git status          - 2 calls",
        "  cat <file>          - 1 call",
    ] {
        assert!(shown.lines().any(|found| found == line), "no {line} in {shown}");
    }
    let entries = recorded.record("show 143052 --entries");
    let order: Vec<usize> = ["git status\n", "cat package.json", "git status -s"]
        .iter()
        .map(|it| entries.find(it).unwrap())
        .collect();
    assert!(order.is_sorted() && !entries.contains("out of"), "{entries}");
    let output = recorded.record("show 143052 --entries --output");
    assert!(output.contains("out of git status") && !output.contains('\u{1b}'), "{output}");
    let json: Value =
        serde_json::from_str(&recorded.record("show 143052 --entries --format json")).unwrap();
    assert_eq!(
        (&json["entry_count"], &json["entries"][0]["command"]),
        (&json!(3), &json!("git status"))
    );
    assert!(recorded.record("show 143052 --format yaml").contains("status: complete\n"));
}

#[test]
fn statistics_count_commands_without_their_arguments() {
    let recorded = SessionsFixture::new();
    let shown = recorded.record("stats");
    for line in [
        "Recording Statistics (all time)",
        "Sessions: 2",
        "Total Commands: 4",
        "Total Duration: 3m 46s",
        "  git status        - 2 (50.0%)  ████████████████████",
        "  npm run build     - 1 (25.0%)  ██████████",
        "  0 (success)       - 2 (50.0%)  ████████████████████",
        "  2+ (other)        - 1 (25.0%)  ██████████",
        "Average Duration: 56.5s",
        "Longest Command: git status -s (1m 48s)",
    ] {
        assert!(shown.lines().any(|found| found == line), "no {line} in {shown}");
    }
    assert!(recorded.record("stats --since 30d").starts_with("No recordings found.\n"));
    let json: Value = serde_json::from_str(&recorded.record("stats --format json")).unwrap();
    assert_eq!((&json["total_commands"], &json["timed_out"]), (&json!(4), &json!(1)));
}

#[test]
fn recordings_are_exported_as_json_csv_and_sqlite() {
    let recorded = SessionsFixture::new();
    let one: Value = serde_json::from_str(&recorded.record("export 143052 --format json")).unwrap();
    let session = &one["sessions"][0];
    assert_eq!(
        (&session["session_id"], session["entries"].as_array().unwrap().len()),
        (&json!(ONE), 3)
    );
    let csv = recorded.record("export all --format csv");
    assert!(
        csv.starts_with("entry_id,session_id,sequence_number,timestamp,")
            && csv.contains("\"{\"\"A\"\":\"\"1\"\"}\"")
    );
    let cuff = recorded.path().join("cuff");
    let line = ["record", "export", "all", "--format", "sqlite", "--output", "recordings.db"];
    assert!(recorded.run(&cuff, &line).status.success());
    let script = "import sqlite3\ndb = sqlite3.connect('recordings.db')\n\
        print(db.execute('PRAGMA integrity_check').fetchone()[0])\n\
        print(*db.execute('SELECT s.status, e.command, e.exit_code, e.timed_out FROM entries e JOIN sessions s USING (session_id) ORDER BY s.session_id, e.sequence_number').fetchall(), sep='\\n')";
    let asked = Command::new("python3")
        .arg("-c")
        .arg(script)
        .current_dir(recorded.path())
        .output()
        .unwrap();
    assert_eq!(
        text(&asked.stdout),
        "ok\n('complete', 'git status', 0, 0)\n('complete', 'cat package.json', 0, 0)\n\
         ('complete', 'git status -s', 1, 0)\n('interrupted', 'npm run build', None, 1)\n"
    );
    // A file that is there is replaced only on request.
    assert_eq!(recorded.run(&cuff, &line).status.code(), Some(2));
    assert!(recorded.run(&cuff, &[&line[..], &["--force"]].concat()).status.success());
}

#[test]
fn old_recordings_are_deleted_only_if_that_is_confirmed() {
    let recorded = SessionsFixture::new();
    let shown = recorded.record("clean --dry-run");
    assert!(shown.contains("a7b3c9d2") && shown.contains("Would delete 2 sessions"), "{shown}");
    let (code, said) = recorded.fails("clean --older-than 2026-01-19");
    assert!(code == 2 && said.contains("--force"), "{said}");
    assert_eq!(recorded.record("clean --older-than 2026-01-18 --force"), "Nothing to delete.\n");
    let cuff = recorded.path().join("cuff");
    let done = recorded.run(&cuff, &["record", "clean", "--force"]);
    assert!(text(&done.stdout).starts_with("Deleted 2 sessions"), "{done:?}");
    assert_eq!(fs::read_dir(recorded.recordings().join("sessions")).unwrap().count(), 0);
    let index: Value = serde_json::from_str(
        &fs::read_to_string(recorded.recordings().join("index.json")).unwrap(),
    )
    .unwrap();
    assert_eq!(index["total_sessions"], 0);
}

#[test]
fn the_settings_name_the_folder_and_how_long_recordings_are_kept() {
    let recorded = SessionsFixture::new();
    fs::rename(recorded.recordings(), recorded.path().join("elsewhere")).unwrap();
    let settings = "plugins:\n  bash_recorder:\n    config:\n      recording: {directory: elsewhere, retention_days: 0}\n";
    fs::write(recorded.path().join("settings.yml"), settings).unwrap();
    assert!(recorded.record("list").contains("a7b3c9d2"));
    assert!(recorded.record("clean --force").contains("keeps recordings forever"));
    fs::write(recorded.path().join("settings.yml"), "rails: {recording: true}\n").unwrap();
    assert!(recorded.record("list --directory elsewhere").contains("a7b3c9d2"));
    assert!(recorded.record("list").starts_with("No recordings found."));
}
