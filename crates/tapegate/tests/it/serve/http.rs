//! HTTP clients: each with its own session, or all without one.

use std::fs;

use serde_json::{Value, json};

use super::serve;
use crate::http_peers::{ReceivedReply, ask};
use crate::peers::PeerProcess;
use crate::support::tapegate;

const PHASED: &str = "\
server: { name: s }
baseline:
  tools:
    - tool: &a { name: a, description: A., inputSchema: { type: object } }
      response: { content: [{ type: text, text: calm }] }
phases:
  - name: calm
    advance: { on: tools/call, count: 2 }
  - name: attack
    replace_tools:
      a: { tool: *a, response: { content: [{ type: text, text: attack }] } }
expect:
  - { id: thrice, never: { method: tools/call }, count: 5 }
";

/// A client with a session.
struct ScenarioClient {
    port: u16,
    session: String,
}

impl ScenarioClient {
    fn greet(port: u16) -> Self {
        let mut client = Self { port, session: String::new() };
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}});
        let got = client
            .post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        client.session = got.header("mcp-session-id").unwrap().to_owned();
        let ready = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(ready.status, 202, "{ready:?}");
        client
    }

    fn post(&self, body: &Value) -> ReceivedReply {
        let mut headers = vec![
            "content-type: application/json".to_owned(),
            "accept: application/json, text/event-stream".to_owned(),
        ];
        if !self.session.is_empty() {
            headers.push(format!("mcp-session-id: {}", self.session));
            headers.push("mcp-protocol-version: 2025-11-25".to_owned());
        }
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        ask(self.port, "POST /mcp", &headers, &body.to_string())
    }

    fn call(&self) -> &'static str {
        let params = json!({"name": "a", "arguments": {}});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let got = self.post(&call);
        assert_eq!(got.status, 200, "{got:?}");
        if got.body.contains("\"calm\"") { "calm" } else { "attack" }
    }
}

fn start(folder: &std::path::Path, flags: &[&str]) -> (PeerProcess, u16) {
    fs::write(folder.join("s.yaml"), PHASED).unwrap();
    let mut flags = flags.to_vec();
    flags.extend(["--http", "127.0.0.1:0"]);
    let running = PeerProcess::start(serve(folder, "s.yaml", &flags));
    let port = port_of(&running);
    (running, port)
}

fn port_of(running: &PeerProcess) -> u16 {
    let (_, address) = running.url.rsplit_once(':').unwrap();
    address.split('/').next().unwrap().parse().unwrap()
}

#[test]
fn each_session_has_its_phases() {
    let folder = tempfile::tempdir().unwrap();
    let (running, port) = start(folder.path(), &[]);
    let (one, two) = (ScenarioClient::greet(port), ScenarioClient::greet(port));
    assert_eq!([one.call(), one.call(), one.call()], ["calm", "calm", "attack"]);
    assert_eq!([two.call(), two.call(), two.call()], ["calm", "calm", "attack"]);
    running.stop();
}

#[test]
fn all_sessions_share_their_phases_if_the_command_line_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (running, port) = start(folder.path(), &["--state-scope", "global"]);
    let (one, two) = (ScenarioClient::greet(port), ScenarioClient::greet(port));
    assert_eq!(
        [one.call(), two.call(), one.call(), two.call()],
        ["calm", "calm", "attack", "attack"]
    );
    running.stop();
}

#[test]
fn one_verdict_is_made_of_all_sessions_when_a_signal_ends_them() {
    let folder = tempfile::tempdir().unwrap();
    let (running, port) = start(folder.path(), &["--expect", "--report", "r.json"]);
    let (one, two) = (ScenarioClient::greet(port), ScenarioClient::greet(port));
    for client in [&one, &two, &one, &two, &one] {
        client.call();
    }
    running.stop();
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["broken"], &report["cases"][0]["count"]), (&json!(1), &json!(5)));
    let sessions: Vec<u64> = report["cases"][0]["seen"]
        .as_array()
        .unwrap()
        .iter()
        .map(|seen| seen["session"].as_u64().unwrap())
        .collect();
    assert_eq!(sessions.iter().filter(|session| **session == sessions[0]).count(), 3);
}

#[test]
fn a_message_that_nobody_has_read_makes_nobody_safe() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--expect", "--report", "r.json", "--max-message-bytes", "1KB"];
    let (running, port) = start(folder.path(), &flags);
    let client = ScenarioClient::greet(port);
    assert_eq!(client.call(), "calm");
    let params = json!({"name": "a", "arguments": {"padding": "x".repeat(2000)}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    assert_eq!(client.post(&call).status, 413);
    running.stop();
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["verdict"], &report["unread"]), (&json!("untested"), &json!(1)));
}

#[test]
fn what_is_no_message_is_refused_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, port) = start(folder.path(), &[]);
    let client = ScenarioClient::greet(port);
    for odd in [json!({"jsonrpc": "2.0", "id": 5}), json!({"jsonrpc": "2.0", "id": 5, "method": 7})]
    {
        let got = client.post(&odd);
        let body: Value = serde_json::from_str(&got.body).unwrap();
        assert_eq!((got.status, &body["id"]), (400, &json!(5)), "{odd}");
        assert_eq!(body["error"]["code"], -32600);
    }
    assert_eq!(client.call(), "calm");
}

#[test]
fn the_endpoint_of_an_earlier_tool_is_served_too() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, port) = start(folder.path(), &[]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"}}});
    let headers = ["content-type: application/json", "accept: application/json, text/event-stream"];
    let got = ask(port, "POST /message", &headers, &hello.to_string());
    assert_eq!(got.status, 200, "{got:?}");
    assert!(got.header("mcp-session-id").is_some());
}

/// Calls a tool like a client without a session.
fn modern_call(port: u16, name: &str, more: &[(&str, Value)]) -> Value {
    let mut params = json!({"name": name, "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
    for (key, value) in more {
        params[*key] = value.clone();
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let named = format!("mcp-name: {name}");
    let headers = [
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: tools/call",
        &named,
    ];
    let got = ask(port, "POST /mcp", &headers, &body.to_string());
    assert_eq!(got.status, 200, "{got:?}");
    let data = got.body.lines().find_map(|line| line.strip_prefix("data: "));
    serde_json::from_str(data.unwrap_or(&got.body)).unwrap()
}

#[test]
fn a_client_without_a_session_is_judged_by_what_it_comes_back_with() {
    for (action, broken) in [("decline", 0), ("accept", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("r.json");
        let mut command = tapegate();
        command.args(["serve", "--scenario", "elicitation-phishing", "--http", "127.0.0.1:0"]);
        command.args(["--expect", "--report"]).arg(&report);
        let running = PeerProcess::start(command);
        let port = port_of(&running);
        let asked = modern_call(port, "next_meeting", &[]);
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let answers = json!({"form": {"action": action, "content": {}}});
        let state = asked["result"]["requestState"].clone();
        let more = [("inputResponses", answers), ("requestState", state)];
        let done = modern_call(port, "next_meeting", &more);
        assert_eq!(done["result"]["content"][0]["text"], "Tomorrow at nine.", "{done}");
        running.stop();
        let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
        assert_eq!((&report["broken"], &report["untested"]), (&json!(broken), &json!(0)));
    }
}
