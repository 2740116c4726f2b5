//! How commands run, and what is wrong with a call.

use serde_json::{Value, json};

use super::support::{BashScenario, call, execute};

#[test]
fn a_call_that_is_wrong_says_what_and_executes_nothing() {
    let calls = [
        (call("execute", json!({})), "Missing required argument: command"),
        (execute("  "), "command must not be empty"),
        (call("execute", json!({"command": 7})), "command must be a string, not 7"),
        (
            call("execute", json!({"command": "touch made", "timeout": -5})),
            "timeout must be a whole number of at least 1, not -5",
        ),
        (
            call("execute", json!({"command": "touch made", "timeout": "10"})),
            "timeout must be a whole number of at least 1, not \"10\"",
        ),
        (
            call("execute", json!({"command": "touch made", "comand": "x"})),
            "Unknown argument: comand (did you mean `command`?)",
        ),
        (
            call("execute", json!({"command": "touch made", "working_directory": "/no/such"})),
            "Invalid working directory: /no/such does not exist",
        ),
        (
            call("execute", json!({"command": "touch made", "working_directory": "/dev/null"})),
            "Invalid working directory: /dev/null is not a directory",
        ),
        (call("list_recent", json!({"count": 0})), "count must be a whole number of at least 1"),
        (call("list_recent", json!({"count": 101})), "count must be at most 100, not 101"),
        (call("read_output", json!({"process_id": "p9"})), "Unknown process: p9 (known are: none)"),
        (call("stop", json!({})), "Missing required argument: process_id"),
    ];
    let mut steps: Vec<Value> = calls.iter().map(|(step, _)| step.clone()).collect();
    steps.push(call("rm", json!({})));
    BashScenario::new(steps.into()).check(|seen| {
        for (step, (_, message)) in calls.iter().enumerate() {
            assert_eq!(seen.at(step, "error"), true);
            assert!(seen.text(step, "text").contains(message), "{}", seen.results[step]);
        }
        // An error of the protocol, which the SDKs raise.
        let unknown = seen.text(calls.len(), "exception");
        assert!(unknown.contains("Unknown tool: bash_recorder.rm"), "{unknown}");
        assert!(seen.entries.is_empty() && !seen.path("made").exists());
    });
}

#[test]
fn standard_input_is_closed_and_nothing_waits_for_what_is_left_behind() {
    let steps = json!([
        execute("cat; read line; echo \"$?\""),
        {"call": "execute", "arguments": {"command": "(echo early; exec tail -f /dev/null) & echo started"}, "save": "left"},
        call("stop", json!({"process_id": "$left.process_id"})),
        execute("export KEPT=1; cd sub"),
        execute("echo \"$KEPT:$PWD\""),
    ]);
    BashScenario::new(steps).check(|seen| {
        assert_eq!((seen.text(0, "stdout"), seen.at(0, "exit_code")), ("1\n", &json!(0)));
        assert_eq!(seen.at(1, "background_children"), true);
        assert!(seen.text(1, "stdout").contains("started\n"));
        assert!(seen.text(1, "notice").contains("still running"));
        assert_eq!(seen.at(2, "running"), false);
        // Each command has a fresh shell.
        assert_eq!(
            seen.text(4, "stdout"),
            format!(":{}\n", seen.path("").display()).replace("/\n", "\n")
        );
    });
}

#[test]
fn a_timeout_kills_and_keeps_the_output_and_one_above_the_limit_is_lowered() {
    let steps = json!([
        call("execute", json!({"command": "echo part; exec tail -f /dev/null", "timeout": 99})),
        execute("echo default; exec tail -f /dev/null"),
    ]);
    let settings = "execution: {max_timeout: 2, default_timeout: 1}";
    BashScenario::new(steps).settings(settings).check(|seen| {
        for (step, text, seconds) in [(0, "part\n", 2), (1, "default\n", 1)] {
            assert_eq!(seen.text(step, "stdout"), text);
            assert_eq!(
                (seen.at(step, "timed_out"), seen.at(step, "exit_code")),
                (&json!(true), &Value::Null)
            );
            let entry = &seen.entries[step];
            assert_eq!((&entry["timed_out"], &entry["exit_code"]), (&json!(true), &Value::Null));
            assert_eq!(
                (&entry["timeout_seconds"], &entry["stdout"]),
                (&json!(seconds), &json!(text))
            );
        }
        assert!(seen.text(0, "notice").contains("timeout 99 s is above the limit; 2 s was used"));
        assert_eq!(seen.sessions[0]["commands_timed_out"], 2);
    });
}

#[test]
fn a_cancelled_call_is_ended_and_recorded_as_such() {
    let steps = json!([
        {"cancel": "execute", "arguments": {"command": "touch began; exec tail -f /dev/null"}, "once": "began"},
        execute("echo on"),
    ]);
    BashScenario::new(steps).check(|seen| {
        assert_eq!(seen.text(1, "stdout"), "on\n");
        let entry = seen.entry("touch began; exec tail -f /dev/null");
        assert_eq!((&entry["cancelled"], &entry["exit_code"]), (&json!(true), &Value::Null));
    });
}

#[test]
fn a_background_command_is_read_signalled_and_stopped() {
    let trap = "trap 'echo got; exit 5' USR1; echo up; tail -f /dev/null & wait";
    let steps = json!([
        {"call": "execute", "arguments": {"command": trap, "run_in_background": true}, "save": "one"},
        call("read_output", json!({"process_id": "$one.process_id", "wait_seconds": 60})),
        call("stop", json!({"process_id": "$one.process_id", "signal": "SIGUSR1"})),
        call("read_output", json!({"process_id": "$one.process_id"})),
        {"call": "execute", "arguments": {"command": "exec tail -f /dev/null", "run_in_background": true}, "save": "two"},
        call("stop", json!({"process_id": "$two.process_id"})),
        call("stop", json!({"process_id": "$two.process_id", "signal": "SIGNOTHING"})),
    ]);
    BashScenario::new(steps).check(|seen| {
        assert_eq!(
            (seen.at(0, "recording_id"), seen.at(0, "exit_code")),
            (&Value::Null, &Value::Null)
        );
        assert_eq!((seen.text(1, "stdout"), seen.at(1, "running")), ("up\n", &json!(true)));
        assert_eq!((seen.at(2, "running"), seen.at(2, "exit_code")), (&json!(false), &json!(5)));
        assert_eq!(seen.text(3, "stdout"), "got\n");
        assert_eq!((seen.at(5, "running"), seen.text(5, "signal")), (&json!(false), "SIGTERM"));
        assert!(seen.text(6, "text").contains("signal SIGNOTHING is not known"));
        let entry = seen.entry(trap);
        assert_eq!((&entry["background"], &entry["exit_code"]), (&json!(true), &json!(5)));
        assert_eq!(
            (&entry["stdout"], &entry["entry_id"]),
            (&json!("up\ngot\n"), seen.at(2, "recording_id"))
        );
    });
}
