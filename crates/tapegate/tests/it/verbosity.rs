//! `-q`, `-v`, `--log-level`, `--log-format` and `--version`: before and after the name of every command.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{fake_server, tapegate};

const TAPE: &str = concat!(
    r#"{"ts":"2026-03-20T14:22:11Z","direction":"client_to_server","parsed":{"jsonrpc":"2.0","id":1,"method":"ping"}}"#,
    "\n",
    r#"{"ts":"2026-03-20T14:22:12Z","direction":"server_to_client","parsed":{"jsonrpc":"2.0","id":1,"result":{}}}"#,
    "\n",
);

/// A command line for every command, with output on standard error where possible.
fn lines() -> Vec<Vec<String>> {
    let fake = fake_server().display().to_string();
    let lines: [&[&str]; 26] = [
        &["demo"],
        &["wrap", "--agent-type", "zed", "--", &fake],
        &["unwrap"],
        &["agents"],
        &["init", "new.yaml"],
        &["record", "-o", "t.jsonl", "--", &fake, "eof"],
        &["tape", "--tape", "t.jsonl", "--", &fake, "eof"],
        &["shim", "--", &fake, "eof"],
        &["hub", "--require-policy", "--config", "none.yaml"],
        &["replay", "-r", "tape.jsonl"],
        &["serve", "--list"],
        &["serve", "-s", "rug-pull"],
        &["bash"],
        &["sessions", "list"],
        &["verify", "-r", "tape.jsonl", "--", &fake, "serve"],
        &["check", "tape.jsonl"],
        &["show", "tape.jsonl"],
        &["stats", "tape.jsonl"],
        &["convert", "-r", "tape.jsonl", "-o", "s.yaml"],
        &["policy", "explain", "x"],
        &["policy", "test"],
        &["redact", "tape.jsonl", "-o", "r.jsonl", "--redact", "secrets"],
        &["approvals"],
        &["log"],
        &["completions", "bash"],
        &["man"],
    ];
    lines.iter().map(|line| line.iter().map(|word| (*word).to_owned()).collect()).collect()
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tape.jsonl"), TAPE).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = tapegate();
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
        .env("TAPEGATE_HOME", folder.join("home"))
        .env("HOME", folder)
        .env_remove("TAPEGATE_LOG");
    command.output().unwrap()
}

/// The line with flags before the command and after it.
fn with_flags<'l>(line: &'l [String], flags: &[&'l str]) -> [Vec<&'l str>; 2] {
    let words: Vec<&str> = line.iter().map(String::as_str).collect();
    let last = if ["policy", "sessions"].contains(&words[0]) { 2 } else { 1 };
    let after = [&words[..last], flags, &words[last..]].concat();
    [[flags, &words[..]].concat(), after]
}

fn said(done: &Output) -> String {
    String::from_utf8(done.stderr.clone()).unwrap()
}

#[test]
fn the_lines_tried_here_have_every_command() {
    let tried: BTreeSet<String> = lines().into_iter().map(|line| line[0].clone()).collect();
    let all: BTreeSet<String> = crate::tidy::commands().into_iter().collect();
    assert_eq!(tried, all);
}

#[test]
fn verbose_says_how_every_command_ended_and_what_it_read() {
    for line in lines() {
        for arguments in with_flags(&line, &["-v"]) {
            let folder = folder();
            let done = run(folder.path(), &arguments);
            let output = said(&done);
            let code = done.status.code().unwrap();
            assert!(
                output.contains(&format!("ended with exit code {code} after ")),
                "{arguments:?}: {output}"
            );
            let reads = line.iter().any(|word| word == "tape.jsonl");
            assert!(!reads || output.contains("reading tape.jsonl"), "{arguments:?}: {output}");
            let plain: Vec<&str> = line.iter().map(String::as_str).collect();
            let without = run(self::folder().path(), &plain);
            assert!(!self::said(&without).contains("ended with exit code"), "{without:?}");
        }
    }
}

#[test]
fn quiet_leaves_nothing_but_errors_and_changes_no_exit_code() {
    for line in lines() {
        let plain: Vec<&str> = line.iter().map(String::as_str).collect();
        let loud = run(folder().path(), &plain);
        for arguments in with_flags(&line, &["--quiet"]) {
            let done = run(folder().path(), &arguments);
            assert_eq!(done.status.code(), loud.status.code(), "{arguments:?}");
            let output = said(&done);
            assert!(output.is_empty() || output.starts_with("error: "), "{arguments:?}: {output}");
        }
    }
}

#[test]
fn with_log_format_json_every_line_is_one_object() {
    for line in lines() {
        for arguments in with_flags(&line, &["--log-format", "json", "-v"]) {
            let folder = folder();
            let done = run(folder.path(), &arguments);
            let output = said(&done);
            assert!(!output.is_empty(), "{arguments:?}");
            for text in output.lines() {
                let object: Value = serde_json::from_str(text)
                    .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"));
                for key in ["timestamp", "level"] {
                    assert!(object[key].is_string(), "{arguments:?}: no {key} in {text}");
                }
            }
        }
    }
}

