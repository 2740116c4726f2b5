//! A real server behind a governed HTTP listener, with evidence of what it did.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use tapegate_core::tape::base64_encode;

use crate::http_peers::{ReceivedReply, ask, ask_raw, send};
use crate::peers::{self, PeerProcess, PeerServer, PeerTransport};
use crate::shim::setup::events;
use crate::support::{RunningSession, SessionSetup, shim};

pub(crate) const JSON: &str = "content-type: application/json";
pub(crate) const ACCEPT: &str = "accept: application/json, text/event-stream";
/// No server outlives this, even if its test is killed.
pub(crate) const SERVER_S_MAX: &str = "1800";
/// Output that only the denied tool produces.
const HARM: &str = "ran danger";

/// A real server, and how it is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// The official TypeScript SDK on stdio, behind our own HTTP.
    Process,
    /// The SDK's Express app with Streamable HTTP.
    Express,
    /// The SDK's HTTP+SSE transport.
    ExpressSse,
    /// `server-everything` with Streamable HTTP.
    Everything,
    /// `server-everything` with HTTP+SSE.
    EverythingSse,
    /// FastMCP with Streamable HTTP.
    FastMcp,
    /// FastMCP with HTTP+SSE.
    FastMcpSse,
}

pub(crate) const ALL: [TargetKind; 7] = [
    TargetKind::Process,
    TargetKind::Express,
    TargetKind::ExpressSse,
    TargetKind::Everything,
    TargetKind::EverythingSse,
    TargetKind::FastMcp,
    TargetKind::FastMcpSse,
];

/// One of the tools that a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetTool {
    Allowed,
    Denied,
}

/// A server under attack.
pub(crate) struct TargetServer {
    kind: TargetKind,
    run: RunningSession,
    /// Where messages are posted.
    pub(crate) path: String,
    session: Option<String>,
    /// What was received on the stream of a legacy session.
    stream: Arc<Mutex<String>>,
    ran: PathBuf,
    _server: Option<PeerProcess>,
}

impl TargetKind {
    pub(crate) fn is_legacy(self) -> bool {
        matches!(self, Self::ExpressSse | Self::EverythingSse | Self::FastMcpSse)
    }

    fn is_everything(self) -> bool {
        matches!(self, Self::Everything | Self::EverythingSse)
    }

    /// The name and arguments of a tool.
    fn tool(self, tool: TargetTool) -> (&'static str, Value) {
        match (self.is_everything(), tool) {
            (true, TargetTool::Allowed) => ("get-sum", json!({"a": 1, "b": 2})),
            (true, TargetTool::Denied) => ("echo", json!({ "message": HARM })),
            (false, TargetTool::Allowed) => ("safe", json!({})),
            (false, TargetTool::Denied) => ("danger", json!({})),
        }
    }

    /// A setup whose server is the official SDK on stdio.
    pub(crate) fn process(self, setup: SessionSetup) -> SessionSetup {
        let log = setup.folder().join("ran").display().to_string();
        setup.server(&[&peers::node(), &peers::peer("attack-server.mjs"), &log, "stdio"])
    }

    fn listen(self, ran: &str) -> Option<PeerProcess> {
        let script = |program: String, script: &str, mode: &str| {
            let mut command = peers::bounded(SERVER_S_MAX);
            command.arg(program).arg(peers::peer(script)).args([ran, mode]);
            Some(PeerProcess::start(command))
        };
        let python = || peers::tools("py1/bin/python");
        match self {
            Self::Process => None,
            Self::Express => script(peers::node(), "attack-server.mjs", "http"),
            Self::ExpressSse => script(peers::node(), "attack-server.mjs", "sse"),
            Self::Everything => Some(PeerServer::Everything.listen(PeerTransport::Http)),
            Self::EverythingSse => Some(PeerServer::Everything.listen(PeerTransport::Sse)),
            Self::FastMcp => script(python(), "attack-server.py", "http"),
            Self::FastMcpSse => script(python(), "attack-server.py", "sse"),
        }
    }
}

