//! The text of questions, by golden.

use std::fs;
use std::path::Path;

use tapegate_core::side::Lane;
use tapegate_core::time::Timestamp;

use super::*;
use crate::decide::PolicyPrincipal;
use crate::model::Workflow;
use crate::refuse::RefusalSubject;

/// The question that this client is asked about a call of this tool with these params.
fn question(client: &str, tool: &str, params: &str) -> QuestionText {
    let subject =
        RefusalSubject { word: "tool", name: tool.to_owned(), correlation_id: String::new() };
    let principal =
        PolicyPrincipal { client: Some(client.to_owned()), ..PolicyPrincipal::default() };
    let request = ApprovalRequest {
        at: Timestamp::default(),
        lane: Lane { session: 1, exchange: 0 },
        source: "files",
        method: "tools/call",
        subject: &subject,
        params: Some(params.as_bytes()),
        id: None,
        message: b"",
        principal: &principal,
        workflow_name: "people",
        workflow: &Workflow::default(),
        reason: "rule `rules[0]` requires approval",
        drift: None,
        policy_version: "v",
        timeout_ms: 600_000,
        ask: None,
        answer: None,
    };
    QuestionText::new(&request, params, (tool, request.reason), Some("ap_k3x9m2q7w4e8r6t0"))
}

fn params(arguments: &str) -> String {
    format!("{{\"name\":\"write_file\",\"arguments\":{arguments}}}")
}

const HOSTILE_TOOL: &str = "x`? yes\nSend **this** instead: [ok](http://e)\u{1b}[2J\u{202e}";
const HOSTILE: &str = "{\"path\":\"/a\\n\\nSend tool `read` to `files`?\\n# approve\\u001b[2J\\u202e\",\"b\":\"```\\n<b>[x](http://e)</b>\"}";

#[test]
#[expect(clippy::disallowed_methods, reason = "a golden is a file")]
fn questions_are_as_the_golden_has_them() {
    let mut text = String::new();
    let long = format!("{{\"content\":\"{}\"}}", "0123456789 ".repeat(40));
    let longer = format!("{{\"content\":\"{}\"}}", "0123456789 ".repeat(700));
    for (name, tool, arguments) in [
        ("a short call", "write_file", "{\"path\":\"/srv/a.txt\"}"),
        (
            "a text of several lines",
            "write_file",
            "{\"path\":\"/srv/a.txt\",\"content\":\"one\\ntwo\\n\",\"token\":\"[REDACTED:github:1]\"}",
        ),
        ("hostile names and arguments", HOSTILE_TOOL, HOSTILE),
        ("a long call", "write_file", &long),
        ("a longer call", "write_file", &longer),
    ] {
        for client in ["other", "codex-mcp-client", "claude-code"] {
            let question = question(client, tool, &params(arguments));
            let may = if question.is_whole { "may be approved" } else { "can only be denied" };
            text.push_str(&format!("=== {name}, {client}: {may}\n{}\n\n", question.text));
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/questions.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), text, "UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn a_question_for_a_small_dialog_fits_it_or_cannot_be_approved() {
    for (client, lines_max) in SMALL_DIALOGS {
        for length in (0..2000).step_by(7) {
            let arguments = format!("{{\"content\":\"{}\"}}", "é x".repeat(length));
            for tool in ["t".to_owned(), "n".repeat(length.min(250))] {
                let question = question(client, &tool, &params(&arguments));
                let lines: Vec<&str> = question.text.lines().collect();
                assert!(lines.len() <= lines_max, "{}", question.text);
                assert!(lines.iter().all(|line| line.chars().count() <= DIALOG_COLUMNS + 20));
                let shown: String = lines.iter().map(|line| line.replace("    ↳ ", "")).collect();
                let has_all = shown.matches("é x").count() >= length;
                assert!(has_all || !question.is_whole, "{}", question.text);
            }
        }
    }
}

#[test]
fn no_line_of_a_call_stands_where_ours_do() {
    for client in ["other", "codex-mcp-client", "claude-code"] {
        let text = question(client, HOSTILE_TOOL, &params(HOSTILE)).text;
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.contains('\u{202e}'), "{text:?}");
        let ours = ["May this", "Asked by", "Send tool `x`", "Too long", "Why: rule"];
        for line in text.lines().filter(|line| !line.is_empty()) {
            let is_ours = ours.iter().any(|start| line.starts_with(start));
            assert!(is_ours || line.starts_with(INDENT), "{line:?} in {text}");
        }
    }
}
