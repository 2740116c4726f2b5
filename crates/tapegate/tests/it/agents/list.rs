//! `tapegate agents list`

use super::{AgentMachine, CURSOR};

#[test]
fn each_server_is_listed_with_its_state() {
    let machine = AgentMachine::new();
    machine.write("home/.cursor/mcp.json", CURSOR);
    machine.write(
        "home/.claude.json",
        r#"{"mcpServers":{"web":{"type":"http","url":"https://x.example/mcp","oauth":{}},"h":{"command":"tapegate","args":["shim","--","h"]}}}"#,
    );
    machine.write(
        "home/.cline/data/settings/cline_mcp_settings.json",
        r#"{"mcpServers":{"off":{"command":"x","disabled":true},"odd":{"type":"x"}}}"#,
    );
    let expected = [
        "claude-code web ungovernable",
        "claude-code h governed hand",
        "cursor files ungoverned",
        "cline off disabled",
        "cline unused",
    ];
    assert_eq!(machine.statuses(), expected);
    machine.write("home/project/tapegate.yaml", super::POLICY);
    machine.ok("install cursor");
    assert_eq!(machine.statuses()[2], "cursor files governed install");
    // A server that is added later runs around the gate, and so does one in another config.
    let text = machine.read("home/.cursor/mcp.json");
    let added = text.replace("\n  },\n}", "\n    \"new\": {\"command\": \"n\"},\n  },\n}");
    machine.write("home/.cursor/mcp.json", &added);
    machine.write("home/project/.cursor/mcp.json", r#"{"mcpServers":{"p":{"command":"p"}}}"#);
    let statuses = machine.statuses();
    assert_eq!(statuses[2], "cursor p bypassed");
    assert_eq!(statuses[3..5], ["cursor files governed install", "cursor new bypassed"]);
    let done = machine.run("");
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(text.contains("    new    BYPASSED             n\n"), "{text}");
    assert!(text.contains("  ~/.cursor/mcp.json (user)\n"), "{text}");
    let hint = super::errors(&done);
    assert!(hint.contains("`tapegate agents install cursor` takes them in"), "{hint}");
}

#[test]
fn a_machine_without_servers_is_told_what_to_do() {
    let machine = AgentMachine::new();
    let done = machine.run("list");
    assert_eq!(
        String::from_utf8(done.stdout.clone()).unwrap(),
        "no agent here has an MCP server\n"
    );
    assert!(super::errors(&done).contains("add a server to an agent, such as `claude mcp add"));
    assert_eq!(machine.ok("--format json"), "[]\n");
    assert_eq!(machine.ok("list --format jsonl"), "");
    // Listing writes nothing.
    assert!(machine.files().is_empty() && !machine.at("state").exists());
}

#[test]
fn a_session_of_wrap_is_told_from_what_is_installed() {
    let machine = AgentMachine::new();
    let config = machine.write("home/.cursor/mcp.json", CURSOR);
    let rewritten = CURSOR
        .replace("\"npx\", ", "\"/t/tapegate\", ")
        .replace("[\"-y\"", "[\"shim\", \"--server-id\", \"files\", \"--\", \"npx\", \"-y\"");
    machine.write("home/.cursor/mcp.json", &rewritten);
    machine.write("home/.cursor/mcp.json.tapegate-backup", CURSOR);
    assert_eq!(machine.statuses(), ["cursor files governed wrap"]);
    std::fs::remove_file(config.with_extension("json.tapegate-backup")).unwrap();
    assert_eq!(machine.statuses(), ["cursor files governed hand"]);
}

#[test]
fn configs_of_other_projects_are_named() {
    let machine = AgentMachine::new();
    machine.write("home/project/.cursor/mcp.json", CURSOR);
    machine.ok("install cursor");
    let done = machine.command("").current_dir(machine.at("home")).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("Installed elsewhere: ~/project/.cursor/mcp.json (cursor)"), "{text}");
}

#[test]
fn a_bash_tool_is_governed_by_itself_if_it_applies_a_policy() {
    let machine = AgentMachine::new();
    let entry = |name: &str, more: &str| {
        format!("\"{name}\":{{\"command\":\"/opt/tapegate\",\"args\":[\"bash\"{more}]}}")
    };
    let named = entry("named", ",\"--policy\",\"commands.yml\"");
    let entries = [named, entry("found", ""), entry("off", ",\"--no-policy\"")].join(",");
    machine.write("home/.claude.json", &format!("{{\"mcpServers\":{{{entries}}}}}"));
    let expected = [
        "claude-code named governed itself",
        "claude-code found ungoverned",
        "claude-code off ungoverned",
    ];
    assert_eq!(machine.statuses(), expected);
    // Claude Code starts it here, where it finds this one.
    machine.write("home/project/tapegate.yaml", super::POLICY);
    assert_eq!(machine.statuses()[1], "claude-code found governed itself");
    let text = machine.ok("list");
    assert!(text.contains("    named  governed, by itself  /opt/tapegate bash"), "{text}");
    assert!(text.contains("3 servers: 2 governed, 1 not governed"), "{text}");
    // With an installation, only the one without a policy runs around the gate.
    machine.ok("install claude-code --server off");
    machine.ok("uninstall claude-code --server off");
    machine.write("home/project/.mcp.json", r#"{"mcpServers":{"p":{"command":"p"}}}"#);
    machine.ok("install claude-code --server p");
    assert_eq!(
        machine.statuses()[1..3],
        ["claude-code named governed itself", "claude-code found governed itself"]
    );
}
