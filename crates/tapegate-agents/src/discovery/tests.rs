//! Tests with configs of all clients, on a machine with a home folder and a project.

use std::collections::BTreeMap;

use super::*;
use crate::entry::ServerTarget;
use crate::tree::ConfigFormat;

/// A machine with a home folder, a project in it, and files.
struct TestMachine {
    root: tempfile::TempDir,
    variables: BTreeMap<&'static str, String>,
}

impl TestMachine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("home/project/.git")).unwrap();
        fs::create_dir_all(root.path().join("home/project/sub")).unwrap();
        let home = root.path().join("home").display().to_string();
        Self { root, variables: BTreeMap::from([("HOME", home)]) }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn find_in(&self, folder: &str) -> ServerScan {
        let variable =
            |name: &str| self.variables.get(name).map(|value| OsString::from(value.as_str()));
        find(&DiscoveryContext { folder: &self.at(folder), variable: &variable })
    }

    /// `client scope name: target`, one per line.
    fn told(&self) -> String {
        let line = |server: &ConfiguredServer| {
            let target = match &server.entry.target {
                ServerTarget::Command(argv) => argv.join(" "),
                ServerTarget::Url(url, _) => url.clone(),
            };
            format!("{} {} {}: {target}\n", server.client.name, server.scope.as_str(), server.id)
        };
        self.find_in("home/project").servers.iter().map(line).collect()
    }
}

const PLAIN: &str = r#"{"mcpServers":{"files":{"command":"npx","args":["-y","files"]}}}"#;

