//! Valid and invalid command lines.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{answer, call, lines, tape};
use crate::support::{fake_server, replay, tapegate, terminal};

fn one() -> String {
    tape(&format!("> {}\n@40 < {}\n", call(1, "a", 1), answer(1, "one")))
}

/// Runs `replay` in a folder with a tape `t.jsonl` and a client that sends nothing.
fn run(args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), one()).unwrap();
    run_in(folder.path(), args)
}

fn run_in(folder: &Path, args: &[&str]) -> Output {
    let mut command = tapegate();
    command.arg("replay").args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn refused(args: &[&str], code: i32, text: &str) {
    let done = run(args);
    assert_eq!(String::from_utf8_lossy(&done.stderr), text, "{args:?}");
    assert_eq!(done.status.code(), Some(code), "{args:?}");
    assert_eq!(done.stdout, b"", "{args:?}");
}

#[test]
fn what_makes_no_sense_together_is_refused_before_anything_is_played() {
    for (args, text) in [
        (
            &["-r", "t.jsonl", "--on-unmatched", "passthrough"][..],
            "error: --on-unmatched passthrough needs a server\n\n\
             hint: name one: `-- CMD ARGS`, `--upstream CMD` or `--upstream-http URL`\n",
        ),
        (
            &["-r", "t.jsonl", "--upstream", "cat"],
            "error: a server is named, but nothing is passed through to it\n\n\
             hint: add --on-unmatched passthrough\n",
        ),
        (
            &["-r", "t.jsonl", "--on-unmatched", "warn", "--upstream-http", "http://127.0.0.1:1/"],
            "error: a server is named, but nothing is passed through to it\n\n\
             hint: add --on-unmatched passthrough\n",
        ),
        (
            &["-r", "t.jsonl", "--", "cat"],
            "error: a server is named, but nothing is passed through to it\n\n\
             hint: add --on-unmatched passthrough\n",
        ),
        (
            &["-r", "t.jsonl", "--record-to", "new.jsonl", "--report", "new.jsonl"],
            "error: --record-to and --report name the same file\n\nhint: name another file\n",
        ),
        (
            &["-r", "-"],
            "error: standard input belongs to the client\n\n\
             hint: name a file, or serve clients with --http\n",
        ),
        (
            &["-r", "t.jsonl", "--record-to", "t.jsonl"],
            "error: --record-to names the tape being played, which is never changed\n\n\
             hint: name another file\n",
        ),
        (
            &["-r", "t.jsonl", "--record-to", "./t.jsonl", "--force"],
            "error: --record-to names the tape being played, which is never changed\n\n\
             hint: name another file\n",
        ),
        (
            &["-r", "t.jsonl", "--report", "r.xml", "--report", "./t.jsonl"],
            "error: --report names the tape being played, which is never changed\n\n\
             hint: name another file\n",
        ),
        (
            &["-r", "t.jsonl", "--http", "http://127.0.0.1:8080/mcp"],
            "error: `http://127.0.0.1:8080/mcp` is not a valid listen address; \
             expected `:PORT`, `HOST:PORT` or `PORT`\n",
        ),
        (
            &["-r", "t.jsonl", "--http", "http://127.0.0.1:8080"],
            "error: `http://127.0.0.1:8080` is not a valid listen address; \
             expected `:PORT`, `HOST:PORT` or `PORT`\n",
        ),
        (
            &["-r", "t.jsonl", "--on-unmatched", "passthrough", "--upstream", "a 'b"],
            "error: `--upstream a 'b` is not a command line\n\n\
             hint: check its quotes, or give the words after `--`\n",
        ),
    ] {
        refused(args, 64, text);
    }
}

#[test]
fn values_that_are_none_are_refused_with_what_is_expected() {
    let help = "\n\nFor more information, try '--help'.\n";
    for (flag, value, text) in [
        ("--timing <TIMING>", "scaled:-1", "expected a number of 0 or more after `scaled:`"),
        ("--timing <TIMING>", "scaled:NaN", "expected a number of 0 or more after `scaled:`"),
        ("--timing <TIMING>", "scaled:inf", "expected a number of 0 or more after `scaled:`"),
        ("--timing <TIMING>", "scaled:", "expected a number of 0 or more after `scaled:`"),
        ("--timing <TIMING>", "scaled:1s", "expected a number of 0 or more after `scaled:`"),
        ("--timing <TIMING>", "fast", "expected `instant`, `realistic` or `scaled:N`"),
        ("--fuzzy-threshold <SHARE>", "1.1", "expected a number from 0 to 1"),
        ("--fuzzy-threshold <SHARE>", "-0.1", "expected a number from 0 to 1"),
        ("--fuzzy-threshold <SHARE>", "NaN", "expected a number from 0 to 1"),
        ("--ignore <PATH>", "arguments.n", "paths start at the message, with `params` or `..`"),
        ("--ignore <PATH>", "[0].n", "paths start at the message, with `params` or `..`"),
        ("--ignore <PATH>", "a[", "character 3: `*`, a number or a quoted key is missing"),
    ] {
        let (name, _) = flag.split_once(' ').unwrap();
        let value_of = format!("{name}={value}");
        let text = format!("error: invalid value '{value}' for '{flag}': {text}{help}");
        refused(&["-r", "t.jsonl", &value_of], 64, &text);
    }
    for (flag, values) in [
        ("--match-mode <MATCH_MODE>", "sequential, by-request, fuzzy"),
        ("--on-unmatched <ON_UNMATCHED>", "error, warn, passthrough"),
        ("--on-exhausted <ON_EXHAUSTED>", "error, last, cycle"),
        ("--state-scope <STATE_SCOPE>", "session, global"),
        ("--server-messages <SERVER_MESSAGES>", "all, notifications, none"),
    ] {
        let (name, _) = flag.split_once(' ').unwrap();
        let text =
            format!("error: invalid value 'odd' for '{flag}'\n  [possible values: {values}]{help}");
        refused(&["-r", "t.jsonl", name, "odd"], 64, &text);
    }
}

#[test]
fn the_tape_that_is_played_is_recognised_by_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    fs::write(&tape, one()).unwrap();
    symlink("t.jsonl", folder.path().join("soft.jsonl")).unwrap();
    fs::hard_link(&tape, folder.path().join("hard.jsonl")).unwrap();
    let whole = tape.display().to_string();
    for name in ["soft.jsonl", "hard.jsonl", "./t.jsonl", &whole] {
        let args = ["-r", "t.jsonl", "--force", "--record-to", name];
        let done = run_in(folder.path(), &args);
        assert_eq!(done.status.code(), Some(64), "{name}");
        assert_eq!(fs::read_to_string(&tape).unwrap(), one());
    }
}

