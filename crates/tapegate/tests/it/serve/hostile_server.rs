//! A server that misbehaves, and a client that checks every byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{tapegate, wait_for_exit};

/// The scenario that it runs.
const SCENARIO: &str = include_str!("rogue.yaml");
const OPENING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const OPENED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A server on stdio. It is killed on drop.
pub(super) struct HostileServer {
    process: Child,
    pub(super) input: Option<ChildStdin>,
    pub(super) output: Option<BufReader<ChildStdout>>,
    _folder: TempDir,
}

/// A server over HTTP. It is killed on drop.
pub(super) struct HostileHttpServer {
    process: Child,
    pub(super) port: u16,
    /// Drains its standard error, so that the pipe does not fill up.
    _errors: std::thread::JoinHandle<()>,
    _folder: TempDir,
}

/// A call of a tool.
pub(super) fn call(id: u32, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#
    )
}

/// The answer to a call.
pub(super) fn answer(id: u32, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn command() -> (Command, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rogue.yaml");
    std::fs::write(&file, SCENARIO).unwrap();
    let mut command = tapegate();
    command.arg("serve").arg(file).arg("--allow-external-handlers");
    (command, folder)
}

impl HostileServer {
    /// Starts the server and initializes the session.
    pub(super) fn start() -> Self {
        let (mut command, folder) = command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take();
        let output = process.stdout.take().map(BufReader::new);
        let mut rogue = Self { process, input, output, _folder: folder };
        rogue.say(OPENING);
        assert!(rogue.line().contains("serverInfo"));
        rogue.say(OPENED);
        rogue
    }

    pub(super) fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line without its ending; empty at the end of the output.
    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    /// The next bytes.
    pub(super) fn bytes(&mut self, count: usize) -> String {
        let mut bytes = vec![0; count];
        self.output.as_mut().unwrap().read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Everything up to the end.
    pub(super) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.output.as_mut().unwrap().read_to_string(&mut rest).unwrap();
        rest
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for its end, and returns its exit code.
    pub(super) fn end(&mut self) -> Option<i32> {
        wait_for_exit("the server", &mut self.process).code()
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

impl HostileHttpServer {
    /// Starts the server.
    pub(super) fn start() -> Self {
        let (mut command, folder) = command();
        command.args(["--http", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("http://127.0.0.1:")?;
            rest.split('/').next()?.parse().ok()
        });
        let errors = std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { process, port: port.unwrap(), _errors: errors, _folder: folder }
    }

    /// Opens a session, and returns the header line that names it.
    pub(super) fn session(&self) -> String {
        let got = crate::http_peers::ask(self.port, "POST /mcp", &HEADERS, OPENING);
        let session = format!("mcp-session-id: {}", got.header("mcp-session-id").unwrap());
        let headers = [HEADERS[0], HEADERS[1], &session];
        assert_eq!(crate::http_peers::ask(self.port, "POST /mcp", &headers, OPENED).status, 202);
        session
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for its end.
    pub(super) fn end(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }
}

impl Drop for HostileHttpServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The headers of every POST.
pub(super) const HEADERS: [&str; 2] =
    ["content-type: application/json", "accept: application/json, text/event-stream"];
