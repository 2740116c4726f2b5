//! Real clients in front of a policy that forwards, denies, hides, holds and masks.
//!
//! [`sdk`] has the official SDKs in both eras and over both transports, [`in_agent`] has them answer
//! questions about calls, [`agents`] real coding
//! agents with a scripted model, [`agent_configs`] the configs of more of them, [`examples`] an
//! example of the docs. A second tapegate behind the
//! shim records what the server got.

mod agent_configs;
mod agents;
mod examples;
mod in_agent;
mod sdk;
mod tasks;

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peers::{self, PeerProcess, PeerServer, PeerTransport};

/// The longest wait for a call that should be held.
const ASK_S_MAX: &str = "300";
const SECRET: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";

const POLICY: &str = "\
schema: 1
sources:
  - id: peer
    expose: { mode: blocklist, tools: [test_audio_content] }
governance:
  defaults: { action: forward }
  rules:
    - { match: test_image_content, action: deny }
    - { match: test_simple_text, action: approve }
redaction: { patterns: [secrets], on_wire: true }
";

/// The calls that every client makes, in this order.
fn calls() -> Value {
    json!([
        ["echo", { "message": "first" }],
        ["test_image_content", {}],
        ["test_simple_text", {}],
        ["test_simple_text", {}],
        ["echo", { "message": format!("then {SECRET}") }],
    ])
}

/// The outcome of each: text that the client must have received.
const OUTCOMES: [&str; 5] = [
    "first",
    "Tapegate: tool `test_image_content` is denied by ",
    "This is a simple text response for testing.",
    "Tapegate: tool `test_simple_text` was not approved by a person (gate: approval)",
    "then [REDACTED:github:",
];

/// The calls that may reach the server.
const SERVED: [&str; 3] = ["echo", "test_simple_text", "echo"];

/// A folder with a policy and the files of a test.
struct GovernedFolder {
    folder: TempDir,
}

impl GovernedFolder {
    fn new() -> Self {
        Self::with_policy(POLICY)
    }

    fn with_policy(policy: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("tapegate.yaml"), policy).expect("a policy");
        // The decider may be there before the shim is.
        DirBuilder::new().mode(0o700).create(folder.path().join("state")).expect("a folder");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn words(&self, words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// The shim's command line up to the names of both ends. Clients pass on only a few variables.
    fn shim(&self) -> Vec<String> {
        let home = format!("TAPEGATE_HOME={}", self.path("state").display());
        let config = self.path("tapegate.yaml").display().to_string();
        let shim = ["shim", "--server-id", "peer", "--config", &config];
        [self.words(&["env", &home, peers::tapegate()]), self.words(&shim)].concat()
    }

    /// The recorder behind the shim, up to the names of both ends.
    fn recorder(&self) -> Vec<String> {
        let tape = self.path("server.jsonl").display().to_string();
        self.words(&[peers::tapegate(), "record", "--force", "-o", &tape])
    }

    /// The shim in front of a server on stdio.
    fn in_front_of_a_process(&self) -> Vec<String> {
        self.in_front_of(PeerServer::Modern)
    }

    fn in_front_of(&self, server: PeerServer) -> Vec<String> {
        let end = self.words(&["--"]);
        let server = server.stdio(&self.path("server.jsonl"));
        [self.shim(), end.clone(), self.recorder(), end, server].concat()
    }

    /// Runs the shim between a client and a server over these links, and calls `drive` with what the
    /// client connects to.
    fn serve<T>(
        &self,
        links: (PeerTransport, PeerTransport),
        drive: impl FnOnce(&[String]) -> T,
    ) -> T {
        self.serve_with(PeerServer::Modern, links, drive)
    }

    /// The same with another server.
    fn serve_with<T>(
        &self,
        server: PeerServer,
        (near, far): (PeerTransport, PeerTransport),
        drive: impl FnOnce(&[String]) -> T,
    ) -> T {
        let upstream = (far == PeerTransport::Http).then(|| {
            let server = server.listen(PeerTransport::Http);
            let mut line = self.recorder();
            let ends = ["--http", "127.0.0.1:0", "--upstream-http", &server.url];
            line.extend(ends.map(str::to_owned));
            (PeerProcess::start(command_of(&line)), server)
        });
        let mut line = match &upstream {
            Some((recorder, _)) => {
                let end = ["--upstream-http".to_owned(), recorder.url.clone()];
                [self.shim(), end.to_vec()].concat()
            }
            None => self.in_front_of(server),
        };
        let done = if near == PeerTransport::Stdio {
            drive(&line)
        } else {
            let at = line.iter().position(|word| word == "shim").expect("a shim") + 1;
            line.splice(at..at, ["--http", "127.0.0.1:0"].map(str::to_owned));
            let shim = PeerProcess::start(command_of(&line));
            let done = drive(std::slice::from_ref(&shim.url));
            shim.stop();
            done
        };
        if let Some((recorder, _)) = upstream {
            recorder.stop();
        }
        done
    }

    /// Approves the first call that is held, and denies the second.
    fn decided(&self) -> JoinHandle<()> {
        let state = self.path("state").display().to_string();
        thread::spawn(move || {
            for verb in ["approve", "deny"] {
                approvals(&["list", "--wait"], &state);
                approvals(&[verb, "--all"], &state);
            }
        })
    }

    /// The tools that were called on the server.
    fn served(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("server.jsonl")).expect("a tape of the server");
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let calls = entries.filter(|entry| entry["msg"]["method"] == "tools/call");
        calls.map(|call| call["msg"]["params"]["name"].as_str().unwrap_or("?").to_owned()).collect()
    }

    /// Checks the state after everything has ended: the server got what it may get, no process is
    /// left, and the records are valid and contain no secret.
    fn assert_in_order(&self) {
        peers::assert_none_left(self.folder.path());
        assert_eq!(self.served(), SERVED);
        let state = self.path("state");
        let tapes = fs::read_dir(state.join("tapes/peer")).expect("a folder of tapes");
        let tapes = tapes.map(|entry| entry.expect("a tape").path());
        for record in tapes.chain([state.join("activity.jsonl")]) {
            peers::assert_valid(&record);
            assert!(!holds_the_secret(&record), "{}", record.display());
        }
    }
}

fn holds_the_secret(path: &Path) -> bool {
    fs::read_to_string(path).expect("a text").contains(SECRET)
}

/// Runs a command of `approvals`, as a person at another terminal does.
pub(crate) fn approvals(words: &[&str], state: &str) {
    let mut command = peers::bounded(ASK_S_MAX);
    command.args([peers::tapegate(), "approvals"]).args(words).args(["--state", state]);
    command.env("TAPEGATE_HOME", state);
    if words[0] != "list" {
        command.args(crate::support::key_flags(Path::new(state)));
    }
    let done = command.output().expect("tapegate starts");
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Checks that a client received the right text for each call.
#[track_caller]
fn assert_told(told: &[String]) {
    assert_eq!(told.len(), OUTCOMES.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(OUTCOMES) {
        assert!(told.contains(expected), "not `{expected}` but {told}");
    }
}

/// A command of these words.
fn command_of(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}
