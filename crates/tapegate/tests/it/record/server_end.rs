//! How `record` reports the end of its server, and what it waits for.

use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{record, reply, request, tapegate, terminal};

#[test]
fn a_server_that_dies_after_the_client_has_closed_its_end_is_reported_too() {
    let script = "read a; read b; cat; exit 3";
    let input = [request(1), request(2)].concat();
    let end = record(&[]).sh(script).run(input.as_bytes()).exits(3);
    end.complains("error: the MCP server ended (exit status: 3) and left 2 requests unanswered");
    // With every request answered, the code still needs an explanation.
    let script = format!("read a; echo '{}'; cat; exit 3", reply(1).trim());
    let end = record(&[]).sh(&script).run(request(1).as_bytes()).exits(3);
    assert!(
        end.stderr.contains("error: the MCP server ended (exit status: 3)\n"),
        "{}",
        end.stderr
    );
    let script = format!("read a; echo '{}'; cat", reply(1).trim());
    let end = record(&[]).sh(&script).run(request(1).as_bytes()).exits(0);
    assert!(!end.stderr.contains("the MCP server ended"), "{}", end.stderr);
}

#[test]
fn a_server_that_ignores_the_end_of_its_input_is_ended_without_a_failure() {
    let script = format!("read a; echo '{}'; exec sleep 300", reply(1).trim());
    let end = record(&[]).sh(&script).run(request(1).as_bytes()).exits(0).leaves_no_process();
    end.complains(
        "the MCP server did not exit when its input ended, so it was ended (signal: 15 (SIGTERM))",
    );
}

#[test]
fn a_wait_for_answers_after_the_end_of_input_is_reported() {
    let mut run = record(&[]).sh("read a; exec sleep 300").start();
    run.send(request(1).as_bytes());
    run.close_input();
    run.says(
        "standard input has ended; waiting for the MCP server to answer 1 request; Ctrl-C ends",
    );
    run.signal(Signal::INT);
    run.end().exits(130).leaves_no_process();
}

#[test]
fn a_program_that_cannot_be_started_has_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    for (server, hint) in
        [("nosuch", "hint: check its spelling and `PATH`"), ("FOO=1 cat", "write `env NAME=VALUE`")]
    {
        let mut command = tapegate();
        command.args(["record", "-o", "t.jsonl", "--upstream", server]);
        let done = command.current_dir(folder.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(4), "{stderr}");
        assert!(stderr.contains(hint), "{stderr}");
    }
}

#[test]
fn an_empty_value_is_a_usage_error_that_names_its_flag() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, text) in [
        (&["--upstream-http", ""][..], "'--upstream-http <URL>': must not be empty"),
        (&["--http", "", "--", "cat"], "'--http <[HOST:]PORT>': must not be empty"),
        (&["--tags", "", "--", "cat"], "'--tags <TAGS>': must not be empty"),
        (
            &["--upstream-http", "http://127.0.0.1:1/", "--header-env", "X="],
            "'--header-env <NAME=VARIABLE>': write NAME=VARIABLE",
        ),
    ] {
        let mut command = tapegate();
        command.args(["record", "-o", "t.jsonl"]).args(flags).current_dir(folder.path());
        let done = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(64), "{stderr}");
        assert!(stderr.contains(text), "{stderr}");
    }
}

#[test]
fn a_file_name_that_looks_like_a_flag_is_not_advised_to_go_behind_the_dashes() {
    let mut command = tapegate();
    let done = command.args(["record", "-o", "-x.jsonl", "--", "cat"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(64), "{stderr}");
    assert!(!stderr.contains("as a value, use"), "{stderr}");
    assert!(stderr.contains("hint: write a name that begins with `-` as `./-x.jsonl`"), "{stderr}");
}

#[test]
fn batches_are_not_counted_among_the_frames_that_are_not_messages() {
    let batch = format!("[{},{}]\n", request(1).trim(), request(2).trim());
    let end = record(&["serve"]).run([&batch, "\n", "garbage\n"].concat().as_bytes());
    end.complains(
        "2 frames were not a JSON-RPC message, or not delivered; 1 batch is also kept as sent; see",
    );
}

#[test]
fn a_person_who_starts_a_recorder_by_hand_is_told_what_it_waits_for() {
    for (arguments, is_told) in [
        (&["record", "-o", "t.jsonl", "--", "cat"][..], true),
        (&["tape", "--tape", "u.jsonl", "--", "cat"], true),
        (&["shim", "--", "cat"], true),
        (&["record", "-q", "-o", "v.jsonl", "--", "cat"], false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (mut ours, theirs) = terminal();
        let mut command = tapegate();
        command.args(arguments).current_dir(folder.path()).env("HOME", folder.path());
        let command = command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        // End of input, as with Ctrl-D.
        ours.write_all(&[4]).unwrap();
        let done = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(0), "{stderr}");
        assert_eq!(stderr.contains("waiting for an MCP client"), is_told, "{stderr}");
    }
}
