//! A client of `tapegate bash`: raw messages on pipes, so that nothing is hidden by an SDK.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{tapegate, text_of};

/// A running server and its client.
pub(super) struct BashClient {
    folder: Option<TempDir>,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last_id: u64,
    /// Notifications that came before answers.
    pub(super) notifications: Vec<Value>,
}

static MARKS: AtomicU64 = AtomicU64::new(0);

/// Whether a program that does nothing, with this mark, runs.
pub(super) fn is_running(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| line.starts_with(format!("tail\0-s\0{mark}\0").as_bytes()))
}

/// Our program, started by another user.
pub(super) fn as_user(user: u32) -> Command {
    let mut command = Command::new("setpriv");
    command.arg(format!("--reuid={user}")).arg(format!("--regid={user}")).arg("--clear-groups");
    command.arg(env!("CARGO_BIN_EXE_tapegate"));
    command
}

/// The children of a process, with their command lines.
pub(super) fn children(parent: u32) -> Vec<(u32, String)> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = format!("PPid:\t{parent}\n");
    let of_parent = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        status.contains(&parent).then_some((pid, line))
    };
    pids.filter_map(of_parent).collect()
}

impl BashClient {
    /// Starts a server with the default settings.
    pub(super) fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap())
    }

    /// Starts a server with these settings below `config`.
    pub(super) fn with_settings(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_settings(folder.path(), config);
        Self::start_in(folder)
    }

    pub(super) fn start_in(folder: TempDir) -> Self {
        std::fs::create_dir_all(folder.path().join("sub")).unwrap();
        let mut client = Self::spawn(folder.path(), &[]);
        client.folder = Some(folder);
        client
    }

    /// Starts a server in a folder that outlives it.
    pub(super) fn spawn(folder: &Path, flags: &[&str]) -> Self {
        Self::spawn_as(folder, "bash", flags)
    }

    /// Starts a server with further environment variables.
    pub(super) fn spawn_with(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let mut command = tapegate();
        command.envs(variables.iter().copied());
        Self::spawn_command(command, folder, "bash", &[])
    }

    /// Starts another command of ours that serves the tool.
    pub(super) fn spawn_as(folder: &Path, name: &str, flags: &[&str]) -> Self {
        Self::spawn_command(tapegate(), folder, name, flags)
    }

    /// Starts a server by a command line that ends with the flags.
    pub(super) fn spawn_command(
        mut command: Command,
        folder: &Path,
        name: &str,
        flags: &[&str],
    ) -> Self {
        command.arg(name).args(flags).current_dir(folder).env("HOME", folder);
        command.env_remove("CLAUDE_CODE_SESSION_ID").env("AWS_TOKEN", "secret");
        let stderr = std::fs::File::create(folder.join("stderr.log")).unwrap();
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let notifications = Vec::new();
        let mut client = Self { folder: None, child, input, output, last_id: 0, notifications };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        client.request("initialize", &hello);
        client
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.as_ref().unwrap().path()
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What the server printed on standard error.
    pub(super) fn log(folder: &Path) -> String {
        text_of(&folder.join("stderr.log"))
    }

    /// A mark for `tail -s MARK -f /dev/null`, which does nothing until it is killed.
    pub(super) fn mark(&self) -> String {
        let number = MARKS.fetch_add(1, Ordering::Relaxed);
        format!("{}", 1_000_000 + u64::from(self.child.id()) * 100 + number)
    }

    /// Sends a message.
    pub(super) fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request; returns its id.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message.
    pub(super) fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// The answer to a request.
    pub(super) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            self.notifications.push(message);
        }
    }

    /// Sends a request and returns the whole answer.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// The result of a tool.
    pub(super) fn result(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": format!("bash_recorder.{tool}"), "arguments": arguments});
        let answer = self.request("tools/call", &params);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// The structured result of a tool, which its text repeats.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
        result["structuredContent"].clone()
    }

    pub(super) fn execute(&mut self, command: &str) -> Value {
        self.call("execute", &json!({"command": command}))
    }

    /// Ends the server as a client does, and returns its entries by sequence number.
    pub(super) fn end(mut self) -> Vec<Value> {
        self.close();
        entries(&self.folder().join(".cuff/recordings"))
    }

    /// Ends the server as a client does.
    pub(super) fn close(&mut self) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Kills the server as kill -9 does.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for BashClient {
    fn drop(&mut self) {
        drop(self.input.take());
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Writes `settings.yml`.
pub(super) fn write_settings(folder: &Path, config: &str) {
    let config: String = config.lines().map(|line| format!("      {line}\n")).collect();
    let text = format!("plugins:\n  bash_recorder:\n    config:\n{config}");
    crate::support::replace_file(&folder.join("settings.yml"), &text);
}

/// Every entry in a folder of recordings.
pub(super) fn entries(recordings: &Path) -> Vec<Value> {
    let mut entries = Vec::new();
    for file in std::fs::read_dir(recordings.join("sessions")).into_iter().flatten().flatten() {
        if file.path().extension().is_some_and(|extension| extension == "jsonl") {
            let text = text_of(&file.path());
            entries.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        }
    }
    entries.sort_by_key(|entry| entry["sequence_number"].as_u64());
    entries
}

/// The metadata of every session in a folder of recordings, oldest first.
pub(super) fn metadata(recordings: &Path) -> Vec<Value> {
    let mut all = Vec::new();
    for file in std::fs::read_dir(recordings.join("sessions")).into_iter().flatten().flatten() {
        if file.path().to_str().unwrap().ends_with(".meta.json") {
            all.push(serde_json::from_str::<Value>(&text_of(&file.path())).unwrap());
        }
    }
    all.sort_by_key(|one| one["created_at"].as_str().map(str::to_owned));
    all
}
