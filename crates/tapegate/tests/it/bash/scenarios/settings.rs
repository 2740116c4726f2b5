//! Each key of the settings, and what happens when they change.

use std::fs;

use serde_json::{Value, json};

use super::support::{BashScenario, LEGACY, TWO, execute};
use crate::bash::client;

#[test]
fn recording_can_be_switched_off() {
    let steps = json!([execute("echo ran"), {"list": true}]);
    BashScenario::new(steps).settings("recording: {enabled: false}").check(|seen| {
        assert_eq!((seen.text(0, "stdout"), seen.at(0, "recording_id")), ("ran\n", &Value::Null));
        assert!(seen.at(0, "notice").is_null() && !seen.path(".cuff").exists());
        let text = seen.at(1, "tools")[0]["description"].as_str().unwrap();
        assert!(text.contains("Commands are not recorded."), "{text}");
    });
}

#[test]
fn the_folder_and_what_is_captured_can_be_set() {
    let settings = "recording: {directory: kept/here, capture_output: false}";
    BashScenario::new(json!([execute("echo shown")])).settings(settings).check(|seen| {
        assert_eq!(seen.text(0, "stdout"), "shown\n");
        let entries = client::entries(&seen.path("kept/here"));
        assert!(entries[0]["stdout"].is_null() && entries[0]["stderr"].is_null(), "{entries:?}");
        assert_eq!((&entries[0]["stdout_bytes"], entries.len()), (&json!(6), 1));
    });
}

#[test]
fn variables_are_recorded_only_if_they_are_listed_and_not_secret() {
    let settings = "recording:\n  capture_env: true\n  env_allowlist: [HOME, PWD, AWS_REGION, API_KEY, DB_PASSWORD, X, MY_SECRET, A_TOKEN]\nexecution:\n  env_overrides: {X: \"1\", AWS_REGION: eu, AWS_OTHER: no, API_KEY: k, DB_PASSWORD: p, MY_SECRET: s, A_TOKEN: t, NOT_LISTED: n}";
    BashScenario::new(json!([execute("echo $API_KEY")])).settings(settings).check(|seen| {
        // The command has them; the recording has not.
        assert_eq!(seen.text(0, "stdout"), "k\n");
        let environment = seen.entries[0]["environment"].as_object().unwrap();
        assert_eq!(environment.keys().collect::<Vec<_>>(), ["AWS_REGION", "HOME", "PWD", "X"]);
    });
    let settings = "recording: {capture_env: true}";
    BashScenario::new(json!([execute("true")])).settings(settings).check(|seen| {
        let names: Vec<&String> =
            seen.entries[0]["environment"].as_object().unwrap().keys().collect();
        assert!(names.contains(&&"HOME".to_owned()) && names.contains(&&"PATH".to_owned()));
        assert!(
            names
                .iter()
                .all(|name| ["PATH", "HOME", "USER", "SHELL", "PWD"].contains(&name.as_str()))
        );
    });
}

#[test]
fn shell_folder_and_environment_are_those_of_the_settings() {
    let settings = "execution:\n  working_directory: sub\n  shell: /bin/sh\n  inherit_env: false\n  env_overrides: {CI: \"true\"}";
    let command = "echo \"$CI:$HOME:$0\"; pwd";
    BashScenario::new(json!([execute(command)])).settings(settings).check(|seen| {
        let sub = seen.path("sub").display().to_string();
        assert_eq!(seen.text(0, "stdout"), format!("true::/bin/sh\n{sub}\n"));
        let entry = &seen.entries[0];
        assert_eq!(
            (&entry["shell"], &entry["working_directory"]),
            (&json!("/bin/sh"), &json!(sub))
        );
        assert_eq!(seen.sessions[0]["working_directory"], sub);
    });
    BashScenario::new(json!([execute("echo \"$CI:$HOME\"")]))
        .settings("execution: {env_overrides: {CI: \"1\"}}")
        .check(|seen| {
            assert_eq!(
                seen.text(0, "stdout"),
                format!("1:{}\n", seen.path("sub/..").canonicalize().unwrap().display())
            )
        });
}

