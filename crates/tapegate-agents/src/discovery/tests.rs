//! Tests with configs of all clients, on a machine with a home folder and a project.

use std::collections::BTreeMap;
use std::fs;

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
    let mut expected = std::collections::BTreeSet::new();
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
            // Clients share some.
            expected.insert(path);
        }
    }
    let found = machine.find_in("home/project");
    assert_eq!(found.skipped, []);
    assert!(expected.len() > 60, "{expected:?}");
    assert_eq!(found.servers.len(), expected.len(), "{found:#?}");
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
        "Claude Code local db: db
Claude Code project files: npx -y files
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
    // A name without a letter or digit is a name.
    assert_eq!(names, ["server-cbf29ce4", "server-eed41417", "ok"]);
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
fn only_a_client_that_reads_a_switch_leaves_a_server_out() {
    let text = r#"{"mcpServers":{"off":{"command":"x","disabled":true}}}"#;
    let machine = TestMachine::new();
    // Claude Code starts such a server anyway, so it must not count as disabled.
    for path in [".claude.json", ".cursor/mcp.json", ".gemini/settings.json", ".kimi/mcp.json"] {
        machine.write(&format!("home/{path}"), text);
    }
    let found = machine.find_in("home/project").servers;
    let disabled: Vec<_> = found.iter().map(|one| (one.client.id, one.entry.is_disabled)).collect();
    let expected = [("claude-code", false), ("cursor", false), ("gemini", false), ("kimi", true)];
    assert_eq!(disabled, expected);
}

