//! Agents with several configs: a project file, a server with a URL, one that is off, and one name in
//! two files.

use std::fs;

use serde_json::json;

use super::{AgentHome, AgentKind, end, words};
use crate::peers::{PeerServer, PeerTransport};

/// The project's config of an agent, and what is added to the user's.
struct AddedConfig {
    project: (&'static str, String),
    /// What is in the user's config, and what takes its place.
    user: (&'static str, String),
}

/// The servers: `web` has a URL, `off` is switched off, and `twice` is in both configs, but starts
/// only as the project has it.
fn added(kind: AgentKind, server: &[String], url: &str, project: &str) -> AddedConfig {
    let (command, args) = (json!(server[0]), json!(server[1..]));
    let stdio = format!("{{\"command\": {command}, \"args\": {args}}}");
    let wrong = "{\"command\": \"false\"}";
    match kind {
        AgentKind::ClaudeCode => AddedConfig {
            project: (".mcp.json", format!("{{\"mcpServers\": {{\"twice\": {stdio}}}}}")),
            user: (
                "{\"mcpServers\" : {",
                format!(
                    "{{\"projects\": {{{project:?}: {{\"disabledMcpServers\": [\"off\"], \"hasTrustDialogAccepted\": true}}}},\"mcpServers\" : {{\"web\": {{\"type\": \"http\", \"url\": {url:?}}}, \"off\": {wrong}, \"twice\": {wrong},"
                ),
            ),
        },
        AgentKind::Gemini => AddedConfig {
            project: (
                ".gemini/settings.json",
                format!("{{\"mcpServers\": {{\"twice\": {stdio} // here\n}}}}"),
            ),
            user: (
                "/* servers */ \"mcpServers\": {",
                format!(
                    "\"mcp\": {{\"excluded\": [\"off\"]}}, \"mcpServers\": {{\"web\": {{\"url\": {url:?}, \"type\": \"http\"}}, \"off\": {wrong}, \"twice\": {wrong},"
                ),
            ),
        },
        AgentKind::Opencode => AddedConfig {
            project: (
                "opencode.json",
                format!(
                    "{{\"$schema\": \"https://opencode.ai/config.json\", \"mcp\": {{\"twice\": {{\"type\": \"local\", \"command\": {}}}}}}}",
                    json!(server)
                ),
            ),
            user: (
                "\"mcp\": {",
                format!(
                    "\"mcp\": {{\"web\": {{\"type\": \"remote\", \"url\": {url:?}, \"oauth\": false}}, \"off\": {{\"type\": \"local\", \"command\": [\"false\"], \"enabled\": false}}, \"twice\": {{\"type\": \"local\", \"command\": [\"false\"]}},"
                ),
            ),
        },
        AgentKind::Codex | AgentKind::Cline | AgentKind::Continue => {
            unreachable!("they are not asked for a list of connected servers")
        }
    }
}

fn merged(kind: AgentKind) {
    let web = PeerServer::Everything.listen(PeerTransport::Http);
    let server = |project: &std::path::Path| PeerServer::Everything.stdio(project);
    let calls = json!([["echo", { "message": "x" }]]);
    // The project is not known before the home is there, so the config is changed afterwards.
    let mut home = AgentHome::with(kind, &calls, server, str::to_owned);
    let project = home.at("home/project");
    let own = PeerServer::Everything.stdio(&project);
    let added = added(kind, &own, &web.url, &project.display().to_string());
    home.before = home.before.replacen(added.user.0, &added.user.1, 1);
    if matches!(kind, AgentKind::ClaudeCode) {
        // The project's record is in the added part.
        let old = home.before.rfind("\n \"projects\"").expect("a record");
        let end = home.before.rfind(",\n \"theme\"").expect("a theme");
        home.before.replace_range(old..end + 1, "");
        let settings = home.at("home/.claude/settings.json");
        fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
        fs::write(settings, r#"{"enableAllProjectMcpServers":true}"#).expect("settings");
    }
    fs::write(&home.config, &home.before).expect("a config");
    let path = project.join(added.project.0);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, &added.project.1).expect("a config");
    let wrap = words("wrap --");
    let dry_run = home.run(&[words("wrap --dry-run --"), kind.program()].concat());
    for (name, state) in
        [("web", "governed"), ("off", "disabled"), ("twice", "governed; overridden by")]
    {
        let is_row = |line: &str| line.trim().starts_with(name) && line.contains(state);
        assert!(dry_run.lines().any(is_row), "{name}: {dry_run}");
    }
    let text = home.run(&[wrap, kind.list().expect("it connects")].concat());
    for name in ["web", "twice", "ev"] {
        let is_row = |line: &str| {
            let line = line.to_lowercase();
            line.contains(name) && line.contains("connected") && !line.contains("disc")
        };
        assert!(text.lines().any(is_row), "{name}: {text}");
    }
    assert_eq!(fs::read_to_string(path).expect("a config"), added.project.1);
    if !matches!(kind, AgentKind::ClaudeCode) {
        home.check_restored();
    }
    assert!(!home.config().contains("--governance-endpoint"));
    drop(web);
    end(home);
}

#[test]
fn claude_code_has_every_server_of_its_configs_behind_the_gate() {
    merged(AgentKind::ClaudeCode);
}

#[test]
fn gemini_has_every_server_of_its_configs_behind_the_gate() {
    merged(AgentKind::Gemini);
}

#[test]
fn opencode_has_every_server_of_its_configs_behind_the_gate() {
    merged(AgentKind::Opencode);
}
