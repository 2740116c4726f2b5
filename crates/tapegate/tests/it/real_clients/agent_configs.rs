//! Real coding agents read the configs that we edit, start their servers through the shim, and get
//! their files back.
//!
//! Each agent is installed by `scripts/peers` and runs with a scripted model. It has no network: a
//! proxy that does not exist keeps it from anything but loopback.

mod answers;
mod bash_tool;
mod kinds;
mod merged_configs;
mod whole_runs;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::peers::{self, PeerProcess, PeerServer};
use crate::support::marked;
use kinds::AgentKind;

/// An agent needs a few seconds, more on a busy machine.
const RUN_S_MAX: &str = "300";
const MODEL_S_MAX: &str = "900";
const POLICY: &str = "schema: 1\nsources: [{ id: '*', kind: mcp }]\n\
    governance: { defaults: { action: forward }, rules: [{ match: get-sum, action: deny }] }\n";
const ECHO: &str = "hello from the script";

/// A home folder with one agent, its config, and a project with a policy.
struct AgentHome {
    kind: AgentKind,
    folder: TempDir,
    model: PeerProcess,
    config: PathBuf,
    before: String,
}

impl AgentHome {
    fn new(kind: AgentKind) -> Self {
        let calls =
            json!([["echo", { "message": ECHO }], [kind.tool("get-sum"), { "a": 1, "b": 2 }]]);
        let server = |project: &Path| PeerServer::Everything.stdio(project);
        Self::with(kind, &calls, server, str::to_owned)
    }

