//! Flags without effect, and outputs that would be a file called `-`, are refused with the reason.
//! Hints name things that exist and work.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::support::tapegate;

/// A folder with a tape and a key.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tape = "{\"type\":\"header\",\"version\":\"1.0\",\"recorded_at\":\"2026-01-01T00:00:00Z\",\
        \"upstream\":\"x\",\"thoughtjack_version\":\"0.1.0\"}\n\
        {\"type\":\"message\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"c2s\",\
        \"msg\":{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}}\n\
        {\"type\":\"message\",\"seq\":2,\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"s2c\",\
        \"msg\":{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}}\n";
    fs::write(folder.path().join("t.jsonl"), tape).unwrap();
    fs::write(folder.path().join("key"), "a secret of some length").unwrap();
    folder
}

/// The error for a command line that must be refused and leave nothing behind.
#[track_caller]
fn refusal(folder: &Path, line: &str) -> String {
    let names = || {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let mut command = tapegate();
    command.args(line.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command.env("HOME", folder.join("home")).env("TAPEGATE_HOME", folder.join("home"));
    let done = command.output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(64), "{line}: {said}");
    assert_eq!(names(), before, "{line}");
    said
}

#[test]
fn no_output_is_a_file_called_dash() {
    let folder = folder();
    for (line, reason) in [
        ("record -o - -- true", "standard output belongs to the client"),
        ("tape --tape - -- true", "standard output belongs to the client"),
        ("tape --tape-dir - -- true", "standard output belongs to the client"),
        ("replay -r t.jsonl --report -", "standard output belongs to the client"),
        ("replay -r t.jsonl --report ok.xml --report -", "standard output belongs to the client"),
        ("replay -r t.jsonl --record-to -", "standard output belongs to the client"),
        ("replay -r t.jsonl --http :0 --report -", "name a file"),
        ("serve -s rug-pull --expect --report -", "standard output belongs to the client"),
        ("serve -s rug-pull --events-file -", "standard output belongs to the client"),
        ("verify -r t.jsonl --report - -- true", "--format json|junit|sarif prints it"),
        ("policy test --report -", "--format json|junit prints it"),
        ("policy generate t.jsonl --cedar -", "the policy names the file"),
        ("redact t.jsonl --redact secrets -o -", "name a file"),
        ("init -", "standard output has the summary"),
        ("demo -o -", "standard output shows the demo"),
        ("bash --metrics-file -", "standard output belongs to the client"),
        ("sessions export all --output -", "leave out --output to write to standard output"),
        ("sessions generate --output -", "leave out --output to write to standard output"),
        ("hub --token-file -", "a token is never printed"),
        ("hub --approver-token-file -", "a token is never printed"),
        ("approvals export-key -", "a key is never printed"),
    ] {
        let said = refusal(folder.path(), line);
        assert!(said.contains(reason), "{line}: {said}");
    }
}

#[test]
fn a_flag_that_can_have_no_effect_is_refused_with_the_one_it_needs() {
    let folder = folder();
    for (line, needed) in [
        ("replay -r t.jsonl --fuzzy-threshold 0.5", "without --match-mode fuzzy"),
        ("replay -r t.jsonl --match-mode fuzzy --strict-params", "--match-mode sequential"),
        ("replay -r t.jsonl --match-mode by-request --strict-params", "--match-mode sequential"),
        ("replay -r t.jsonl --server-messages none --strict-replies", "--server-messages all"),
        ("replay -r t.jsonl --redact-key-file key", "is not marked as redacted"),
        ("replay -r t.jsonl --run-id a", "--report <FILE>"),
        ("replay -r t.jsonl --allow-host a", "--http"),
        ("verify -r t.jsonl --details --format json -- true", "--format text"),
        ("verify -r t.jsonl --redact-key-file key -- true", "is not marked as redacted"),
        ("show t.jsonl --full --format jsonl", "--format text"),
        ("convert -r t.jsonl -o s.yaml --phase-after 2", "--style phased"),
        ("convert -r t.jsonl -o - --force", "a file in --output"),
        ("convert -r t.jsonl -o o.jsonl --to overwatch --max-inline-bytes 1KB", "--to <DIALECT>"),
        ("policy generate t.jsonl --force", "without --output FILE or --cedar FILE"),
        ("policy pin t.jsonl --timeout 1s", "--timeout <DUR>"),
        ("policy accept --list --non-interactive --key-file key", "--list"),
        ("record -o tapes/ --force -- true", "name the tape with -o FILE"),
        ("record -o . --if-exists append -- true", "name the tape with -o FILE"),
        ("tape --if-exists append -- true", "name the tape with --tape FILE"),
        ("record -o r.jsonl --redact-key-file key -- true", "--redact <RULE>"),
        ("serve --list --seed 3", "--list"),
        ("serve --list --http :0", "--list"),
        ("serve -s rug-pull --library x", "--library <DIR>"),
        ("check t.jsonl --strict-001", "--strict-001 needs a scenario"),
        ("approvals show ap_0000 --all", "--all is for `list`"),
        ("approvals show ap_0000 --reveal --format jsonl", "--reveal prints only to the terminal"),
        ("approvals export-key k --format json", "--format has no effect"),
    ] {
        let said = refusal(folder.path(), line);
        assert!(said.contains(needed), "{line}: {said}");
    }
}

/// The standard error of a command line.
fn said(folder: &Path, line: &str) -> String {
    let mut command = tapegate();
    command.args(line.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command.env("HOME", folder.join("home")).env("TAPEGATE_HOME", folder.join("home"));
    String::from_utf8(command.output().unwrap().stderr).unwrap()
}

#[test]
fn hints_name_what_works() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("s.yaml"), "server: {name: s}\n").unwrap();
    fs::write(folder.join("notes.txt"), "hello\n").unwrap();
    for (line, hint) in [
        ("serve t.jsonl", "`tapegate convert -r t.jsonl -o scenario.yaml` converts it"),
        ("policy accept", "name one with `tapegate policy accept FILE`"),
        ("show s.yaml", "run `tapegate serve s.yaml`"),
        ("stats s.yaml", "run `tapegate serve s.yaml`"),
        // Not into a file that may have been named by mistake.
        ("redact t.jsonl -o r.jsonl --redact secrets --redact-key-file notes.txt", "> tape.key`"),
    ] {
        let text = said(folder, line);
        assert!(text.contains(hint), "{line}: {text}");
    }
    let text = said(folder, "show notes.txt");
    assert!(
        text.starts_with("error: `notes.txt` is not a tape") && !text.contains("hint"),
        "{text}"
    );
    // The conversion named in the hint converts it to a scenario.
    assert_eq!(said(folder, "convert -r t.jsonl -o scenario.yaml -q"), "");
}

