//! Plays a scenario with each client.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bash::client::{self, write_settings};
use crate::peers::{self, PeerClient, PeerTransport};
use crate::support::text_of;

pub(super) const PY1: PeerClient =
    PeerClient { python: Some("py1"), script: &["bash.py", "legacy"] };
const PY2: PeerClient = PeerClient { python: Some("py2"), script: &["bash.py", "modern"] };
pub(super) const TS1: PeerClient = PeerClient { python: None, script: &["bash.mjs", "sdk1"] };
const TS2: PeerClient = PeerClient { python: None, script: &["bash.mjs", "modern"] };

/// Both official SDKs, in both eras of the protocol.
const EVERY: [PeerClient; 4] = [PY1, PY2, TS1, TS2];
/// One of each SDK, and of each era, for what is tried in several variants.
pub(super) const TWO: [PeerClient; 2] = [PY2, TS1];
/// The clients that have sessions, and are told of changes.
pub(super) const LEGACY: [PeerClient; 2] = [PY1, TS1];

/// What the clients do, and with which server.
pub(super) struct BashScenario<'a> {
    settings: Option<&'a str>,
    flags: &'a [&'a str],
    variables: &'a [(&'a str, &'a str)],
    steps: Value,
    prepare: Option<&'a dyn Fn(&Path)>,
    beside: Option<&'a (dyn Fn(&Path) + Sync)>,
}

/// What one client saw, and what is left in its folder.
pub(super) struct ScenarioOutcome {
    folder: TempDir,
    /// The result of each step.
    pub(super) results: Vec<Value>,
    /// Every entry, by sequence number.
    pub(super) entries: Vec<Value>,
    /// The metadata of every session, oldest first.
    pub(super) sessions: Vec<Value>,
    /// What the server logged.
    pub(super) log: String,
}

/// A call of a tool, as a step.
pub(super) fn call(tool: &str, arguments: Value) -> Value {
    json!({"call": tool, "arguments": arguments})
}

/// A command, as a step.
pub(super) fn execute(command: &str) -> Value {
    call("execute", json!({"command": command}))
}

impl<'a> BashScenario<'a> {
    pub(super) fn new(steps: Value) -> Self {
        Self { settings: None, flags: &[], variables: &[], steps, prepare: None, beside: None }
    }

    /// With these settings below `config`.
    pub(super) fn settings(mut self, settings: &'a str) -> Self {
        self.settings = Some(settings);
        self
    }

    pub(super) fn flags(mut self, flags: &'a [&'a str]) -> Self {
        self.flags = flags;
        self
    }

    /// With these variables for the server.
    pub(super) fn variables(mut self, variables: &'a [(&'a str, &'a str)]) -> Self {
        self.variables = variables;
        self
    }

    /// Does this in the folder before the server starts.
    pub(super) fn prepare(mut self, prepare: &'a dyn Fn(&Path)) -> Self {
        self.prepare = Some(prepare);
        self
    }

    /// Does this in the folder while the client runs.
    pub(super) fn beside(mut self, beside: &'a (dyn Fn(&Path) + Sync)) -> Self {
        self.beside = Some(beside);
        self
    }

    /// Plays it with every client, each of which must see what `check` expects.
    pub(super) fn check(self, check: impl Fn(&ScenarioOutcome)) {
        self.check_with(&EVERY, check);
    }

    pub(super) fn check_with(self, clients: &[PeerClient], check: impl Fn(&ScenarioOutcome)) {
        for client in clients {
            let outcome = self.play(*client);
            let shown = format!("{client:?}\n{:#?}\n{}", outcome.results, outcome.log);
            let printer = FailureNote(shown);
            check(&outcome);
            drop(printer);
        }
    }

    fn play(&self, client: PeerClient) -> ScenarioOutcome {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        fs::create_dir(path.join("sub")).unwrap();
        self.settings.iter().for_each(|settings| write_settings(&path, settings));
        self.prepare.iter().for_each(|prepare| prepare(&path));
        fs::write(path.join("steps.json"), self.steps.to_string()).unwrap();
        // The SDKs pass on few variables, and the log would be lost with their standard error.
        let mut target = vec!["env".to_owned(), format!("HOME={}", path.display())];
        target.extend(self.variables.iter().map(|(name, value)| format!("{name}={value}")));
        // Appended, because some clients start a server twice to find out its revision.
        let script = "exec \"$0\" bash --log-level debug \"$@\" 2>> stderr.log";
        target.extend(["sh", "-c", script, peers::tapegate()].map(str::to_owned));
        target.extend(self.flags.iter().map(|flag| (*flag).to_owned()));
        let mut command = client.command(PeerTransport::Stdio, &target);
        command.current_dir(&path).env("BASH_STEPS", path.join("steps.json"));
        command.env_remove("CLAUDE_CODE_SESSION_ID");
        let lines = std::thread::scope(|scope| {
            let beside = self.beside.map(|beside| scope.spawn(|| beside(&path)));
            let lines = peers::transcript(command);
            beside.into_iter().for_each(|beside| beside.join().unwrap());
            lines
        });
        let results: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(results.len(), self.steps.as_array().unwrap().len(), "{results:#?}");
        let recordings = path.join(".cuff/recordings");
        ScenarioOutcome {
            results,
            entries: client::entries(&recordings),
            sessions: client::metadata(&recordings),
            log: text_of(&path.join("stderr.log")),
            folder,
        }
    }
}

impl ScenarioOutcome {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// A key of the result of a step.
    pub(super) fn at(&self, step: usize, key: &str) -> &Value {
        &self.results[step][key]
    }

    /// The text of a key, which must be one.
    pub(super) fn text(&self, step: usize, key: &str) -> &str {
        let text = self.at(step, key).as_str();
        text.unwrap_or_else(|| panic!("step {step} has no {key}: {}", self.results[step]))
    }

    /// The entry of a command.
    pub(super) fn entry(&self, command: &str) -> &Value {
        let found = self.entries.iter().find(|entry| entry["command"] == command);
        found.unwrap_or_else(|| panic!("no entry of `{command}` in {:#?}", self.entries))
    }
}

/// Says what the client saw if the test fails.
struct FailureNote(String);

impl Drop for FailureNote {
    fn drop(&mut self) {
        use std::io::Write;
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "{}", self.0);
        }
    }
}