    /// An agent whose model makes these calls, with a server for its project and a changed config.
    fn with(
        kind: AgentKind,
        calls: &Value,
        server: impl FnOnce(&Path) -> Vec<String>,
        change: impl FnOnce(&str) -> String,
    ) -> Self {
        // Not below /tmp: Gemini CLI ignores settings in a folder that others can write.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("home/project/.git")).expect("a project");
        fs::write(at("home/project/tapegate.yaml"), POLICY).expect("a policy");
        let mut model = peers::bounded(MODEL_S_MAX);
        model.args([peers::node(), peers::peer("model.mjs")]);
        model.env("CALLS", calls.to_string()).env("SEEN", at("seen.json"));
        let model = PeerProcess::start(model);
        let server = server(&at("home/project"));
        let (path, before) = kind.config(&server, &model.url, &at("home/project"));
        let before = change(&before);
        let config = at("home").join(path);
        fs::create_dir_all(config.parent().expect("a folder")).expect("a folder");
        fs::write(&config, &before).expect("a config");
        let home = Self { kind, folder, model, config, before };
        home.prepare();
        home
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// What the agent needs besides its config.
    fn prepare(&self) {
        let project = self.at("home/project").display().to_string();
        match self.kind {
            AgentKind::Gemini => fs::write(
                self.at("home/.gemini/trustedFolders.json"),
                json!({ project: "TRUST_FOLDER" }).to_string(),
            )
            .expect("a file"),
            AgentKind::Cline => {
                let url = format!("{}/v1", self.model.url);
                let words = ["auth", "-p", "openai", "-k", "none", "-m", "m", "-b", &url];
                let program = self.kind.program();
                self.run(&[&program[..], &words.map(str::to_owned)].concat());
            }
            _ => {}
        }
    }

    /// Runs a command to its successful end in the project, and returns what it has printed.
    fn run(&self, words: &[String]) -> String {
        let mut command = peers::bounded(RUN_S_MAX);
        command.args(words);
        self.set_up(&mut command);
        let done = command.output().expect("it starts");
        let text = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{words:?}: {}\n{text}", done.status);
        text.into_owned()
    }

    fn set_up(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        let node = PathBuf::from(peers::node());
        let node = node.parent().expect("a folder").display();
        command.current_dir(self.at("home/project")).env_clear().stdin(Stdio::null());
        command.env("HOME", self.at("home")).env("PATH", format!("{node}:{path}"));
        command.envs([("TERM", "dumb"), ("NO_COLOR", "1"), ("IS_SANDBOX", "1")]);
        let nowhere = "http://127.0.0.1:9";
        command.envs([("HTTP_PROXY", nowhere), ("HTTPS_PROXY", nowhere)]);
        command.env("NO_PROXY", "127.0.0.1,localhost");
        command.envs(self.kind.environment(&self.model.url));
    }

    fn tapegate(&self, line: &str) -> String {
        self.run(&words(line))
    }

    /// What would differ if the config had been written, even with the same text.
    fn identity(&self) -> (u64, i64, i64) {
        let about = fs::metadata(&self.config).expect("a config");
        (about.ino(), about.mtime_nsec(), about.ctime_nsec())
    }

    fn config(&self) -> String {
        fs::read_to_string(&self.config).expect("a config")
    }

    /// Asks the agent, started by these words, whether its server is connected, where it can be
    /// asked.
    fn check_connected(&self, wrap: &[String]) {
        if let Some(list) = self.kind.list() {
            let text = self.run(&[wrap, &list].concat());
            let is_connected =
                |line: &str| line.contains("ev") && line.to_lowercase().contains("connected");
            assert!(text.lines().any(is_connected) && !text.contains("Disconnected"), "{text}");
        }
        if matches!(self.kind, AgentKind::Codex) {
            let line = [wrap, &self.kind.program(), &["app-server".to_owned()]].concat();
            let mut command = Command::new(&line[0]);
            self.set_up(command.args(&line[1..]));
            let tools = kinds::codex_tools(command, "ev");
            assert!(tools.contains(&"echo".to_owned()), "{tools:?}");
        }
    }

    /// Checks that the model has called a tool and got its result, that another call was denied,
    /// and that the calls are on a tape.
    fn check_called(&self) {
        let seen = fs::read_to_string(self.at("seen.json")).expect("what the model has seen");
        let seen: Value = serde_json::from_str(&seen).expect("JSON");
        assert!(seen["results"].to_string().contains(&format!("Echo: {ECHO}")), "{seen}");
        assert!(seen["results"].to_string().contains("`get-sum` is denied by"), "{seen}");
        let tapes = self.at("home/.local/state/tapegate/tapes/ev");
        let tapes = fs::read_dir(&tapes).unwrap_or_else(|error| panic!("{error}: {tapes:?}"));
        let texts = tapes.map(|tape| fs::read_to_string(tape.expect("a tape").path()));
        let calls = texts.map(|text| text.expect("a text").matches(ECHO).count());
        assert!(calls.sum::<usize>() >= 2, "the call and its result are on a tape");
    }

    /// Checks that the config is byte for byte as it was, but for what the agent itself writes.
    fn check_restored(&self) {
        let now = self.config();
        match self.kind {
            // They write to it by themselves: what they have changed without us may differ, and
            // nothing else.
            AgentKind::ClaudeCode | AgentKind::Codex => self.check_changes(&now),
            _ => assert_eq!(now, self.before),
        }
        let beside = fs::read_dir(self.config.parent().expect("a folder")).expect("a folder");
        let names = beside.map(|entry| entry.expect("a file").file_name());
        let ours: Vec<_> =
            names.filter(|name| name.to_string_lossy().contains(".tapegate-")).collect();
        assert_eq!(ours, Vec::<std::ffi::OsString>::new());
    }
}

/// The config after the same run without us.
fn config_of_control_run(kind: AgentKind) -> (String, String) {
    let home = AgentHome::new(kind);
    home.run(&kind.call());
    let config = (home.neutral(&home.before), home.neutral(&home.config()));
    end(home);
    config
}

impl AgentHome {
    /// A text without what differs from home to home: its folder, the model, and line ends.
    fn neutral(&self, text: &str) -> String {
        let folder = self.folder.path().display().to_string();
        text.replace(&folder, "FOLDER").replace(&self.model.url, "MODEL").replace('\r', "")
    }