#[test]
fn a_tape_without_a_header_is_redacted_as_the_warning_says_to_be_replayed() {
    let folder = folder();
    let folder = folder.path();
    assert_eq!(said(folder, "convert -r t.jsonl -o o.jsonl --to overwatch -q"), "");
    for key in ["", "--redact-key-file key"] {
        let text =
            said(folder, &format!("redact o.jsonl -o r.jsonl --force --redact secrets {key}"));
        let line = "tapegate convert -r o.jsonl -o FILE --to thoughtjack";
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(said(folder, "convert -r o.jsonl -o FILE --to thoughtjack -q"), "");
    assert_eq!(said(folder, "redact FILE -o new.jsonl --redact secrets --redact-key-file key"), "");
    let played = said(folder, "replay -r new.jsonl --redact-key-file key");
    assert!(played.contains("unused 1"), "{played}");
}

#[test]
fn help_that_is_not_read_to_its_end_is_no_error() {
    let commands: [&[&str]; 5] = [
        &["--help"],
        &["show", "--help"],
        &["shim", "--help"],
        &["policy", "help"],
        &["--version"],
    ];
    for args in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = tapegate().args(args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((done.status.code(), done.stderr), (Some(0), Vec::new()), "{args:?}");
    }
}

#[test]
fn help_is_a_word_where_the_verbs_are_values_too() {
    let help = |args: &[&str]| tapegate().args(args).output().unwrap();
    let expected = help(&["approvals", "--help"]).stdout;
    for args in [&["approvals", "help"][..], &["approvals", "help", "list"]] {
        let done = help(args);
        assert_eq!((done.status.code(), &done.stdout), (Some(0), &expected), "{args:?}");
    }
}
