//! Approval requests as people and programs see them.

use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome};

use super::*;

const NOW: i64 = 1_774_016_531_804_012;

fn entry() -> ApprovalEntry {
    let request = ApprovalRecord {
        id: "ap_0000000000000000".to_owned(),
        created_us: NOW - 75_000_000,
        expires_us: NOW + 3_600_000_000,
        server_id: "files".to_owned(),
        method: "tools/call".to_owned(),
        tool: "rm\u{1b}[2J\u{202e}".to_owned(),
        params: Some(
            "{\"name\":\"x\",\"arguments\":{\"path\": \"/\\u001b[31m\u{202e}x\"}}".to_owned(),
        ),
        call_count: 1,
        waiting: 1,
        workflow: "default".to_owned(),
        folder: "/home/u/shop".to_owned(),
        policy: "/home/u/shop/tapegate.yaml".to_owned(),
        ..ApprovalRecord::default()
    };
    ApprovalEntry { request, ..ApprovalEntry::default() }
}

#[test]
fn a_table_shows_what_can_be_seen_and_nothing_else() {
    let text = table(&[entry()], false, NOW, None);
    let expected = "\
ID                   AGE    LEFT   SERVER  TOOL               PRINCIPAL  WORKFLOW  CALLER   FOLDER        POLICY         ARGUMENTS
ap_0000000000000000  1m15s  1h00m  files   rm\\u001b[2J\\u202e  -          default   waiting  /home/u/shop  tapegate.yaml  {\"path\":\"/\\u001b[31m\\u202ex\"}
";
    assert_eq!(text, expected);
    let shown = details(&entry(), NOW, &TimeZone::default());
    assert!(!text.chars().chain(shown.chars()).any(|c| c != '\n' && c.is_control()));
    assert!(!text.contains('\u{202e}') && !shown.contains('\u{202e}'));
    assert_eq!(table(&[], false, NOW, None), "nothing waits for a person\n");
}

#[test]
fn the_folder_and_the_policy_of_a_request_are_shown_and_cannot_hide() {
    let long = format!("/{}/shop\u{1b}[2J", "x".repeat(100));
    let request =
        ApprovalRecord { folder: long, policy: "/etc/p.yaml".to_owned(), ..entry().request };
    let entry = ApprovalEntry { request, ..entry() };
    let listed = table(std::slice::from_ref(&entry), false, NOW, None);
    assert!(listed.contains("xxx/shop\\u001b[2J  /etc/p.yaml  "), "{listed}");
    assert!(!listed.contains(&"x".repeat(50)), "{listed}");
    let shown = details(&entry, NOW, &TimeZone::default());
    assert!(shown.contains("policy      /etc/p.yaml\n"), "{shown}");
    assert!(shown.contains(&format!("folder      /{}/shop\\u001b[2J\n", "x".repeat(100))));
    let read: serde_json::Value = serde_json::from_slice(&json(&entry, NOW)).unwrap();
    assert_eq!(read["policy"], "/etc/p.yaml");
    assert_eq!(read["folder"], entry.request.folder);
}

#[test]
fn a_repeated_call_says_how_often_and_since_when_nobody_waits() {
    let request = ApprovalRecord { call_count: 2, waiting: 1, ..entry().request };
    assert_eq!(caller(&request, NOW), "asked 2×");
    let left_us = Some(NOW - 40_000_000);
    let request = ApprovalRecord { waiting: 0, left_us, ..request };
    assert_eq!(caller(&request, NOW), "asked 2×, caller gave up 40s ago");
    let request = ApprovalRecord { call_count: 1, ..request };
    assert_eq!(caller(&request, NOW), "caller gave up 40s ago");
}

#[test]
fn params_beside_the_arguments_are_shown_and_nothing_is_cut_in_the_details() {
    let long = "x".repeat(100_000);
    let params = format!(r#"{{"messages":["{long}"],"maxTokens":7}}"#);
    let request = ApprovalRecord { params: Some(params), ..entry().request };
    let whole = details(&ApprovalEntry { request, ..entry() }, NOW, &TimeZone::default());
    assert!(whole.contains(&long) && whole.contains("maxTokens"), "{}", whole.len());
    let params = r#"{"name":"x","arguments":{"a":1},"task":{"ttl":9}}"#;
    let request = ApprovalRecord { params: Some(params.to_owned()), ..entry().request };
    let entry = ApprovalEntry { request, ..entry() };
    assert!(details(&entry, NOW, &TimeZone::default()).contains("\"ttl\":9"));
    assert!(table(&[entry], false, NOW, None).contains("\"ttl\":9"));
}

#[test]
fn json_is_one_line_that_others_read() {
    let decided = ApprovalDecision {
        ruling: ApprovalOutcome::Denied,
        by: "a\nb".to_owned(),
        at_us: NOW,
        reason: None,
    };
    let line = json(&ApprovalEntry { decided: Some(decided), ..entry() }, NOW);
    let line = String::from_utf8(line).unwrap();
    assert_eq!(line.matches('\n').count(), 1);
    let read: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (read["state"].as_str(), read["decided_by"].as_str()),
        (Some("denied"), Some("a\nb"))
    );
    assert_eq!(read["arguments"]["path"].as_str(), Some("/\u{1b}[31m\u{202e}x"));
}

#[test]
fn spans_are_told_in_their_two_largest_units() {
    let told = [0, 59, 60, 3599, 3600, 86_399, 86_400, 200_000].map(|secs| span(secs * 1_000_000));
    assert_eq!(told, ["0s", "59s", "1m00s", "59m59s", "1h00m", "23h59m", "1d00h", "2d07h"]);
    assert_eq!(span(-5), "0s");
}

#[test]
fn what_has_expired_was_not_given_up_and_nobody_decided_it() {
    let ApprovalEntry { request, .. } = entry();
    let late = request.expires_us;
    let ruling = ApprovalOutcome::Expired;
    let decided = ApprovalDecision { ruling, by: "shim".to_owned(), at_us: late, reason: None };
    let request = ApprovalRecord { waiting: 0, left_us: Some(late + 1000), ..request };
    let expired = ApprovalEntry { request, decided: Some(decided), ..ApprovalEntry::default() };
    assert_eq!(state(&expired, late), "expired");
    assert_eq!(caller(&expired.request, late), "waited to the end");
}

#[test]
fn what_nobody_decided_in_time_has_expired() {
    let late = entry().request.expires_us;
    assert_eq!(state(&entry(), late), "expired");
    assert!(table(&[entry()], true, late, None).contains("expired"));
    assert!(!is_pending(&entry(), late));
}

#[test]
fn the_question_counts_what_is_masked() {
    let mut entry = entry();
    assert!(!details(&entry, NOW, &TimeZone::default()).contains("hidden"));
    let masked = "[REDACTED:private-key:0123456789ab]";
    entry.request.params =
        Some(format!("{{\"arguments\":{{\"a\":\"{masked}\",\"b\":\"x {masked}\"}}}}"));
    assert!(details(&entry, NOW, &TimeZone::default()).contains("hidden      2 parts are masked"));
}

#[test]
fn a_table_fits_the_terminal_and_code_is_read_line_by_line() {
    let params =
        r#"{"name":"x","arguments":{"path":"/tmp/a.py","content":"import os\nos.remove('x')\n"}}"#;
    let request = ApprovalRecord {
        params: Some(params.to_owned()),
        tool: "write_file".to_owned(),
        ..entry().request
    };
    let entry = ApprovalEntry { request, ..entry() };
    let narrow = table(std::slice::from_ref(&entry), false, NOW, Some(80));
    let expected = "\
ID                  AGE   LEFT  SERVER TOOL       ARGUMENTS
ap_0000000000000000 1m15s 1h00m files  write_file {\"path\":\"/tmp/a.py\",\"content\"…
";
    assert_eq!(narrow, expected);
    for columns in [80, 120] {
        for with_state in [true, false] {
            let text = table(std::slice::from_ref(&entry), with_state, NOW, Some(columns));
            assert!(text.lines().all(|line| width(line) <= columns), "{text}");
        }
    }
    let shown = details(&entry, NOW, &TimeZone::default());
    assert!(shown.contains("  content:\n    │ import os\n    │ os.remove('x')\n"), "{shown}");
    assert!(shown.contains("asked       2026-03-20 14:20:56 UTC (1m15s ago)\n"), "{shown}");
    assert!(shown.contains("state       waits for a person\n"), "{shown}");
}

/// A realistic mix: several servers, long arguments, one request decided, one expired.
fn several() -> Vec<ApprovalEntry> {
    let arguments = [
        r#"{"name":"write_file","arguments":{"path":"/srv/shop/price.py","content":"def price(item):\n    return item.cents / 100\n"}}"#,
        r#"{"name":"create_pull_request","arguments":{"title":"日本語の題名","draft":true}}"#,
        r#"{"name":"x","arguments":{}}"#,
        r#"{"name":"query","arguments":{"sql":"delete from orders where state = 'old' and created < '2026-01-01' and total < 100"}}"#,
        r#"{"name":"y","arguments":{"パス":"家家家家家家家家家家家家家家家家家家家家家家家家家家家家家家","esc":"\u001b[31m"}}"#,
    ];
    let wide = "読み取り_ファイル_と_書き込み_ファイル_の_両方_を_する\u{1b}[2J\u{202e}_".repeat(5);
    let names = [
        ("files", "write_file", 75),
        ("github-enterprise", "create_pull_request_from_branch", 3_700),
        ("s", "x", 0),
        ("db", "query", 90_000),
        ("日本語サーバー日本語サーバー日本語サーバー", &wide, 5),
    ];
    let mut entries = Vec::new();
    for (at, (params, (server, tool, age))) in arguments.iter().zip(names).enumerate() {
        let request = ApprovalRecord {
            id: format!("ap_{at}000000000000000"),
            created_us: NOW - age * 1_000_000,
            expires_us: NOW + (600 - age) * 1_000_000,
            server_id: server.to_owned(),
            tool: tool.to_owned(),
            params: Some((*params).to_owned()),
            ..entry().request
        };
        entries.push(ApprovalEntry { request, ..entry() });
    }
    entries[0].decided = Some(ApprovalDecision {
        ruling: ApprovalOutcome::Approved,
        by: "ada".to_owned(),
        at_us: NOW,
        reason: None,
    });
    entries
}

#[test]
fn tables_are_as_the_goldens_have_them_at_every_width() {
    for columns in [80, 120] {
        let waiting = table(&several(), false, NOW, Some(columns));
        let all = table(&several(), true, NOW, Some(columns));
        for text in [&waiting, &all] {
            assert!(text.lines().all(|line| width(line) <= columns), "{text}");
        }
        let text = format!("$ tapegate approvals\n{waiting}\n$ tapegate approvals --all\n{all}");
        super::super::golden::assert_golden(&format!("approvals-{columns}.txt"), &text);
    }
}