#[test]
fn every_config_of_every_client_is_found() {
    let mut expected = 0;
    let machine = TestMachine::new();
    for client in CLIENTS {
        for file in client.files {
            let root = match file.root {
                PathRoot::Project => "home/project",
                PathRoot::Home => "home",
                PathRoot::Config => "home/.config",
                PathRoot::Variable(_, otherwise) => &format!("home/{otherwise}"),
                PathRoot::File(_) | PathRoot::System => continue,
            };
            let path = format!("{root}/{}", file.path.replace('*', "any"));
            let ServerKeys::Path(keys) = file.keys else { continue };
            let entry = match file.format {
                ConfigFormat::Json => nested(keys, r#"{"s":{"command":"x"}}"#),
                ConfigFormat::Toml => format!("[{}.s]\ncommand = \"x\"\n", keys[0]),
                ConfigFormat::Yaml => format!("{}:\n  s:\n    command: x\n", keys[0]),
            };
            machine.write(&path, &entry);
            expected += 1;
        }
    }
    let found = machine.find_in("home/project");
    assert_eq!(found.skipped, []);
    assert!(expected > 40, "{expected}");
    assert_eq!(found.servers.len(), expected, "{found:#?}");
}

fn nested(keys: &[&str], inner: &str) -> String {
    keys.iter().rev().fold(inner.to_owned(), |inner, key| format!("{{\"{key}\":{inner}}}"))
}

#[test]
fn servers_are_found_however_clients_write_them() {
    let machine = TestMachine::new();
    machine.write("home/project/.mcp.json", PLAIN);
    let project = machine.at("home/project").display().to_string();
    machine.write(
        "home/.claude.json",
        &format!(
            r#"{{"numStartups":3,"mcpServers":{{"web":{{"type":"http","url":"https://x.example/mcp"}}}},"projects":{{"{project}":{{"mcpServers":{{"db":{{"type":"stdio","command":"db","env":{{"TOKEN":"hush"}}}}}}}},"/other":{{"mcpServers":{{"no":{{"command":"no"}}}}}}}}}}"#
        ),
    );
    machine.write("home/.codex/config.toml", "model = \"x\"\n[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\"mcp-server-git\"]\nenabled = true\n[mcp_servers.\"my docs\"]\nurl = \"https://d.example\"\n");
    machine.write("home/.config/opencode/opencode.jsonc", "{ // mine\n \"mcp\": { \"time\": { \"type\": \"local\", \"command\": [\"uvx\", \"time\"], }, }, }");
    machine.write("home/.config/goose/config.yaml", "extensions:\n  developer: { type: builtin, enabled: true }\n  fetch: { type: stdio, cmd: uvx, args: [mcp-fetch], enabled: false }\n");
    machine.write("home/.continue/config.yaml", "name: me\nmcpServers:\n  - name: sq lite\n    command: npx\n    args:\n      - -y\n      - sqlite\n");
    machine.write("home/.config/zed/settings.json", "{ \"context_servers\": { \"old\": { \"source\": \"custom\", \"command\": { \"path\": \"z\", \"args\": [\"1\"] } }, \"ext\": { \"settings\": {} } } }");
    assert_eq!(
        machine.told(),
        "Claude Code project files: npx -y files
Claude Code local db: db
Claude Code user web: https://x.example/mcp
Zed user old: z 1
Codex user git: uvx mcp-server-git
Codex user my-docs: https://d.example
opencode user time: uvx time
Continue user sq-lite: npx -y sqlite
Goose user fetch: uvx mcp-fetch
"
    );
    let below = machine.find_in("home/project/sub");
    assert!(below.servers.iter().any(|one| one.scope == ConfigScope::Project), "{below:?}");
    assert!(below.servers.iter().any(|one| one.scope == ConfigScope::Local), "{below:?}");
}

#[test]
fn broken_and_odd_configs_are_named_and_skipped() {
    let machine = TestMachine::new();
    machine.write("home/project/.mcp.json", "{\"mcpServers\": {");
    machine.write("home/.codex/config.toml", "[mcp_servers\n");
    machine.write("home/.continue/config.yaml", "mcpServers: [a\n");
    fs::create_dir_all(machine.at("home/.cursor/mcp.json")).unwrap();
    machine.write("home/.gemini/settings.json", "");
    machine.write("home/.lmstudio/mcp.json", "[1, 2]");
    machine.write(
        "home/.kimi/mcp.json",
        r#"{"mcpServers":[{"command":"x"},7,{"name":"ok","command":"ok"}]}"#,
    );
    machine.write(
        "home/.copilot/mcp-config.json",
        r#"{"mcpServers":{"":{"command":"x"},"///":{"command":"x"},"n":null,"t":"x"}}"#,
    );
    fs::create_dir_all(machine.at("home/.qwen")).unwrap();
    fs::write(machine.at("home/.qwen/settings.json"), b"{\"a\": \"\xff\"}").unwrap();
    let found = machine.find_in("home/project");
    let names: Vec<&str> = found.servers.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(names, ["ok"]);
    let skipped: Vec<String> = found
        .skipped
        .iter()
        .map(|(path, reason)| {
            let path = path.strip_prefix(machine.at("home")).unwrap().display();
            format!("{path} {}", reason.split(':').next().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        skipped,
        [
            "project/.mcp.json not valid JSON",
            ".cursor/mcp.json not a regular file",
            ".codex/config.toml not valid TOML",
            ".continue/config.yaml not valid YAML",
            ".lmstudio/mcp.json not a map of settings",
            ".copilot/mcp-config.json an entry has no name",
            ".copilot/mcp-config.json entry \"///\"",
            ".copilot/mcp-config.json entry \"n\"",
            ".copilot/mcp-config.json entry \"t\"",
            ".qwen/settings.json not UTF-8",
            ".kimi/mcp.json an entry has no name",
        ]
    );
}

#[test]
fn variables_lead_to_configs_elsewhere() {
    let mut machine = TestMachine::new();
    machine.write("elsewhere/.claude.json", PLAIN);
    machine.write("codex/config.toml", "[mcp_servers.c]\ncommand = \"c\"\n");
    machine.write("xdg/amp/settings.json", r#"{"amp.mcpServers":{"a":{"command":"a"}}}"#);
    for (name, path) in
        [("CLAUDE_CONFIG_DIR", "elsewhere"), ("CODEX_HOME", "codex"), ("XDG_CONFIG_HOME", "xdg")]
    {
        let path = machine.at(path).display().to_string();
        machine.variables.insert(name, path);
    }
    assert_eq!(
        machine.told(),
        "Claude Code user files: npx -y files\nCodex user c: c\nAmp user a: a\n"
    );
}

#[test]
fn whatever_stands_before_a_config_its_servers_are_found() {
    for before in [" ", "\n", "\t\r\n", "// mine\n", "/* mine */", "\u{feff}\n"] {
        let machine = TestMachine::new();
        machine.write("home/project/.mcp.json", &format!("{before}{PLAIN}"));
        machine.write("home/project/.cursor/mcp.json", &format!("{before}{PLAIN}"));
        let opencode = r#"{"mcp":{"o":{"command":["x"]}}}"#;
        machine.write("home/project/opencode.jsonc", &format!("{before}{opencode}"));
        let found = machine.find_in("home/project");
        assert_eq!((found.servers.len(), found.skipped.len()), (3, 0), "{before:?}: {found:?}");
    }
}

#[test]
fn a_config_without_a_usable_server_is_named_with_the_reason() {
    for (text, expected) in [
        (r#"{"mcpServers":{"a":{}}}"#, "entry \"a\": it has neither a command nor a URL"),
        (r#"{"mcpServers":{"a":{"command":""}}}"#, "entry \"a\": its command is empty"),
        (
            r#"{"mcpServers":{"a":{"command":"x","args":"y"}}}"#,
            "entry \"a\": its `args` is not a list of texts",
        ),
        (r#"{"mcpServers":[]}"#, "`mcpServers` is an empty list"),
        (r#"{"mcpServers":"x"}"#, "`mcpServers` is not a map of servers"),
        ("7", "not a map of settings"),
    ] {
        let machine = TestMachine::new();
        machine.write("home/project/.cursor/mcp.json", text);
        let found = machine.find_in("home/project");
        let path = machine.at("home/project/.cursor/mcp.json");
        assert_eq!(found.skipped, [(path, expected.to_owned())], "{text}");
        assert!(found.servers.is_empty(), "{text}");
    }
    let machine = TestMachine::new();
    fs::create_dir_all(machine.at("home/project/.cursor")).unwrap();
    let path = machine.at("home/project/.cursor/mcp.json");
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    let found = machine.find_in("home/project");
    assert_eq!(found.skipped, [(path, "a link to nothing".to_owned())]);
    // A config that names no server is not reported as skipped.
    let machine = TestMachine::new();
    machine.write("home/.claude.json", r#"{"numStartups":1,"mcpServers":{}}"#);
    machine.write("home/.config/zed/settings.json", r#"{"theme":"dark"}"#);
    assert_eq!(machine.find_in("home/project").skipped, []);
}
