//! `tapegate policy`: explain, test, backtest, pin, accept. Their output is in goldens
//! (`tests/golden/policy`), so that changes are visible in review: `UPDATE_GOLDEN=1` rewrites them.

mod accept;
mod backtest;
mod backtest_agrees_with_shim;
mod explain;
mod lock_in_force;
mod pin;
mod test;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;

use crate::support::tapegate;

/// A policy with every gate in it.
const POLICY: &str = r#"schema: 1
sources:
  - id: files
    kind: mcp
    expose: {mode: blocklist, tools: ["admin_*"], prompts: ["secret"], resources: ["file:///etc/*"]}
  - id: off
    kind: mcp
    enabled: false
  - id: few
    kind: mcp
    expose: {mode: allowlist, tools: [read_file, "list_*"]}
governance:
  defaults: {action: deny}
  rules:
    - {id: no-deletes, match: "delete_*", action: deny, description: nothing is deleted}
    - {id: tmp-only, match: write_file, action: forward, arguments: {$.path: {under: /tmp}}}
    - {id: writes, match: "write_*", action: approve, approval: people}
    - {id: reads, match: ["read_*", "list_*"], action: forward}
    - {id: resources, method: "resources/*", match: "*", action: forward}
    - {id: quiet, method: "logging/*", action: deny}
approval:
  people: {destination: {type: cli}, timeout: 5m}
"#;

/// A folder with a policy, in which commands are run.
struct PolicyProject(TempDir);

/// The result of a command.
struct CommandResult {
    code: Option<i32>,
    out: String,
    err: String,
}

impl PolicyProject {
    /// A project with the policy of these tests.
    fn new() -> Self {
        Self::with(POLICY)
    }

    fn with(policy: &str) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.write("tapegate.yaml", policy);
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs `tapegate policy …` in the project.
    fn policy(&self, arguments: &[&str]) -> CommandResult {
        let mut command = tapegate();
        for name in ["CONFIG", "PROFILE", "HOME"] {
            command.env_remove(format!("TAPEGATE_{name}"));
            command.env_remove(format!("THOUGHTGATE_{name}"));
        }
        let done = command
            .arg("policy")
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        CommandResult { code: done.status.code(), out: text(&done.stdout), err: text(&done.stderr) }
    }
}

impl CommandResult {
    /// Asserts that the command exited with this code and an empty standard error.
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert_eq!(self.err, "");
        self
    }

    /// Asserts that the command exited with this code and this text on standard error.
    #[track_caller]
    fn fails(self, code: i32, output_text: &str) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert!(self.err.contains(output_text), "{}", self.err);
        self
    }

    /// Asserts that the output equals the golden file.
    #[track_caller]
    fn golden(self, name: &str) -> Self {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/policy").join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, &self.out).unwrap();
        }
        let golden = fs::read_to_string(&file).unwrap_or_default();
        let output_text = "the output has changed; if it is meant so, run with UPDATE_GOLDEN=1";
        assert_eq!(self.out, golden, "{name}: {output_text}");
        self
    }
}

const HEADER: &str = r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"x","thoughtjack_version":"1"}"#;

/// A tape of these messages: `>` marks those of the client, `<` those of the server.
fn tape(messages: &[&str]) -> String {
    let mut out = format!("{HEADER}\n");
    for (index, message) in messages.iter().enumerate() {
        let (dir, message) = match message.split_at(1) {
            (">", message) => ("c2s", message),
            ("<", message) => ("s2c", message),
            _ => panic!("{message}"),
        };
        let (seq, second) = (index + 1, index % 60);
        out += &format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2026-01-01T00:00:{second:02}.000001Z\",\"dir\":\"{dir}\",\"msg\":{message}}}\n"
        );
    }
    out
}

/// A tool call by a client.
fn call(id: u64, tool: &str, arguments: &str) -> String {
    format!(
        ">{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\",\"arguments\":{arguments}}}}}"
    )
}

/// The server's answer to it.
fn answer(id: u64) -> String {
    format!("<{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}")
}

#[test]
fn every_command_of_policies_has_help_with_an_example_that_is_not_too_wide() {
    let project = PolicyProject::new();
    for name in ["explain", "test", "backtest", "pin"] {
        let help = project.policy(&[name, "--help"]).exits(0).out;
        assert!(help.contains("Examples:") && help.contains("Exit codes: 0"), "{help}");
        let long = help.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{name}");
        let text: String = help.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        CommandResult { code: Some(0), out: text, err: String::new() }
            .golden(&format!("help-{name}.txt"));
        let page = tapegate().args(["man", "policy"]).output().unwrap();
        let page = String::from_utf8(page.stdout).unwrap();
        assert!(page.contains(&format!("policy\\-{name}")), "{page}");
    }
}

#[test]
fn a_policy_that_does_not_load_is_told_with_all_its_faults_and_nothing_is_done() {
    let project =
        PolicyProject::with("schema: 1\ngovernance:\n  defaults: {action: forwards}\n  rule: []\n");
    project.write("t.jsonl", tape(&[&call(1, "read_file", "{}")]));
    project.write("tapegate.test.yaml", "cases: [{call: a, expect: deny}]");
    for arguments in [
        &["explain", "x"][..],
        &["test"],
        &["backtest", "t.jsonl"],
        &["pin", "--server-id", "s", "t.jsonl"],
    ] {
        let done = project.policy(arguments).fails(2, "tapegate.yaml:3:");
        assert!(done.err.contains("tapegate.yaml:4:3: ") && done.out.is_empty(), "{}", done.err);
    }
    fs::remove_file(project.path("tapegate.yaml")).unwrap();
    let output_text =
        "error: there is no tapegate.yaml here, in a folder above or in the user's config folder\n";
    for arguments in [&["explain", "x"][..], &["backtest", "t.jsonl"]] {
        project.policy(arguments).fails(2, output_text);
    }
}
