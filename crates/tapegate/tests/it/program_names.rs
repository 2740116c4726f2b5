//! The names of the binary through links: each appears in help, usage and hints.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const NAMES: [&str; 3] = ["thoughtjack", "thoughtgate", "tg"];
const TAPE: &str = "overwatch-mcp-tape";

/// A folder in which the binary has this name.
fn link(name: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_tapegate"), folder.path().join(name)).unwrap();
    folder
}

fn run(folder: &Path, name: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(folder.join(name));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("TAPEGATE_HOME", folder).env("HOME", folder).env("COLUMNS", "100");
    command.output().unwrap()
}

#[track_caller]
fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A command of ours after the product's name, if the text has one.
fn names_the_product(text: &str) -> Option<&str> {
    let commands = crate::tidy::commands();
    let is_command = |rest: &str| {
        let word = rest.split(|letter: char| !letter.is_ascii_lowercase()).next().unwrap();
        commands.iter().any(|command| command == word)
    };
    text.lines().find(|line| line.split("tapegate ").skip(1).any(is_command))
}

#[test]
fn help_usage_and_examples_have_the_name_that_was_called() {
    let mut pages = vec![vec!["--help".to_owned()], vec!["-h".to_owned()]];
    for command in crate::tidy::commands() {
        pages.push(vec![command.clone(), "--help".to_owned()]);
        pages.push(vec!["man".to_owned(), command]);
    }
    for word in ["explain", "test", "backtest", "pin", "generate", "accept"] {
        pages.push(["policy", word, "--help"].map(str::to_owned).to_vec());
    }
    for word in ["list", "show", "stats", "generate", "clean", "export"] {
        pages.push(["sessions", word, "--help"].map(str::to_owned).to_vec());
    }
    for name in NAMES {
        let folder = link(name);
        for page in &pages {
            let page: Vec<&str> = page.iter().map(String::as_str).collect();
            let done = run(folder.path(), name, &page);
            let text = text(&done.stdout);
            assert!(done.status.success(), "{name} {page:?}: {done:?}");
            assert_eq!(names_the_product(&text), None, "{name} {page:?}");
            assert!(page[0] == "man" || text.contains(&format!("Usage: {name}")), "{text}");
            let long = text.lines().find(|line| line.chars().count() > 100);
            assert!(page[0] == "man" || long.is_none(), "{name} {page:?}: {long:?}");
        }
    }
}

#[test]
fn the_link_that_is_tape_shows_lines_that_work_under_it() {
    let folder = link(TAPE);
    let help = text(&run(folder.path(), TAPE, &["--help"]).stdout);
    for line in [
        "Usage: overwatch-mcp-tape [OPTIONS] [-- <CMD>...]",
        "  overwatch-mcp-tape --tape ./tapes/run.jsonl -- node ./dist/index.js",
        r#"{"command": "overwatch-mcp-tape","#,
        r#""args": ["--tape", "/tmp/time.jsonl", "#,
    ] {
        assert!(help.contains(line), "no {line} in {help}");
    }
    assert!(!help.contains("tapegate tape") && !help.contains("overwatch-mcp-tape tape"), "{help}");
    let usage = text(&run(folder.path(), TAPE, &["--no-such-flag"]).stderr);
    assert!(usage.contains("Usage: overwatch-mcp-tape"), "{usage}");
    // Run the example.
    let done = run(folder.path(), TAPE, &["--tape", "x.jsonl", "--", "true"]);
    assert!(done.status.success(), "{done:?}");
    assert!(text(&done.stderr).starts_with("overwatch-mcp-tape: "), "{done:?}");
    assert!(folder.path().join("x.jsonl").exists());
}

#[test]
fn hints_and_messages_have_the_name_that_was_called() {
    let folder = link("thoughtgate");
    let here = folder.path();
    for (arguments, output_text) in [
        (&["policy", "explain", "x"][..], "write one with `thoughtgate init`"),
        (&["policy", "check"], "by `thoughtgate check tapegate.yaml`"),
        (&["man", "x"], "`thoughtgate --help` lists them"),
        (&["serve", "-s", "xyzzy"], "`thoughtgate serve --list` lists them"),
        (&["approvals", "show", "ap_1"], "`thoughtgate approvals` lists them"),
        (&["shim", "--require-policy", "--", "true"], "`thoughtgate init` in the project"),
        (&["--no-such-flag"], "Usage: thoughtgate"),
        (&["record", "--no-such-flag"], "Usage: thoughtgate record"),
        (&["record", "-o", "t.jsonl", "--", "true"], "thoughtgate: recorded 0 messages"),
    ] {
        let done = run(here, "thoughtgate", arguments);
        let said = text(&done.stderr);
        assert!(said.contains(output_text), "{arguments:?}: {said}");
    }
    // Text written by a user is never changed.
    fs::write(here.join("tapegate check"), "{\"mcp\": 1\n").unwrap();
    let done = run(here, "thoughtgate", &["check", "tapegate check"]);
    assert!(text(&done.stdout).contains("tapegate check:"), "{done:?}");
}

#[test]
fn completions_and_the_version_are_for_the_name_that_was_called() {
    let folder = link("thoughtjack");
    let script = text(&run(folder.path(), "thoughtjack", &["completions", "bash"]).stdout);
    assert!(script.contains("complete -F _thoughtjack"), "{script}");
    let version = concat!(env!("CARGO_PKG_VERSION"), " (tapegate)\n");
    for arguments in [&["-V"][..], &["--version"], &["record", "-V"], &["policy", "test", "-V"]] {
        let done = run(folder.path(), "thoughtjack", arguments);
        assert_eq!(text(&done.stdout), format!("thoughtjack {version}"), "{arguments:?}");
    }
}

#[test]
fn cuff_has_a_command_line_of_its_own() {
    let folder = link("cuff");
    let help = text(&run(folder.path(), "cuff", &["--help"]).stdout);
    assert!(help.contains("Usage: cuff [OPTIONS] <COMMAND>"), "{help}");
    assert!(help.contains("  cuff record list --since 7d\n  cuff record show 143052"), "{help}");
    let list = text(&run(folder.path(), "cuff", &["record", "list", "--help"]).stdout);
    assert!(
        list.contains("Usage: cuff record list") && list.contains("  cuff record list\n"),
        "{list}"
    );
    assert_eq!(names_the_product(&list), None);
    // Our own `record` is another command.
    let done = run(folder.path(), "cuff", &["record", "-o", "t.jsonl", "--", "true"]);
    assert_eq!(done.status.code(), Some(64), "{done:?}");
    assert!(!folder.path().join("t.jsonl").exists());
    let done = run(folder.path(), "cuff", &["hub"]);
    assert_eq!(done.status.code(), Some(64), "{done:?}");
}
