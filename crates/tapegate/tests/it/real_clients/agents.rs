//! Real coding agents: their models are told what a policy does, and they go on.
//!
//! The model is a script (`tests/peers/model.mjs`); the agent around it, its client, and how it
//! starts and ends servers are real.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tapegate_store::user_state::PrivateDir;

use super::{GovernedFolder, SECRET, assert_told, calls, command_of};
use crate::peers::{self, PeerProcess};
use crate::support::within;

/// An agent needs a few seconds.
const RUN_MAX: Duration = Duration::from_secs(300);
const MODEL_S_MAX: &str = "600";
const HOLD_MAX: Duration = Duration::from_secs(120);

#[derive(Clone, Copy)]
enum CodingAgent {
    Continue,
    Gemini,
}

#[test]
fn continue_is_governed_over_stdio() {
    governed(CodingAgent::Continue, false);
}

#[test]
fn continue_is_governed_over_http() {
    governed(CodingAgent::Continue, true);
}

#[test]
fn gemini_is_governed_over_stdio() {
    governed(CodingAgent::Gemini, false);
}

#[test]
fn gemini_is_governed_over_http() {
    governed(CodingAgent::Gemini, true);
}

#[test]
fn of_an_agent_that_is_killed_while_a_call_is_held_nothing_is_left() {
    let stand = GovernedFolder::new();
    let asked = json!([["test_simple_text", {}]]);
    let model = model(&stand, &asked);
    let mut agent = CodingAgent::Continue.start(&stand, &stand.in_front_of_a_process(), &model.url);
    let state = stand.path("state");
    let held = is_asked(&PrivateDir::path_of(&state, &state).join("approvals"));
    agent.kill().expect("it can be killed");
    agent.wait().expect("it is reaped");
    assert!(held, "no call was held");
    drop(model);
    peers::assert_none_left(stand.folder.path());
    assert_eq!(stand.served(), Vec::<String>::new());
    let mut list = Command::new(peers::tapegate());
    list.args(["approvals", "list", "--all", "--state"]).arg(&state).env("TAPEGATE_HOME", &state);
    let shown = peers::transcript(list);
    assert!(shown.contains("cancelled"), "nobody is asked for a dead agent any more: {shown}");
}

fn governed(agent: CodingAgent, http: bool) {
    let stand = GovernedFolder::new();
    let decided = stand.decided();
    let model = model(&stand, &calls());
    let mut line = stand.in_front_of_a_process();
    let sidecar = http.then(|| {
        let at = line.iter().position(|word| word == "shim").expect("a shim") + 1;
        line.splice(at..at, ["--http", "127.0.0.1:0"].map(str::to_owned));
        PeerProcess::start(command_of(&line))
    });
    let server = sidecar.as_ref().map_or(line, |shim| vec![shim.url.clone()]);
    let mut running = agent.start(&stand, &server, &model.url);
    let ended = within(RUN_MAX, || running.try_wait().expect("it can be waited for"));
    if ended.is_none() {
        running.kill().expect("it can be killed");
        running.wait().expect("it is reaped");
    }
    drop(model);
    let talk = fs::read_to_string(stand.path("agent.log")).expect("what it said");
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}\n{talk}");
    if let Some(shim) = sidecar {
        shim.stop();
    }
    decided.join().expect("both were decided");

    let seen: Value = serde_json::from_slice(&fs::read(stand.path("seen.json")).unwrap()).unwrap();
    let offered = seen["offered"].to_string();
    assert!(offered.contains("echo\"") && !offered.contains("test_audio_content"), "{offered}");
    let results = seen["results"].as_array().expect("a list of results");
    let told: Vec<_> = results.iter().map(|result| result.as_str().unwrap().to_owned()).collect();
    assert_told(&told);
    assert!(!told[4].contains(SECRET), "{}", told[4]);
    stand.assert_in_order();
}

fn model(stand: &GovernedFolder, calls: &Value) -> PeerProcess {
    let mut model = peers::bounded(MODEL_S_MAX);
    model.args([peers::node(), peers::peer("model.mjs")]);
    model.env("CALLS", calls.to_string()).env("SEEN", stand.path("seen.json"));
    PeerProcess::start(model)
}

/// Whether an approval request appears in time.
fn is_asked(folder: &Path) -> bool {
    let request = |name: &Path| name.to_string_lossy().ends_with(".request.json");
    within(HOLD_MAX, || {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).any(|path| request(&path)).then_some(())
    })
    .is_some()
}

impl CodingAgent {
    /// Starts it in its own home folder, with one MCP server (a command line or a URL) and this
    /// model.
    fn start(self, stand: &GovernedFolder, server: &[String], model: &str) -> Child {
        let home = stand.path("home");
        fs::create_dir_all(home.join(".gemini")).expect("a home");
        let write = |name: &str, config: Value| {
            fs::write(home.join(name), config.to_string()).expect("a config");
        };
        let mut command = Command::new(peers::node());
        match self {
            Self::Continue => {
                // JSON is valid YAML.
                write("config.yaml", continue_config(server, model));
                command.arg(peers::tools("npm/node_modules/@continuedev/cli/dist/cn.js"));
                command.args(["--config", "config.yaml", "--auto"]);
            }
            Self::Gemini => {
                write(".gemini/settings.json", gemini_settings(server));
                write(
                    ".gemini/trustedFolders.json",
                    json!({ home.to_str().unwrap(): "TRUST_FOLDER" }),
                );
                command.arg(peers::tools("npm/node_modules/@google/gemini-cli/bundle/gemini.js"));
                command.args(["-m", "gemini-2.5-flash", "--yolo"]);
                command.env("GEMINI_API_KEY", "none").env("GOOGLE_GEMINI_BASE_URL", model);
            }
        }
        let log = fs::File::create(stand.path("agent.log")).expect("a log");
        command.args(["-p", "Call the tools."]).current_dir(&home).env("HOME", &home);
        command.env("NO_COLOR", "1").env("TERM", "dumb").env("CONTINUE_TELEMETRY_ENABLED", "0");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
        command.spawn().expect("node starts")
    }
}

/// All agents describe a server to start in the same way.
fn started_by(line: &[String]) -> Value {
    json!({ "command": line[0], "args": line[1..] })
}

fn continue_config(server: &[String], model: &str) -> Value {
    let mut peer = match server {
        [url] => json!({ "type": "streamable-http", "url": url }),
        line => started_by(line),
    };
    peer["name"] = json!("peer");
    json!({
        "name": "test", "version": "0.0.1", "schema": "v1",
        "models": [{
            "name": "scripted", "provider": "openai", "model": "scripted", "apiKey": "none",
            "apiBase": format!("{model}/v1"), "roles": ["chat"], "capabilities": ["tool_use"],
        }],
        "mcpServers": [peer],
    })
}

fn gemini_settings(server: &[String]) -> Value {
    let mut peer = match server {
        [url] => json!({ "httpUrl": url }),
        line => started_by(line),
    };
    peer["trust"] = json!(true);
    json!({
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "general": { "enableAutoUpdate": false },
        "privacy": { "usageStatisticsEnabled": false },
        "mcpServers": { "peer": peer },
    })
}
