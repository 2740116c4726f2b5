//! Whole runs of agents that have a server in the project's config, another one in the user's, and one
//! with a URL: their model calls each of them, under `wrap`, an installation and an overlay.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use super::{AgentHome, AgentKind, RUN_S_MAX, end, words};
use crate::peers::{self, PeerServer, PeerTransport};

/// The servers in the order in which they are called, and what each answers. `pj` is the project's.
const ANSWERS: [(&str, &str); 3] = [
    ("ev", "Echo: from ev"),
    ("web", "This is a simple text response for testing."),
    ("pj", "Echo: from pj"),
];

/// Without this, Codex asks its model before it has all tools.
const REQUIRED: &str = "startup_timeout_sec = 120\nrequired = true";

/// The start of its map of servers, and the entry for a server with a URL, as it is written there.
fn url_entry(kind: AgentKind, url: &str) -> (&'static str, String) {
    match kind {
        AgentKind::ClaudeCode => {
            ("\"projects\": {", format!("{{\"type\": \"http\", \"url\": {url:?}}}"))
        }
        AgentKind::Codex => {
            ("[mcp_servers.ev]", format!("[mcp_servers.web]\r\nurl = {url:?}\r\n{REQUIRED}\r\n"))
        }
        AgentKind::Gemini => (
            "\"mcpServers\": {",
            format!("{{\"url\": {url:?}, \"type\": \"http\", \"trust\": true}}"),
        ),
        AgentKind::Opencode => {
            ("\"mcp\": {", format!("{{\"type\": \"remote\", \"url\": {url:?}, \"oauth\": false}}"))
        }
        AgentKind::Cline => (
            "{\"mcpServers\":{",
            format!("{{\"transport\":{{\"type\":\"streamableHttp\",\"url\":{url:?}}}}}"),
        ),
        AgentKind::Continue => (
            "mcpServers:\n",
            format!("  - name: web\n    type: streamable-http # there\n    url: {url}\n"),
        ),
    }
}

/// The user's config with the server `web`. Claude Code has it among those of this user in this
/// project.
fn with_url(kind: AgentKind, config: &str, url: &str, project: &Path) -> String {
    let (start, entry) = url_entry(kind, url);
    let project = json!(project);
    let added = match kind {
        AgentKind::ClaudeCode => format!(
            "{start}{project}: {{\"hasTrustDialogAccepted\": true, \"mcpServers\": {{\"web\": {entry}}}}}, "
        ),
        // Codex reads the config of a project that is trusted, and writes down by itself that it is.
        AgentKind::Codex => {
            format!(
                "[projects.{project}]\r\ntrust_level = 'trusted'\r\n\r\n{entry}\r\n{start}\r\nrequired = true"
            )
        }
        AgentKind::Continue => format!("{start}{entry}"),
        _ => format!("{start}\"web\": {entry}, "),
    };
    config.replacen(start, &added, 1)
}

/// The project's config with the server `pj`, if the agent reads one.
fn project_config(kind: AgentKind, server: &[String]) -> Option<(&'static str, String)> {
    let (command, args) = (json!(server[0]), json!(server[1..]));
    let entry = format!("\"command\": {command}, \"args\": {args}");
    match kind {
        AgentKind::ClaudeCode => {
            Some((".mcp.json", format!("{{\"mcpServers\": {{\r\n\"pj\": {{{entry}}}}}}}\r\n")))
        }
        AgentKind::Codex => Some((
            ".codex/config.toml",
            format!("[mcp_servers.pj] # ours\ncommand = {command}\nargs = {args}\n{REQUIRED}\n"),
        )),
        AgentKind::Gemini => Some((
            ".gemini/settings.json",
            format!("{{\"mcpServers\": {{\"pj\": {{{entry}, \"trust\": true}} // here\n}}}}"),
        )),
        AgentKind::Opencode => Some((
            "opencode.json",
            format!(
                "{{\"$schema\": \"https://opencode.ai/config.json\", \"mcp\": {{\"pj\": {{\"type\": \"local\", \"command\": {}}}}}}}",
                json!(server)
            ),
        )),
        // `cn` and Cline's program read the user's config alone.
        AgentKind::Cline | AgentKind::Continue => None,
    }
}

