//! Tests of the list of agents, by goldens.

use std::path::{Path, PathBuf};

use tapegate_agents::detection;
use tapegate_agents::discovery::ConfigScope;
use tapegate_agents::entry::ServerEntry;
use tapegate_agents::tree::{ConfigFormat, ConfigNode};
use tapegate_store::installed_configs::InstalledConfig;

use super::*;
use crate::views::golden::assert_golden;

fn server(agent: &str, name: &str, entry: &str, status: ServerStatus) -> SurveyedServer {
    let entry = ConfigNode::read(entry, ConfigFormat::Json).unwrap();
    let server = ConfiguredServer {
        id: name.replace(' ', "-"),
        name: name.to_owned(),
        client: detection::by_id(agent).unwrap(),
        scope: ConfigScope::User,
        config: PathBuf::from("/home/me/x"),
        format: ConfigFormat::Json,
        place: Vec::new(),
        entry: ServerEntry::read(&entry).unwrap(),
        undefined: Vec::new(),
        overridden_by: None,
        is_switched_off: false,
        rank: None,
    };
    SurveyedServer { server, status }
}

const GOVERNED: &str = r#"{"command":"/opt/tapegate","args":["shim","--server-id","files","--","npx","-y","@modelcontextprotocol/server-filesystem","/home/me/a folder/with a long name/and more"]}"#;
const REMOTE: &str = r#"{"command":"/opt/tapegate","args":["shim","--upstream-http","https://docs.example/mcp?api_key=sk-1234567890abcdef"]}"#;

fn config(path: &str, servers: Vec<SurveyedServer>, skipped: &[&str]) -> SurveyedConfig {
    let skipped = skipped.iter().map(|one| (*one).to_owned()).collect();
    SurveyedConfig { path: PathBuf::from(path), servers, skipped }
}

fn claude_code() -> SurveyedAgent {
    let own = |name: &str, entry: &str, status| server("claude-code", name, entry, status);
    let oauth = "a shim has nothing that corresponds to its setting `oauth`";
    let url = r#"{"url":"https://x.example/mcp"}"#;
    let project = vec![
        own("files", GOVERNED, ServerStatus::Governed(GovernedBy::Install)),
        own("docs", REMOTE, ServerStatus::Governed(GovernedBy::Wrap)),
        own("new one", r#"{"command":"uvx","args":["mcp-server-git"]}"#, ServerStatus::Bypassed),
    ];
    let long_name = "a server whose name is really long";
    let user = vec![
        own(long_name, url, ServerStatus::Ungovernable(oauth.to_owned())),
        own("mine", GOVERNED, ServerStatus::Governed(GovernedBy::Hand)),
    ];
    let skipped = "entry \"t\": it has neither a command nor a URL";
    SurveyedAgent {
        client: detection::by_id("claude-code").unwrap(),
        configs: vec![
            config("/home/me/app/.mcp.json", project, &[]),
            config("/home/me/.claude.json", user, &[skipped]),
        ],
    }
}

fn cline() -> SurveyedAgent {
    let path = "/home/me/.cline/data/settings/cline_mcp_settings.json";
    let off = r#"{"command":"x\u001b[2J","args":["--token","hush-hush-1234567890"]}"#;
    let servers = vec![
        server("cline", "off", off, ServerStatus::Disabled),
        server("cline", "日本", r#"{"command":"y"}"#, ServerStatus::Ungoverned),
    ];
    SurveyedAgent {
        client: detection::by_id("cline").unwrap(),
        configs: vec![config(path, servers, &[])],
    }
}

fn survey() -> AgentSurvey {
    AgentSurvey {
        agents: vec![claude_code(), cline()],
        without_servers: ["goose", "zed"].map(|id| detection::by_id(id).unwrap()).to_vec(),
        elsewhere: vec![InstalledConfig {
            config: PathBuf::from("/home/me/other/.cursor/mcp.json"),
            client: "cursor".to_owned(),
            original: String::new(),
            entries: Vec::new(),
            left_out: Vec::new(),
            installed_us: 0,
        }],
        warnings: Vec::new(),
    }
}

fn shown(survey: &AgentSurvey, columns: Option<usize>, palette: Palette) -> String {
    let places =
        DisplayPlaces { folder: Path::new("/home/me/app"), home: Some(Path::new("/home/me")) };
    text(survey, &places, palette, columns)
}

#[test]
fn the_list_fits_the_terminal() {
    for columns in [80, 120] {
        let text = shown(&survey(), Some(columns), Palette::Plain);
        assert!(text.lines().all(|line| width(line) <= columns), "{text}");
        assert!(!text.contains("hush") && !text.contains("1234567890"), "{text}");
        assert_golden(&format!("agents-{columns}.txt"), &text);
    }
    let coloured = shown(&survey(), Some(80), Palette::Colour);
    assert_golden("agents-colour.txt", &coloured);
    assert!(!coloured.contains("\u{1b}[2J"), "{coloured}");
    let wide = shown(&survey(), None, Palette::Plain);
    assert!(wide.contains("/home/me/a folder/with a long name/and more"), "{wide}");
}

#[test]
fn programs_get_an_object_for_each_server() {
    let lines: Vec<String> =
        json(&survey()).into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
    assert_golden("agents.jsonl", &lines.concat());
}

#[test]
fn a_machine_without_agents_is_told_so() {
    let empty = AgentSurvey::default();
    assert_eq!(shown(&empty, Some(80), Palette::Plain), "no agent here has an MCP server\n");
    assert!(json(&empty).is_empty());
}
