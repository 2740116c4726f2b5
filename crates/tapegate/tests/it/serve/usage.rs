//! Valid and invalid command lines, and messages for the user.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use super::agent::ScenarioAgent;
use super::{calculator, serve};
use crate::support::tapegate;

fn run(folder: &Path, args: &[&str]) -> Output {
    tapegate().arg("serve").args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

#[track_caller]
fn refused(files: &[(&str, &str)], args: &[&str], code: i32, words: &str) {
    let folder = folder(files);
    let done = run(folder.path(), args);
    assert_eq!(String::from_utf8_lossy(&done.stderr), words, "{args:?}");
    assert_eq!(done.status.code(), Some(code), "{args:?}");
    assert_eq!(done.stdout, b"", "{args:?}");
}

#[test]
fn a_broken_scenario_is_refused_with_all_its_faults_and_their_places() {
    let text = "server: { name: s }\ntoolz: []\nunknown_methods: maybe\n";
    refused(
        &[("s.yaml", text)],
        &["s.yaml"],
        2,
        "error: s.yaml:2:1: there is no key `toolz` here; did you mean `tools`?\n\
         error: s.yaml:3:18: unknown_methods: this must be `ignore`, `error` or `drop`, not `maybe`\n\
         error: the scenario `s.yaml` cannot be run\n",
    );
    let done = run(folder(&[]).path(), &["none.yaml"]);
    assert_eq!(done.status.code(), Some(2));
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(message.contains("none.yaml") && message.contains("no such file"), "{message}");
}

#[test]
fn a_scenario_of_the_library_is_known_by_its_name() {
    refused(
        &[],
        &["--scenario", "rugpull"],
        64,
        "error: there is no scenario `rugpull` in the library\n\nhint: did you mean `rug-pull`?\n",
    );
    let done = run(folder(&[]).path(), &["--list"]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("rug-pull  ")), "{text}");
    assert!(text.lines().count() > 30 && text.lines().all(|line| line.len() <= 100), "{text}");
}

#[test]
fn what_may_do_harm_needs_leave_and_is_named_with_its_place() {
    let handler = "server: { name: s }\ntools:\n  - tool: { name: a, description: A., inputSchema: { type: object } }\n    response: { handler: { type: command, cmd: [\"true\"] } }\n";
    let done = run(folder(&[("s.yaml", handler)]).path(), &["s.yaml"]);
    assert_eq!(done.status.code(), Some(2));
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    let place = "error: s.yaml:3:11: tool `a` has a handler that runs outside of tapegate; \
                 allow it with --allow-external-handlers\n";
    assert!(message.starts_with(place), "{message}");
    for effect in ["{ type: pipe_deadlock }", "{ type: close_connection, graceful: false }"] {
        let text = format!("{}behavior: {{ side_effects: [{effect}] }}\n", calculator("x"));
        let folder = folder(&[("s.yaml", &text)]);
        let done = run(folder.path(), &["s.yaml"]);
        assert_eq!(done.status.code(), Some(2), "{effect}");
        let done = run(folder.path(), &["s.yaml", "--allow-external-handlers"]);
        assert_eq!(done.status.code(), Some(0), "{effect} {done:?}");
    }
    let text = format!(
        "{}behavior: {{ side_effects: [{{ type: close_connection }}] }}\n",
        calculator("x")
    );
    assert!(run(folder(&[("s.yaml", &text)]).path(), &["s.yaml"]).status.success());
}

#[test]
fn a_scenario_writes_its_log_only_below_where_it_is_started() {
    for place in ["/tmp/log.txt", "../log.txt"] {
        let text = format!("{}logging: {{ output: {place} }}\n", calculator("x"));
        let folder = folder(&[("s.yaml", &text)]);
        let done = run(folder.path(), &["s.yaml"]);
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(message.contains(&format!("is outside of this folder: `{place}`")), "{message}");
    }
    let text = format!("{}logging: {{ output: log.txt }}\n", calculator("x"));
    let folder = folder(&[("s.yaml", &text), ("log.txt", "before\n")]);
    assert!(run(folder.path(), &["s.yaml"]).status.success());
    assert_eq!(fs::read_to_string(folder.path().join("log.txt")).unwrap(), "before\n");
}

#[test]
fn standard_output_is_no_place_for_a_log_on_stdio() {
    let text = format!("{}logging: {{ output: stdout }}\n", calculator("x"));
    refused(
        &[("s.yaml", &text)],
        &["s.yaml"],
        2,
        "error: `logging.output: stdout` would mix with the protocol on standard output\n\n\
         hint: use stderr or a file, or serve clients with --http\n",
    );
}

