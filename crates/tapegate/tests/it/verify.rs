//! `tapegate verify`: tapes against the server they came from, and against a changed one.

mod drift;
mod real_servers;
mod usage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peers;
use crate::support::{self, RunningSession, record};

/// No verification in a test takes longer, except one that waits on purpose.
const RUN_S_MAX: &str = "600";

/// A tape of the drift server, and a folder around it.
struct DriftTape {
    folder: TempDir,
    tape: PathBuf,
}

/// How a verification ended.
struct VerifyResult {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Verifies `tape` with `flags`, which also name the server.
fn verify<S: AsRef<std::ffi::OsStr>>(tape: &Path, flags: &[S]) -> VerifyResult {
    let mut command = peers::bounded(RUN_S_MAX);
    command.arg(peers::tapegate()).args(["verify", "-r"]).arg(tape).args(flags);
    VerifyResult::of(command)
}

impl VerifyResult {
    fn of(mut command: Command) -> Self {
        let Output { status, stdout, stderr } = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Asserts that nothing has changed.
    #[track_caller]
    fn finds_nothing(&self) {
        assert_eq!((self.code, self.changes().as_str()), (Some(0), ""), "{}", self.stderr);
    }

    /// Asserts that exactly these changes were printed.
    #[track_caller]
    fn finds(&self, changes: &str) {
        assert_eq!((self.changes().as_str(), self.code), (changes, Some(1)), "{}", self.stderr);
    }

    /// The output before the notes and the counts.
    fn changes(&self) -> String {
        let is_rest = |line: &&str| {
            let rest = ["note: ", "not sent: ", "nothing has changed: "];
            !rest.iter().any(|start| line.starts_with(start)) && !line.contains(": compared ")
        };
        let lines: Vec<&str> = self.stdout.lines().take_while(is_rest).collect();
        lines.join("\n").trim_end().to_owned()
    }

    fn last_line(&self) -> &str {
        self.stdout.lines().last().unwrap_or_default()
    }
}

impl DriftTape {
    /// Records a session with the drift server, with these changes already applied.
    fn record(changes: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = peers::peer("drift-server.py");
        let mut run = record(&[]).sh(&format!("exec python3 {server} {changes}")).start();
        let mut agent = RootsClient { run: &mut run, got: 0 };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {"name": "agent", "version": "1"}});
        agent.asks(0, "initialize", &params);
        agent.says(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let page = agent.asks(1, "tools/list", &json!({}));
        if let Some(cursor) = page["result"].get("nextCursor") {
            agent.asks(2, "tools/list", &json!({"cursor": cursor}));
        }
        agent.asks(
            3,
            "tools/call",
            &json!({"name": "read", "arguments": {"path": "a"}, "_meta": {"progressToken": 3}}),
        );
        agent.asks(4, "tools/call", &json!({"name": "plain"}));
        let victim = folder.path().join("victim").display().to_string();
        agent.asks(5, "tools/call", &json!({"name": "erase", "arguments": {"path": victim}}));
        agent.asks(6, "ping", &json!({}));
        let ended = run.end_of_input().exits(0).checks();
        let tape = folder.path().join("t.jsonl");
        fs::copy(ended.run.tape_path(), &tape).unwrap();
        fs::write(folder.path().join("victim"), "alive").unwrap();
        Self { folder, tape }
    }

    /// Verifies the tape against the server with some changes.
    fn verify(&self, changes: &str, flags: &[&str]) -> VerifyResult {
        let server = format!("python3 {} {changes}", peers::peer("drift-server.py"));
        verify(&self.tape, &[flags, &["--upstream", &server]].concat())
    }

    /// Whether the destructive call was made.
    fn is_erased(&self) -> bool {
        fs::read_to_string(self.folder.path().join("victim")).unwrap().is_empty()
    }
}

/// A client that waits for each answer, and has two roots.
struct RootsClient<'r> {
    run: &'r mut RunningSession,
    got: usize,
}

impl RootsClient<'_> {
    fn says(&mut self, message: &Value) {
        self.run.send(format!("{message}\n").as_bytes());
    }

    fn asks(&mut self, id: u32, method: &str, params: &Value) -> Value {
        self.says(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let lines = self.run.lines(self.got + 1);
            let line = lines.split(|byte| *byte == b'\n').nth(self.got).unwrap();
            self.got += 1;
            let said: Value = serde_json::from_slice(line).unwrap();
            if said["method"] == "roots/list" {
                let roots = json!([{"uri": "file:///one"}, {"uri": "file:///two"}]);
                self.says(&json!({"jsonrpc": "2.0", "id": said["id"], "result": {"roots": roots}}));
            } else if said.get("method").is_some() && said.get("id").is_some() {
                self.says(&json!({"jsonrpc": "2.0", "id": said["id"], "result": {}}));
            } else if said["id"] == id {
                return said;
            }
        }
    }
}

/// The words of a command line.
fn words(command: &[&str]) -> Vec<String> {
    std::iter::once("--").chain(command.iter().copied()).map(str::to_owned).collect()
}

/// The binary under test, for tests that need more than its output.
fn tapegate() -> Command {
    support::tapegate()
}