impl TargetServer {
    /// Starts a server and a shim whose policy denies one of its tools, and opens a session.
    pub(crate) fn start(kind: TargetKind) -> Self {
        let (denied, _) = kind.tool(TargetTool::Denied);
        let policy = format!(
            "schema: 1\ngovernance: {{ defaults: {{ action: forward }}, rules: [{{ match: \"{denied}\", action: deny }}] }}\n"
        );
        Self::start_with(kind, &policy)
    }

    /// The same with another policy; with an empty one the shim only observes.
    pub(crate) fn start_with(kind: TargetKind, policy: &str) -> Self {
        let mut victim = Self::launch(kind, shim(policy, &[]));
        victim.open();
        victim
    }

    /// Starts a server and a shim without opening a session.
    pub(crate) fn launch(kind: TargetKind, setup: SessionSetup) -> Self {
        let setup = setup.flags(&["--http", "127.0.0.1:0"]);
        let ran = setup.folder().join("ran");
        let server = kind.listen(&ran.display().to_string());
        let run = match &server {
            None => kind.process(setup).start(),
            Some(server) => {
                let path = match kind {
                    TargetKind::Everything | TargetKind::EverythingSse => "",
                    _ if kind.is_legacy() => "/sse",
                    _ => "/mcp",
                };
                let url = format!("{}{path}", server.url);
                setup.server(&[]).flags(&["--upstream-http", &url]).start()
            }
        };
        let (path, session, stream) = ("/mcp".to_owned(), None, Arc::default());
        Self { kind, run, path, session, stream, ran, _server: server }
    }

    pub(crate) fn open(&mut self) {
        if self.kind.is_legacy() {
            self.listen();
        }
        let hello = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        let opened = self.post(&[JSON, ACCEPT], hello.as_bytes());
        assert!((200..300).contains(&opened.status), "{:?} {opened:?}", self.kind);
        let session = opened.header("mcp-session-id").map(|id| format!("mcp-session-id: {id}"));
        self.session = session;
        if self.kind.is_legacy() {
            self.run.until("an answer to initialize", |_| self.streamed().contains("serverInfo"));
        }
        let ready = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.post(&[JSON, ACCEPT], ready);
    }

