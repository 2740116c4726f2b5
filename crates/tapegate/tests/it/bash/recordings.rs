//! What is recorded, where, and how sessions are formed.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::client::{BashClient, entries, metadata, write_settings};
use crate::support::wait_until;

#[test]
fn callers_are_recorded_and_conversations_have_sessions_of_their_own() {
    let mut client = BashClient::start();
    for (command, meta) in [
        ("echo a", json!({"agent_id": "a", "conversation_id": "c1", "tool_call_id": "t1"})),
        ("echo b", json!({"threadId": "c2", "claudecode/toolUseId": "toolu_2"})),
        ("echo c", json!({})),
    ] {
        let params = json!({
            "name": "bash_recorder.execute", "arguments": {"command": command, "description": "why"},
            "_meta": meta,
        });
        client.request("tools/call", &params);
    }
    let folder = client.folder().join(".cuff/recordings");
    client.close();
    let sessions = metadata(&folder);
    assert_eq!(sessions.len(), 3);
    let conversations: Vec<&Value> = sessions.iter().map(|one| &one["conversation_id"]).collect();
    assert!(conversations.contains(&&json!("c1")) && conversations.contains(&&json!("c2")));
    assert!(sessions.iter().all(|one| one["status"] == "shutdown"));
    let all = entries(&folder);
    let find = |command: &str| all.iter().find(|entry| entry["command"] == command).unwrap();
    assert_eq!(find("echo a")["tool_call_id"], "t1");
    assert_eq!(find("echo b")["tool_call_id"], "toolu_2");
    assert_eq!(
        (&find("echo c")["agent_id"], &find("echo c")["description"]),
        (&json!("test"), &json!("why"))
    );
}

#[test]
fn files_are_private_and_times_are_those_of_the_start() {
    let mut client = BashClient::start();
    client.execute("date -u +%Y-%m-%dT%H:%M:%S.%6N; printf '' ; read -t 1 < /dev/zero");
    let recordings = client.folder().join(".cuff/recordings");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&recordings), mode(&recordings.join("sessions"))), (0o700, 0o700));
    for file in std::fs::read_dir(recordings.join("sessions")).unwrap().flatten() {
        assert_eq!(mode(&file.path()), 0o600, "{}", file.path().display());
    }
    let entry = &client.end()[0];
    // The command prints the time after it was started.
    let started = entry["timestamp"].as_str().unwrap().trim_end_matches('Z');
    assert!(started < entry["stdout"].as_str().unwrap(), "{entry}");
}

#[test]
fn recordings_are_not_committed_by_accident() {
    let mut client = BashClient::start();
    let shown = client.execute("git init -q && git status --porcelain --untracked-files=all");
    assert_eq!(shown["exit_code"], 0, "{shown}");
    assert!(!shown["stdout"].as_str().unwrap().contains(".cuff"), "{shown}");
}

#[test]
fn variables_are_recorded_only_if_they_are_listed_and_not_secret() {
    let mut client = BashClient::with_settings(
        "recording:\n  capture_env: true\n  env_allowlist: [HOME, PWD, AWS_TOKEN, X]\nexecution:\n  env_overrides: {X: \"1\"}",
    );
    client.execute("true");
    let folder = client.folder().canonicalize().unwrap();
    let entry = &client.end()[0];
    let environment = entry["environment"].as_object().unwrap();
    assert_eq!(environment.keys().collect::<Vec<_>>(), ["HOME", "PWD", "X"]);
    assert_eq!((&environment["PWD"], &environment["X"]), (&json!(folder), &json!("1")));
    let mut client = BashClient::with_settings("recording:\n  capture_output: false");
    assert_eq!(client.execute("echo shown")["stdout"], "shown\n");
    let entry = &client.end()[0];
    assert!(entry["stdout"].is_null() && entry["environment"].is_null(), "{entry}");
    assert_eq!(entry["stdout_bytes"], 6);
}

#[test]
fn new_settings_are_used_without_a_restart() {
    let mut client = BashClient::with_settings("execution:\n  max_timeout: 600");
    client.execute("echo before");
    let settings =
        "recording:\n  directory: elsewhere\nexecution:\n  max_timeout: 7\n  default_timeout: 5";
    write_settings(client.folder(), settings);
    wait_until("the settings are in force", || {
        let tools = client.request("tools/list", &json!({}));
        tools["result"]["tools"][0]["inputSchema"]["properties"]["timeout"]["maximum"] == 7
    });
    client.execute("echo after");
    let changed = |message: &Value| message["method"] == "notifications/tools/list_changed";
    assert!(client.notifications.iter().any(changed));
    // A file that is not valid changes nothing.
    write_settings(client.folder(), "recording: {directory: 7}");
    let folder = client.folder().to_owned();
    wait_until("the mistake is reported", || {
        BashClient::log(&folder).contains("stay as they were")
    });
    client.execute("echo still");
    let (old, new) = (folder.join(".cuff/recordings"), folder.join("elsewhere"));
    client.close();
    assert_eq!(metadata(&old)[0]["status"], "config_reload");
    assert_eq!(entries(&old).len(), 1);
    assert_eq!((entries(&new).len(), &metadata(&new)[0]["status"]), (2, &json!("shutdown")));
}

