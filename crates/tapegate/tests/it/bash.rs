//! `tapegate bash`: commands that are run and recorded, by the real binary.

mod checklist;
mod client;
mod clock_faults;
mod disk_faults;
mod faults;
mod governed;
mod http;
mod peers;
mod protocol;
mod recordings;
mod sandbox;
mod scenarios;
mod takeover;

use serde_json::{Value, json};

use client::BashClient;

#[test]
fn a_command_has_its_output_exit_code_and_recording() {
    let mut client = BashClient::start();
    let result = client.execute("echo out; echo err >&2; exit 3");
    assert_eq!(result["stdout"], "out\n");
    assert_eq!(result["stderr"], "err\n");
    assert_eq!(result["exit_code"], 3);
    assert_eq!(result["timed_out"], false);
    let entries = client.end();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["entry_id"], result["recording_id"]);
    assert_eq!(entries[0]["command"], "echo out; echo err >&2; exit 3");
    assert_eq!(entries[0]["agent_id"], "test");
}

#[test]
fn standard_input_is_closed_and_there_is_no_terminal() {
    let mut client = BashClient::start();
    assert_eq!(client.execute("cat; read line; echo \"$?\"")["stdout"], "1\n");
    let tty = client.execute("tty; ps -o sid= -p $$; ps -o sid= -p $PPID");
    assert!(tty["stdout"].as_str().unwrap().starts_with("not a tty\n"), "{tty}");
}

#[test]
fn a_timeout_keeps_the_output_and_kills_everything() {
    let mut client = BashClient::start();
    let mark = client.mark();
    let command = format!(
        "echo before; (trap '' TERM; tail -s {mark} -f /dev/null) & tail -s {mark} -f /dev/null"
    );
    let result = client.call("execute", &json!({"command": command, "timeout": 1}));
    assert_eq!((&result["stdout"], &result["timed_out"]), (&json!("before\n"), &json!(true)));
    assert!(result["exit_code"].is_null());
    assert!(result["notice"].as_str().unwrap().contains("run_in_background"), "{result}");
    assert!(!client::is_running(&mark));
    let entries = client.end();
    assert_eq!(
        (&entries[0]["timed_out"], &entries[0]["stdout"]),
        (&json!(true), &json!("before\n"))
    );
    assert_eq!(entries[0]["timeout_seconds"], 1);
}

#[test]
fn a_process_that_holds_the_pipe_does_not_hold_the_call() {
    let mut client = BashClient::start();
    let mark = client.mark();
    let result =
        client.execute(&format!("(echo early; tail -s {mark} -f /dev/null) & echo started"));
    assert_eq!((&result["exit_code"], &result["background_children"]), (&json!(0), &json!(true)));
    assert!(client::is_running(&mark), "it was not killed with the call");
    let stop = json!({"process_id": result["process_id"]});
    assert_eq!(client.call("stop", &stop)["running"], false);
    assert!(!client::is_running(&mark));
}

#[test]
fn a_command_in_the_background_is_read_stopped_and_recorded() {
    let mut client = BashClient::start();
    let mark = client.mark();
    let command = json!({"command": format!("echo ready; tail -s {mark} -f /dev/null"), "run_in_background": true});
    let started = client.call("execute", &command);
    assert!(started["recording_id"].is_null());
    let read = json!({"process_id": started["process_id"], "wait_seconds": 60});
    let first = client.call("read_output", &read);
    assert_eq!((&first["stdout"], &first["running"]), (&json!("ready\n"), &json!(true)));
    let stopped = client.call("stop", &json!({"process_id": started["process_id"]}));
    assert_eq!((&stopped["running"], &stopped["signal"]), (&json!(false), &json!("SIGTERM")));
    // Reading goes on where it ended.
    assert_eq!(client.call("read_output", &read)["stdout"], "");
    let entries = client.end();
    assert_eq!(entries[0]["entry_id"], stopped["recording_id"]);
    assert_eq!(
        (&entries[0]["background"], &entries[0]["stdout"]),
        (&json!(true), &json!("ready\n"))
    );
}

