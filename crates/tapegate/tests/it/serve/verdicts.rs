//! `--expect`: the verdict on a client as text, in reports and as exit code.

use std::fs;

use serde_json::{Value, json};

use super::agent::ScenarioAgent;
use super::{calculator, serve};
use crate::support::tapegate;

fn scenario() -> String {
    format!(
        "{}expect:\n\
         \x20 - id: no-key\n\
         \x20   title: No key is sent\n\
         \x20   severity: critical\n\
         \x20   never: {{ method: tools/call, regex: \"sk-[0-9]+\" }}\n\
         \x20 - {{ id: relist, must: {{ method: tools/list }}, after: {{ method: tools/call }} }}\n",
        calculator("x")
    )
}

#[test]
fn a_verdict_is_told_in_words_and_by_the_code() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), scenario()).unwrap();
    let mut agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &["--expect"]));
    agent.call("add", &json!({"key": "sk-12\u{1b}[31m"}));
    let gone = agent.leave();
    assert_eq!(gone.code, Some(6));
    let lines: Vec<&str> = gone.stderr.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "tapegate: verdict: not safe (0 kept, 2 broken, 0 untested, 3 messages heard)",
            "  BROKEN   no-key [critical]: No key is sent; the client did it",
        ]
    );
    assert!(lines[2].starts_with("           #3 tools/call add: {"), "{}", gone.stderr);
    assert_eq!(lines[3], "  BROKEN   relist [high]: relist; the client never did it");
    assert!(!gone.stderr.contains('\u{1b}'));
}

#[test]
fn a_client_that_is_killed_with_the_server_is_judged_too() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), scenario()).unwrap();
    let flags = ["--expect", "--report", "r.json"];
    let mut agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &flags));
    agent.call("add", &json!({}));
    agent.step("list");
    agent.kill();
    assert_eq!(agent.leave().code, Some(0));
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["ok"], &report["kept"], &report["heard"]),
        (&true.into(), &2.into(), &4.into())
    );
    assert_eq!(report["scenario"], "s.yaml");
}

#[test]
fn a_message_that_nobody_has_read_makes_nobody_safe() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), scenario()).unwrap();
    let flags = ["--expect", "--report", "r.json", "--max-message-bytes", "1KB"];
    let mut agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &flags));
    agent.call("add", &json!({}));
    agent.call("add", &json!({"padding": "x".repeat(2000), "key": "sk-1234"}));
    let gone = agent.leave();
    assert_eq!(gone.code, Some(1), "{}", gone.stderr);
    assert!(gone.stderr.contains("1 message of the client: over --max-message-bytes"));
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["verdict"], &report["unread"]), (&"untested".into(), &1.into()));
}

#[test]
fn nothing_is_safe_that_was_not_tested() {
    let folder = tempfile::tempdir().unwrap();
    for text in [scenario(), scenario().replace("regex: \"sk-[0-9]+\"", "phase: attack")] {
        fs::write(folder.path().join("s.yaml"), text).unwrap();
        let flags = ["--expect", "--report", "r.json"];
        let mut agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &flags));
        agent.step("list");
        let gone = agent.leave();
        assert_eq!(gone.code, Some(1), "{}", gone.stderr);
        assert!(gone.stderr.contains("verdict: not tested"), "{}", gone.stderr);
        let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["verdict"], "untested");
    }
}

#[test]
fn reports_come_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), scenario()).unwrap();
    let flags =
        ["--expect", "--quiet", "--report", "r.json", "--report", "r.xml", "--report", "r.sarif"];
    let mut agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &flags));
    agent.call("add", &json!({"key": "sk-1"}));
    assert_eq!(agent.leave().code, Some(6));
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let report: Value = serde_json::from_str(&read("r.json")).unwrap();
    assert_eq!(report["verdict"], "not-safe");
    let case = &report["cases"][0];
    assert_eq!((&case["rule"], &case["severity"]), (&json!("no-key"), &json!("critical")));
    assert_eq!((&case["line"], &case["seen"][0]["method"]), (&json!(6), &json!("tools/call")));
    assert!(read("r.xml").contains("<failure message=\"the client did it\" type=\"no-key\">"));
    let sarif: Value = serde_json::from_str(&read("r.sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "no-key");
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 6);
}

#[test]
fn expectations_are_checked_like_everything_else() {
    let folder = tempfile::tempdir().unwrap();
    let text = scenario().replace("no-key\n", "no-key\n    sevrity: low\n");
    fs::write(folder.path().join("s.yaml"), text).unwrap();
    let mut command = tapegate();
    let done = command.current_dir(folder.path()).args(["check", "s.yaml"]).output().unwrap();
    let output_text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(1), "{output_text}");
    assert!(
        output_text.contains("s.yaml:7:5: error: expect[0]: there is no key `sevrity`"),
        "{output_text}"
    );
}