#[test]
fn of_entries_with_one_name_the_one_that_counts_is_found() {
    let machine = TestMachine::new();
    machine.write(
        "home/.kimi/mcp.json",
        r#"{"mcpServers":{"a":{"command":"old","disabled":true},"a":{"url":"https://x"}}}"#,
    );
    let twice = "mcpServers:\n  - {name: a, command: x}\n  - {name: a, command: y}\n";
    machine.write("home/.continue/config.yaml", twice);
    assert_eq!(machine.told(), "Continue user a: x\nKimi user a: https://x\n");
    let found = machine.find_in("home/project");
    assert!(!found.servers[1].entry.is_disabled);
    // It runs around the gate, so it must not pass in silence.
    let reason = "entry \"a\": an entry before it has the same name".to_owned();
    assert_eq!(found.skipped, [(machine.at("home/.continue/config.yaml"), reason)]);
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
fn a_config_that_its_client_reads_otherwise_than_written_is_not_used() {
    let machine = TestMachine::new();
    let server = r#"{"type":"local","command":["x"],"enab{env:NOPE}led":true,"enabled":false}"#;
    machine.write("home/project/opencode.json", &format!(r#"{{"mcp":{{"s":{server}}}}}"#));
    // This client does not replace references in keys.
    machine.write("home/project/.mcp.json", &format!(r#"{{"mcpServers":{{"s":{server}}}}}"#));
    let found = machine.find_in("home/project");
    let skipped = found.skipped.iter().filter(|(path, _)| path.ends_with("opencode.json"));
    let reasons: Vec<&str> = skipped.map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(reasons, ["a reference such as `{env:NAME}` changes its keys or its structure"]);
    assert!(found.servers.iter().all(|server| server.client.id != "opencode"));
    assert!(found.configs.iter().any(|config| config.fault.is_some()));
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

/// `scope name`, and the config that counts instead or `off`, for each server of a client.
fn states(machine: &TestMachine, client: &str) -> Vec<String> {
    let variable =
        |name: &str| machine.variables.get(name).map(|value| OsString::from(value.as_str()));
    let folder = machine.at("home/project");
    let context = DiscoveryContext { folder: &folder, variable: &variable };
    let scan = find_of_client(&context, crate::detection::by_id(client).unwrap());
    let line = |server: &ConfiguredServer| {
        let winner = server.overridden_by.as_ref().map(|path| {
            format!(" by {}", path.strip_prefix(machine.at("home")).unwrap().display())
        });
        let off = if server.is_switched_off { " off" } else { "" };
        format!("{} {}{}{off}", server.scope.as_str(), server.name, winner.unwrap_or_default())
    };
    scan.servers.iter().map(line).collect()
}

#[test]
fn of_servers_with_one_name_the_one_that_the_client_starts_counts() {
    let machine = TestMachine::new();
    let project = machine.at("home/project").display().to_string();
    let one = r#"{"mcpServers":{"s":{"command":"x"}}}"#;
    machine.write("home/project/.mcp.json", one);
    let local = format!(r#""projects":{{"{project}":{one}}}"#);
    machine.write("home/.claude.json", &format!("{},{local}}}", &one[..one.len() - 1]));
    assert_eq!(
        states(&machine, "claude-code"),
        ["local s", "project s by .claude.json", "user s by .claude.json"]
    );
    machine.write("home/.claude.json", one);
    assert_eq!(states(&machine, "claude-code"), ["project s", "user s by project/.mcp.json"]);
    // The nearest folder counts, and of a profile it is not known whether it is in use.
    let toml = "[mcp_servers.s]\ncommand = 'x'\n";
    for path in ["project/.codex/config.toml", ".codex/config.toml", ".codex/p.config.toml"] {
        machine.write(&format!("home/{path}"), toml);
    }
    assert_eq!(
        states(&machine, "codex"),
        ["project s", "user s by project/.codex/config.toml", "user s"]
    );
    let mcp = r#"{"mcp":{"s":{"type":"local","command":["x"]}}}"#;
    for path in ["project/opencode.json", "project/.opencode/opencode.json"] {
        machine.write(&format!("home/{path}"), mcp);
    }
    machine.write("home/.config/opencode/opencode.json", mcp);
    let winner = "project/.opencode/opencode.json";
    assert_eq!(
        states(&machine, "opencode"),
        ["project s".to_owned(), format!("project s by {winner}"), format!("user s by {winner}")]
    );
    // These start both.
    let servers = r#"{"servers":{"s":{"command":"x"}}}"#;
    machine.write("home/project/.vscode/mcp.json", servers);
    machine.write("home/.config/Code/User/mcp.json", servers);
    assert_eq!(states(&machine, "vscode"), ["project s", "user s"]);
}

#[test]
fn servers_that_the_client_s_settings_switch_off_are_known() {
    let machine = TestMachine::new();
    let project = machine.at("home/project").display().to_string();
    let two = r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"x"}}}"#;
    machine.write("home/project/.mcp.json", two);
    let switches = r#"{"disabledMcpServers":["b"],"disabledMcpjsonServers":["c"]}"#;
    let user = r#""mcpServers":{"u":{"command":"x"},"c":{"command":"x"}}"#;
    machine.write(
        "home/.claude.json",
        &format!(r#"{{{user},"projects":{{"{project}":{switches}}}}}"#),
    );
    machine
        .write("home/project/.claude/settings.local.json", r#"{"disabledMcpjsonServers":["a"]}"#);
    // A rejected server of the project is not one of the user with that name.
    assert_eq!(
        states(&machine, "claude-code"),
        ["project a off", "project b off", "user u", "user c"]
    );
    machine.write(
        "home/.gemini/settings.json",
        r#"{"mcp":{"allowed":["a","b"],"excluded":["b"]},
            "mcpServers":{"a":{"command":"x"},"b":{"command":"x"},"c":{"command":"x"}}}"#,
    );
    assert_eq!(states(&machine, "gemini"), ["user a", "user b off", "user c off"]);
}

#[test]
fn rules_for_exact_commands_are_found() {
    let machine = TestMachine::new();
    machine.write(
        "home/.claude/settings.json",
        r#"{"allowedMcpServers":[{"serverName":"x"},{"serverCommand":["npx","x"]}],
            "deniedMcpServers":[{"serverName":"y"}]}"#,
    );
    machine.write("home/.codex/requirements.toml", "[mcp_servers.x.identity]\ncommand = 'npx'\n");
    let folder = machine.at("home/project");
    let variable =
        |name: &str| machine.variables.get(name).map(|value| OsString::from(value.as_str()));
    let context = DiscoveryContext { folder: &folder, variable: &variable };
    let rules = |client: &str| {
        let client = crate::detection::by_id(client).unwrap();
        let rules = crate::switches::exact_rules(&context, client);
        rules.into_iter().map(|rule| rule.key).collect::<Vec<_>>()
    };
    assert_eq!(rules("claude-code"), ["allowedMcpServers"]);
    assert_eq!(rules("codex"), ["mcp_servers"]);
    assert_eq!(rules("cursor"), [""; 0]);
}