#[test]
fn the_three_profiles_of_the_document_load() {
    let head = "plugins:\n  bash_recorder:\n    enabled: true\n    type: in_source\n    module: opencuff.plugins.builtin.bash_recorder\n    config:\n";
    for (profile, shell, max, output) in [
        (
            "      recording:\n        enabled: true\n        directory: .cuff/recordings\n        capture_env: true\n        env_allowlist:\n          - PATH\n          - VIRTUAL_ENV\n          - NODE_ENV\n        capture_output: true\n        max_output_size: 5000000  # 5MB\n        session_mode: per_conversation\n        retention_days: 90\n\n      execution:\n        default_timeout: 300\n        max_timeout: 600\n        shell: /bin/bash\n",
            "/bin/bash",
            600,
            json!("x\n"),
        ),
        (
            "      recording:\n        enabled: true\n        directory: .cuff/recordings\n        capture_env: false\n        capture_output: false\n        session_mode: continuous\n        retention_days: 7\n\n      execution:\n        default_timeout: 60\n        max_timeout: 120\n        shell: /bin/sh  # More portable\n",
            "/bin/sh",
            120,
            Value::Null,
        ),
        (
            "      recording:\n        enabled: true\n        directory: .cuff/recordings\n        capture_env: false\n        capture_output: false\n        session_mode: continuous\n        retention_days: 0\n\n      execution:\n        default_timeout: 120\n        max_timeout: 600\n",
            "/bin/bash",
            600,
            Value::Null,
        ),
    ] {
        let text = format!("{head}{profile}");
        let prepare =
            |folder: &std::path::Path| fs::write(folder.join("settings.yml"), &text).unwrap();
        BashScenario::new(json!([execute("echo x"), {"list": true}])).prepare(&prepare).check_with(
            &TWO,
            |seen| {
                let timeout = &seen.at(1, "tools")[0]["inputSchema"]["properties"]["timeout"];
                assert_eq!(
                    (&timeout["maximum"], &seen.entries[0]["shell"]),
                    (&json!(max), &json!(shell))
                );
                assert_eq!(seen.entries[0]["stdout"], output);
            },
        );
    }
}

#[test]
fn names_are_listed_in_one_style_and_called_in_both() {
    for (setting, flags, mark) in [
        ("tool_name_style: dotted", &[][..], '.'),
        ("tool_name_style: underscore", &[][..], '_'),
        ("tool_name_style: dotted", &["--tool-name-style", "underscore"][..], '_'),
    ] {
        let steps = json!([
            {"list": true},
            {"call": "bash_recorder.execute", "arguments": {"command": "echo a"}},
            {"call": "bash_recorder_execute", "arguments": {"command": "echo b"}},
        ]);
        BashScenario::new(steps).settings(setting).flags(flags).check_with(&TWO, |seen| {
            let tools = seen.at(0, "tools").as_array().unwrap().iter();
            let names: Vec<&str> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
            let tools = ["execute", "session_info", "list_recent", "read_output", "stop"];
            assert_eq!(names, tools.map(|tool| format!("bash_recorder{mark}{tool}")));
            assert_eq!((seen.text(1, "stdout"), seen.text(2, "stdout")), ("a\n", "b\n"));
            let tool = &seen.at(0, "tools")[0];
            assert_eq!(tool["annotations"]["destructiveHint"], true);
            assert_eq!(tool["inputSchema"]["required"], json!(["command"]));
            let timeout = &tool["inputSchema"]["properties"]["timeout"];
            assert_eq!((&timeout["minimum"], &timeout["default"]), (&json!(1), &json!(120)));
        });
    }
}

#[test]
fn new_settings_are_in_force_at_once_and_clients_are_told() {
    let plugin = |config: &str| format!("plugins: {{bash_recorder: {{config: {config}}}}}\n");
    let steps = json!([
        execute("echo before"),
        {"write": "settings.yml", "text": plugin("{recording: {directory: elsewhere}, execution: {max_timeout: 7, default_timeout: 5}}")},
        {"list_until": 7},
        {"changed": true},
        execute("echo after"),
        {"write": "settings.yml", "text": plugin("{recording: {enabled: false}, execution: {max_timeout: 8, default_timeout: 5}}")},
        {"list_until": 8},
        execute("echo off"),
    ]);
    BashScenario::new(steps).check_with(&LEGACY, |seen| {
        assert_eq!(seen.at(3, "changed"), 1);
        assert_eq!((seen.entries.len(), &seen.sessions[0]["status"]), (1, &json!("config_reload")));
        let (entries, sessions) =
            (client::entries(&seen.path("elsewhere")), client::metadata(&seen.path("elsewhere")));
        assert_eq!((entries.len(), &sessions[0]["status"]), (1, &json!("recording_disabled")));
        assert_eq!(
            (&entries[0]["command"], &entries[0]["timeout_seconds"]),
            (&json!("echo after"), &json!(5))
        );
        assert_eq!((seen.text(7, "stdout"), seen.at(7, "recording_id")), ("off\n", &Value::Null));
        assert!(seen.log.contains("INFO  bash_recorder: Configuration changed session_id="));
        assert!(seen.log.contains(
            "changed=recording.directory,execution.default_timeout,execution.max_timeout\n"
        ));
    });
}
