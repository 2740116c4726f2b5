//! The users of two real agents answer questions about held calls in their agent.
//!
//! Each agent is shown in three ways: at a terminal, where its own dialog is read and keys are
//! typed; embedded in a program, by the protocol that editors speak with it; and alone, where no
//! user is there and nothing may be approved. The model only makes the calls.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{AgentHome, AgentKind, end};
use crate::peers::{self, PeerServer};
use crate::support::{TmuxServer, script_of, wait_until};

/// A policy with which the users of these clients may answer within this time.
fn policy(timeout: &str) -> String {
    format!(
        "schema: 1\ngovernance:\n  defaults: {{ action: forward }}\n  \
         rules: [{{ match: echo, action: approve }}]\napproval:\n  \
         people: {{ timeout: {timeout}, in_agent: [claude-code, 'codex*'] }}\n"
    )
}

/// The shim in front of a recorder and a server.
fn server(project: &Path) -> Vec<String> {
    let at = |name: &str| project.join(name).display().to_string();
    let (home, config) = (format!("TAPEGATE_HOME={}", at("state")), at("tapegate.yaml"));
    let shim = [peers::tapegate(), "shim", "--server-id", "ev", "--config", &config, "--"];
    let tape = at("server.jsonl");
    let recorder = [peers::tapegate(), "record", "--force", "-o", &tape, "--"];
    let words = ["env", &home].into_iter().chain(shim).chain(recorder).map(str::to_owned);
    words.chain(PeerServer::Everything.stdio(project)).collect()
}

/// An agent whose model makes these calls of `echo`.
fn agent(kind: AgentKind, timeout: &str, messages: &[&str]) -> AgentHome {
    let calls: Vec<Value> =
        messages.iter().map(|message| json!(["echo", { "message": message }])).collect();
    let change = |text: &str| match kind {
        // Its own approval of tools is not what is tested.
        AgentKind::Codex => text
            .replace("approval_policy = 'never'", "approval_policy = 'on-request'")
            .replace("command = ", "default_tools_approval_mode = 'approve'\r\ncommand = "),
        _ => text.to_owned(),
    };
    let home = AgentHome::with(kind, &json!(calls), server, change);
    fs::write(home.at("home/project/tapegate.yaml"), policy(timeout)).expect("a policy");
    home
}

/// What the model was told after each call.
fn results(home: &AgentHome) -> Vec<String> {
    let seen = fs::read_to_string(home.at("seen.json")).unwrap_or_default();
    let seen: Value = serde_json::from_str(&seen).unwrap_or_default();
    let results = seen["results"].as_array().cloned().unwrap_or_default();
    results.iter().map(Value::to_string).collect()
}

/// The messages that have reached the server.
fn echoed(home: &AgentHome) -> Vec<String> {
    let tape = fs::read_to_string(home.at("home/project/server.jsonl")).expect("a tape");
    let entries = tape.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let calls = entries.filter(|entry| entry["msg"]["method"] == "tools/call");
    calls
        .map(|call| call["msg"]["params"]["arguments"]["message"].as_str().unwrap().to_owned())
        .collect()
}

/// Who has decided, and how.
fn decisions(home: &AgentHome) -> Vec<(String, String)> {
    let log = fs::read_to_string(home.at("home/project/state/activity.jsonl")).expect("a log");
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let by_users = events.filter(|event| event["channel"] == "client");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    by_users.map(|one| (text(&one["governance_decision"]), text(&one["decided_by"]))).collect()
}

fn decided_by(name: &str, words: &[&str]) -> Vec<(String, String)> {
    words.iter().map(|word| ((*word).to_owned(), format!("user of {name}"))).collect()
}

/// Runs an agent that is embedded in a program, whose user answers so.
fn embedded(kind: AgentKind, name: &str, client: &str) {
    let home = agent(kind, "10m", &["one", "two", "three"]);
    let choice =
        |decision: &str| json!({ "action": "accept", "content": { "decision": decision } });
    let answers = json!([choice("approve"), choice("deny"), { "action": "decline" }]);
    let driver = [peers::node(), peers::peer("agent-answers.mjs"), name.to_owned()];
    let project = home.at("home/project").display().to_string();
    let words = [&driver[..], &[project], &kind.program()].concat();
    let mut command = peers::bounded(super::RUN_S_MAX);
    command.args(words);
    home.set_up(&mut command);
    command.env("ANSWERS", answers.to_string());
    let done = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let questions: Value = serde_json::from_slice(&done.stdout).expect("questions");
    let questions = questions.as_array().expect("a list");
    assert_eq!(questions.len(), 3, "{questions:#?}\n{said}");
    for (question, message) in questions.iter().zip(["one", "two", "three"]) {
        let text = question["message"].as_str().expect("a text");
        assert!(text.contains("echo") && text.contains(message), "{text}");
        let decision = &question["schema"]["properties"]["decision"];
        assert_eq!(decision["enum"], json!(["deny", "approve"]));
        assert_eq!(decision["default"], Value::Null);
    }
    let results = results(&home);
    assert!(results[0].contains("Echo: one"), "{results:#?}");
    for result in &results[1..] {
        assert!(result.contains("was not approved by a person"), "{results:#?}");
    }
    assert_eq!(echoed(&home), ["one"]);
    assert_eq!(decisions(&home), decided_by(client, &["approved", "denied", "denied"]));
    end(home);
}

/// Runs an agent without a user: its model makes a call and can do nothing to have it approved.
fn alone(kind: AgentKind, told: &str, decided: &[(String, String)]) {
    let home = agent(kind, "6s", &["one"]);
    home.run(&kind.call());
    let results = results(&home);
    assert!(results[0].contains(told), "{results:#?}");
    assert_eq!(echoed(&home), Vec::<String>::new());
    assert_eq!(decisions(&home), decided);
    end(home);
}

