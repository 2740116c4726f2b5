//! Every command line of the document, run through a shell as it is written there, under the link
//! name, with what it prints.
//!
//! The list is a flat list of all distinct lines of its chapter on the command line, in the order
//! of the document.

use std::process::Command;

use super::{SessionsFixture, text};

/// A line, its exit code, texts that it prints, and texts that it must not print.
struct DocumentedLine {
    line: &'static str,
    code: i32,
    prints: &'static [&'static str],
    without: &'static [&'static str],
}

const fn documented(
    line: &'static str,
    code: i32,
    prints: &'static [&'static str],
    without: &'static [&'static str],
) -> DocumentedLine {
    DocumentedLine { line, code, prints, without }
}

/// The session of today is `c9d5e1f4`; the others are of January.
const LINES: [DocumentedLine; 17] = [
    documented(
        "cuff record list",
        0,
        &[
            "Session ID                    Started              Commands  Duration   Status\n───────",
            "20260118_143052_a7b3c9d2     2026-01-18 14:30:52        3    2m 34s    complete\n",
            "20260118_160315_b8c4d0e3     2026-01-18 16:03:15        1    1m 12s    interrupted\n",
            "_c9d5e1f4     ",
        ],
        &[],
    ),
    documented(
        "cuff record list --since 7d --limit 50",
        0,
        &["_c9d5e1f4     ", "        3       45s    interrupted\n"],
        &["a7b3c9d2"],
    ),
    documented(
        "cuff record list --format json",
        0,
        &["[\n  {\n", "\"session_id\": \"20260118_143052_a7b3c9d2-e4f5\"", "\"entry_count\": 3"],
        &["───"],
    ),
    documented(
        "cuff record show 20260118_143052_a7b3c9d2",
        0,
        &[
            "Session: 20260118_143052_a7b3c9d2-e4f5\nStarted: 2026-01-18 14:30:52\nDuration: 2m 34s\n",
            "Working Directory: /Users/dev/myproject\n",
            "\nCommands: 3 total\n  ✓ Succeeded: 2\n  ✗ Failed: 1\n  ⏱ Timed out: 0\n",
            "\nTop Commands:\n  git status          - 2 calls\n",
        ],
        &["Entries:"],
    ),
    documented(
        "cuff record show 143052 --entries",
        0,
        &["Session: 20260118_143052_a7b3c9d2-e4f5\n", "\nEntries:\n", "cat package.json"],
        &["out of cat package.json"],
    ),
    documented(
        "cuff record show 143052 --entries --output",
        0,
        &["\nEntries:\n", "cat package.json", "out of cat package.json"],
        &[],
    ),
    documented(
        "cuff record stats",
        0,
        &[
            "Recording Statistics (all time)\n───",
            "\nSessions: 3\nTotal Commands: 7\nTotal Duration: 4m 31s\n",
            "\nCommand Frequency:\n  git status        - 4 (57.1%)",
            "\nExit Code Distribution:\n  0 (success)       - 5 (71.4%)",
            "  1 (error)         - 1 (14.3%)",
            "  2+ (other)        - 1 (14.3%)",
            "\nAverage Duration: 38.7s\nLongest Command: git status -s (1m 48s)\n",
        ],
        &[],
    ),
    documented(
        "cuff record stats --since 30d",
        0,
        &["Recording Statistics (last 30 days)\n", "\nSessions: 1\nTotal Commands: 3\n"],
        &["npm"],
    ),
    documented(
        "cuff record generate --since 7d",
        0,
        &[
            "# Auto-generated policy from recordings\n# Generated: 2",
            "\n# Source sessions: 1\n# Commands analyzed: 3\n",
            "\npolicies:\n  - name: git-operations\n    description: Git version control commands\n    commands:\n      - pattern: \"git status\"\n        frequency: 2\n",
        ],
        &["npm"],
    ),
    documented(
        "cuff record generate --strategy exact --output policies.yml",
        0,
        &["the policy covers 3 of 6 commands, 50.0%"],
        &["policies:"],
    ),
    documented(
        "cuff record clean --dry-run",
        0,
        &["a7b3c9d2", "b8c4d0e3", "\nWould delete 2 sessions ("],
        &["c9d5e1f4"],
    ),
    // It asks, and there is no terminal.
    documented(
        "cuff record clean --older-than 90d",
        2,
        &["Error: Cannot ask for confirmation without a terminal\n\nHint: use --force"],
        &[],
    ),
    documented("cuff record clean --force", 0, &["Deleted 2 sessions ("], &[]),
    documented(
        "cuff record export 20260118_143052_a7b3c9d2 --format json",
        0,
        &[
            "{\"sessions\": [\n  {",
            "\"session_id\":\"20260118_143052_a7b3c9d2-e4f5\"",
            "\"entries\":[",
        ],
        &["b8c4d0e3"],
    ),
    documented(
        "cuff record export all --format sqlite --output recordings.db",
        0,
        &["exported 3 sessions with 7 commands to recordings.db"],
        &[],
    ),
    documented(
        "cuff record show nonexistent_session",
        1,
        &[
            "Error: Session 'nonexistent_session' not found\n\nHint: Use 'cuff record list' to see available sessions\n",
        ],
        &[],
    ),
    documented(
        "cuff record list --since invalid",
        2,
        &[
            "Error: Invalid date format 'invalid'\n\nExpected: YYYY-MM-DD or relative format (e.g., '7d', '2w', '1m')\n",
        ],
        &[],
    ),
];

#[test]
fn every_command_line_of_the_document_runs_as_it_is_written() {
    for DocumentedLine { line, code, prints, without } in LINES {
        // Each for itself: `clean` and `--output` change what the others find.
        let (recorded, _) = SessionsFixture::with_today();
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(recorded.path()).stdin(std::process::Stdio::null());
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", recorded.path().display()));
        let done = command.env("COLUMNS", "100").output().unwrap();
        let shown = text(&done.stdout) + &text(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{line}: {shown}");
        for part in prints {
            assert!(shown.contains(part), "{line}: no {part:?} in {shown}");
        }
        for part in without {
            assert!(!shown.contains(part), "{line}: {part:?} in {shown}");
        }
        for file in ["policies.yml", "recordings.db"].iter().filter(|file| line.contains(**file)) {
            assert!(recorded.path().join(file).metadata().unwrap().len() > 0, "{line}");
        }
    }
}

#[test]
fn no_line_is_listed_twice() {
    let mut lines = LINES.map(|documented| documented.line).to_vec();
    lines.sort_unstable();
    let count = lines.len();
    lines.dedup();
    assert_eq!(lines.len(), count);
}