#[test]
fn recent_commands_and_the_session_are_shown_by_tools() {
    let mut client = BashClient::start();
    for number in 1..=3 {
        client.execute(&format!("echo {number}"));
    }
    let recent = client.call("list_recent", &json!({"count": 2}));
    let commands: Vec<&Value> =
        recent["recordings"].as_array().unwrap().iter().map(|one| &one["command"]).collect();
    assert_eq!(commands, ["echo 3", "echo 2"]);
    let info = client.call("session_info", &json!({}));
    assert_eq!((&info["entry_count"], &info["recording_enabled"]), (&json!(3), &json!(true)));
    assert_eq!(info["health"]["healthy"], true);
    let refused = client.result("list_recent", &json!({"count": 101}));
    assert_eq!(refused["isError"], true);
    let session = info["session_id"].as_str().unwrap().to_owned();
    let index = client.folder().join(".cuff/recordings/index.json");
    wait_until("the index is current", || {
        let index: Value = serde_json::from_str(&crate::support::text_of(&index)).unwrap();
        index["sessions"][&session]["entry_count"] == 3
    });
}

#[test]
fn settings_that_appear_later_are_used_and_stay_when_their_file_is_gone() {
    let mut client = BashClient::start();
    let maximum = |client: &mut BashClient| {
        let tools = client.request("tools/list", &json!({}));
        tools["result"]["tools"][0]["inputSchema"]["properties"]["timeout"]["maximum"].clone()
    };
    assert_eq!(maximum(&mut client), 600);
    write_settings(client.folder(), "execution: {max_timeout: 7}");
    wait_until("the settings are in force", || maximum(&mut client) == 7);
    let folder = client.folder().to_owned();
    std::fs::remove_file(folder.join("settings.yml")).unwrap();
    wait_until("that is reported", || BashClient::log(&folder).contains("stay as they were"));
    assert_eq!(maximum(&mut client), 7);
    // Another name that is looked for.
    std::fs::create_dir_all(folder.join(".cuff")).unwrap();
    let text = "plugins: {bash_recorder: {config: {execution: {max_timeout: 8}}}}\n";
    crate::support::replace_file(&folder.join(".cuff/settings.yml"), text);
    wait_until("they are in force", || maximum(&mut client) == 8);
    client.close();
}

#[test]
fn metrics_are_in_the_file_and_logs_have_their_fields() {
    let folder = tempfile::tempdir().unwrap();
    write_settings(folder.path(), "execution: {max_timeout: 600}");
    let flags = ["--metrics-file", "bash.prom", "--log-level", "debug"];
    let mut client = BashClient::spawn(folder.path(), &flags);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let call = json!({
        "name": "bash_recorder.execute", "arguments": {"command": "true"},
        "_meta": {"traceparent": parent},
    });
    client.request("tools/call", &call);
    client.execute("exit 1");
    let session = client.call("session_info", &json!({}))["session_id"].clone();
    write_settings(folder.path(), "execution: {max_timeout: 60, default_timeout: 5}");
    let path = folder.path().to_owned();
    wait_until("it is reloaded", || BashClient::log(&path).contains("Configuration changed"));
    client.close();
    let metrics = std::fs::read_to_string(folder.path().join("bash.prom")).unwrap();
    for line in [
        "bash_recorder_commands_total{exit_code=\"0\",timed_out=\"false\"} 1",
        "bash_recorder_commands_total{exit_code=\"1\",timed_out=\"false\"} 1",
        "bash_recorder_entries_recorded_total 2",
        "bash_recorder_active_sessions 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "no {line} in {metrics}");
    }
    let log = BashClient::log(folder.path());
    let session = session.as_str().unwrap();
    for text in [
        &format!("INFO  bash_recorder: Session started session_id={session} working_directory=/"),
        &format!("DEBUG bash_recorder: Command executed session_id={session} entry_id=e_"),
        " trace_id=0af7651916cd43dd8448eb211c80319c command_hash=sha256:b5bea41b6c623f7c09f1bf24dcae58ebab3c0cdd90ad966bc43a45b44867e12b duration_ms=",
        &format!(
            "INFO  bash_recorder: Configuration changed session_id={session} changed=execution.default_timeout,execution.max_timeout\n"
        ),
        &format!("INFO  bash_recorder: Session finalized session_id={session} entry_count=2 "),
        " status=shutdown",
    ] {
        assert!(log.contains(text), "no {text} in {log}");
    }
    let entry = &entries(&folder.path().join(".cuff/recordings"))[0];
    assert_eq!(
        (&entry["trace_id"], &entry["tool_call_id"]),
        (&json!("0af7651916cd43dd8448eb211c80319c"), &json!("rpc:2"))
    );
}
