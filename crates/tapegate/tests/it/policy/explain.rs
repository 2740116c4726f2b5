//! `tapegate policy explain`

use super::{PolicyProject, tape};

#[test]
fn every_step_to_a_decision_is_told() {
    let project = PolicyProject::new();
    let explain = |arguments: &[&str]| {
        let all = [&["explain"], arguments].concat();
        let done = project.policy(&all).exits(0);
        format!("$ tapegate policy {}\n{}\n", all.join(" "), done.out)
    };
    let files = ["--server-id", "files"];
    let out = [
        explain(&[&files[..], &["read_file"]].concat()),
        explain(&[&files[..], &["delete_file", "--profile", "development"]].concat()),
        explain(&[&files[..], &["write_file", "--arguments", r#"{"path":"/tmp/a"}"#]].concat()),
        explain(&[&files[..], &["write_file", "--arguments", r#"{"path":"/etc/a"}"#]].concat()),
        explain(&[&files[..], &["unheard_of"]].concat()),
        explain(&[&files[..], &["admin_reset"]].concat()),
        explain(&["--server-id", "off", "read_file"]),
        explain(&["--server-id", "few", "write_file"]),
        explain(&["--server-id", "unknown", "read_file"]),
        explain(&[&files[..], &["--method", "resources/read", "file:///etc/passwd"]].concat()),
        explain(&[&files[..], &["--method", "prompts/get", "secret"]].concat()),
        explain(&[&files[..], &["--method", "logging/setLevel", ""]].concat()),
        explain(&[&files[..], &["--method", "ping", ""]].concat()),
    ];
    super::CommandResult { code: Some(0), out: out.concat(), err: String::new() }
        .golden("explain.txt");
}

#[test]
fn a_raw_message_is_explained_with_what_is_wrong_with_it() {
    let project = PolicyProject::new();
    let explain = |arguments: &[&str]| {
        let all = [&["explain", "--server-id", "files", "--frame"], arguments].concat();
        let done = project.policy(&all).exits(0);
        format!("$ tapegate policy {}\n{}\n", all.join(" "), done.out)
    };
    let out = [
        explain(&[
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file"}}"#,
        ]),
        explain(&[
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file","name":"delete_file"}}"#,
        ]),
        explain(&[r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"read_file"}}"#]),
        explain(&[r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"} {}"#]),
        explain(&["nonsense"]),
        explain(&[r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#]),
        explain(&[r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]),
        explain(&[
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read_file"},{"name":"admin_reset"}]}}"#,
            "--from",
            "server",
        ]),
        explain(&[
            r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#,
            "--from",
            "server",
        ]),
    ];
    super::CommandResult { code: Some(0), out: out.concat(), err: String::new() }
        .golden("explain-frame.txt");
}

#[test]
fn a_script_can_tell_what_becomes_of_a_call() {
    let project = PolicyProject::new();
    let code = |arguments: &[&str]| {
        let all = [&["explain", "--exit-code", "--server-id", "files"], arguments].concat();
        project.policy(&all).code
    };
    assert_eq!(code(&["read_file"]), Some(0));
    assert_eq!(code(&["delete_file"]), Some(1));
    assert_eq!(code(&["write_file"]), Some(7));
    assert_eq!(code(&["delete_file", "--profile", "development"]), Some(0));
    assert_eq!(code(&["--frame", "nonsense"]), Some(1));
    project.policy(&["explain", "delete_file", "--server-id", "files"]).exits(0);
}

#[test]
fn the_explanation_is_json_if_it_is_to_be() {
    let project = PolicyProject::new();
    let json = |arguments: &[&str]| {
        let all = [&["explain", "--format", "json", "--server-id", "files"], arguments].concat();
        serde_json::from_str::<serde_json::Value>(&project.policy(&all).exits(0).out).unwrap()
    };
    let held = json(&["write_file", "--arguments", r#"{"path":"/etc/x"}"#]);
    assert_eq!(held["outcome"], "approve");
    assert_eq!(
        (&held["calls"][0]["rule"], &held["calls"][0]["workflow"]),
        (&"writes".into(), &"people".into())
    );
    let odd = json(&["--frame", "7"]);
    assert_eq!((&odd["outcome"], &odd["faults"][0]["code"]), (&"deny".into(), &(-32600).into()));
    let free = json(&["delete_file", "--profile", "development"]);
    assert_eq!((&free["outcome"], &free["production"]), (&"forward".into(), &"deny".into()));
}

#[test]
fn arguments_come_from_a_file_too_and_must_be_json() {
    let project = PolicyProject::new();
    project.write("a.json", r#"{"path":"/tmp/a"}"#);
    let with = |arguments: &[&str]| {
        project.policy(
            &[&["explain", "write_file", "--server-id", "files", "--exit-code"], arguments]
                .concat(),
        )
    };
    with(&["--arguments-file", "a.json"]).exits(0);
    with(&["--arguments", "{path}"])
        .fails(64, "error: the arguments are not valid JSON: no key at byte 1\n");
    with(&["--arguments-file", "no.json"]).fails(3, "error: cannot read `no.json`: ");
    with(&["--at", "noon"]).fails(64, "expected a time such as 2026-03-20T14:22:11Z");
    project.policy(&["explain"]).fails(64, "");
}

#[test]
fn without_a_server_the_only_one_is_meant() {
    let project = PolicyProject::with(
        "schema: 1\nsources: [{id: only, kind: mcp}]\ngovernance: {defaults: {action: forward}}\n",
    );
    let out = project.policy(&["explain", "x"]).exits(0).out;
    assert!(out.starts_with("tools/call x on server only\n"), "{out}");
}

#[test]
fn a_relative_path_is_said_never_to_be_under_a_folder() {
    let project = PolicyProject::new();
    let explain = |path: &str| {
        let arguments = format!("{{\"path\":\"{path}\"}}");
        let all = ["explain", "--server-id", "files", "write_file", "--arguments", &arguments];
        project.policy(&all).exits(0).out
    };
    let text = "relative paths never match `under`";
    assert!(explain("a/b").contains(text), "{}", explain("a/b"));
    assert!(!explain("/etc/a").contains(text) && !explain("/tmp/a").contains(text));
}

#[test]
fn a_name_that_differs_from_a_pinned_one_by_blanks_or_case_is_told_apart_from_it() {
    let project = PolicyProject::with(
        "schema: 1\ngovernance: {defaults: {action: forward}}\npins: {on_drift: deny, lock: tapegate.lock}\n",
    );
    let listed = tape(&[
        r#">{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"write_file","inputSchema":{"type":"object"}}]}}"#,
    ]);
    project.write("t.jsonl", listed);
    project.policy(&["pin", "--server-id", "s", "t.jsonl", "--all"]).exits(0);
    let explain = |name: &str| project.policy(&["explain", "--server-id", "s", name]).exits(0).out;
    assert!(
        explain("write_file").contains("production (in force): forward"),
        "{}",
        explain("write_file")
    );
    for name in ["write_file ", " write_file", "Write_File"] {
        let out = explain(name);
        let title = if name.trim() == name { name.to_owned() } else { format!("`{name}`") };
        assert!(out.starts_with(&format!("tools/call {title} on server s\n")), "{out}");
        assert!(out.contains("production (in force): deny"), "{out}");
        let text = "pins: new: never pinned; `write_file` is pinned, whose name differs only in blanks, case";
        assert!(out.contains(text), "{out}");
    }
    let out = explain("other");
    assert!(out.contains("pins: new: never pinned; denied"), "{out}");
}

#[test]
fn an_argument_that_is_missing_is_told_from_one_that_is_wrong() {
    let project = PolicyProject::new();
    let explain = |more: &[&str]| {
        let done =
            project.policy(&[&["explain", "write_file", "--server-id", "files"], more].concat());
        (done.out, done.err)
    };
    let missing = "`tmp-only` (line 16) does not match: the call has no argument `$.path`\n";
    let (out, err) = explain(&[]);
    assert!(out.contains(missing), "{out}");
    let hint = "rules test arguments, and none were given; pass --arguments '{\"path\": …}'\n";
    assert_eq!(err, format!("\nhint: {hint}"));
    // Nothing more can be suggested to those who pass arguments.
    let (out, err) = explain(&["--arguments", r#"{"other":1}"#]);
    assert!(out.contains(missing) && err.is_empty(), "{out}{err}");
}

#[test]
fn a_command_that_is_refused_is_explained_in_plain_words() {
    let project = PolicyProject::with(
        "schema: 1\ngovernance: {defaults: {action: deny}}\npolicies:\n  - name: git-operations\n    \
         description: Version control\n    commands:\n      - {pattern: git status, frequency: 3}\n      \
         - {pattern: git push --force origin main, frequency: 1, review: true}\n",
    );
    let explain = |command: &str| {
        let arguments = format!("{{\"command\":\"{command}\"}}");
        let all = ["explain", "bash_recorder.execute", "--arguments", &arguments];
        project.policy(&all).exits(0).out
    };
    assert_eq!(
        explain("rm -rf x"),
        "\
tools/call bash_recorder.execute on server *
  production (in force): deny (rules)
  development: forward, logged as WOULD_BLOCK
  1. visibility: source `*` exposes it
  2. command: `rm -rf …` (writes)
  3. rules: `git-operations` (line 4, approve) does not match: the command is not `git push --force origin main`
  4. rules: `git-operations` (line 4, forward) does not match: the command is not `git status`
  5. rules: no rule matches; the default is deny
  6. outcome: denied
"
    );
    let out = explain("git push --force origin main");
    let line = "  production (in force): waits for a person (workflow `default`, approval, rule \
                `git-operations`)\n";
    assert!(out.contains(line), "{out}");
}
