//! `tapegate check` with scenarios: on the real file system, as text and JSON.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::tapegate;

/// The output of `check` in `folder`, and its exit code.
pub(super) fn check(folder: &Path, args: &[&str]) -> (String, i32) {
    let mut command = tapegate();
    command.arg("check").args(args).current_dir(folder).env_remove("NOT_SET");
    let done = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    (String::from_utf8(done.stdout).unwrap(), done.status.code().unwrap())
}

const TOOL: &str = "tool: {name: t, inputSchema: {type: object}}\nresponse: {content: []}\n";

#[test]
fn a_good_scenario_is_ok_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let text = "server: {name: s}\nbaseline:\n  tools: [{$include: t.yaml}]\nphases:\n- name: a\n";
    fs::write(folder.path().join("s.yaml"), text).unwrap();
    fs::create_dir(folder.path().join("library")).unwrap();
    fs::write(folder.path().join("library/t.yaml"), TOOL).unwrap();
    let said = check(folder.path(), &["s.yaml"]);
    assert_eq!(said, ("s.yaml: ok, 1 tool, 1 phase\n".to_owned(), 0));
    let said = check(folder.path(), &["--format", "jsonl", "s.yaml"]);
    let json = "{\"scenario\":\"s.yaml\",\"errors\":0,\"warnings\":0,\"tools\":1,\"resources\":0,\
                \"resource_templates\":0,\"prompts\":0,\"phases\":1}\n";
    assert_eq!(said, (json.to_owned(), 0));
    let said = check(folder.path(), &["--library", "elsewhere", "s.yaml"]);
    assert_eq!(said.1, 1);
    assert!(
        said.0.starts_with("s.yaml:3:22: error: there is no file `t.yaml` in `elsewhere` or in ")
    );
}

#[test]
fn every_fault_has_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let text = "server: {nam: s}\ntools:\n- $file: t.yaml\n- tool: {name: \"a\\eb\", inputSchema: 5}\n  response: {}\n";
    fs::write(folder.path().join("s.yml"), text).unwrap();
    fs::write(folder.path().join("t.yaml"), TOOL).unwrap();
    let (said, code) = check(folder.path(), &["s.yml"]);
    let expected = "\
s.yml:1:9: error: server: `name` is missing
s.yml:1:10: error: server: there is no key `nam` here; did you mean `name`?
s.yml:4:37: error: tools[1].tool.inputSchema: this must be a map, but it is a number
s.yml:5:13: error: tools[1].response: this response has no answer
s.yml: 4 errors
";
    assert_eq!((said.as_str(), code), (expected, 1));
    let (said, code) = check(folder.path(), &["--format", "jsonl", "s.yml"]);
    let first = r#"{"scenario":"s.yml","file":"s.yml","line":1,"column":9,"severity":"error","path":"server","finding":"`name` is missing"}"#;
    assert_eq!((said.lines().next(), code), (Some(first), 1));
    for line in said.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn warnings_are_errors_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("s.yaml"),
        "server: {name: s}\n# \nlogging: {output: \"x${NOT_SET}\"}\n",
    )
    .unwrap();
    let expected = "\
s.yaml:3:21: warning: the variable NOT_SET is not set; for literal text write `$${NOT_SET}`
s.yaml: ok with 1 warning, nothing in it
";
    assert_eq!(check(folder.path(), &["s.yaml"]), (expected.to_owned(), 0));
    let expected = expected.replace("ok with 1 warning", "not ok with --strict: 1 warning");
    assert_eq!(check(folder.path(), &["--strict", "s.yaml"]), (expected, 1));
}

#[test]
fn a_scenario_is_known_by_its_name_or_by_how_it_begins() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.txt"), "# a scenario\nserver: {name: s}\n").unwrap();
    fs::write(folder.path().join("t.yaml"), TOOL).unwrap();
    fs::write(folder.path().join("u.yaml"), "- a list\n").unwrap();
    let (said, code) = check(folder.path(), &["s.txt", "t.yaml", "u.yaml"]);
    let expected = "\
s.txt: ok, nothing in it
t.yaml: ok, 1 tool
u.yaml:1:1: error: this must be a map, but it is a list
u.yaml: 1 error
";
    assert_eq!((said.as_str(), code), (expected, 1));
    let done = tapegate().args(["check", "no-such.yaml"]).output().unwrap();
    assert_eq!(done.status.code(), Some(3));
}

#[test]
fn no_path_leads_out_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).unwrap();
    fs::create_dir(inside.join("sub")).unwrap();
    fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    fs::write(inside.join("near.txt"), "near").unwrap();
    symlink("../secret.txt", inside.join("link.txt")).unwrap();
    symlink("near.txt", inside.join("fine.txt")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(inside.join("pipe.txt")).status().unwrap();
    assert!(pipe.success());
    let secret = folder.path().join("secret.txt");
    let paths = [
        "fine.txt",
        "./near.txt",
        "../secret.txt",
        "sub/../near.txt",
        "link.txt",
        "pipe.txt",
        "sub",
        secret.to_str().unwrap(),
    ];
    let files: String = paths.iter().map(|path| format!("  - $file: \"{path}\"\n")).collect();
    fs::write(inside.join("s.yaml"), format!("server: {{name: s}}\nmetadata:\n  x:\n{files}"))
        .unwrap();
    let (said, code) = check(&inside, &["s.yaml"]);
    let words: Vec<&str> = said.lines().map(|line| line.rsplit(": ").next().unwrap()).collect();
    assert_eq!(
        words,
        [
            "it is outside the allowed folder",
            "it is outside the allowed folder",
            "it is outside the allowed folder",
            "it is not a regular file",
            "it is not a regular file",
            "it is outside the allowed folder",
            "6 errors",
        ],
        "{said}"
    );
    assert_eq!(code, 1);
}

#[test]
fn what_tj_spec_001_does_not_have_can_be_found() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), "server: {name: s, title: t}\n").unwrap();
    assert_eq!(check(folder.path(), &["s.yaml"]).1, 0);
    let expected = "s.yaml:1:19: error: server: TJ-SPEC-001 has no `title` here\ns.yaml: 1 error\n";
    assert_eq!(check(folder.path(), &["--strict-001", "s.yaml"]), (expected.to_owned(), 1));
}

#[test]
fn the_scenarios_that_come_with_it_have_no_fault() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let (said, code) = check(&folder, &["--strict", "rug-pull.yaml", "everything.yaml"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn limits_are_set_by_variables() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("s.yaml"),
        "server: {name: s}\nphases: [{name: a}]\nbaseline: {}\n",
    )
    .unwrap();
    let check = |most: &str| {
        let mut command = tapegate();
        command.args(["check", "s.yaml"]).current_dir(&folder).env("TAPEGATE_MAX_PHASES", most);
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8([done.stdout, done.stderr].concat()).unwrap())
    };
    assert_eq!(check("1"), (Some(0), "s.yaml: ok, 1 phase\n".to_owned()));
    let message = "s.yaml:2:9: error: phases: there are 1 phases; the limit is 0 (TAPEGATE_MAX_PHASES)\ns.yaml: 1 error\n";
    assert_eq!(check("0"), (Some(1), message.to_owned()));
    let message = "error: TAPEGATE_MAX_PHASES must be a whole number up to 10000, not `many`\n";
    assert_eq!(check("many"), (Some(64), message.to_owned()));
}