    /// Checks that the config differs from what it was only where the agent has changed it in a run
    /// without us, too.
    fn check_changes(&self, now: &str) {
        let (before, control) = config_of_control_run(self.kind);
        let now = self.neutral(now);
        if matches!(self.kind, AgentKind::Codex) {
            return assert_eq!(now, control);
        }
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let (before, control, now) = (read(&before), read(&control), read(&now));
        for (key, value) in now.as_object().expect("a map") {
            let is_own_change = control[key] != before[key];
            assert!(is_own_change || *value == before[key], "{key}: {value}: {}", before[key]);
        }
        for (key, value) in before.as_object().expect("a map") {
            let is_own_change = control[key] != *value;
            assert!(is_own_change || now[key] == *value, "{key} is gone or changed: {now}");
        }
        assert_eq!(now["mcpServers"], before["mcpServers"]);
        assert!(!now.to_string().contains("tapegate\""), "{now}");
    }
}

fn installed(kind: AgentKind) {
    let home = AgentHome::new(kind);
    // Codex's app server starts servers in Codex's own folder, where it would find no policy.
    let policy = if matches!(kind, AgentKind::Codex) { " --config tapegate.yaml" } else { "" };
    home.tapegate(&format!("agents install {}{policy}", kind.id()));
    let installed = home.config();
    assert!(installed.contains("--require-policy"), "{installed}");
    home.check_connected(&[]);
    home.run(&kind.call());
    home.check_called();
    if !matches!(kind, AgentKind::ClaudeCode | AgentKind::Codex) {
        assert_eq!(home.config(), installed, "the agent leaves its config alone");
    }
    home.tapegate(&format!("agents uninstall {}", kind.id()));
    home.check_restored();
    end(home);
}

/// A line of ours.
fn words(line: &str) -> Vec<String> {
    let words = line.split(' ').map(str::to_owned);
    std::iter::once(peers::tapegate().to_owned()).chain(words).collect()
}

fn wrapped(kind: AgentKind) {
    let home = AgentHome::new(kind);
    let wrap = words("wrap --");
    home.check_connected(&wrap);
    let text = home.run(&[wrap, kind.call()].concat());
    assert!(text.contains("1 server, 2 calls, 1 denied, 0 approved"), "{text}");
    home.check_called();
    home.check_restored();
    end(home);
}

fn overlaid(kind: AgentKind) {
    let home = AgentHome::new(kind);
    let wrap = words("wrap --overlay --");
    let before = home.identity();
    // This one asks for its servers by a command that does not take an overlay.
    if !matches!(kind, AgentKind::ClaudeCode) {
        home.check_connected(&wrap);
    }
    let text = home.run(&[wrap, kind.call()].concat());
    assert!(text.contains("1 server, 2 calls, 1 denied, 0 approved"), "{text}");
    home.check_called();
    home.check_restored();
    // These two write to their configs by themselves.
    if !matches!(kind, AgentKind::ClaudeCode | AgentKind::Codex) {
        assert_eq!(home.identity(), before, "the config was written to");
    }
    end(home);
}

fn end(home: AgentHome) {
    let AgentHome { kind, folder, model, .. } = home;
    drop(model);
    if matches!(kind, AgentKind::Cline) {
        // Its background process stays, and would keep the port from that of the next home.
        let home = format!("HOME={}", folder.path().join("home").display());
        marked(&home).into_iter().for_each(|pid| _ = kill_process(pid, Signal::KILL));
    }
    peers::assert_none_left(folder.path());
}

#[test]
fn claude_code_is_governed_while_it_is_installed() {
    installed(AgentKind::ClaudeCode);
}

#[test]
fn codex_is_governed_while_it_is_installed() {
    installed(AgentKind::Codex);
}

#[test]
fn gemini_is_governed_while_it_is_installed() {
    installed(AgentKind::Gemini);
}

#[test]
fn opencode_is_governed_while_it_is_installed() {
    installed(AgentKind::Opencode);
}

#[test]
fn cline_is_governed_while_it_is_installed() {
    installed(AgentKind::Cline);
}

#[test]
fn continue_is_governed_while_it_is_installed() {
    installed(AgentKind::Continue);
}

#[test]
fn claude_code_is_governed_while_it_is_wrapped() {
    wrapped(AgentKind::ClaudeCode);
}

#[test]
fn codex_is_governed_while_it_is_wrapped() {
    wrapped(AgentKind::Codex);
}

#[test]
fn gemini_is_governed_while_it_is_wrapped() {
    wrapped(AgentKind::Gemini);
}

#[test]
fn opencode_is_governed_while_it_is_wrapped() {
    wrapped(AgentKind::Opencode);
}

#[test]
fn cline_is_governed_while_it_is_wrapped() {
    wrapped(AgentKind::Cline);
}

#[test]
fn continue_is_governed_while_it_is_wrapped() {
    wrapped(AgentKind::Continue);
}

#[test]
fn claude_code_is_governed_with_an_overlay() {
    overlaid(AgentKind::ClaudeCode);
}

#[test]
fn codex_is_governed_with_an_overlay() {
    overlaid(AgentKind::Codex);
}

#[test]
fn gemini_is_governed_with_an_overlay() {
    overlaid(AgentKind::Gemini);
}

#[test]
fn opencode_is_governed_with_an_overlay() {
    overlaid(AgentKind::Opencode);
}

#[test]
fn cline_is_governed_with_an_overlay() {
    overlaid(AgentKind::Cline);
}

#[test]
fn continue_is_governed_with_an_overlay() {
    overlaid(AgentKind::Continue);
}
