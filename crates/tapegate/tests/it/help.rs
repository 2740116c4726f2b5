//! The binary's help. The texts are goldens (`tests/golden/help`), so that changes are visible in
//! review: `UPDATE_GOLDEN=1` rewrites them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[test]
fn help_is_as_the_goldens_have_it() {
    let folder = golden();
    let mut expected = vec!["tapegate.txt".to_owned()];
    compare("tapegate.txt", &help(&["--help"]));
    for name in commands() {
        compare(&format!("{name}.txt"), &help(&[&name, "--help"]));
        expected.push(format!("{name}.txt"));
    }
    // The commands of a group that the document of the bash tool describes one by one.
    for name in ["list", "show", "stats", "generate", "clean", "export"] {
        compare(&format!("sessions-{name}.txt"), &help(&["sessions", name, "--help"]));
        expected.push(format!("sessions-{name}.txt"));
    }
    expected.sort();
    let there = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut there: Vec<_> = there.map(|name| name.into_string().unwrap()).collect();
    there.sort();
    assert_eq!(there, expected, "a golden without a command");
}

/// `record` and `tape` are parsed on their own, so their help is generated in two ways.
#[test]
fn help_is_the_same_whichever_way_it_is_asked_for() {
    for name in commands() {
        assert_eq!(help(&["help", &name]), help(&[&name, "--help"]), "{name}");
    }
}

#[test]
fn every_command_has_an_example_and_no_line_is_too_long() {
    for name in commands() {
        let text = help(&[&name, "--help"]);
        assert!(text.contains("Example"), "{name}");
        let long = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{name}");
    }
}

#[test]
fn every_command_has_a_manual_page_without_warnings() {
    let mut pages = vec![vec!["man".to_owned()]];
    pages.extend(commands().into_iter().map(|name| vec!["man".to_owned(), name]));
    let folder = tempfile::tempdir().unwrap();
    for arguments in pages {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let page = said(&run(&arguments));
        for part in [".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION"] {
            assert!(page.contains(part), "no {part} in {arguments:?}");
        }
        let called =
            arguments.get(1).map_or("tapegate".to_owned(), |name| format!("tapegate {name}"));
        assert!(page.contains(&format!("\\fB{called}\\fR")), "{called}: {page}");
        let file = folder.path().join("page.1");
        fs::write(&file, page).unwrap();
        // Without a `man` that can format, the page has already been checked above.
        let lint = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
            .arg(&file)
            .env("MANPAGER", "cat")
            .env("LC_ALL", "C.UTF-8")
            .output();
        if let Some(lint) = lint.ok().filter(can_format) {
            assert_eq!(String::from_utf8_lossy(&lint.stderr), "", "{arguments:?}");
        }
    }
}

#[test]
fn completions_are_scripts_that_their_shells_can_read() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = said(&run(&["completions", shell]));
        for name in commands() {
            assert!(script.contains(&name), "{shell} does not know {name}");
        }
        if !["bash", "fish", "zsh"].contains(&shell) {
            continue;
        }
        let file = folder.path().join(shell);
        fs::write(&file, script).unwrap();
        match Command::new(shell).arg("-n").arg(&file).output() {
            Ok(lint) => assert!(lint.status.success() && lint.stderr.is_empty(), "{lint:?}"),
            Err(error) => assert_ne!(shell, "bash", "{error}"),
        }
    }
}

/// The commands that the help lists.
fn commands() -> Vec<String> {
    let text = help(&["--help"]);
    let (_, list) = text.split_once("\nCommands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.len() > 5, "{text}");
    names
}

fn compare(name: &str, text: &str) {
    let file = golden().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(golden()).unwrap();
        fs::write(&file, text).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    let output_text = "the help has changed; if it is meant so, run with UPDATE_GOLDEN=1";
    assert_eq!(text, golden, "{name}: {output_text}");
}

/// Help text without the trailing spaces that clap leaves.
fn help(arguments: &[&str]) -> String {
    said(&run(arguments)).lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn said(run: &Output) -> String {
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
    assert!(!run.stdout.is_empty());
    String::from_utf8(run.stdout.clone()).unwrap()
}

/// Runs without a terminal, whose width would affect the output.
fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(arguments)
        .stdin(Stdio::null())
        .env("COLUMNS", "100")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap()
}

fn can_format(lint: &Output) -> bool {
    lint.status.success() && !lint.stdout.is_empty()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/help")
}

#[test]
fn who_looks_for_policy_check_is_told_where_it_is() {
    let done = run(&["policy", "check"]);
    assert_eq!(done.status.code(), Some(64));
    let output_text = String::from_utf8_lossy(&done.stderr);
    assert!(output_text.contains("hint: policies are checked by `tapegate check"), "{output_text}");
}

#[test]
fn a_header_from_a_variable_that_is_not_set_is_a_usage_error_that_names_it() {
    let url = ["--upstream-http", "http://127.0.0.1:9/mcp"];
    let named = ["--header-env", "Authorization=TAPEGATE_TEST_NO_SUCH_VARIABLE"];
    let token = ["--bearer-env", "TAPEGATE_TEST_NO_SUCH_VARIABLE"];
    for flags in [named, token] {
        let done = run(&[&["policy", "pin"], &url[..], &flags].concat());
        assert_eq!(done.status.code(), Some(64));
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(errors.contains("`TAPEGATE_TEST_NO_SUCH_VARIABLE` is not set"), "{errors}");
    }
}