#[test]
fn the_user_of_an_embedded_claude_code_decides() {
    embedded(AgentKind::ClaudeCode, "claude", "claude-code");
}

#[test]
fn the_user_of_an_embedded_codex_decides() {
    embedded(AgentKind::Codex, "codex", "codex-mcp-client");
}

#[test]
fn claude_code_without_a_user_decides_nothing() {
    alone(AgentKind::ClaudeCode, "was not approved within", &[]);
}

#[test]
fn codex_without_a_user_declines() {
    let declined = decided_by("codex-mcp-client", &["denied"]);
    alone(AgentKind::Codex, "was not approved by a person", &declined);
}

/// Starts an agent at a terminal of 80 columns and 24 lines.
fn at_terminal(home: &AgentHome, words: &[&str]) -> TmuxServer {
    let mut command = Command::new("env");
    home.set_up(&mut command);
    command.env("TERM", "xterm-256color");
    let variables: Vec<String> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut command = Command::new("timeout");
    // It reads from the terminal, so it has to be in the foreground.
    command.args(["--foreground", super::RUN_S_MAX, "env", "-i"]).args(variables);
    command.args(home.kind.program()).args(words);
    TmuxServer::start(&script_of(&command, &home.at("home/project")), 80, 24)
}

/// The longest message whose call a dialog of so many lines shows, apart from the heading.
fn longest(lines: usize) -> String {
    let end = " THE END";
    let beginning = "    {\"message\":\"".len();
    let continued = "    ↳ ".chars().count();
    let columns = 74 + (lines - 1) * (74 - continued);
    format!("{}{end}", "x".repeat(columns - beginning - end.len() - "\"}".len()))
}

#[test]
fn the_user_of_claude_code_decides_by_keys() {
    let longest = longest(3);
    let home = agent(AgentKind::ClaudeCode, "10m", &["one", "two", &longest]);
    let mut config: Value = serde_json::from_str(&home.config()).expect("JSON");
    config["bypassPermissionsModeAccepted"] = json!(true);
    config["customApiKeyResponses"] = json!({ "approved": ["none"], "rejected": [] });
    config["projects"][home.at("home/project").display().to_string()] =
        json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true });
    fs::write(&home.config, config.to_string()).expect("a config");
    let tmux = at_terminal(&home, &["--permission-mode", "bypassPermissions"]);
    let tapes = home.at("home/project/state/tapes/ev");
    wait_until("the list of tools", || {
        let tapes = fs::read_dir(&tapes).into_iter().flatten().flatten();
        tapes
            .into_iter()
            .any(|tape| fs::read_to_string(tape.path()).is_ok_and(|text| text.contains("get-sum")))
    });
    tmux.shows("bypass permissions on");
    tmux.types_until("Call the tools.", "Call the tools.");
    tmux.types("Enter");
    let (one, two, last) = ("{\"message\":\"one\"}", "{\"message\":\"two\"}", "THE END\"");
    tmux.shows(one);
    for (shown, approve, next) in [(one, true, two), (two, false, last)] {
        let screen = tmux.shows(shown);
        assert!(screen.contains("Send tool `echo` to `ev`?"), "{screen}");
        tmux.types_until("Right", "◯ approve");
        if approve {
            tmux.types_until("Down", "❯ ◯ approve");
        }
        tmux.types_until("Space", if approve { "▸ approve" } else { "▸ deny" });
        tmux.types_until("Down", "❯ Accept");
        // It does not count if it is typed early.
        tmux.types_until("Enter", next);
    }
    let screen = tmux.screen();
    assert!(!screen.contains("more line"), "{screen}");
    // Closing the dialog decides nothing.
    tmux.types("Escape");
    wait_until("results", || results(&home).len() >= 2);
    let results = results(&home);
    assert!(results[0].contains("Echo: one"), "{results:#?}");
    assert!(results[1].contains("was not approved by a person"), "{results:#?}");
    assert_eq!(decisions(&home), decided_by("claude-code", &["approved", "denied"]));
    drop(tmux);
    assert_eq!(echoed(&home), ["one"]);
    end(home);
}

#[test]
fn the_user_of_codex_decides_by_keys() {
    let longest = longest(11);
    let home = agent(AgentKind::Codex, "10m", &["one", "two", &longest]);
    let config = home.config();
    let trusted = format!(
        "{config}\r\n[projects.'{}']\r\ntrust_level = 'trusted'\r\n",
        home.at("home/project").display()
    );
    fs::write(&home.config, format!("check_for_update_on_startup = false\r\n{trusted}"))
        .expect("a config");
    // The daemon would outlive the agent, with its servers.
    let tmux = at_terminal(&home, &["--no-daemon", "Call the tools."]);
    let screen = tmux.shows("{\"message\":\"one\"}");
    assert!(screen.contains("Send tool `echo` to `ev`?"), "{screen}");
    tmux.types_until("Down", "› 2. approve");
    tmux.types("Enter");
    // A key that was meant for something else denies: that is the first choice.
    tmux.shows("{\"message\":\"two\"}");
    tmux.shows("› 1. deny");
    tmux.types("Enter");
    let screen = tmux.shows("THE END\"");
    assert!(screen.contains("Send tool `echo` to `ev`?"), "{screen}");
    assert!(screen.contains("2. approve"), "{screen}");
    wait_until("results", || results(&home).len() >= 2);
    let results = results(&home);
    assert!(results[0].contains("Echo: one"), "{results:#?}");
    assert!(results[1].contains("was not approved by a person"), "{results:#?}");
    assert_eq!(decisions(&home), decided_by("codex-mcp-client", &["approved", "denied"]));
    drop(tmux);
    assert_eq!(echoed(&home), ["one"]);
    end(home);
}