    /// Opens the stream of a legacy session and learns where to post.
    fn listen(&mut self) {
        let stream = send(self.port(), "GET /sse", &["accept: text/event-stream"], "");
        let heard = Arc::clone(&self.stream);
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                heard.lock().unwrap().push_str(&format!("{line}\n"));
            }
        });
        let endpoint = |text: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix("data: /"))
                .map(|path| format!("/{path}"))
        };
        self.run.until("an endpoint", |_| endpoint(&self.streamed()).is_some());
        self.path = endpoint(&self.streamed()).unwrap();
    }

    pub(crate) fn run(&self) -> &RunningSession {
        &self.run
    }

    /// The session's header.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    pub(crate) fn streamed(&self) -> String {
        self.stream.lock().unwrap().clone()
    }

    pub(crate) fn port(&self) -> u16 {
        self.run.port()
    }

    /// A call of a tool.
    pub(crate) fn call(&self, tool: TargetTool) -> String {
        self.call_named(tool, self.kind.tool(tool).0)
    }

    /// A call of a tool under another spelling of its name.
    fn call_named(&self, tool: TargetTool, name: &str) -> String {
        let arguments = self.kind.tool(tool).1;
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": arguments}}).to_string()
    }

    /// A call that only a reader of UTF-7 takes for one of the denied tool.
    pub(crate) fn call_in_utf7(&self) -> String {
        let wide: Vec<u8> = self
            .kind
            .tool(TargetTool::Denied)
            .0
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        let name = format!("+{}-", base64_encode(&wide).trim_end_matches('='));
        self.call_named(TargetTool::Denied, &name)
    }

    /// Posts a body in the session.
    pub(crate) fn post(&self, headers: &[&str], body: &[u8]) -> ReceivedReply {
        self.request(&format!("POST {}", self.path), headers, body)
    }

    /// Sends a request of the session.
    pub(crate) fn request(&self, line: &str, headers: &[&str], body: &[u8]) -> ReceivedReply {
        let length = format!("content-length: {}\r\n", body.len());
        let head: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        self.raw(&format!("{line} HTTP/1.1\r\nhost: 127.0.0.1\r\n{head}{length}"), body)
    }

    /// Sends exact bytes: the lines of a head, completed with the session and the blank line, and a
    /// body.
    pub(crate) fn raw(&self, head: &str, body: &[u8]) -> ReceivedReply {
        let session = self.session.as_ref().map(|line| format!("{line}\r\n")).unwrap_or_default();
        let head = format!("{head}{session}connection: close\r\n\r\n");
        let got = ask_raw(self.port(), &[head.as_bytes(), body].concat());
        assert!(!got.body.contains(HARM), "{:?} {head} {got:?}", self.kind);
        got
    }

    /// The activity log events about messages that were not forwarded.
    pub(crate) fn refusals(&self) -> Vec<Value> {
        let refused = |event: &Value| event["forwarded"] == false;
        events(self.run.folder()).into_iter().filter(refused).collect()
    }

    /// The activity log events with this decision.
    pub(crate) fn noted(&self, decision: &str) -> Vec<Value> {
        let noted = |event: &Value| event["governance_decision"] == decision;
        events(self.run.folder()).into_iter().filter(noted).collect()
    }

    /// Waits until the activity log has a refusal with this reason.
    pub(crate) fn logs(&self, reason: &str) {
        let is_noted = |event: &Value| {
            event["policy_reason"].as_str().is_some_and(|noted| noted.contains(reason))
        };
        self.run.until(reason, |_| self.refusals().iter().any(is_noted));
    }

    /// Performs an attack, which must be refused with this status and logged with this reason.
    #[track_caller]
    pub(crate) fn is_refused(
        &self,
        status: u16,
        reason: &str,
        attack: impl FnOnce(&Self) -> ReceivedReply,
    ) {
        let before = self.refusals().len();
        let got = attack(self);
        let kind = self.kind;
        assert_eq!(got.status, status, "{kind:?} {got:?}");
        assert!(got.body.contains("\"error\""), "{kind:?} {got:?}");
        let after = self.refusals();
        assert_eq!(after.len(), before + 1, "{kind:?} {got:?} {after:#?}");
        let noted = after[before]["policy_reason"].as_str().unwrap_or_default();
        assert!(noted.contains(reason), "{kind:?}: `{reason}` is not in `{noted}`");
    }

    /// Asserts that the server still does what is allowed, and has never done what is not.
    #[track_caller]
    pub(crate) fn is_unharmed(&self) {
        let done = |text: &str| text.contains("ran safe") || text.contains("The sum of");
        let got = self.post(&[JSON, ACCEPT], self.call(TargetTool::Allowed).as_bytes());
        if self.kind.is_legacy() {
            self.run.until("an answer on the stream", |_| done(&self.streamed()));
        } else {
            assert!(done(&got.body), "{:?} {got:?}", self.kind);
        }
        assert!(!self.has_run(TargetTool::Denied), "{:?}", self.kind);
    }

    /// Whether a tool has run.
    pub(crate) fn has_run(&self, tool: TargetTool) -> bool {
        let ran = fs::read_to_string(&self.ran).unwrap_or_default();
        let name = self.kind.tool(tool).0;
        let harm = tool == TargetTool::Denied && self.streamed().contains(HARM);
        harm || ran.lines().any(|line| line == name)
    }

    /// Sends a request outside the session and reads its reply.
    pub(crate) fn ask(&self, line: &str, headers: &[&str]) -> ReceivedReply {
        ask(self.port(), line, headers, "")
    }
}
