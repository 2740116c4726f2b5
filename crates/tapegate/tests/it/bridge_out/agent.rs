//! A client on pipes in front of `tapegate record --upstream-http`.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};

use crate::support::{GUARD, wait_for_exit};

pub(super) struct StdioAgent {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Whether lines are read as they arrive.
    listens: Arc<(Mutex<bool>, Condvar)>,
    tape: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

/// How a session ended.
pub(super) struct AgentExit {
    pub(super) code: Option<i32>,
    pub(super) stderr: String,
    pub(super) tape: String,
    /// Lines that had not been read.
    pub(super) rest: Vec<String>,
}

pub(super) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl StdioAgent {
    /// Starts a session with the server at `url`.
    pub(super) fn start(url: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut agent = Self::start_at(folder.path().join("t.jsonl"), url, more);
        agent._folder = Some(folder);
        agent
    }

    /// The same, with its tape at a path chosen by the test.
    pub(super) fn start_at(tape: PathBuf, url: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tapegate"))
            .args(["record", "--upstream-http", url, "-o"])
            .arg(&tape)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        let listens = Arc::new((Mutex::new(true), Condvar::new()));
        let gate = Arc::clone(&listens);
        std::thread::spawn(move || {
            for line in output.lines() {
                sender.send(line.unwrap()).ok();
                let listening = gate.0.lock().unwrap();
                drop(gate.1.wait_while(listening, |listening| !*listening).unwrap());
            }
        });
        Self { input: child.stdin.take(), child, lines, listens, tape, _folder: None }
    }

    /// Resumes or stops reading, at the latest after the next line.
    pub(super) fn listen(&self, listens: bool) {
        *self.listens.0.lock().unwrap() = listens;
        self.listens.1.notify_all();
    }

    /// The peak memory of the recorder.
    pub(super) fn memory_kb_max(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Starts a session and initializes it.
    pub(super) fn open(url: &str, more: &[&str]) -> Self {
        let mut agent = Self::start(url, more);
        agent.initialize();
        agent
    }

    /// Initializes the session.
    pub(super) fn initialize(&mut self) {
        self.say(INITIALIZE);
        assert!(self.hear().contains("2025-06-18"));
        self.say(INITIALIZED);
    }

    pub(super) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, id: u32, name: &str) {
        self.say(&call(id, name));
    }

    pub(super) fn hear(&self) -> String {
        self.lines.recv_timeout(GUARD).expect("a line")
    }

    pub(super) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the input, and waits for the end.
    pub(super) fn leave(mut self) -> AgentExit {
        self.close_input();
        self.wait()
    }

    /// Waits for the end.
    pub(super) fn wait(mut self) -> AgentExit {
        let status = wait_for_exit("the recorder", &mut self.child);
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let tape = std::fs::read_to_string(&self.tape).unwrap_or_default();
        AgentExit { code: status.code(), stderr, tape, rest: self.lines.iter().collect() }
    }
}

/// A tool call of a protocol revision with sessions.
pub(super) fn call(id: u32, name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#)
}

/// A request that names its protocol revision; `params` is put in front of `_meta`.
pub(super) fn modern(id: u32, method: &str, params: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}}}"#
    )
}

/// A result with one word.
pub(super) fn result(id: &str, word: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"word":"{word}"}}}}"#)
}