/// The name by which an agent offers a tool of one of its servers, or the end of it.
fn tool(kind: AgentKind, server: &str, name: &str) -> String {
    match kind {
        AgentKind::Continue => name.to_owned(),
        AgentKind::Gemini | AgentKind::Opencode => format!("{server}_{name}"),
        _ => format!("{server}__{name}"),
    }
}

/// An agent with its configs as they were before any run.
struct MergedHome {
    home: AgentHome,
    project: Option<(PathBuf, String)>,
}

impl MergedHome {
    fn new(kind: AgentKind, url: &str) -> Self {
        let echo = |server: &str| match kind {
            // It tells tools of the same name apart only by their order.
            AgentKind::Continue => json!(["get-annotated-message", { "messageType": "success" }]),
            _ => json!([tool(kind, server, "echo"), { "message": format!("from {server}") }]),
        };
        let mut calls =
            vec![echo("ev"), json!([tool(kind, "web", "test_simple_text"), {}]), echo("pj")];
        // Without a server of the project, it would be another one's tool.
        calls.truncate(2 + usize::from(project_config(kind, &[String::new()]).is_some()));
        let server = |project: &Path| PeerServer::Everything.stdio(project);
        let mut home = AgentHome::with(kind, &json!(calls), server, str::to_owned);
        let folder = home.at("home/project");
        home.before = with_url(kind, &home.before, url, &folder);
        fs::write(&home.config, &home.before).expect("a config");
        if matches!(kind, AgentKind::ClaudeCode) {
            let settings = home.at("home/.claude/settings.json");
            fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
            fs::write(settings, r#"{"enableAllProjectMcpServers":true}"#).expect("settings");
        }
        let project = project_config(kind, &PeerServer::Everything.stdio(&folder));
        let project = project.map(|(path, text)| (folder.join(path), text));
        if let Some((path, text)) = &project {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a config");
        }
        Self { home, project }
    }

    /// The servers that the agent has.
    fn servers(&self) -> &'static [(&'static str, &'static str)] {
        if self.project.is_some() { &ANSWERS } else { &ANSWERS[..2] }
    }

    /// Checks that every call of the run has passed a shim, and that its result has reached the
    /// model.
    fn check_called(&self, runs: usize) {
        let seen = fs::read_to_string(self.home.at("seen.json")).expect("what the model has seen");
        let seen: Value = serde_json::from_str(&seen).expect("JSON");
        for (server, answer) in self.servers() {
            let answer = match (self.home.kind, *server) {
                (AgentKind::Continue, "ev") => "Operation completed successfully",
                _ => answer,
            };
            assert!(seen["results"].to_string().contains(answer), "{server}: {seen}");
            let tapes = self.home.at("home/.local/state/tapegate/tapes").join(server);
            let tapes =
                fs::read_dir(tapes).expect("tapes").map(|tape| tape.expect("a tape").path());
            let texts = tapes.map(|tape| fs::read_to_string(tape).expect("a text"));
            let calls = texts.filter(|text| text.contains("\"tools/call\"")).count();
            assert!(calls >= runs, "{server}: {calls} tapes with a call");
        }
    }

    /// Checks that every config is byte for byte as it was. Claude Code writes to the user's by
    /// itself, but not to the servers in it.
    fn check_restored(&self) {
        let now = self.home.config();
        if matches!(self.home.kind, AgentKind::ClaudeCode) {
            let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            let (before, now) = (read(&self.home.before), read(&now));
            let own = |config: &Value| {
                let project = &config["projects"][self.home.at("home/project").to_str().unwrap()];
                json!([config["mcpServers"], project["mcpServers"]])
            };
            assert_eq!(own(&now), own(&before));
        } else {
            assert_eq!(now, self.home.before);
        }
        let mut folders = vec![self.home.config.parent().expect("a folder")];
        if let Some((path, text)) = &self.project {
            assert_eq!(&fs::read_to_string(path).expect("a config"), text);
            folders.push(path.parent().expect("a folder"));
        }
        for entry in folders.into_iter().flat_map(|path| fs::read_dir(path).expect("a folder")) {
            let name = entry.expect("a file").file_name();
            assert!(!name.to_string_lossy().contains(".tapegate-"), "{name:?} is left");
        }
    }

