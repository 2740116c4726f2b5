//! `tapegate agents uninstall`, for the configs of every agent.

use std::collections::BTreeSet;
use std::fs;

use tapegate_agents::client_table::{CLIENTS, ConfigFile, EntryStyle, PathRoot, ServerKeys};
use tapegate_agents::tree::ConfigFormat;

use super::{AgentMachine, CURSOR};

/// Where the machine has a config, if it is not one of the whole machine.
fn path_of(file: &ConfigFile) -> Option<String> {
    let root = match file.root {
        PathRoot::Project => "home/project",
        PathRoot::Home => "home",
        PathRoot::Config => "home/.config",
        PathRoot::Variable(_, otherwise) => &format!("home/{otherwise}"),
        PathRoot::File(_) | PathRoot::System => return None,
    };
    Some(format!("{root}/{}", file.path.replace('*', "any")).replace("//", "/"))
}

/// A config with a local server and a remote one, as the client writes them.
fn config_of(file: &ConfigFile, style: EntryStyle) -> Option<String> {
    let ServerKeys::Path(keys) = file.keys else { return None };
    let key = keys.last().unwrap();
    Some(match (file.format, style) {
        (ConfigFormat::Toml, _) => format!(
            "# mine\r\n[{key}.a]\r\ncommand = 'x' # ü\r\nargs = [\r\n  '1',\r\n]\r\n[{key}.w]\r\nurl = 'https://x'\r\nhttp_headers = {{ A = 'b' }}\r\n"
        ),
        (ConfigFormat::Yaml, EntryStyle::GooseYaml) => format!(
            "{key}:\n  a: {{ type: stdio, cmd: x, args: ['1'], enabled: true }} # mine\n  w:\n    type: streamable_http\n    uri: https://x\n    headers: {{ A: b }}\n"
        ),
        (ConfigFormat::Yaml, _) => {
            format!("{key}:\n  - name: a # mine\n    command: x\n    args:\n      - '1'\n")
        }
        (ConfigFormat::Json, _) => {
            let entries = match style {
                EntryStyle::OpencodeJson => {
                    r#"{"a":{"type":"local","command":["x","1"]},"w":{"type":"remote","url":"https://x","headers":{"A":"b"}}}"#
                }
                _ => {
                    r#"{"a":{"command":"x","args":["1"]},"w":{"type":"http","url":"https://x","headers":{"A":"b"}}}"#
                }
            };
            let nested = |inner: String, key: &&str| format!("{{\n\t\"{key}\" : {inner} }}");
            format!("\u{feff}{}\n\n", keys.iter().rev().fold(entries.to_owned(), nested))
        }
    })
}

#[test]
fn every_config_of_every_agent_is_byte_for_byte_as_it_was() {
    let machine = AgentMachine::new();
    let mut written = BTreeSet::new();
    for client in CLIENTS {
        for file in client.files {
            let (Some(path), Some(text)) = (path_of(file), config_of(file, client.style)) else {
                continue;
            };
            machine.write(&path, &text);
            // Clients share some.
            written.insert(path);
        }
    }
    let count = written.len();
    assert!(count > 50, "{count}");
    let before = machine.files();
    let told = machine.ok("install --all");
    assert_eq!(told.lines().count(), count, "{told}");
    let statuses = machine.statuses();
    let odd: Vec<_> = statuses.iter().filter(|one| !one.ends_with("governed install")).collect();
    assert!(odd.is_empty() && statuses.len() >= count, "{odd:?}");
    for (path, text) in machine.files() {
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("--require-policy"), "{}: {text}", path.display());
    }
    machine.ok("uninstall --all");
    assert_eq!(machine.files(), before);
}

#[test]
fn what_others_have_changed_since_stays() {
    let machine = AgentMachine::new();
    machine.write("home/.cursor/mcp.json", CURSOR);
    machine.ok("install cursor");
    // A client that writes its whole config again, with another server and a setting.
    let entry = machine.read("home/.cursor/mcp.json");
    let (_, entry) = entry.split_once("\"files\": ").unwrap();
    let (entry, _) = entry.split_once("},\n").unwrap();
    let text =
        format!("{{\"mcpServers\":{{\"files\":{entry}}},\"n\":{{\"command\":\"n\"}}}},\"x\":1}}");
    machine.write("home/.cursor/mcp.json", &text);
    let told = machine.ok("uninstall cursor");
    assert!(told.contains("put back; what others have changed since stays"), "{told}");
    let original = "{\"command\": \"npx\", \"args\": [\"-y\", \"files\"]}";
    let expected =
        format!("{{\"mcpServers\":{{\"files\":{original},\"n\":{{\"command\":\"n\"}}}},\"x\":1}}");
    assert_eq!(machine.read("home/.cursor/mcp.json"), expected);
    // An entry that somebody has put back by hand is not touched.
    machine.ok("install cursor");
    machine.write("home/.cursor/mcp.json", "{\"mcpServers\":{\"files\":{\"command\":\"mine\"}}}");
    machine.ok("uninstall cursor");
    assert_eq!(
        machine.read("home/.cursor/mcp.json"),
        "{\"mcpServers\":{\"files\":{\"command\":\"mine\"}}}"
    );
}

#[test]
fn a_config_that_is_gone_or_broken_is_told() {
    let machine = AgentMachine::new();
    let config = machine.write("home/.cursor/mcp.json", CURSOR);
    machine.ok("install cursor");
    let installed = machine.read("home/.cursor/mcp.json");
    machine.write("home/.cursor/mcp.json", "{ half");
    let told = machine.fails("uninstall cursor", 2);
    assert!(told.contains("cannot be parsed") && told.contains("record.json"), "{told}");
    assert_eq!(machine.read("home/.cursor/mcp.json"), "{ half");
    machine.write("home/.cursor/mcp.json", &installed);
    machine.ok("uninstall cursor");
    assert_eq!(machine.read("home/.cursor/mcp.json"), CURSOR);
    machine.ok("install cursor");
    fs::remove_file(&config).unwrap();
    let told = machine.ok("uninstall cursor");
    assert!(told.contains("it is gone, so there is nothing to put back"), "{told}");
    assert!(!config.exists());
    assert!(machine.fails("uninstall cursor", 1).contains("`tapegate agents install cursor`"));
}
