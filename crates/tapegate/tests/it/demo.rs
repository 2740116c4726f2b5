//! `tapegate demo`

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{TerminalStep, at_terminal_in_steps, check, tapegate};

const DENIED: &str = "The held call was never sent: the server has nothing.\n";
const APPROVED: &str = "You let it through, so the server has the key again.\n";
const REPLAYED: &str = "The agent saw and sent exactly the same.\n";

/// A command whose temporary files are in this folder, so that the demo's are found and removed.
fn demo_in(folder: &TempDir) -> Command {
    let mut command = tapegate();
    command.arg("demo").env("TMPDIR", folder.path());
    command
}

/// The demo at a terminal of its own, with these keys typed ahead.
fn demo_at_terminal(folder: &TempDir, options: &str, typed: &str) -> String {
    let line = format!("{} demo {options}", env!("CARGO_BIN_EXE_tapegate"));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TMPDIR", folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("script, of Debian's bsdutils");
    // Kept open: at the end of its input, script ends the terminal's input too.
    let mut input = child.stdin.take().unwrap();
    input.write_all(typed.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    drop(input);
    let text = String::from_utf8(done.stdout).unwrap().replace("\r\n", "\n");
    assert!(done.status.success(), "{text}");
    text
}

/// What the demo left in its own temporary folder.
fn left_in(folder: &TempDir, name: &str) -> Option<String> {
    let demo = std::fs::read_dir(folder.path()).unwrap().find_map(|entry| {
        let path = entry.unwrap().path();
        path.file_name()?.to_str()?.starts_with("tapegate-demo-").then_some(path)
    });
    std::fs::read_to_string(demo.expect("the demo's folder").join(name)).ok()
}

#[test]
fn the_demo_records_a_theft_stops_it_and_replays_the_tape() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("demo.jsonl");
    let done = demo_in(&folder).arg("--output").arg(&tape).output().unwrap();
    let output_text = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{output_text}");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("\nThe server now has: demo-key-7f3a91c5d2\n"), "{text}");
    assert!(text.contains(&format!("Only the tape knows: {}\n", tape.display())), "{text}");
    assert!(
        text.contains("\nWhy: changed: `description` was \"The forecast for a city.\""),
        "{text}"
    );
    assert!(text.contains(DENIED) && text.contains(REPLAYED), "{text}");
    let next = format!("\n  {} check {}\n", env!("CARGO_BIN_EXE_tapegate"), tape.display());
    assert!(text.contains(&next), "what to try next cannot be tried: {text}");
    let found = check(&tape, 0);
    assert!(found.contains(": ok, "), "{found}");
    // The server's own file shows it, whatever the demo prints.
    assert_eq!(left_in(&folder, "stolen.txt"), None);
}

#[test]
fn the_demo_asks_at_a_terminal_and_does_what_the_person_says() {
    for (typed, answer, end, stolen) in [
        ("n\n", "Denied by you.\n", DENIED, None),
        ("y\n", "Approved by you.\n", APPROVED, Some("demo-key-7f3a91c5d2\n")),
        // A key is enough, and Enter alone is no answer.
        ("\ny", "Approved by you.\n", APPROVED, Some("demo-key-7f3a91c5d2\n")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let text = demo_at_terminal(&folder, "", typed);
        assert!(text.contains("\nLet it through? y or n (n by itself in 1"), "{text}");
        assert!(text.contains(answer) && text.contains(end) && text.contains(REPLAYED), "{text}");
        assert_eq!(left_in(&folder, "stolen.txt").as_deref(), stolen);
    }
}

/// A question that Ctrl-C ends. The shell prints the mode of the terminal before and after.
#[test]
fn ctrl_c_restores_the_terminal_and_removes_what_the_demo_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let script = "trap : INT; stty -a; \"$@\"; echo \"demo=$?\"; stty -a";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_tapegate"), "demo"]);
    command.env("TMPDIR", folder.path());
    let steps = [TerminalStep::typed("Let it through?", 1, "\u{3}")];
    let (_, text) = at_terminal_in_steps(&command, (100, 40), &steps);
    let (before, rest) = text.split_once("1. Without a gate").expect("the demo starts");
    let (shown, after) = rest.split_once("demo=130\n").expect("the demo ends with the signal");
    // The title after it is in bold.
    let before = before.split('\u{1b}').next().unwrap_or(before);
    assert_eq!(before.trim(), after.trim(), "the mode of the terminal");
    assert!(shown.contains("interrupted; `") && shown.contains("` is removed\n"), "{shown}");
    assert_eq!(names_in(folder.path()), Vec::<String>::new());
}

#[test]
fn the_demo_asks_nothing_with_yes() {
    let folder = tempfile::tempdir().unwrap();
    let text = demo_at_terminal(&folder, "--yes", "y\n");
    assert!(!text.contains("Let it through?"), "{text}");
    assert!(text.contains("\nNo one answered in time, so the call is denied.\n"), "{text}");
    assert!(text.contains(DENIED), "{text}");
    // No one is said to have decided.
    assert!(text.contains(" expired ") && !text.contains("person denied"), "{text}");
}

#[test]
fn the_demo_reads_and_writes_nothing_of_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    std::fs::create_dir_all(home.join(".config/tapegate")).unwrap();
    std::fs::write(home.join(".config/tapegate/tapegate.yaml"), "schema: broken\n").unwrap();
    let mut demo = demo_in(&folder);
    demo.current_dir(&home).env("HOME", &home).env_remove("TAPEGATE_HOME");
    let done = demo.env("XDG_STATE_HOME", home.join("state")).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(names_in(&home), [".config"]);
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn the_demo_overwrites_a_tape_only_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let demo = |more: &[&str]| {
        let mut demo = demo_in(&folder);
        demo.args(["-o", "demo.jsonl"]).args(more).current_dir(folder.path());
        demo.output().unwrap()
    };
    assert_eq!(demo(&[]).status.code(), Some(0));
    let again = demo(&[]);
    assert_eq!(again.status.code(), Some(3));
    let output_text = String::from_utf8(again.stderr).unwrap();
    assert!(
        output_text.starts_with("error: `demo.jsonl` exists already\n\nhint: "),
        "{output_text}"
    );
    assert!(
        output_text.contains("--force") && output_text.matches("error: ").count() == 1,
        "{output_text}"
    );
    assert_eq!(demo(&["--force"]).status.code(), Some(0));
}

#[test]
fn the_demo_is_in_colour_where_other_commands_are() {
    let folder = tempfile::tempdir().unwrap();
    let demo = |variables: &[(&str, &str)]| {
        let mut demo = demo_in(&folder);
        demo.envs(variables.iter().copied());
        String::from_utf8(demo.output().unwrap().stdout).unwrap()
    };
    assert!(demo(&[("CLICOLOR_FORCE", "1")]).contains("\x1b[36m"));
    assert!(!demo(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\x1b'));
    assert!(!demo(&[]).contains('\x1b'));
}