#[test]
fn errors_are_objects_too_with_their_hints() {
    let folder = folder();
    for (arguments, component, message, hint) in [
        (&["man", "x", "--log-format=json"][..], "man", "there is no command `x`", "lists them"),
        (
            &["--log-format", "json", "policy", "check"],
            "policy",
            "unrecognized subcommand",
            "checked by",
        ),
        (
            &["record", "--log-format", "json", "x"],
            "record",
            "unexpected argument 'x'",
            "after `--`",
        ),
    ] {
        let done = run(folder.path(), arguments);
        assert_eq!(done.status.code(), Some(64), "{arguments:?}");
        let object: Value = serde_json::from_str(&said(&done)).unwrap();
        assert_eq!(object["level"], "error");
        assert_eq!(object["component"], component);
        assert!(object["message"].as_str().unwrap().starts_with(message), "{object}");
        assert!(object["hint"].as_str().unwrap().contains(hint), "{object}");
    }
}

#[test]
fn the_environment_sets_the_level_and_a_wrong_one_is_refused() {
    let folder = folder();
    let with = |level: &str| {
        let mut command = tapegate();
        command.args(["show", "tape.jsonl"]).current_dir(folder.path());
        command.env("TAPEGATE_LOG", level).output().unwrap()
    };
    assert!(said(&with("debug")).contains("reading tape.jsonl"));
    assert_eq!(said(&with("ERROR")), "");
    let wrong = with("loud");
    assert_eq!(wrong.status.code(), Some(64));
    assert!(said(&wrong).contains("the log level `loud` is unknown"), "{wrong:?}");
    let both = run(folder.path(), &["-q", "show", "-v", "tape.jsonl"]);
    assert_eq!(both.status.code(), Some(64), "{both:?}");
}

#[test]
fn every_command_has_the_version() {
    for line in lines() {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let has_inner = ["policy", "sessions"].contains(&words[0]);
        let words = if has_inner { &words[..2] } else { &words[..1] };
        for flag in ["-V", "--version"] {
            let done = run(folder().path(), &[words, &[flag]].concat());
            let version = concat!("tapegate ", env!("CARGO_PKG_VERSION"), "\n");
            assert_eq!(String::from_utf8(done.stdout).unwrap(), version, "{words:?}");
        }
    }
}

/// A recorded session with a call whose content must not be shown, under these flags.
fn recorded(flags: &[&str]) -> Output {
    use std::io::Write;

    let folder = folder();
    let mut command = tapegate();
    command.args(["record", "-o", "t.jsonl"]).args(flags).arg("--").arg(fake_server());
    command.arg("serve").current_dir(folder.path()).env_remove("TAPEGATE_LOG");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"key":"s3cret"}}}"#;
    writeln!(child.stdin.take().unwrap(), "{call}").unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn debug_shows_processes_and_trace_shows_messages_without_their_content() {
    for (level, messages) in [("debug", false), ("TRACE", true)] {
        let done = recorded(&["--log-level", level]);
        let output = said(&done);
        for part in
            ["wire::child: server started pid=", "server exited pid=", "status=\"exit status: 0\""]
        {
            assert!(output.contains(part), "no {part}: {output}");
        }
        assert!(output.contains("pipe closed from=Client event=Ended"), "{output}");
        assert!(output.contains("waiting for the server to exit pid="), "{output}");
        assert!(output.contains("session ended cause=Client"), "{output}");
        let request = "message from=Client session=1 kind=request method=tools/call id=7 bytes=";
        assert_eq!(output.contains(request), messages, "{output}");
        assert!(!output.contains("s3cret"), "{output}");
        let answers = String::from_utf8(done.stdout).unwrap();
        assert_eq!(answers, String::from_utf8(recorded(&[]).stdout).unwrap());
    }
}

#[test]
fn events_are_objects_with_log_format_json() {
    let done = recorded(&["--log-level=trace", "--log-format=json"]);
    let objects: Vec<Value> =
        said(&done).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let exited = objects.iter().find(|object| object["message"] == "server exited").unwrap();
    assert_eq!((&exited["level"], &exited["component"]), (&"debug".into(), &"record".into()));
    assert!(exited["pid"].is_number() && exited["target"] == "wire::child", "{exited}");
    let call = objects.iter().find(|object| object["method"] == "tools/call").unwrap();
    assert_eq!((&call["level"], &call["kind"]), (&"trace".into(), &"request".into()));
    assert!(!said(&done).contains("s3cret"));
}

#[test]
fn events_are_off_by_default_and_at_info() {
    for flags in [&[][..], &["--log-level", "info"]] {
        let output = said(&recorded(flags));
        assert!(!output.contains("wire::") && !output.contains("server started"), "{output}");
    }
}

#[test]
fn an_unknown_level_is_refused_with_the_known_ones() {
    let folder = folder();
    for arguments in
        [&["--log-level", "loud", "check", "tape.jsonl"][..], &["man", "--log-level=x"]]
    {
        let done = run(folder.path(), arguments);
        assert_eq!(done.status.code(), Some(64));
        assert!(said(&done).contains("error, warn, info, debug, trace"), "{done:?}");
    }
    for flag in ["-q", "-v"] {
        let both = run(folder.path(), &["--log-level", "warn", "check", flag, "tape.jsonl"]);
        assert_eq!(both.status.code(), Some(64), "{both:?}");
        assert!(said(&both).contains("give either --log-level or --"), "{both:?}");
    }
}
