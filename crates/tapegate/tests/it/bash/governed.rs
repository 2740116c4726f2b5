//! The bash tool under a policy: the same judge, approvals and log as for every other call.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::client::{BashClient, entries};
use crate::real_clients::approvals;
use crate::support::text_of;

const POLICY: &str = "\
schema: 1
sources: [{ id: bash, kind: mcp }]
governance:
  defaults: { action: deny }
  rules:
    - { match: bash_recorder.execute, action: forward, command: { class: read-only } }
    - { match: bash_recorder.execute, action: approve, command: { run: \"touch *\" } }
    - { match: bash_recorder.execute, action: deny, command: { run: \"rm *\" }, description: use trash }
    - { match: bash_recorder.list_recent, action: forward }
";

/// A server in a folder that is also its user's state folder.
struct GovernedBash {
    folder: TempDir,
    client: BashClient,
}

impl GovernedBash {
    fn start(policy: &str, flags: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), policy, flags)
    }

    fn start_in(folder: TempDir, policy: &str, flags: &[&str]) -> Self {
        fs::write(folder.path().join(policy), POLICY).unwrap();
        let client = BashClient::spawn(folder.path(), flags);
        Self { folder, client }
    }

    /// The whole answer to a command.
    fn ask(&mut self, command: &str) -> String {
        self.ask_tool("bash_recorder.execute", command)
    }

    fn ask_tool(&mut self, tool: &str, command: &str) -> String {
        let params = json!({"name": tool, "arguments": {"command": command}});
        self.client.request("tools/call", &params).to_string()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The recorded commands, after the end.
    fn end(mut self) -> Vec<String> {
        self.client.close();
        let all = entries(&self.path().join(".cuff/recordings"));
        all.iter().map(|entry| entry["command"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_policy_decides_about_each_command() {
    let mut bash = GovernedBash::start("commands.yml", &["--policy", "commands.yml"]);
    assert!(bash.ask("ls | wc -l").contains("structuredContent"));
    let denied = bash.ask("ls; rm kept.txt");
    assert!(denied.contains("use trash"), "{denied}");
    // The other name of the tool is no way around a rule.
    let denied = bash.ask_tool("bash_recorder_execute", "rm kept.txt");
    assert!(denied.contains("use trash"), "{denied}");
    let unknown = bash.ask("make all");
    assert!(unknown.contains("read-only") && unknown.contains("error"), "{unknown}");
    let unread = bash.ask("echo \"unclosed");
    assert!(unread.contains("error"), "{unread}");
    // Nor is the file of the policy within reach.
    assert!(bash.ask("cat commands.yml").contains("own-files"));
    assert_eq!(bash.end(), ["ls | wc -l"]);
}

#[test]
fn a_command_waits_for_a_person_at_another_terminal() {
    let mut bash = GovernedBash::start("tapegate.yaml", &[]);
    let state = bash.path().to_owned();
    let call = json!({"name": "bash_recorder.execute", "arguments": {"command": "touch made"}});
    let id = bash.client.ask("tools/call", &call);
    let project = state.join(".local/state/tapegate").display().to_string();
    approvals(&["list", "--wait"], &project);
    assert!(!state.join("made").exists());
    approvals(&["approve", "--all"], &project);
    let answer = bash.client.answer(id);
    assert_eq!(answer["result"]["structuredContent"]["exit_code"], 0, "{answer}");
    assert!(state.join("made").exists());
    assert_eq!(bash.end(), ["touch made"]);
}

#[test]
fn behind_a_shim_commands_are_decided_about_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tapegate.yaml"), POLICY).unwrap();
    let binary = env!("CARGO_BIN_EXE_tapegate");
    let flags = ["--server-id", "bash", "--", binary, "bash"];
    let mut client = BashClient::spawn_as(folder.path(), "shim", &flags);
    assert_eq!(client.execute("echo once")["stdout"], "once\n");
    client.close();
    let log = text_of(&folder.path().join(".local/state/tapegate/activity.jsonl"));
    let decisions: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "decision" && line["method"] == "tools/call")
        .collect();
    assert_eq!(decisions.len(), 1, "{decisions:#?}");
}

#[test]
fn a_policy_can_be_required_and_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = BashClient::spawn(folder.path(), &["--require-policy"]);
    let call = json!({"name": "bash_recorder.execute", "arguments": {"command": "touch x"}});
    let answer = client.request("tools/call", &call).to_string();
    assert!(answer.contains("--policy FILE") && !folder.path().join("x").exists(), "{answer}");
    drop(client);
    fs::write(folder.path().join("tapegate.yaml"), POLICY).unwrap();
    let mut client = BashClient::spawn(folder.path(), &["--no-policy"]);
    assert_eq!(client.execute("touch x")["exit_code"], 0);
    client.close();
}

#[test]
fn a_command_does_not_decide_about_approvals() {
    let mut client = BashClient::start();
    let binary = env!("CARGO_BIN_EXE_tapegate");
    let state = client.folder().display().to_string();
    // Even at a terminal of its own, and without the variables of agents.
    let line = format!(
        "env -u TAPEGATE_ACTIVE script -qec '{binary} approvals approve --all --state {state}' /dev/null"
    );
    let result = client.execute(&line);
    let said = format!("{}{}", result["stdout"], result["stderr"]);
    assert!(said.contains("agent") || said.contains("script: command not found"), "{result}");
    assert_eq!(client.execute("echo $TAPEGATE_ACTIVE")["stdout"], "1\n");
}

#[test]
fn a_raised_timeout_holds_under_a_policy_too() {
    let folder = tempfile::tempdir().unwrap();
    let policy = "schema: 1\nsources: [{ id: bash, kind: mcp }]\ngovernance: { defaults: { action: forward } }\n";
    fs::write(folder.path().join("commands.yml"), policy).unwrap();
    super::client::write_settings(folder.path(), "execution: {max_timeout: 1}");
    let mut client = BashClient::spawn(folder.path(), &["--policy", "commands.yml"]);
    let command = json!({"command": "timeout 2 tail -f /dev/null; echo late", "timeout": 30});
    assert_eq!(client.call("execute", &command)["timed_out"], true);
    super::client::write_settings(folder.path(), "execution: {max_timeout: 29}");
    crate::support::wait_until("the settings are in force", || {
        let tools = client.request("tools/list", &json!({})).to_string();
        tools.contains("\"maximum\":29")
    });
    assert_eq!(client.call("execute", &command)["stdout"], "late\n");
    client.close();
    let log = text_of(&folder.path().join(".local/state/tapegate/activity.jsonl"));
    assert!(!log.contains("orphan"), "{log}");
}

/// The command lines of a block of the docs, without comments.
fn block_after(text: &str, heading: &str) -> Vec<String> {
    let (_, rest) = text.split_once(heading).unwrap_or_else(|| panic!("no `{heading}`"));
    let block = rest.split("```").nth(1).unwrap();
    let lines = block.lines().skip(1).map(|line| line.split(" #").next().unwrap().trim());
    lines.map(str::to_owned).collect()
}

#[test]
fn the_three_commands_of_the_docs_lead_from_recordings_to_an_enforced_policy() {
    let docs = crate::tidy::root().join("docs");
    let lines = block_after(
        &fs::read_to_string(docs.join("bash.md")).unwrap(),
        "From a week of recordings to an enforced policy, in three commands:",
    );
    let same = fs::read_to_string(docs.join("generate.md")).unwrap();
    assert_eq!(lines, block_after(&same, "From recorded commands to an enforced policy:"));
    let [generate, check, serve] = &lines[..] else { panic!("{lines:?}") };
    let folder = tempfile::tempdir().unwrap();
    let mut client = BashClient::spawn(folder.path(), &["--no-policy"]);
    for command in
        ["ls", "ls", "echo a > notes; wc -l notes", "wc -l notes", "wc notes", "mkdir once"]
    {
        client.execute(command);
    }
    client.close();
    let binary = Path::new(env!("CARGO_BIN_EXE_tapegate")).parent().unwrap().display();
    let path = format!("{binary}:{}", std::env::var("PATH").unwrap());
    let shell = |line: &str| {
        let mut command = std::process::Command::new("sh");
        command.arg("-c").arg(line).env("PATH", &path).env("HOME", folder.path());
        command.current_dir(folder.path());
        command
    };
    let done = shell(generate).output().unwrap();
    assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
    let done = shell(check).output().unwrap();
    let listed = String::from_utf8(done.stdout).unwrap();
    // What would have waited for a person.
    assert_eq!(done.status.code(), Some(1), "{listed}");
    assert!(listed.contains("1  mkdir once\n") && !listed.contains("  ls\n"), "{listed}");
    let serve = format!("exec {serve}");
    let mut client = BashClient::spawn_command(shell(&serve), folder.path(), "sh", &[]);
    assert_eq!(client.execute("wc -c notes")["stdout"], "2 notes\n");
    assert!(client.execute("ls")["stdout"].as_str().unwrap().contains("notes"));
    let state = folder.path().join(".local/state/tapegate").display().to_string();
    let call = json!({"name": "bash_recorder.execute", "arguments": {"command": "mkdir twice"}});
    let id = client.ask("tools/call", &call);
    approvals(&["list", "--wait"], &state);
    approvals(&["deny", "--all"], &state);
    let denied = client.answer(id).to_string();
    assert!(
        denied.contains("not approved by a person") && !folder.path().join("twice").exists(),
        "{denied}"
    );
    client.close();
}

#[test]
fn relative_paths_are_in_the_folder_of_the_tool() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().canonicalize().unwrap();
    let rule = format!(
        "schema: 1\ngovernance:\n  defaults: {{ action: deny }}\n  rules:\n    - {{ match: bash_recorder.execute, action: forward, command: {{ run: [\"touch *\", \"cd *\"], under: {} }} }}\n",
        project.display()
    );
    fs::write(project.join("commands.yml"), rule).unwrap();
    fs::create_dir(project.join("sub")).unwrap();
    fs::create_dir(project.join("away")).unwrap();
    let mut client = BashClient::spawn(&project, &["--policy", "commands.yml"]);
    let mut ask = |arguments: Value| {
        let params = json!({"name": "bash_recorder.execute", "arguments": arguments});
        client.request("tools/call", &params)["result"]["structuredContent"]["exit_code"] == 0
    };
    assert!(ask(json!({"command": "touch made"})));
    assert!(ask(json!({"command": "cd sub && touch made"})));
    assert!(ask(json!({"command": "touch made", "working_directory": "sub"})));
    for command in
        ["touch ../made", "cd .. && touch made", "cd; touch made", "CDPATH=/ cd tmp; touch made"]
    {
        assert!(!ask(json!({"command": command})), "{command}");
    }
    assert!(!ask(json!({"command": "touch made", "working_directory": ".."})));
    assert!(!ask(json!({"command": "touch made", "Working_Directory": "/tmp"})));
}

#[test]
fn the_named_settings_and_their_recordings_are_out_of_reach() {
    let folder = tempfile::tempdir().unwrap();
    let settings = "plugins: { bash_recorder: { config: { recording: { directory: kept } } } }\n";
    fs::write(folder.path().join("tool.yml"), settings).unwrap();
    let flags = ["--policy", "commands.yml", "--config", "tool.yml"];
    let mut bash = GovernedBash::start_in(folder, "commands.yml", &flags);
    for command in ["cat tool.yml", "ls kept/sessions"] {
        let path = bash.path().canonicalize().unwrap();
        let whole = command.replace(' ', &format!(" {}/", path.display()));
        for line in [&whole, command] {
            assert!(bash.ask(line).contains("own-files"), "{line}");
        }
    }
    assert!(bash.ask("cat ./tool.yml").contains("own-files"));
    assert!(bash.ask("ls src/tool.yml").contains("structuredContent"));
}
