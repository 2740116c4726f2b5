//! A scripted agent in front of `tapegate serve` on stdio.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{GUARD, wait_for_exit, within};

/// An agent and the server it has started. Both are gone when it is dropped.
pub(super) struct ScenarioAgent {
    server: Child,
    input: Option<ChildStdin>,
    heard: Receiver<AgentInput>,
    /// The server's standard error.
    errors: Arc<Mutex<Vec<u8>>>,
    reader: Option<thread::JoinHandle<()>>,
    /// Messages received but not waited for yet.
    waiting: VecDeque<Value>,
    id: u64,
    /// The id of the last call sent without waiting.
    fired: u64,
    /// What the agent is doing, for failure messages.
    pub(super) now: String,
    killed: bool,
}

enum AgentInput {
    Bytes,
    Line(Value),
}

/// How a server ended.
pub(super) struct ServerExit {
    pub(super) code: Option<i32>,
    pub(super) stderr: String,
}

impl ScenarioAgent {
    /// Starts the server and initializes the session.
    pub(super) fn start(mut command: Command) -> Self {
        let mut agent = Self::connect(&mut command);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {
            "sampling": {}, "elicitation": {}, "roots": {}},
            "clientInfo": {"name": "agent", "version": "1"}});
        let answer = agent.ask("initialize", params);
        assert!(answer["result"]["serverInfo"]["name"].is_string(), "{answer}");
        agent.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    /// Starts the server.
    pub(super) fn connect(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let (said, heard) = mpsc::channel();
        let output = server.stdout.take().unwrap();
        thread::spawn(move || listen(BufReader::new(output), &said));
        let mut stderr = server.stderr.take().unwrap();
        let errors = Arc::new(Mutex::new(Vec::new()));
        let gathered = Arc::clone(&errors);
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut piece) {
                gathered.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        let (input, reader) = (server.stdin.take(), Some(reader));
        let (waiting, now) = (VecDeque::new(), String::new());
        Self { server, input, heard, errors, reader, waiting, id: 0, fired: 0, now, killed: false }
    }

    /// Executes one step of a script.
    pub(super) fn step(&mut self, step: &str) {
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        if let Some(times) = word.strip_suffix('x').and_then(|times| times.parse::<u32>().ok()) {
            return (0..times).for_each(|_| self.step(rest));
        }
        let (name, json) = rest.split_once(' ').unwrap_or((rest, "{}"));
        let arguments = || serde_json::from_str::<Value>(json).unwrap();
        match word {
            "list" => drop(self.ask("tools/list", json!({}))),
            "ping" => drop(self.ask("ping", json!({}))),
            "read" => drop(self.ask("resources/read", json!({"uri": name}))),
            "prompt" => {
                drop(self.ask("prompts/get", json!({"name": name, "arguments": arguments()})));
            }
            "call" => drop(self.call(name, &arguments())),
            "fire" => {
                let params = json!({"name": name, "arguments": arguments()});
                self.fired = self.request("tools/call", &params);
            }
            "done" => drop(self.answer_to(self.fired)),
            "cancel" => {
                let params = json!({"requestId": self.fired, "reason": "took too long"});
                self.notify("notifications/cancelled", &params);
            }
            "await" => drop(self.message(name)),
            "answer" => {
                let id = self.message(name)["id"].clone();
                self.say(&json!({"jsonrpc": "2.0", "id": id, "result": arguments()}));
            }
            "refuse" => {
                let id = self.message(name)["id"].clone();
                let error = json!({"code": -1, "message": "the user said no"});
                self.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            "reply" => {
                let id: Value = serde_json::from_str(name).unwrap();
                self.say(&json!({"jsonrpc": "2.0", "id": id, "result": arguments()}));
            }
            "trickle" => self.trickle(),
            "kill" => self.kill(),
            _ => panic!("no step {step}"),
        }
    }

    /// Calls a tool and returns the complete answer.
    pub(super) fn call(&mut self, name: &str, arguments: &Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Sends a request and returns the complete answer.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, &params);
        self.answer_to(id)
    }

    /// Waits for a message of the server with this method.
    pub(super) fn message(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method)
    }

    pub(super) fn notify(&mut self, method: &str, params: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.id += 1;
        let id = self.id;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn answer_to(&mut self, id: u64) -> Value {
        self.until(&format!("an answer to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(at).unwrap();
        }
        let deadline = Instant::now() + GUARD;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok(AgentInput::Line(message)) if wanted(&message) => return message,
                Ok(AgentInput::Line(message)) => self.waiting.push_back(message),
                Ok(AgentInput::Bytes) => {}
                Err(_) => panic!("{}: waited for {what}, got {:.2000?}", self.now, self.waiting),
            }
        }
    }

    /// Waits until more bytes arrive, whatever they are.
    fn trickle(&mut self) {
        match self.heard.recv_timeout(GUARD) {
            Ok(AgentInput::Bytes) => {}
            Ok(AgentInput::Line(message)) => self.waiting.push_back(message),
            Err(_) => panic!("{}: no more bytes", self.now),
        }
    }

    /// The server's standard error so far.
    pub(super) fn complaints(&self) -> String {
        String::from_utf8_lossy(&self.errors.lock().unwrap()).into_owned()
    }

    /// Waits for a text on the server's standard error.
    pub(super) fn hears(&self, text: &str) {
        let heard = within(GUARD, || self.complaints().contains(text).then_some(()));
        assert!(heard.is_some(), "no `{text}` in {}", self.complaints());
    }

    /// Ends the server with a signal.
    pub(super) fn kill(&mut self) {
        kill_process(Pid::from_child(&self.server), Signal::TERM).unwrap();
        self.killed = true;
    }

    /// Leaves, and waits until the server has exited too.
    pub(super) fn leave(mut self) -> ServerExit {
        if !self.killed {
            self.input = None;
        }
        let code = wait_for_exit("the server", &mut self.server).code();
        self.reader.take().unwrap().join().unwrap();
        ServerExit { code, stderr: self.complaints() }
    }
}

impl Drop for ScenarioAgent {
    fn drop(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

/// Reads the output. A line that a common JSON parser rejects counts only as bytes.
fn listen(mut output: impl BufRead, said: &mpsc::Sender<AgentInput>) {
    let mut line = Vec::new();
    loop {
        let Ok(piece) = output.fill_buf() else { return };
        if piece.is_empty() {
            return;
        }
        let (length, ends) = match piece.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (piece.len(), false),
        };
        line.extend_from_slice(&piece[..length]);
        output.consume(length);
        said.send(AgentInput::Bytes).ok();
        if ends {
            if let Ok(message) = serde_json::from_slice(&line) {
                said.send(AgentInput::Line(message)).ok();
            }
            line.clear();
        }
    }
}
