//! A governed agent with a real server, over each combination of transports.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::target_server::{ACCEPT, JSON, TargetKind, TargetServer};
use crate::http_peers::send;
use crate::shim::setup::{events, messages};
use crate::support::{RunningSession, SessionSetup};

/// How a client reaches its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttackTransport {
    /// Client and server on pipes.
    Stdio,
    /// The client over HTTP.
    Web(TargetKind),
}

/// Stdio, HTTP to stdio, HTTP to HTTP and HTTP+SSE.
pub(crate) const WAYS: [AttackTransport; 5] = [
    AttackTransport::Stdio,
    AttackTransport::Web(TargetKind::Process),
    AttackTransport::Web(TargetKind::Express),
    AttackTransport::Web(TargetKind::ExpressSse),
    AttackTransport::Web(TargetKind::FastMcp),
];

/// A client with its session.
pub(crate) struct AttackClient {
    pub(crate) way: AttackTransport,
    link: AttackLink,
    next_id: Cell<u64>,
    /// Requests whose answers are never read.
    open: RefCell<Vec<TcpStream>>,
}

enum AttackLink {
    Pipes { run: RunningSession, input: RefCell<File> },
    Web(TargetServer),
}

impl AttackClient {
    /// Starts a server and a shim, and opens a session.
    pub(crate) fn start(way: AttackTransport, setup: SessionSetup) -> Self {
        let mut agent = Self::launch(way, setup);
        match &mut agent.link {
            AttackLink::Web(victim) => victim.open(),
            AttackLink::Pipes { .. } => {
                assert!(agent.hello()["result"].is_object());
                agent.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            }
        }
        agent
    }

    /// The same without a session.
    pub(crate) fn launch(way: AttackTransport, setup: SessionSetup) -> Self {
        let link = match way {
            AttackTransport::Web(kind) => AttackLink::Web(TargetServer::launch(kind, setup)),
            AttackTransport::Stdio => {
                let mut run = TargetKind::Process.process(setup).start();
                let input = RefCell::new(run.take_input());
                AttackLink::Pipes { run, input }
            }
        };
        Self { way, link, next_id: Cell::new(100), open: RefCell::default() }
    }

    /// The answer to `initialize`.
    pub(crate) fn hello(&self) -> Value {
        let client = json!({"name": "c", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        self.ask("initialize", params)
    }

    pub(crate) fn run(&self) -> &RunningSession {
        match &self.link {
            AttackLink::Pipes { run, .. } => run,
            AttackLink::Web(victim) => victim.run(),
        }
    }

    fn write(&self, message: &Value) {
        if let AttackLink::Pipes { input, .. } = &self.link {
            input.borrow_mut().write_all(format!("{message}\n").as_bytes()).unwrap();
        }
    }

    fn request(&self, method: &str, params: Value) -> (u64, Value) {
        let id = self.next_id.replace(self.next_id.get() + 1);
        (id, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// Sends a request and waits for the answer.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Value {
        let (id, message) = self.request(method, params);
        let text = match &self.link {
            AttackLink::Pipes { .. } => {
                self.write(&message);
                String::new()
            }
            AttackLink::Web(victim) => {
                victim.post(&[JSON, ACCEPT], message.to_string().as_bytes()).body
            }
        };
        let mut found = answer_in(&text, id);
        self.run().until(&format!("{method} is answered by {:?}: {text}", self.way), |run| {
            found = found.take().or_else(|| match &self.link {
                AttackLink::Pipes { .. } => {
                    whole_lines(&run.got()).find(|answer| answer["id"] == id)
                }
                AttackLink::Web(victim) => answer_in(&victim.streamed(), id),
            });
            found.is_some()
        });
        found.unwrap()
    }

    /// Sends a request without waiting.
    pub(crate) fn ask_aside(&self, method: &str, params: Value) {
        let (_, message) = self.request(method, params);
        match &self.link {
            AttackLink::Pipes { .. } => self.write(&message),
            AttackLink::Web(victim) => {
                let line = format!("POST {}", victim.path);
                let session = victim.session().unwrap_or("x-session: none");
                let stream =
                    send(victim.port(), &line, &[JSON, ACCEPT, session], &message.to_string());
                self.open.borrow_mut().push(stream);
            }
        }
    }

    /// Calls a tool and waits for the answer.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// What the server has done, one line per tool call.
    pub(crate) fn ran(&self) -> Vec<String> {
        let log: PathBuf = self.run().folder().join("ran");
        fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// How many times a tool has run.
    pub(crate) fn runs_of(&self, tool: &str) -> usize {
        self.ran().iter().filter(|line| line.split(' ').next() == Some(tool)).count()
    }

    /// How many activity log events are about messages that were not forwarded.
    pub(crate) fn refusals(&self) -> usize {
        events(self.run().folder()).iter().filter(|event| event["forwarded"] == false).count()
    }

    /// Sends a request that must be refused with this code and logged.
    #[track_caller]
    pub(crate) fn is_refused(&self, code: i64, method: &str, params: Value) -> Value {
        let (before, ran) = (self.refusals(), self.ran());
        let output_text = params.to_string();
        let answer = self.ask(method, params);
        assert_eq!(answer["error"]["code"], code, "{:?} {output_text}: {answer}", self.way);
        assert_eq!(self.ran(), ran, "{:?} {output_text}", self.way);
        self.run().until("the refusal is in the log", |_| self.refusals() > before);
        answer
    }

    /// Asserts that the server still does what is allowed, and has never done what is not.
    #[track_caller]
    pub(crate) fn is_unharmed(&self) {
        let before = self.runs_of("safe");
        let answer = self.call("safe", json!({}));
        assert!(answer["result"]["content"].is_array(), "{:?} {answer}", self.way);
        assert_eq!(
            (self.runs_of("safe"), self.runs_of("danger")),
            (before + 1, 0),
            "{:?}",
            self.way
        );
    }
}

/// The answer to a request in a body or a stream.
fn answer_in(text: &str, id: u64) -> Option<Value> {
    let lines = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
    let answers = |line: &str| serde_json::from_str::<Value>(line.trim()).ok();
    lines.filter_map(answers).find(|answer| answer["id"] == id)
}

fn whole_lines(got: &[u8]) -> impl Iterator<Item = Value> {
    let whole = got.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    messages(&got[..whole]).into_iter()
}
