//! Reports have the forms of the document.

use serde_json::json;
use tapegate_core::time::read_rfc3339;

use super::*;

fn summary(id: &str, started: &str, count: u64, ms: u64, status: &str) -> SessionSummary {
    let mut metadata = SessionMetadata::new(id, read_rfc3339(started).unwrap());
    (metadata.entry_count, metadata.total_duration_ms) = (count, ms);
    (metadata.succeeded, metadata.failed) = (count.saturating_sub(1), 1);
    metadata.status = status.to_owned();
    metadata.working_directory = "/Users/dev/myproject".to_owned();
    SessionSummary { path: Default::default(), file_bytes: 45_678, metadata }
}

#[test]
fn the_list_is_that_of_the_document() {
    let sessions = [
        summary("20260118_143052_a7b3c9d2-e4f5", "2026-01-18T14:30:52Z", 15, 154_000, "complete"),
        summary("20260118_160315_b8c4d0e3-f6a7", "2026-01-18T16:03:15Z", 8, 72_000, "complete"),
        summary("20260118_171522_c9d5e1f4-a8b9", "2026-01-18T17:15:22Z", 3, 45_000, "active"),
    ];
    let expected = "\
Session ID                    Started              Commands  Duration   Status
───────────────────────────────────────────────────────────────────────────────
20260118_143052_a7b3c9d2     2026-01-18 14:30:52       15    2m 34s    complete
20260118_160315_b8c4d0e3     2026-01-18 16:03:15        8    1m 12s    complete
20260118_171522_c9d5e1f4     2026-01-18 17:15:22        3       45s    active
";
    assert_eq!(list_table(&sessions, false), expected);
    assert!(list_table(&sessions, true).contains("size: 45.7 KB"));
    let mut csv = Vec::new();
    write_list_csv(&mut csv, &sessions[..1]).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    assert!(csv.starts_with("session_id,created_at,last_updated,entry_count,"), "{csv}");
    assert!(csv.contains("\n20260118_143052_a7b3c9d2-e4f5,2026-01-18T14:30:52.000000Z,"), "{csv}");
}

#[test]
fn numbers_are_written_as_in_the_samples() {
    for (ms, expected) in [
        (154_000, "2m 34s"),
        (45_000, "45s"),
        (15_780_000, "4h 23m"),
        (400, "0s"),
        (3_600_000, "1h 0m"),
    ] {
        assert_eq!(duration(ms), expected);
    }
    assert_eq!((seconds(1_200), seconds(45_300)), ("1.2s".to_owned(), "45.3s".to_owned()));
    assert_eq!([1, 999, 1_523, 1_000_000].map(thousands), ["1", "999", "1,523", "1,000,000"]);
    assert_eq!(share(312, 1_523), "20.5%");
    assert_eq!((bytes(999), bytes(1_500_000)), ("999 B".to_owned(), "1.5 MB".to_owned()));
}

#[test]
fn output_of_commands_cannot_act_on_the_terminal() {
    let entry = json!({
        "sequence_number": 1, "timestamp": "2026-01-18T14:30:52.123456Z", "duration_ms": 1523,
        "command": "printf '\u{1b}[2J'\necho", "exit_code": 0, "timed_out": false,
        "stdout": "\u{1b}[2Jgone\n", "stderr": "bad\n", "description": "Clear\u{1b}[0m",
    });
    let text = entry_text(&entry, true, Palette::Plain);
    assert!(!text.contains('\u{1b}') && text.contains("gone") && text.contains("bad"), "{text}");
    assert!(text.starts_with("    1  14:30:52  ✓ 0          1.5s  printf"), "{text}");
    assert!(!entry_text(&entry, false, Palette::Plain).contains("gone"));
}

#[test]
fn yaml_has_the_same_content_as_json() {
    let value = json!({
        "a": "x", "b": "yes", "c": "1", "d": ["p", {"q": 1, "r": [2, 3]}], "e": {}, "f": [],
        "g": "two\nlines: \"q\"", "h": null, "i": "- x", "j": "", "k": true, "l": "2026-01-18",
    });
    let text = yaml(&value);
    let mut findings = tapegate_yaml::finding::Findings::default();
    let node = tapegate_yaml::yaml::parse(&text, 0, &mut findings).unwrap();
    let read: Value = serde_json::from_slice(&node.to_json()).unwrap();
    assert_eq!(read, value, "{text}");
}
