//! What is recorded: entries, metadata, index, sessions, callers and logs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::support::{BashScenario, ScenarioOutcome, TWO, call, execute};
use crate::support::text_of;

const ENTRY_KEYS: [&str; 22] = [
    "entry_id",
    "session_id",
    "sequence_number",
    "timestamp",
    "duration_ms",
    "command",
    "description",
    "working_directory",
    "shell",
    "timeout_seconds",
    "timed_out",
    "exit_code",
    "stdout",
    "stderr",
    "output_truncated",
    "output_truncated_bytes",
    "environment",
    "agent_id",
    "conversation_id",
    "tool_call_id",
    "opencuff_version",
    "plugin_version",
];
const METADATA_KEYS: [&str; 12] = [
    "session_id",
    "created_at",
    "last_updated",
    "entry_count",
    "total_duration_ms",
    "status",
    "commands_succeeded",
    "commands_failed",
    "commands_timed_out",
    "working_directory",
    "agent_id",
    "conversation_id",
];

fn matches(pattern: &str, value: &Value) {
    let text = value.as_str().unwrap_or_default();
    assert!(regex::Regex::new(&format!("^{pattern}$")).unwrap().is_match(text), "{value}");
}

#[test]
fn a_command_has_its_result_entry_metadata_and_index() {
    let steps = json!([
        call(
            "execute",
            json!({"command": "echo out; echo err >&2", "description": "why", "working_directory": "sub"})
        ),
        execute("exit 1"),
        call("session_info", json!({})),
    ]);
    BashScenario::new(steps).check(|seen| {
        for (key, value) in [
            ("stdout", json!("out\n")), ("stderr", json!("err\n")), ("exit_code", json!(0)),
            ("timed_out", json!(false)), ("working_directory", json!(seen.path("sub"))),
        ] {
            assert_eq!(*seen.at(0, key), value, "{key}");
        }
        assert!(seen.at(0, "duration_ms").is_u64());
        assert_entry(seen);
        assert_metadata(seen);
        let info = &seen.results[2];
        assert_eq!((&info["session_id"], &info["entry_count"]), (&seen.entries[0]["session_id"], &json!(2)));
        let health = json!({
            "healthy": true, "recording_enabled": true, "directory_writable": true, "disk_space_ok": true,
            "current_session": info["session_id"], "entries_recorded": 2,
        });
        assert_eq!(info["health"], health);
    });
}

fn assert_entry(seen: &ScenarioOutcome) {
    let entry = &seen.entries[0];
    for key in ENTRY_KEYS {
        assert!(entry.get(key).is_some(), "no {key} in {entry}");
    }
    matches(r"e_\d{8}_\d{6}_001", &entry["entry_id"]);
    matches(r"\d{8}_\d{6}_[0-9a-f]{8}-[0-9a-f]{4}", &entry["session_id"]);
    matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", &entry["timestamp"]);
    matches(r"1\.0\.0", &entry["plugin_version"]);
    assert_eq!(entry["entry_id"], *seen.at(0, "recording_id"));
    assert_eq!((&entry["sequence_number"], &entry["description"]), (&json!(1), &json!("why")));
    assert_eq!((&entry["shell"], &entry["timeout_seconds"]), (&json!("/bin/bash"), &json!(120)));
    assert_eq!((&entry["stdout"], &entry["stderr"]), (&json!("out\n"), &json!("err\n")));
    assert!(entry["environment"].is_null() && entry["conversation_id"].is_null());
    assert!(
        entry["agent_id"].is_string()
            && entry["tool_call_id"].as_str().unwrap().starts_with("rpc:")
    );
}

