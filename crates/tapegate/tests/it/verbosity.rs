//! `-q`, `-v`, `--log-format` and `--version`: before and after the name of every command.

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
    let lines: [&[&str]; 21] = [
        &["demo"],
        &["init", "new.yaml"],
        &["record", "-o", "t.jsonl", "--", &fake, "eof"],
        &["tape", "--tape", "t.jsonl", "--", &fake, "eof"],
        &["shim", "--", &fake, "eof"],
        &["hub", "--require-policy", "--config", "none.yaml"],
        &["replay", "-r", "tape.jsonl"],
        &["serve", "--list"],
        &["serve", "-s", "rug-pull"],
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
    let last = if words[0] == "policy" { 2 } else { 1 };
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
        let words = if words[0] == "policy" { &words[..2] } else { &words[..1] };
        for flag in ["-V", "--version"] {
            let done = run(folder().path(), &[words, &[flag]].concat());
            let version = concat!("tapegate ", env!("CARGO_PKG_VERSION"), "\n");
            assert_eq!(String::from_utf8(done.stdout).unwrap(), version, "{words:?}");
        }
    }
}