#[test]
fn a_tape_that_cannot_be_read_is_named_with_the_reason() {
    refused(
        &["-r", "no.jsonl"],
        3,
        "error: cannot read `no.jsonl`: No such file or directory (os error 2)\n",
    );
    refused(
        &["-r", "."],
        3,
        "error: cannot read `.`: Is a directory (os error 21)\n\n\
         hint: name one of the tapes in it; `tapegate check` shows what each contains\n",
    );
    refused(
        &["-r", "/dev/zero"],
        3,
        "error: cannot read `/dev/zero`: it is a device, not a file or a pipe\n",
    );
    refused(
        &["-r", "t.jsonl", "--redact-key-file", "no"],
        3,
        "error: cannot read `no`: No such file or directory (os error 2)\n",
    );
}

#[test]
fn a_report_without_a_place_is_refused_before_anything_is_played() {
    for (path, text) in
        [("t.jsonl/r.xml", "File exists (os error 17)"), (".", "Is a directory (os error 21)")]
    {
        let text = format!("error: cannot write the report `{path}`: {text}\n");
        refused(&["-r", "t.jsonl", "--report", path], 3, &text);
    }
}

#[test]
fn a_tape_or_a_server_that_stands_alone_is_told_its_flag() {
    for (args, hint) in [
        (&["t.jsonl"][..], "the tape goes after `-r`"),
        (&["-q", "t.jsonl", "--", "cat"], "the tape goes after `-r`"),
        (&["-r", "t.jsonl", "cat"], "a server's command line goes after `--`"),
    ] {
        for command in ["replay", "verify"] {
            let done = tapegate().arg(command).args(args).output().unwrap();
            let said = String::from_utf8(done.stderr).unwrap();
            assert_eq!(done.status.code(), Some(64), "{said}");
            assert!(said.ends_with(&format!("\n\nhint: {hint}\n")), "{command} {args:?}: {said}");
        }
    }
}

#[test]
fn a_person_who_starts_it_by_hand_is_told_what_it_waits_for() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), one()).unwrap();
    for (flags, text) in [(&[][..], "tapegate: waiting for an MCP client"), (&["-q"], "")] {
        let (mut ours, theirs) = terminal();
        let mut command = tapegate();
        command.args(["replay", "-r", "t.jsonl"]).args(flags).current_dir(folder.path());
        let child = command.stdin(theirs).stderr(Stdio::piped()).spawn().unwrap();
        // End of input, as with Ctrl-D.
        ours.write_all(&[4]).unwrap();
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(0), "{said}");
        assert!(said.starts_with(text) && said.is_empty() == text.is_empty(), "{said}");
    }
}

