//! Attempts of permitted commands to take over the tool itself.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::client::{BashClient, entries, write_settings};
use crate::support::{tapegate, text_of, wait_until};

const POLICY: &str = "\
schema: 1
sources: [{ id: bash, kind: mcp }]
governance:
  defaults: { action: deny }
  rules:
    - { match: bash_recorder.session_info, action: forward }
    - { match: bash_recorder.execute, action: forward, command: { class: [read-only, writes] } }
";

/// A server under the policy, in this folder.
fn start(folder: &Path, variables: &[(&str, &str)]) -> BashClient {
    fs::write(folder.join("tapegate.yaml"), POLICY).unwrap();
    let mut command = tapegate();
    command.envs(variables.iter().copied());
    BashClient::spawn_command(command, folder, "bash", &[])
}

fn ask(client: &mut BashClient, command: &str) -> String {
    let params = json!({"name": "bash_recorder.execute", "arguments": {"command": command}});
    client.request("tools/call", &params).to_string()
}

#[test]
fn a_line_that_the_shell_reads_differently_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    write_settings(folder.path(), "execution: {shell: /bin/sh}");
    let mut client = start(folder.path(), &[]);
    for line in [
        r"echo $'\'; touch pwn #\''",
        r#"eval "echo \$'\\'; touch pwn #\\''""#,
        "echo a; a[0]=x echo",
        "trap 'echo $(( 1 ))' EXIT",
    ] {
        let answer = ask(&mut client, line);
        assert!(answer.contains("differently than the policy"), "{line}: {answer}");
    }
    assert_eq!(client.execute("echo a | cat && touch made 2>&1")["stdout"], "a\n");
    assert!(folder.path().join("made").exists() && !folder.path().join("pwn").exists());
    client.close();
    // Without a policy, the shell gets whatever it is given.
    let mut client = BashClient::spawn(folder.path(), &["--no-policy"]);
    assert_eq!(client.execute("echo $((1))")["stdout"], "1\n");
    client.close();
}

#[test]
fn settings_by_which_lines_mean_something_else_end_the_start() {
    for (settings, reason) in [
        ("execution: {shell: /bin/zsh}", "cannot be used under a policy"),
        ("execution: {env_overrides: {BASH_ENV: e.sh}}", "`BASH_ENV`"),
        ("execution: {env_overrides: {LD_PRELOAD: e.so}}", "`LD_PRELOAD`"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write_settings(folder.path(), settings);
        fs::write(folder.path().join("tapegate.yaml"), POLICY).unwrap();
        let mut command: Command = tapegate();
        let done = command.arg("bash").current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success() && said.contains(reason), "{settings}: {said}");
    }
}

#[test]
fn a_variable_of_the_client_runs_no_code() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("e.sh"), "touch pwn\n").unwrap();
    let variables = [("BASH_ENV", "e.sh"), ("BASH_FUNC_ls%%", "() { touch pwn; }"), ("KEPT", "1")];
    let mut client = start(folder.path(), &variables);
    assert_eq!(client.execute("echo $KEPT")["stdout"], "1\n");
    client.execute("ls");
    assert!(!folder.path().join("pwn").exists());
    client.close();
}

#[test]
fn a_command_does_not_change_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = start(folder.path(), &[]);
    for line in [
        "printf x > settings.yml",
        "cp e.sh ./settings.yaml",
        "mkdir -p .cuff; cp e.sh .cuff/settings.yml",
        "rm -rf .cuff",
        "cd sub; cp x ../settings.yml",
    ] {
        assert!(ask(&mut client, line).contains("own-files"), "{line}");
    }
    // Whoever writes the file: most of it waits for a restart.
    let settings = "recording: {enabled: false}\nexecution: {max_timeout: 77, env_overrides: {BASH_ENV: e.sh}}";
    fs::write(folder.path().join("e.sh"), "touch pwn\n").unwrap();
    write_settings(folder.path(), settings);
    wait_until("the change is noticed", || {
        client.request("tools/list", &json!({})).to_string().contains("\"maximum\":77")
    });
    let health = client.call("session_info", &json!({}))["health"].clone();
    let waiting = json!(["recording.enabled", "execution.env_overrides"]);
    assert_eq!(health["settings_waiting_for_restart"], waiting, "{health}");
    assert_eq!(health["recording_enabled"], true);
    assert!(client.execute("ls")["recording_id"].is_string());
    assert!(!folder.path().join("pwn").exists());
    client.close();
    let log = BashClient::log(folder.path());
    assert!(log.contains("waits for a restart"), "{log}");
}

#[test]
fn commands_are_recorded_after_a_command_removed_the_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = BashClient::spawn(folder.path(), &[]);
    let recordings = folder.path().join(".cuff/recordings");
    assert!(client.execute("echo first")["notice"].is_null());
    let result = client.execute("rm -rf .c*");
    assert!(result["notice"].as_str().unwrap().contains("removed or changed"), "{result}");
    assert!(result["recording_id"].is_string());
    assert!(client.execute("echo second")["notice"].is_null());
    let line = "for f in .cuff/recordings/sessions/*.jsonl; do mv $f x; cp x $f; done";
    let result = client.execute(line);
    assert!(result["notice"].as_str().unwrap().contains("removed or changed"), "{result}");
    let text = "for f in .cuff/recordings/sessions/*.jsonl; do : > $f; done";
    assert!(client.execute(text)["notice"].as_str().unwrap().contains("removed or changed"));
    client.close();
    let all = entries(&recordings);
    let recorded = |command: &str| all.iter().any(|entry| entry["command"] == command);
    assert!(recorded(text), "{all:?}");
    let log = text_of(&folder.path().join("stderr.log"));
    assert!(log.contains("Recordings removed or changed"), "{log}");
}
