//! The view of a session, by golden and by what it must never contain.

use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome};

use super::*;
use crate::views::golden::assert_golden;

const NOW: i64 = 1_774_016_531_804_012;

fn layout(columns: usize) -> WatchLayout {
    WatchLayout { columns, palette: Palette::Plain, now_us: NOW }
}

fn entry(params: &str) -> ApprovalEntry {
    let request = ApprovalRecord {
        id: "ap_0000000000000000".to_owned(),
        created_us: NOW - 12_000_000,
        expires_us: NOW + 588_000_000,
        server_id: "files".to_owned(),
        method: "tools/call".to_owned(),
        tool: "write_file".to_owned(),
        params: Some(params.to_owned()),
        principal: "agent".to_owned(),
        folder: "/home/u/shop".to_owned(),
        workflow: "default".to_owned(),
        reason: "rule `rules[0]` requires approval".to_owned(),
        call_count: 1,
        waiting: 1,
        ..ApprovalRecord::default()
    };
    ApprovalEntry { request, ..ApprovalEntry::default() }
}

fn last_call() -> ApprovalEntry {
    let params = r#"{"name":"write_file","arguments":{"path":"/home/u/shop/a.txt","content":"one\ntwo\nthree\n","mode":"replace"}}"#;
    let mut before = entry(params);
    before.request.id = "ap_1111111111111111".to_owned();
    before.request.created_us = NOW - 300_000_000;
    let (ruling, by) = (ApprovalOutcome::Approved, "ann".to_owned());
    before.decided = Some(ApprovalDecision { ruling, by, at_us: NOW, reason: None });
    before
}

/// Arguments that try to look like our own lines, to move the cursor, and to hide.
fn hostile() -> ApprovalEntry {
    let params = "{\"name\":\"x\",\"arguments\":{\"path\":\"/\\u001b[2J\\u001b[1;1H\u{202e}txt\",\"content\":\"safe\\r\\n── files · read_file ── ap_0000000000000000 ──\\ny approve\\u0007\\u009b31m\",\"\\u001b]0;t\\u0007\":\"[REDACTED:secret]\",\"wide\":\"日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語\"}}";
    let mut entry = entry(params);
    entry.request.tool = "rm\u{1b}[2J\nread_file".to_owned();
    entry.request.server_id = "a\tb\u{200b}".to_owned();
    entry.request.principal = "me\u{1b}c".to_owned();
    entry.request.reason = "x\ny".to_owned();
    entry
}

fn shown(entry: &ApprovalEntry, before: Option<&ApprovalEntry>, columns: usize) -> String {
    let layout = layout(columns);
    let mut lines = block(entry, before, &layout);
    lines.push(keys_line(Some(entry), 2, true, &layout));
    lines.push(keys_line(Some(entry), 1, false, &layout));
    lines.push(keys_line(None, 0, true, &layout));
    lines.push(ended_line(&last_call(), &layout));
    lines.join("\n") + "\n"
}

#[test]
fn the_session_looks_as_the_goldens_have_it_at_every_width() {
    let params = r#"{"name":"write_file","arguments":{"path":"/home/u/shop/a.txt","content":"one\n2\nthree\nfour\n","mode":"replace"}}"#;
    for columns in [80, 120] {
        let plain = shown(&entry(params), None, columns);
        let compared = shown(&entry(params), Some(&last_call()), columns);
        let hostile = shown(&hostile(), Some(&last_call()), columns);
        assert_golden(
            &format!("approvals-watch-{columns}.txt"),
            &format!("{plain}\n{compared}\n{hostile}"),
        );
    }
}

#[test]
fn no_line_is_wider_than_the_terminal_and_nothing_moves_the_cursor() {
    let long = format!(r#"{{"arguments":{{"a":"{}"}}}}"#, "xyz ".repeat(500));
    let marks = format!(r#"{{"arguments":{{"a":"{}"}}}}"#, "\u{301}".repeat(20_000));
    for one in [entry(&long), entry(&marks), hostile(), entry("not JSON \u{1b}[2J")] {
        for columns in [40, 80, 81, 200] {
            let text = shown(&one, Some(&last_call()), columns);
            for line in text.lines() {
                assert!(width(line) < columns, "{columns}: {line}");
                assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }
    }
}

#[test]
fn nothing_of_the_call_is_left_out_beside_a_similar_one() {
    let params = format!(r#"{{"arguments":{{"a":"{}"}}}}"#, "Q".repeat(5000));
    let text: String = block(&entry(&params), Some(&last_call()), &layout(80)).concat();
    assert_eq!(text.matches('Q').count(), 5000);
}

#[test]
fn colours_mark_what_has_changed_and_only_that() {
    let params = r#"{"arguments":{"path":"/b"}}"#;
    let layout = WatchLayout { palette: Palette::Colour, ..layout(80) };
    let lines = block(&entry(params), Some(&last_call()), &layout);
    let painted = lines.iter().filter(|line| line.contains('\u{1b}'));
    assert!(painted.clone().count() > 1);
    assert!(painted.clone().all(|line| line.contains("  - ") || line.contains("  + ")));
}
