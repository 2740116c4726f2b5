//! A session of the official SDK's client with the reference server, through a shim of a hub.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::HubProcess;
use crate::peers::{self, PeerServer};
use crate::support::{marked, wait_for};

/// A session lasts for no longer.
const SESSION_S_MAX: &str = "300";

/// Calls of the reference server's tools, as the client makes them.
pub(super) struct SdkSession {
    client: Child,
    input: Mutex<ChildStdin>,
    printed: Arc<Mutex<Vec<Value>>>,
    /// What the server has received.
    tape: PathBuf,
}

impl SdkSession {
    /// Connects the client to the server through a shim that joins this hub. `number` tells the
    /// sessions of a test apart.
    pub(super) fn start(hub: &HubProcess, number: u32) -> Self {
        let folder = hub.folder.path();
        let tape = folder.join(format!("server-{number}.jsonl"));
        let home = format!("TAPEGATE_HOME={}", hub.state().display());
        let shim = [peers::tapegate(), "shim", "--governance-endpoint", &hub.url];
        let mark = mark(&tape);
        let shim = ["env", &home, &mark].into_iter().chain(shim).chain(["--server-id", "s", "--"]);
        let path = tape.display().to_string();
        let recorder = [peers::tapegate(), "record", "--force", "-o", &path, "--"];
        let mut command = peers::bounded(SESSION_S_MAX);
        command.args([peers::node(), peers::peer("held-calls.mjs")]).args(shim).args(recorder);
        command.args(PeerServer::Everything.stdio(folder)).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut client = command.spawn().unwrap();
        let printed = Arc::new(Mutex::new(Vec::new()));
        let lines = BufReader::new(client.stdout.take().unwrap()).lines();
        let shared = Arc::clone(&printed);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                shared.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        let input = Mutex::new(client.stdin.take().unwrap());
        let session = Self { client, input, printed, tape };
        session.printed(|line| line["ready"] == true);
        session
    }

    fn printed(&self, is_meant: impl Fn(&Value) -> bool) -> Value {
        wait_for("a line of the client", || {
            self.printed.lock().unwrap().iter().find(|line| is_meant(line)).cloned()
        })
    }

    fn tell(&self, line: &Value) {
        writeln!(self.input.lock().unwrap(), "{line}").unwrap();
    }

    /// Calls a tool.
    pub(super) fn call(&self, id: u64, tool: &str) {
        let arguments = match tool {
            "echo" => json!({ "message": "hello" }),
            "get-sum" => json!({ "a": 1, "b": 2 }),
            "get-structured-content" => json!({ "location": "Chicago" }),
            "get-annotated-message" => json!({ "messageType": "success" }),
            _ => json!({}),
        };
        self.tell(&json!({ "id": id, "tool": tool, "arguments": arguments }));
    }

    /// Takes a call back.
    pub(super) fn cancel(&self, id: u64) {
        self.tell(&json!({ "cancel": id }));
    }

    /// Waits for the outcome of a call.
    pub(super) fn answer(&self, id: u64) -> Value {
        self.printed(|line| line["id"] == id)
    }

    /// The outcome of a call, if there is one already.
    pub(super) fn answered(&self, id: u64) -> Option<Value> {
        self.printed.lock().unwrap().iter().find(|line| line["id"] == id).cloned()
    }

    /// Waits until the user is asked about a call of this tool, and returns the question's number.
    pub(super) fn asked(&self, tool: &str) -> u64 {
        let name = format!("tool: {tool}\n");
        let question = self.printed(|line| {
            line["question"].as_str().is_some_and(|question| question.contains(&name))
        });
        question["asked"].as_u64().unwrap()
    }

    /// The user answers the question about a call of this tool.
    pub(super) fn choose(&self, tool: &str, decision: &str) {
        self.tell(&json!({ "answer": self.asked(tool), "decision": decision }));
    }

    /// Kills the shim, as a failing machine does.
    pub(super) fn kill_shim(&self) {
        let is_shim = |pid: &Pid| {
            let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
            line.unwrap_or_default().split(|byte| *byte == 0).nth(1) == Some(b"shim")
        };
        let shims: Vec<Pid> = marked(&mark(&self.tape)).into_iter().filter(is_shim).collect();
        assert!(!shims.is_empty(), "no shim runs");
        shims.into_iter().for_each(|pid| kill_process(pid, Signal::KILL).unwrap());
    }

    /// How often the server was called with this tool.
    pub(super) fn sent(&self, tool: &str) -> usize {
        calls_on(&self.tape, tool)
    }
}

/// A variable of the shim, by which it is found.
fn mark(tape: &Path) -> String {
    format!("SDK_SESSION={}", tape.display())
}

fn calls_on(tape: &Path, tool: &str) -> usize {
    let tape = fs::read_to_string(tape).unwrap_or_default();
    let call = format!("\"name\":\"{tool}\"");
    tape.lines().filter(|line| line.contains("\"tools/call\"") && line.contains(&call)).count()
}

impl Drop for SdkSession {
    fn drop(&mut self) {
        self.client.kill().ok();
        self.client.wait().ok();
    }
}
