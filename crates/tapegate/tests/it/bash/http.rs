//! Several clients over HTTP: on their own, and under a policy.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::client::entries;
use crate::http_peers::{ReceivedReply, ask};
use crate::peers::{self, PeerProcess};
use crate::real_clients::approvals;

const HEADERS: [&str; 2] =
    ["Content-Type: application/json", "Accept: application/json, text/event-stream"];

/// A server over HTTP, in a folder that is also its user's home.
struct HttpBash {
    process: PeerProcess,
    port: u16,
}

/// A client of that server: one with a session, or one of the revision without.
struct HttpBashClient<'a> {
    server: &'a HttpBash,
    session: Option<String>,
}

impl HttpBash {
    fn start(folder: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(peers::tapegate());
        command.args(["bash", "--http", "127.0.0.1:0"]).args(flags).current_dir(folder);
        command.env("HOME", folder).env_remove("CLAUDE_CODE_SESSION_ID");
        let process = PeerProcess::start(command);
        let (_, rest) = process.url.rsplit_once(':').unwrap();
        let port = rest.split('/').next().unwrap().parse().unwrap();
        Self { process, port }
    }

    fn post(&self, headers: &[&str], message: &Value) -> ReceivedReply {
        ask(self.port, "POST /mcp", &[&HEADERS, headers].concat(), &message.to_string())
    }

    /// A client with a session.
    fn open(&self) -> HttpBashClient<'_> {
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "http", "version": "1"},
        });
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let reply = self.post(&[], &hello);
        let id = reply.header("mcp-session-id").expect("a session").to_owned();
        HttpBashClient { server: self, session: Some(format!("Mcp-Session-Id: {id}")) }
    }

    /// A client of the revision without sessions.
    fn modern(&self) -> HttpBashClient<'_> {
        HttpBashClient { server: self, session: None }
    }
}

impl HttpBashClient<'_> {
    /// The whole answer to a call.
    fn ask(&self, tool: &str, arguments: &Value) -> Value {
        let name = format!("bash_recorder.{tool}");
        let mut params = json!({"name": name, "arguments": arguments});
        let named = format!("Mcp-Name: {name}");
        let headers = match &self.session {
            Some(session) => vec![session.as_str()],
            None => {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                vec!["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", &named]
            }
        };
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let body = self.server.post(&headers, &call).body;
        let lines = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let found = messages.find(|message| message["id"] == 1);
        found.unwrap_or_else(|| panic!("no answer in {body}"))
    }

    /// The structured result of a call.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask(tool, arguments);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    fn start_background(&self) -> String {
        let command =
            json!({"command": "echo secret; exec tail -f /dev/null", "run_in_background": true});
        self.call("execute", &command)["process_id"].as_str().unwrap().to_owned()
    }

    /// Tries to read and to stop a command of someone else.
    fn reaches_nothing(&self, id: &str) {
        for tool in ["read_output", "stop"] {
            let answer = self.ask(tool, &json!({"process_id": id}));
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            let said = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert_eq!(said, format!("Unknown process: {id} (known are: none)"));
        }
    }

    /// Reads and stops its own command.
    fn reaches(&self, id: &str) {
        let read = self.call("read_output", &json!({"process_id": id, "wait_seconds": 60}));
        assert_eq!((&read["stdout"], &read["running"]), (&json!("secret\n"), &json!(true)));
        assert_eq!(self.call("stop", &json!({"process_id": id}))["signal"], "SIGTERM");
    }
}

#[test]
fn a_client_reaches_only_its_own_background_commands() {
    let folder = tempfile::tempdir().unwrap();
    let server = HttpBash::start(folder.path(), &[]);
    let (one, other, modern) = (server.open(), server.open(), server.modern());
    let id = one.start_background();
    other.reaches_nothing(&id);
    modern.reaches_nothing(&id);
    one.reaches(&id);
    server.process.stop();
}

#[test]
fn without_sessions_the_id_of_a_background_command_cannot_be_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let server = HttpBash::start(folder.path(), &[]);
    let (one, other) = (server.modern(), server.modern());
    let id = one.start_background();
    let (number, secret) = id.split_once('-').expect("a number and a secret");
    assert!(secret.len() == 16 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    for guess in [number, &format!("{number}-"), &format!("{number}-0000000000000000")] {
        other.reaches_nothing(guess);
    }
    server.open().reaches_nothing(&id);
    one.reaches(&id);
    server.process.stop();
}

const POLICY: &str = "\
schema: 1
sources: [{ id: bash, kind: mcp }]
governance:
  defaults: { action: deny }
  rules:
    - { match: bash_recorder.execute, action: forward, command: { class: read-only } }
    - { match: bash_recorder.execute, action: approve, command: { run: \"touch *\" } }
    - { match: bash_recorder.execute, action: deny, command: { run: \"rm *\" }, description: use trash }
";

#[test]
fn a_policy_decides_about_the_commands_of_every_client_over_http() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("commands.yml"), POLICY).unwrap();
    let server = HttpBash::start(folder.path(), &["--policy", "commands.yml"]);
    let clients = [server.open(), server.open(), server.modern()];
    for client in &clients {
        let done = client.call("execute", &json!({"command": "ls | wc -l"}));
        assert_eq!(done["exit_code"], 0, "{done}");
        let denied = client.ask("execute", &json!({"command": "ls; rm notes"})).to_string();
        assert!(denied.contains("use trash"), "{denied}");
    }
    // One waits for a person while the others go on.
    let state = folder.path().join(".local/state/tapegate").display().to_string();
    std::thread::scope(|scope| {
        let held = scope.spawn(|| clients[0].call("execute", &json!({"command": "touch made"})));
        approvals(&["list", "--wait"], &state);
        assert!(!folder.path().join("made").exists());
        clients[1].call("execute", &json!({"command": "pwd"}));
        approvals(&["approve", "--all"], &state);
        assert_eq!(held.join().unwrap()["exit_code"], 0);
    });
    assert!(folder.path().join("made").exists());
    drop(clients);
    server.process.stop();
    let all = entries(&folder.path().join(".cuff/recordings"));
    let mut commands: Vec<&str> =
        all.iter().map(|entry| entry["command"].as_str().unwrap()).collect();
    commands.sort_unstable();
    assert_eq!(commands, ["ls | wc -l", "ls | wc -l", "ls | wc -l", "pwd", "touch made"]);
}
