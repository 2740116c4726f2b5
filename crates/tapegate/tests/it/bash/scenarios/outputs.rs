//! What becomes of output.

use serde_json::{Value, json};

use super::support::{BashScenario, call, execute};

#[test]
fn long_output_is_cut_in_the_middle_and_can_be_read() {
    let steps = json!([
        {"call": "execute", "arguments": {"command": "seq 1 100000; seq 1 9 >&2"}, "save": "cut"},
        call("read_output", json!({"process_id": "$cut.process_id", "since_offset": 588_889, "max_bytes": 4})),
        call("read_output", json!({"process_id": "$cut.process_id", "since_offset": 0, "since_stderr_offset": 14})),
    ]);
    BashScenario::new(steps).check(|seen| {
        let shown = seen.text(0, "stdout");
        assert!(shown.starts_with("1\n2\n") && shown.ends_with("99999\n100000\n"));
        assert!(shown.contains("bytes cut ...]") && shown.len() < 31_000);
        assert_eq!(
            (seen.at(0, "truncated"), seen.at(0, "stdout_bytes")),
            (&json!(true), &json!(588_895))
        );
        assert!(seen.text(0, "notice").contains("bytes in the middle of stdout were cut"));
        assert_eq!((seen.text(1, "stdout"), seen.at(1, "next_offset")), ("0000", &json!(588_893)));
        assert!(
            seen.text(2, "stdout").starts_with("1\n2\n") && seen.text(2, "stdout").len() == 30_000
        );
        assert_eq!(
            (seen.text(2, "stderr"), seen.at(2, "next_stderr_offset")),
            ("8\n9\n", &json!(18))
        );
        let entry = &seen.entries[0];
        assert_eq!(
            (&entry["output_truncated"], &entry["output_truncated_bytes"]),
            (&json!(false), &Value::Null)
        );
        assert_eq!(entry["stdout"].as_str().unwrap().len(), 588_895);
    });
}

#[test]
fn output_beyond_the_limit_of_the_recording_is_counted() {
    let steps = json!([
        execute("printf 'aé%.0s' 1 2 3 4"),
        execute("printf 12345; printf 123456789012 >&2")
    ]);
    BashScenario::new(steps).settings("recording: {max_output_size: 5}").check(|seen| {
        assert_eq!(seen.text(0, "stdout"), "aéaéaéaé");
        // Not in the middle of a character.
        let entry = &seen.entries[0];
        assert_eq!((&entry["stdout"], &entry["output_truncated"]), (&json!("aéa"), &json!(true)));
        assert_eq!(entry["output_truncated_bytes"], 12);
        let entry = &seen.entries[1];
        assert_eq!((&entry["stdout"], &entry["stderr"]), (&json!("12345"), &json!("12345")));
        assert_eq!(
            (&entry["output_truncated_bytes"], &entry["stderr_bytes"]),
            (&json!(12), &json!(12))
        );
    });
}

#[test]
fn bytes_that_are_not_text_are_shown_and_recorded_without_loss() {
    let steps = json!([execute(r"printf 'a\xff\x00b'; printf '\xfe' >&2")]);
    BashScenario::new(steps).check(|seen| {
        assert_eq!((seen.text(0, "stdout"), seen.text(0, "stderr")), ("a\u{fffd}\0b", "\u{fffd}"));
        assert!(seen.text(0, "notice").contains("stdout has bytes that are not UTF-8"));
        let entry = &seen.entries[0];
        assert_eq!(
            (&entry["stdout_base64"], &entry["stderr_base64"]),
            (&json!("Yf8AYg=="), &json!("/g=="))
        );
    });
}

#[test]
fn a_signal_is_named_and_a_nonzero_exit_is_a_result() {
    let steps =
        json!([execute("kill -9 $$"), execute("sh -c 'kill -9 $$'; exit $?"), execute("exit 3")]);
    BashScenario::new(steps).check(|seen| {
        assert_eq!((seen.at(0, "exit_code"), seen.text(0, "signal")), (&Value::Null, "SIGKILL"));
        assert_eq!((seen.at(1, "exit_code"), seen.at(1, "signal")), (&json!(137), &Value::Null));
        assert_eq!((seen.at(2, "exit_code"), seen.at(2, "error")), (&json!(3), &json!(false)));
        assert_eq!(
            (&seen.entries[0]["exit_code"], &seen.entries[0]["signal"]),
            (&Value::Null, &json!("SIGKILL"))
        );
        assert_eq!(seen.sessions[0]["commands_failed"], 3);
    });
}