#[test]
fn every_flag_of_the_help_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), one()).unwrap();
    let help = String::from_utf8(tapegate().args(["replay", "--help"]).output().unwrap().stdout);
    let help = help.unwrap();
    let mut tried = 0;
    for flag in help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2) {
        let value = match flag.trim_end_matches([',', '.', ':', ';']) {
            "--session" => "last",
            "--match-mode" => "fuzzy",
            "--fuzzy-threshold" => "0.5 --match-mode fuzzy",
            "--timing" => "scaled:0.5",
            "--on-unmatched" => "warn",
            "--on-exhausted" => "cycle",
            "--state-scope" => "global",
            "--server-messages" => "none",
            "--ignore" => "params.arguments.n,..x",
            "--record-to" => "new.jsonl",
            "--report" => "report.xml",
            "--max-message-bytes" | "--max-entry-bytes" => "1MB",
            "--log-format" => "json",
            "--strict-params" | "--strict-reads" | "--strict-replies" | "--verbose" | "--quiet" => {
                ""
            }
            // These have their own tests.
            "--recording" | "--http" | "--upstream" | "--upstream-http" | "--header"
            | "--header-env" | "--bearer-env" | "--log-level" | "--force" | "--help"
            | "--allow-host" | "--allow-origin" | "--report-mode" | "--run-id" | "--version"
            | "--redact-key-file" => continue,
            other => panic!("{other} is new: try it here"),
        };
        let mut args = vec!["-r", "t.jsonl", flag];
        args.extend(value.split_whitespace());
        let done = run_in(folder.path(), &args);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {said}");
        assert_eq!(said.is_empty(), flag == "--quiet", "{said}");
        tried += 1;
        fs::remove_file(folder.path().join("new.jsonl")).ok();
    }
    assert!(tried >= 15, "{help}");
}

#[test]
fn quiet_says_nothing_but_errors_and_verbose_how_requests_were_matched() {
    let fuzzy = ["--match-mode", "fuzzy", "--fuzzy-threshold", "0"];
    let live = lines(&[call(1, "a", 2)]);
    let end = replay(one()).flags(&fuzzy).flags(&["-v"]).run(live.as_bytes()).exits(0);
    end.complains("debug: matched request 1 with score 0.00; differing: params.arguments.n\n");
    let end = replay(one()).flags(&fuzzy).flags(&["-q"]).run(live.as_bytes()).exits(0);
    assert_eq!(end.stderr, "");
    let live = lines(&[call(1, "b", 2)]);
    let end = replay(one()).flags(&["-q"]).run(live.as_bytes()).exits(6);
    assert!(
        end.stderr.starts_with("error: no answer on the tape for tools/call b: "),
        "{}",
        end.stderr
    );
    let end = replay(one()).flags(&["-q", "--on-unmatched", "warn"]).run(live.as_bytes()).exits(0);
    assert_eq!(end.stderr, "");
}

/// The command lines of the seed's specification, under its own name.
#[test]
fn the_command_lines_of_the_seed_play_a_tape() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("thoughtjack");
    symlink(env!("CARGO_BIN_EXE_tapegate"), &link).unwrap();
    fs::write(folder.path().join("session.jsonl"), one()).unwrap();
    fs::write(folder.path().join("in"), lines(&[call(5, "a", 1)])).unwrap();
    let upstream = format!("{} serve", fake_server().display());
    for args in [
        &["--recording", "session.jsonl"][..],
        &["--recording", "session.jsonl", "--match-mode", "by-request"],
        &["--recording", "session.jsonl", "--timing", "realistic"],
        &["--recording", "session.jsonl", "--timing", "scaled:0.5"],
        &["--recording", "session.jsonl", "--on-unmatched", "passthrough", "--upstream", &upstream],
        &["-r", "session.jsonl"],
        &["-r", "session.jsonl", "--match-mode", "by-request", "--timing", "realistic"],
        &["-r", "session.jsonl", "--on-unmatched", "passthrough", "--upstream", &upstream],
    ] {
        let input = fs::File::open(folder.path().join("in")).unwrap();
        let mut command = Command::new(&link);
        command.arg("replay").args(args).current_dir(folder.path()).stdin(input);
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {said}");
        assert_eq!(String::from_utf8(done.stdout).unwrap(), lines(&[answer(5, "one")]));
    }
}
