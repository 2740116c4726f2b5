//! Agents without a shell of their own do a task through the bash tool, under a policy.
//!
//! The same task is done by the same agent with its own shell first, and both must leave the same
//! files. One command is denied and one waits for a person, who decides at another terminal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use tapegate_store::user_state::PrivateDir;

use super::{AgentHome, AgentKind, end};
use crate::peers;
use crate::real_clients::approvals;

const WORK: [&str; 3] = [
    "mkdir -p out && printf '%s\\n' b a c > out/list",
    "sort out/list > out/sorted && wc -l < out/sorted",
    "touch out/approved",
];
const DENIED: &str = "rm -rf out";
const POLICY: &str = "\
schema: 1
sources: [{ id: '*', kind: mcp }]
governance:
  defaults: { action: forward }
  rules:
    - { match: bash_recorder.execute, action: deny, command: { run: 'rm *' }, description: nothing is deleted here }
    - { match: bash_recorder.execute, action: approve, command: { run: 'touch *' } }
";

/// How an agent's own shell is called, and what its name begins with.
fn own_shell(kind: AgentKind) -> (&'static str, &'static str) {
    match kind {
        AgentKind::ClaudeCode => ("Bash", "command"),
        AgentKind::Codex => ("exec_command", "cmd"),
        AgentKind::Gemini => ("run_shell_command", "command"),
        _ => ("bash", "command"),
    }
}

/// The config with the agent's own shell switched off, as docs/bash.md shows it.
fn without_shell(kind: AgentKind, config: &str) -> String {
    match kind {
        AgentKind::Codex => format!("{config}\r\n[features]\r\nshell_tool = false\r\n"),
        AgentKind::Gemini => config.replacen(
            "\"privacy\"",
            "\"tools\": {\"exclude\": [\"run_shell_command\"]}, \"privacy\"",
            1,
        ),
        AgentKind::Opencode => {
            config.replacen("\"autoupdate\"", "\"tools\": {\"bash\": false}, \"autoupdate\"", 1)
        }
        _ => config.to_owned(),
    }
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().expect("a name");
        (name, fs::read_to_string(entry.path()).expect("a text"))
    };
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{error}: {folder:?}"));
    entries.map(|entry| read(entry.expect("an entry"))).collect()
}

fn seen(home: &AgentHome) -> Value {
    let text = fs::read_to_string(home.at("seen.json")).expect("what the model has seen");
    serde_json::from_str(&text).expect("JSON")
}

/// What the agent leaves behind with its own shell.
fn with_own_shell(kind: AgentKind) -> BTreeMap<String, String> {
    let (tool, argument) = own_shell(kind);
    let call = |line: &&str| json!([tool, { argument: line, "description": "work" }]);
    let calls: Vec<Value> = WORK.iter().map(call).collect();
    let server = |_: &Path| vec!["true".to_owned()];
    let home = AgentHome::with(kind, &json!(calls), server, str::to_owned);
    home.run(&kind.call());
    let offered = seen(&home)["offered"].to_string();
    assert!(offered.contains(&format!("\"{tool}\"")), "{offered}");
    let files = files(&home.at("home/project/out"));
    end(home);
    files
}

fn does_the_same(kind: AgentKind) {
    let expected = with_own_shell(kind);
    let lines = [WORK[0], WORK[1], DENIED, WORK[2]];
    let calls = lines.map(|line| json!(["execute", { "command": line }]));
    let server = |project: &Path| {
        let policy = project.join("commands.yml");
        fs::write(&policy, POLICY).expect("a policy");
        let policy = policy.display().to_string();
        [peers::tapegate(), "bash", "--policy", &policy].map(str::to_owned).to_vec()
    };
    let home = AgentHome::with(kind, &json!(calls), server, |text| without_shell(kind, text));
    if matches!(kind, AgentKind::ClaudeCode) {
        let settings = home.at("home/project/.claude/settings.json");
        fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
        fs::write(settings, r#"{"permissions": {"deny": ["Bash"]}}"#).expect("settings");
    }
    let state = home.at("home/.local/state/tapegate");
    // A folder to wait at, before the agent has started anything.
    PrivateDir::open(&state, &state).expect("a state folder");
    let state = state.display().to_string();
    let person = thread::spawn(move || {
        approvals(&["list", "--wait"], &state);
        approvals(&["approve", "--all"], &state);
    });
    home.run(&kind.call());
    person.join().expect("the call was approved");

    let seen = seen(&home);
    let shell = format!("\"{}\"", own_shell(kind).0);
    assert!(!seen["offered"].to_string().contains(&shell), "{}", seen["offered"]);
    let results = seen["results"].as_array().expect("results");
    assert_eq!(results.len(), lines.len(), "{results:#?}");
    assert!(results[1].to_string().contains("3\\"), "{}", results[1]);
    assert!(results[2].to_string().contains("nothing is deleted here"), "{}", results[2]);
    assert_eq!(files(&home.at("home/project/out")), expected);
    assert_eq!(recorded(&home), WORK);
    end(home);
}

/// The recorded commands, in order.
fn recorded(home: &AgentHome) -> Vec<String> {
    let sessions = home.at("home/project/.cuff/recordings/sessions");
    let mut entries: Vec<Value> = Vec::new();
    for file in fs::read_dir(&sessions).expect("recordings").flatten() {
        if file.path().extension().is_some_and(|extension| extension == "jsonl") {
            let text = fs::read_to_string(file.path()).expect("a session");
            entries.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        }
    }
    entries.sort_by_key(|entry| entry["sequence_number"].as_u64());
    entries.iter().map(|entry| entry["command"].as_str().expect("a command").to_owned()).collect()
}

#[test]
fn claude_code_does_the_same_through_the_bash_tool() {
    does_the_same(AgentKind::ClaudeCode);
}

#[test]
fn codex_does_the_same_through_the_bash_tool() {
    does_the_same(AgentKind::Codex);
}

#[test]
fn gemini_does_the_same_through_the_bash_tool() {
    does_the_same(AgentKind::Gemini);
}

#[test]
fn opencode_does_the_same_through_the_bash_tool() {
    does_the_same(AgentKind::Opencode);
}
