//! A disk that gets full, and a folder that may not be written to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::client::{BashClient, entries, metadata, write_settings};
use crate::support::wait_until;

/// A server whose recordings are on a disk of 200 KB, which only it and its commands see. What is
/// on the disk at its end is copied to `kept`.
fn on_a_small_disk(folder: &Path) -> BashClient {
    let allowed = Command::new("unshare").args(["-m", "true"]).status();
    assert!(
        allowed.is_ok_and(|status| status.success()),
        "these tests mount a disk: run them as root, where `unshare -m` works"
    );
    write_settings(folder, "recording:\n  directory: disk/recordings");
    let script = "mkdir disk && mount -t tmpfs -o size=200k tapegate-test disk && \
        \"$TAPEGATE\" \"$@\"; code=$?; cp -r disk kept; exit $code";
    let mut command = Command::new("unshare");
    command.args(["-m", "bash", "-c", script, "bash"]);
    command.env("TAPEGATE", env!("CARGO_BIN_EXE_tapegate"));
    BashClient::spawn_command(command, folder, "bash", &[])
}

/// Fills the disk, and writes more than what is left in the last page of a recording.
const FILL: &str = "head -c 1000000 /dev/zero > disk/filler; seq 1 20000";
const EMPTY: &str = "rm disk/filler";

fn assert_not_recorded(result: &Value) {
    assert_eq!(result["recording_id"], Value::Null, "{result}");
    let notice = result["notice"].as_str().unwrap_or_default();
    assert!(notice.contains("this command was not recorded"), "{result}");
}

#[test]
fn a_full_disk_disables_recording_and_an_emptied_one_enables_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = on_a_small_disk(folder.path());
    assert!(client.execute("echo one")["recording_id"].is_string());
    let call = json!({"command": format!("{FILL}; exit 3")});
    let full = client.result("execute", &call);
    assert_eq!(full["structuredContent"]["exit_code"], 3);
    assert_not_recorded(&full["structuredContent"]);
    assert!(full["_meta"]["recording_error"].is_string(), "{full}");
    assert_not_recorded(&client.execute("echo again"));
    let health = client.call("session_info", &json!({}))["health"].clone();
    assert_eq!((&health["healthy"], &health["recording_enabled"]), (&json!(false), &json!(false)));
    client.execute(EMPTY);
    assert!(client.execute("echo after")["recording_id"].is_string());
    client.close();
    let kept = folder.path().join("kept/recordings");
    assert_eq!(sessions(&kept), [("interrupted", 1), ("shutdown", 1)].map(owned));
    let commands: Vec<Value> = entries(&kept).iter().map(|one| one["command"].clone()).collect();
    assert!(commands.len() == 2 && commands.contains(&json!("echo one")), "{commands:?}");
    let log = BashClient::log(folder.path());
    for text in [
        "WARN  bash_recorder: Disk space low session_id=",
        "WARN  bash_recorder: Recording write failed session_id=",
        " error_type=disk_full degraded=true",
        "Recording recovered from disabled state session_id=",
    ] {
        assert!(log.contains(text), "no {text} in {log}");
    }
    let failed = log.lines().find(|line| line.contains("Recording write failed")).unwrap();
    assert!(failed.contains(" entry_id=e_"), "{failed}");
}

#[test]
fn commands_that_run_while_recording_is_disabled_and_recovers_are_not_recorded_wrongly() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = on_a_small_disk(folder.path());
    client.execute("mkfifo one two");
    let call = json!({"command": "touch began1; read < one; echo waited"});
    let id = client.ask("tools/call", &json!({"name": "bash_recorder.execute", "arguments": call}));
    let call = json!({"command": "touch began2; read < two; exit 4", "run_in_background": true});
    let background = client.call("execute", &call)["process_id"].clone();
    let at = |name: &str| folder.path().join(name);
    wait_until("both run", || at("began1").exists() && at("began2").exists());
    assert_not_recorded(&client.execute(FILL));
    client.execute(EMPTY);
    assert!(client.execute("echo after")["recording_id"].is_string());
    // Recording works again, and only now do they end.
    fs::write(at("one"), "\n").unwrap();
    let waited = client.answer(id)["result"].clone();
    assert_eq!(waited["structuredContent"]["stdout"], "waited\n");
    assert_not_recorded(&waited["structuredContent"]);
    assert!(waited["_meta"]["recording_error"].is_string(), "{waited}");
    fs::write(at("two"), "\n").unwrap();
    let read = json!({"process_id": background, "wait_seconds": 60});
    let ended = client.call("read_output", &read);
    assert_eq!((&ended["running"], &ended["exit_code"]), (&json!(false), &json!(4)));
    assert_not_recorded(&ended);
    assert_not_recorded(&client.call("stop", &json!({"process_id": background})));
    assert!(client.execute("echo last")["recording_id"].is_string());
    client.close();
    let kept = at("kept/recordings");
    assert_eq!(sessions(&kept), [("interrupted", 1), ("shutdown", 2)].map(owned));
    let mut commands: Vec<String> =
        entries(&kept).iter().map(|one| one["command"].as_str().unwrap().to_owned()).collect();
    commands.sort();
    assert_eq!(commands, ["echo after", "echo last", "mkfifo one two"]);
    assert!(entries(&kept).iter().all(|entry| entry["interrupted"].is_null()));
}

/// The status of every session, and how many entries its metadata counts.
fn sessions(recordings: &Path) -> Vec<(String, u64)> {
    let all = metadata(recordings);
    let facts = all.iter().map(|one| {
        (one["status"].as_str().unwrap().to_owned(), one["entry_count"].as_u64().unwrap())
    });
    let mut facts: Vec<_> = facts.collect();
    facts.sort();
    facts
}

fn owned((status, count): (&str, u64)) -> (String, u64) {
    (status.to_owned(), count)
}

#[test]
fn a_folder_that_cannot_be_written_does_not_stop_commands() {
    let folder = tempfile::tempdir().unwrap();
    // A file where the folder should be.
    fs::write(folder.path().join(".cuff"), "").unwrap();
    let mut client = BashClient::spawn(folder.path(), &[]);
    let result = client.execute("echo ran");
    assert_eq!(result["stdout"], "ran\n");
    assert_not_recorded(&result);
    client.close();
    assert!(BashClient::log(folder.path()).contains("degraded=true"));
}

#[test]
fn a_folder_of_another_user_is_an_error_in_the_log_and_commands_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let own = folder.path().join("own");
    fs::create_dir(&own).unwrap();
    let user = 61_234;
    std::os::unix::fs::chown(&own, Some(user), Some(user)).expect("these tests run as root");
    let command = super::client::as_user(user);
    let flags = ["--metrics-file", "own/bash.prom"];
    let mut client = BashClient::spawn_command(command, folder.path(), "bash", &flags);
    let result = client.execute("id -u");
    assert_eq!(result["stdout"], format!("{user}\n"));
    assert_not_recorded(&result);
    assert!(result["notice"].as_str().unwrap().contains("Permission denied"), "{result}");
    let health = client.call("session_info", &json!({}))["health"].clone();
    assert_eq!(health["directory_writable"], false, "{health}");
    client.close();
    let log = BashClient::log(folder.path());
    assert!(log.contains("ERROR bash_recorder: Recording write failed error="), "{log}");
    assert!(log.contains(" error_type=permission degraded=true"), "{log}");
    let metrics = fs::read_to_string(own.join("bash.prom")).unwrap();
    let line = "bash_recorder_recording_errors_total{error_type=\"permission\"} ";
    assert!(metrics.contains(line), "{metrics}");
}