#[test]
fn what_makes_no_sense_together_is_refused() {
    let files = [("s.yaml", &*calculator("x"))];
    refused(
        &files,
        &["s.yaml", "--expect"],
        2,
        "error: the scenario has no `expect`, so --expect has nothing to check\n",
    );
    for args in [
        &["s.yaml", "--scenario", "rug-pull"][..],
        &["s.yaml", "--expect", "--watch"],
        &["--scenario", "rug-pull", "--watch"],
        &["s.yaml", "--report", "r.json"],
        &["s.yaml", "--list"],
        &["--format", "json", "s.yaml"],
        &[],
    ] {
        assert_eq!(run(folder(&files).path(), args).status.code(), Some(64), "{args:?}");
    }
}

#[test]
fn the_names_of_the_seed_are_understood() {
    let folder = folder(&[("s.yaml", &calculator("x"))]);
    let run = |args: &[&str]| {
        let mut command = tapegate();
        command.current_dir(folder.path()).args(args).stdin(Stdio::null()).output().unwrap()
    };
    assert!(run(&["server", "run", "-c", "s.yaml"]).status.success());
    assert!(run(&["server", "run", "--config", "s.yaml"]).status.success());
    assert!(run(&["server", "--scenario", "rug-pull"]).status.success());
    assert_eq!(run(&["server", "list"]).stdout, run(&["serve", "--list"]).stdout);
    assert_eq!(run(&["scenarios", "list"]).stdout, run(&["serve", "--list"]).stdout);
    assert_eq!(run(&["server", "validate", "s.yaml"]).stdout, run(&["check", "s.yaml"]).stdout);
}

#[test]
fn a_tool_alone_gets_a_server() {
    let tool = "tool: { name: add, description: Adds., inputSchema: { type: object } }\n\
                response: { content: [{ type: text, text: \"4\" }] }\n";
    let folder = folder(&[("t.yaml", tool)]);
    let mut command = tapegate();
    command.current_dir(folder.path()).args(["serve", "--tool", "t.yaml"]);
    let mut agent = ScenarioAgent::start(command);
    let answer = agent.call("add", &json!({}));
    assert_eq!(answer["result"]["content"][0]["text"], "4");
    assert_eq!(agent.leave().code, Some(0));
}

#[test]
fn a_behaviour_of_the_command_line_wins() {
    let folder = folder(&[("s.yaml", &calculator("x"))]);
    let mut agent =
        ScenarioAgent::connect(&mut serve(folder.path(), "s.yaml", &["--behavior", "nested-json"]));
    agent.step("fire add {}");
    agent.step("trickle");
    agent.kill();
    assert_eq!(agent.leave().code, Some(143));
}

#[test]
fn people_are_told_what_the_scenario_says() {
    let text = "\
server: { name: s }
logging: { level: warn, on_phase_change: true, output: log.txt }
baseline:
  tools:
    - tool: { name: a, description: A., inputSchema: { type: object } }
      response: { content: [] }
phases:
  - name: one
    advance: { on: tools/call }
  - name: two
";
    let folder = folder(&[("s.yaml", text)]);
    let flags = ["--events-file", "events.jsonl"];
    let mut agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &flags));
    agent.call("a", &json!({}));
    agent.step("ping");
    let gone = agent.leave();
    assert_eq!((gone.code, gone.stderr.as_str()), (Some(0), ""));
    let log = fs::read_to_string(folder.path().join("log.txt")).unwrap();
    assert_eq!(log, "session 1: phase `one` ended, `two` begins\n");
    let events = fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(said, ["said", "said", "said", "phase", "said"]);
    assert_eq!(events[2]["message"]["params"]["name"], "a");
    assert_eq!((&events[3]["from"], &events[3]["to"]), (&json!("one"), &json!("two")));
}

#[test]
fn a_scenario_that_gives_up_ends_with_a_code_of_its_own() {
    let text = "\
server: { name: s }
baseline:
  tools:
    - tool: { name: a, description: A., inputSchema: { type: object } }
      response: { content: [] }
phases:
  - name: one
    advance: { on: tools/call, timeout: 50ms, on_timeout: abort }
  - name: two
";
    let folder = folder(&[("s.yaml", text)]);
    let agent = ScenarioAgent::start(serve(folder.path(), "s.yaml", &[]));
    agent.hears("error: ");
    let gone = agent.leave();
    assert_eq!(gone.code, Some(5), "{}", gone.stderr);
}

#[test]
fn a_place_that_cannot_be_had_is_an_error_before_anything_starts() {
    let folder = folder(&[("s.yaml", &calculator("x"))]);
    let done = run(folder.path(), &["s.yaml", "--events-file", "none/e.jsonl"]);
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    let done = run(folder.path(), &["--scenario", "rug-pull", "--expect", "--report", "s.yaml/r"]);
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    let done = run(folder.path(), &["s.yaml", "--http", "nowhere"]);
    assert_eq!(done.status.code(), Some(64), "{done:?}");
}
