//! A changed lock file is not in force until it is accepted, and every command says so.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{accept_policy, at_terminal, at_terminal_answering, tapegate};

use super::tape;

/// A policy that permits tools by their pinned definitions.
const BY_HINT: &str = "schema: 1
governance:
  defaults: { action: deny }
  rules: [{ match: \"*\", annotations: { readOnlyHint: true }, action: forward }]
";
/// A policy under which a lock can only refuse.
const PLAIN: &str = "schema: 1\ngovernance: { defaults: { action: forward } }\n";

const COMMANDS: [&[&str]; 3] =
    [&["policy", "explain", "a"], &["check", "tapegate.yaml"], &["policy", "backtest", "t.jsonl"]];

struct LockedProject {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
}

impl LockedProject {
    fn new(policy: &str) -> Self {
        let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(folder.path().join("tapegate.yaml"), policy).unwrap();
        let listed = tape(&[
            r#">{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}"#,
        ]);
        fs::write(folder.path().join("t.jsonl"), listed).unwrap();
        let done = accept_policy(folder.path(), home.path(), &[]);
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        Self { folder, home }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tapegate();
        command.args(arguments).env("TAPEGATE_HOME", self.home.path()).current_dir(self.folder());
        command
    }

    fn is_warned_of(&self, arguments: &[&str]) -> bool {
        let done = self.command(arguments).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        said.contains("is not the policy in force: `tapegate.lock` has changed since")
    }

    /// Pins at a terminal, with this answer to the question.
    fn pin(&self, answer: &str) -> String {
        let pin = self.command(&["policy", "pin", "--server-id", "s", "t.jsonl", "--all"]);
        let (code, said) = at_terminal(&pin, answer);
        assert_eq!(code, 0, "{said}");
        said
    }
}

#[test]
fn a_lock_that_was_not_accepted_is_told_by_every_command_that_reads_the_policy() {
    let project = LockedProject::new(BY_HINT);
    COMMANDS.iter().for_each(|command| assert!(!project.is_warned_of(command), "{command:?}"));
    let said = project.pin("n\n");
    assert!(!said.contains("differences accepted"), "{said}");
    let expected = "1 of 1 differences written to tapegate.lock, which is not in force";
    assert!(said.contains(expected), "{said}");
    COMMANDS.iter().for_each(|command| assert!(project.is_warned_of(command), "{command:?}"));
    // There is nothing left to write, and the lock is still not in force.
    assert!(project.is_warned_of(&["policy", "pin", "--server-id", "s", "t.jsonl"]));
    let (code, said) = at_terminal(&project.command(&["policy", "accept"]), "y\n");
    assert_eq!(code, 0, "{said}");
    COMMANDS.iter().for_each(|command| assert!(!project.is_warned_of(command), "{command:?}"));
}

#[test]
fn a_lock_that_was_accepted_is_said_to_be_and_one_that_can_only_refuse_needs_no_answer() {
    let project = LockedProject::new(BY_HINT);
    let said = project.pin("y\n");
    assert!(said.contains("1 of 1 differences accepted, written to tapegate.lock"), "{said}");
    COMMANDS.iter().for_each(|command| assert!(!project.is_warned_of(command), "{command:?}"));
    let project = LockedProject::new(PLAIN);
    let said = project.pin("");
    assert!(said.contains("1 of 1 differences accepted") && !said.contains("[y/N]"), "{said}");
    COMMANDS.iter().for_each(|command| assert!(!project.is_warned_of(command), "{command:?}"));
}

#[test]
fn a_long_lock_is_told_in_short_and_shown_whole_to_whoever_wants_that() {
    let project = LockedProject::new(BY_HINT);
    let tools: Vec<String> = (0..9)
        .map(|n| format!(r#"{{"name":"t{n}","inputSchema":{{"type":"object"}},"annotations":{{"readOnlyHint":true}}}}"#))
        .collect();
    let answer = r#"<{"jsonrpc":"2.0","id":1,"result":{"tools":[TOOLS]}}"#;
    let listed = tape(&[
        r#">{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        &answer.replace("TOOLS", &tools.join(",")),
    ]);
    fs::write(project.folder().join("t.jsonl"), listed).unwrap();
    let mut pin = project.command(&["policy", "pin", "--server-id", "s", "t.jsonl", "--all"]);
    let (code, said) = at_terminal_answering(pin.env("PAGER", "cat"), "", &["d\n", "y\n"]);
    assert_eq!(code, 0, "{said}");
    let (short, rest) = said.split_once("[y/N]").unwrap();
    assert_eq!(short.lines().count(), 11, "{short}");
    assert!(short.contains("+ s: tool t8 is new (readOnlyHint: true)"), "{short}");
    let (whole, rest) = rest.split_once("[y/N]").unwrap();
    assert!(whole.contains("/tapegate.lock") && whole.contains("@@ -0,0 +1,"), "{whole}");
    assert!(whole.contains("+  \"schema\": 1,"), "{whole}");
    assert!(rest.contains("9 of 9 differences accepted"), "{rest}");
    COMMANDS.iter().for_each(|command| assert!(!project.is_warned_of(command), "{command:?}"));
}