    fn wrapped(&self) {
        let text = self.home.run(&[words("wrap --"), self.home.kind.call()].concat());
        let count = self.servers().len();
        let expected = format!("{count} servers, {count} calls, 0 denied, 0 approved");
        assert!(text.contains(&expected), "{text}");
    }

    fn installed(&self) {
        let (home, id) = (&self.home, self.home.kind.id());
        home.tapegate(&format!("agents install {id} --config tapegate.yaml"));
        home.run(&home.kind.call());
        let project = self.project.as_ref().map(|(path, _)| fs::read_to_string(path));
        let texts = [Some(Ok(home.config())), project].into_iter().flatten();
        let shims = texts.map(|text| text.expect("a config").matches("--require-policy").count());
        assert_eq!(shims.sum::<usize>(), self.servers().len());
        home.tapegate(&format!("agents uninstall {id}"));
    }

    /// What a session with an overlay says that must not start.
    fn refusal(&self) -> String {
        let mut command = peers::bounded(RUN_S_MAX);
        command.args([words("wrap --overlay --"), self.home.kind.call()].concat());
        self.home.set_up(&mut command);
        let Output { status, stderr, .. } = command.output().expect("it starts");
        assert_eq!(status.code(), Some(2));
        String::from_utf8_lossy(&stderr).into_owned()
    }

    /// Runs the agent with an overlay. Agents that ask about a project's servers have none then.
    fn overlaid(mut self) -> Self {
        let kind = self.home.kind;
        if matches!(kind, AgentKind::ClaudeCode | AgentKind::Codex | AgentKind::Gemini) {
            let text = self.refusal();
            assert!(text.contains("`pj` is a server of the project"), "{text}");
            let (path, _) = self.project.take().expect("a project's config");
            fs::remove_file(path).expect("it can be removed");
        }
        if matches!(kind, AgentKind::Codex) {
            let text = self.refusal();
            assert!(text.contains("`web` cannot be in an overlay of Codex"), "{text}");
            return self;
        }
        let text = self.home.run(&[words("wrap --overlay --"), kind.call()].concat());
        let count = self.servers().len();
        assert!(text.contains(&format!("{count} servers, {count} calls")), "{text}");
        self.check_called(3);
        self
    }
}

fn governed(kind: AgentKind) {
    let web = PeerServer::Modern.listen(PeerTransport::Http);
    let merged = MergedHome::new(kind, &web.url);
    merged.wrapped();
    merged.check_called(1);
    merged.check_restored();
    merged.installed();
    merged.check_called(2);
    merged.check_restored();
    let merged = merged.overlaid();
    merged.check_restored();
    drop(web);
    end(merged.home);
}

#[test]
fn claude_code_calls_the_servers_of_every_config_behind_the_gate() {
    governed(AgentKind::ClaudeCode);
}

#[test]
fn codex_calls_the_servers_of_every_config_behind_the_gate() {
    governed(AgentKind::Codex);
}

#[test]
fn gemini_calls_the_servers_of_every_config_behind_the_gate() {
    governed(AgentKind::Gemini);
}

#[test]
fn opencode_calls_the_servers_of_every_config_behind_the_gate() {
    governed(AgentKind::Opencode);
}

#[test]
fn cline_calls_the_servers_of_every_config_behind_the_gate() {
    governed(AgentKind::Cline);
}

#[test]
fn continue_calls_the_servers_of_every_config_behind_the_gate() {
    governed(AgentKind::Continue);
}