fn assert_metadata(seen: &ScenarioOutcome) {
    let [session] = &seen.sessions[..] else { panic!("{:#?}", seen.sessions) };
    assert!(session.as_object().unwrap().keys().eq(METADATA_KEYS), "{session}");
    let counts = ["entry_count", "commands_succeeded", "commands_failed", "commands_timed_out"];
    assert_eq!(counts.map(|key| session[key].as_u64().unwrap()), [2, 1, 1, 0]);
    assert_eq!(session["status"], "shutdown");
    let id = session["session_id"].as_str().unwrap();
    let index: Value =
        serde_json::from_str(&text_of(&seen.path(".cuff/recordings/index.json"))).unwrap();
    assert_eq!(
        (&index["version"], &index["total_sessions"], &index["total_entries"]),
        (&json!("1.0"), &json!(1), &json!(2))
    );
    let indexed = &index["sessions"][id];
    let path = seen.path(&format!(".cuff/recordings/sessions/{id}.jsonl"));
    for key in ["session_id", "created_at", "last_updated", "entry_count", "status"] {
        assert_eq!(indexed[key], session[key], "{key}");
    }
    assert_eq!(indexed["file_size_bytes"], fs::metadata(&path).unwrap().len());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in [".cuff", ".cuff/recordings", ".cuff/recordings/sessions"] {
        assert_eq!(mode(&seen.path(folder)), 0o700, "{folder}");
    }
    for file in
        [path.clone(), path.with_extension("meta.json"), seen.path(".cuff/recordings/index.json")]
    {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn callers_name_themselves_their_conversation_their_call_and_their_trace() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let steps = json!([
        {"call": "execute", "arguments": {"command": "echo a"}, "meta": {"agent_id": "a", "conversation_id": "c1", "tool_call_id": "t1", "traceparent": parent}},
        {"call": "execute", "arguments": {"command": "echo b"}, "meta": {"threadId": "c2", "claudecode/toolUseId": "toolu_2"}},
        execute("echo c"),
    ]);
    BashScenario::new(steps).check(|seen| {
        let a = seen.entry("echo a");
        assert_eq!((&a["agent_id"], &a["conversation_id"], &a["tool_call_id"]), (&json!("a"), &json!("c1"), &json!("t1")));
        assert_eq!(a["trace_id"], "0af7651916cd43dd8448eb211c80319c");
        let b = seen.entry("echo b");
        assert_eq!((&b["conversation_id"], &b["tool_call_id"]), (&json!("c2"), &json!("toolu_2")));
        assert!(seen.entry("echo c")["conversation_id"].is_null());
        assert_eq!(seen.sessions.len(), 3);
        let session = a["session_id"].as_str().unwrap();
        let line = format!(
            "DEBUG bash_recorder: Command executed session_id={session} entry_id={} trace_id=0af7651916cd43dd8448eb211c80319c command_hash=sha256:",
            a["entry_id"].as_str().unwrap()
        );
        assert!(seen.log.contains(&line), "no {line}");
        let line = format!("INFO  bash_recorder: Session finalized session_id={session} entry_count=1 total_duration_ms=");
        assert!(seen.log.contains(&line), "no {line}");
    });
}

#[test]
fn the_conversation_of_claude_code_comes_from_its_variable() {
    let steps = json!([
        execute("echo a"),
        {"call": "execute", "arguments": {"command": "echo b"}, "meta": {"conversation_id": "named"}},
    ]);
    BashScenario::new(steps).variables(&[("CLAUDE_CODE_SESSION_ID", "claude-7")]).check(|seen| {
        assert_eq!(seen.entry("echo a")["conversation_id"], "claude-7");
        // Environments are inherited, so what the call says comes first.
        assert_eq!(seen.entry("echo b")["conversation_id"], "named");
        assert_eq!(seen.sessions.len(), 2);
    });
}

#[test]
fn sessions_are_formed_as_the_mode_says() {
    for (mode, count) in [("per_conversation", 3), ("per_day", 1), ("continuous", 1)] {
        let steps = json!([
            {"call": "execute", "arguments": {"command": "echo a"}, "meta": {"conversation_id": "c1"}},
            {"call": "execute", "arguments": {"command": "echo b"}, "meta": {"conversation_id": "c2"}},
            execute("echo c"),
            {"call": "execute", "arguments": {"command": "echo d"}, "meta": {"conversation_id": "c1"}},
            call("session_info", json!({})),
        ]);
        let settings = format!("recording: {{session_mode: {mode}}}");
        BashScenario::new(steps).settings(&settings).check_with(&TWO, |seen| {
            assert_eq!(seen.sessions.len(), count, "{mode}");
            assert_eq!(seen.entry("echo a")["session_id"], seen.entry("echo d")["session_id"]);
            assert_eq!(seen.text(4, "session_mode"), mode);
        });
    }
}

#[test]
fn the_last_ten_commands_are_listed_unless_another_number_is_wanted() {
    let mut steps: Vec<Value> = (1..=12).map(|number| execute(&format!("echo {number}"))).collect();
    steps.extend([
        call("list_recent", json!({})),
        call("list_recent", json!({"count": 2})),
        call("list_recent", json!({"count": 100})),
    ]);
    BashScenario::new(steps.into()).check(|seen| {
        let commands = |step: usize| -> Vec<&str> {
            let list = seen.at(step, "recordings").as_array().unwrap();
            list.iter().map(|one| one["command"].as_str().unwrap()).collect()
        };
        assert_eq!(commands(12).len(), 10);
        assert_eq!(commands(13), ["echo 12", "echo 11"]);
        assert_eq!(commands(14).len(), 12);
        let last = &seen.at(12, "recordings")[0];
        for key in ["entry_id", "exit_code", "duration_ms", "timestamp"] {
            assert_eq!(last[key], seen.entries[11][key], "{key}");
        }
    });
}

#[test]
fn old_recordings_are_deleted_when_they_have_been_too_old_for_a_day() {
    let old = "20200118_143052_a7b3c9d2-e4f5";
    let prepare = |folder: &Path| {
        let recordings = folder.join(".cuff/recordings");
        fs::create_dir_all(recordings.join("sessions")).unwrap();
        let entry = json!({
            "entry_id": "e_20200118_143052_001", "session_id": old, "sequence_number": 1,
            "timestamp": "2020-01-18T14:30:52Z", "duration_ms": 1, "command": "echo old",
            "working_directory": "/w", "shell": "/bin/sh", "timeout_seconds": 1, "timed_out": false,
            "exit_code": 0, "output_truncated": false, "opencuff_version": "1", "plugin_version": "1",
        });
        fs::write(recordings.join(format!("sessions/{old}.jsonl")), format!("{entry}\n")).unwrap();
        let notes = json!({"too_old_since": {old: "2026-01-01T00:00:00Z"}});
        fs::write(recordings.join("retention.json"), notes.to_string()).unwrap();
    };
    for (days, left) in [(30, 1), (0, 2)] {
        let settings = format!("recording: {{retention_days: {days}}}");
        BashScenario::new(json!([execute("echo new")]))
            .settings(&settings)
            .prepare(&prepare)
            .check_with(&TWO, |seen| {
                assert_eq!(seen.entries.len(), left, "{days} days");
                assert_eq!(
                    seen.log.contains("Old recordings deleted sessions=1 retention_days=30"),
                    days == 30
                );
            });
    }
}

#[test]
fn without_a_folder_commands_run_and_their_results_say_that_they_are_not_recorded() {
    let prepare = |folder: &Path| fs::write(folder.join(".cuff"), "").unwrap();
    let steps = json!([execute("echo ran"), call("session_info", json!({}))]);
    BashScenario::new(steps).prepare(&prepare).check(|seen| {
        assert_eq!((seen.text(0, "stdout"), seen.at(0, "recording_id")), ("ran\n", &Value::Null));
        assert!(seen.text(0, "notice").contains("this command was not recorded: "));
        assert!(seen.at(0, "recording_error").is_string());
        assert_eq!(seen.at(1, "recording_enabled"), false);
        assert_eq!(seen.at(1, "health")["healthy"], false);
        assert!(seen.log.contains("WARN  bash_recorder: Recording write failed error="));
        assert!(seen.log.contains("degraded=true"));
    });
}

#[test]
fn metrics_have_the_names_of_the_document() {
    let steps = json!([execute("echo four"), execute("exit 2"), execute("kill -9 $$")]);
    BashScenario::new(steps).flags(&["--metrics-file", "bash.prom"]).check(|seen| {
        let metrics = text_of(&seen.path("bash.prom"));
        for line in [
            "bash_recorder_commands_total{exit_code=\"0\",timed_out=\"false\"} 1",
            "bash_recorder_commands_total{exit_code=\"2+\",timed_out=\"false\"} 1",
            "bash_recorder_commands_total{exit_code=\"none\",timed_out=\"false\"} 1",
            "bash_recorder_command_duration_seconds_count 3",
            "bash_recorder_active_sessions 0",
            "bash_recorder_entries_recorded_total 3",
            "bash_recorder_output_bytes_total 5",
            "bash_recorder_output_truncated_total 0",
        ] {
            assert!(metrics.lines().any(|found| found == line), "no {line} in {metrics}");
        }
        assert!(metrics.contains("# TYPE bash_recorder_recording_errors_total counter"));
    });
}