#[test]
fn long_output_is_cut_in_the_middle_and_can_be_read() {
    let mut client = BashClient::start();
    let result = client.execute("seq 1 100000");
    let shown = result["stdout"].as_str().unwrap();
    assert!(shown.starts_with("1\n2\n") && shown.ends_with("99999\n100000\n"), "{}", shown.len());
    assert!(shown.contains("bytes cut ...]") && shown.len() < 31_000);
    assert_eq!((&result["truncated"], &result["stdout_bytes"]), (&json!(true), &json!(588_895)));
    let (mut whole, mut offset) = (String::new(), 0);
    while offset < 588_895 {
        let read = json!({"process_id": result["process_id"], "since_offset": offset});
        let part = client.call("read_output", &read);
        whole.push_str(part["stdout"].as_str().unwrap());
        offset = part["next_offset"].as_u64().unwrap();
    }
    let expected: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(whole, expected);
    assert_eq!(client.end()[0]["stdout"], expected);
}

#[test]
fn bytes_that_are_not_text_are_shown_and_recorded_without_loss() {
    let mut client = BashClient::start();
    let result = client.execute(r"printf 'a\xff\x00b'");
    assert_eq!(result["stdout"], "a\u{fffd}\0b");
    assert!(result["notice"].as_str().unwrap().contains("not UTF-8"));
    let entries = client.end();
    assert_eq!(entries[0]["stdout_base64"], "Yf8AYg==");
}

#[test]
fn a_signal_is_named_and_the_code_of_a_shell_stays_a_number() {
    let mut client = BashClient::start();
    let killed = client.execute("kill -9 $$");
    assert_eq!((&killed["exit_code"], &killed["signal"]), (&Value::Null, &json!("SIGKILL")));
    assert_eq!(client.execute("sh -c 'kill -9 $$'; exit $?")["exit_code"], 137);
}

#[test]
fn wrong_arguments_are_named_and_nothing_is_executed() {
    let mut client = BashClient::start();
    for (arguments, message) in [
        (json!({}), "Missing required argument: command"),
        (json!({"command": "true", "timeout": -5}), "timeout must be a whole number"),
        (json!({"command": "true", "cwd": "/"}), "Unknown argument: cwd"),
        (json!({"command": "true", "working_directory": "/no/such"}), "/no/such does not exist"),
        (json!({"command": "true", "working_directory": "/dev/null"}), "is not a directory"),
        (json!({"command": "  "}), "command must not be empty"),
        (json!({"command": "x".repeat(200_000)}), "the limit is 131071"),
    ] {
        let result = client.result("execute", &arguments);
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(message), "{text}");
    }
    let unknown =
        client.request("tools/call", &json!({"name": "bash_recorder.rm", "arguments": {}}));
    assert_eq!(unknown["error"]["message"], "Unknown tool: bash_recorder.rm");
    assert!(client.end().is_empty());
}

#[test]
fn the_environment_and_the_folder_are_those_of_the_settings() {
    let mut client = BashClient::with_settings(
        "execution:\n  inherit_env: false\n  shell: /bin/sh\n  env_overrides: {CI: \"true\"}\n  max_timeout: 9",
    );
    let result = client.execute("echo \"$CI:$HOME:$0\"");
    assert_eq!(result["stdout"], "true::/bin/sh\n");
    let clamped = client
        .call("execute", &json!({"command": "pwd", "timeout": 99, "working_directory": "sub"}));
    let folder = client.folder().canonicalize().unwrap().join("sub");
    assert_eq!(clamped["stdout"], format!("{}\n", folder.display()));
    assert!(clamped["notice"].as_str().unwrap().contains("99 s is above the limit; 9 s was used"));
    assert_eq!(client.end()[1]["timeout_seconds"], 9);
}

#[test]
fn limits_of_the_settings_hold() {
    let mut client =
        BashClient::with_settings("execution:\n  limits: {open_files: 40, file_size: 1kb}");
    assert_eq!(client.execute("ulimit -n; ulimit -Hn")["stdout"], "40\n40\n");
    let result = client.execute("head -c 5000 /dev/zero > f; echo $?; stat -c %s f");
    assert_eq!(result["stdout"], "153\n1024\n");
}

#[test]
fn settings_that_are_not_valid_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let text = "plugins:\n  bash_recorder:\n    config:\n      recording: {retention: 3}\n";
    std::fs::write(folder.path().join("settings.yml"), text).unwrap();
    let done = crate::support::tapegate().arg("bash").current_dir(folder.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("settings.yml:4:") && said.contains("retention_days"), "{said}");
}
