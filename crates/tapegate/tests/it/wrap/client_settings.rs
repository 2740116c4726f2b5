//! What agents keep outside of their entries: switches, rules, and servers in other places.

use crate::wrap_machine::{WrapMachine, WrapProcess};

/// The project's record in the user's config of Claude Code, with these lists.
fn claude_with(machine: &WrapMachine, lists: &str) {
    let project = machine.project("").display().to_string();
    let project = project.trim_end_matches('/');
    let config = machine.config(&["one", "two"]);
    let projects = format!(",\n  \"projects\": {{ {project:?}: {{ {lists} }} }}\n}}\n");
    machine.write("home/.claude.json", &(config.trim_end_matches("\n}\n").to_owned() + &projects));
}

#[test]
fn ec_stdio_004_servers_that_are_all_off_in_the_agent_s_settings_are_disabled_too() {
    let machine = WrapMachine::new();
    claude_with(&machine, r#""disabledMcpServers": ["one", "two"]"#);
    let before = machine.files();
    let ended = machine.start(&[], &["say=started"]).end().exits(2);
    assert_eq!(ended.complained("All MCP servers are disabled").output, "");
    assert_eq!(machine.files(), before);
    let gemini =
        machine.config(&["a"]).replace("\"theme\"", "\"mcp\": {\"excluded\": [\"a\"]}, \"theme\"");
    machine.write("home/.gemini/settings.json", &gemini);
    let ended = machine.start(&["--agent-type", "gemini"], &["say=started"]).end().exits(2);
    ended.complained("All MCP servers are disabled");
}

#[test]
fn a_server_that_is_off_in_the_agent_s_settings_is_governed_should_it_be_switched_on() {
    let machine = WrapMachine::new();
    claude_with(&machine, r#""disabledMcpServers": ["two"]"#);
    machine.write("project/.mcp.json", &machine.config(&["three", "four"]));
    let rejected = r#"{"disabledMcpjsonServers":["four"],"enabledMcpjsonServers":["three"]}"#;
    machine.write("project/.claude/settings.local.json", rejected);
    let before = machine.files();
    // The scripted agent does what `/mcp` of Claude Code can do at any time.
    let steps = ["start=~/.claude.json#mcpServers", "call", "close"];
    let ended = machine.start(&[], &steps).end().exits(0).said("two {");
    let off = "disabled in the client's settings; governed if it is enabled there";
    let ended = ended.complained(&format!("two    ~/.claude.json  {off}"));
    let ended = ended.complained(&format!("four   .mcp.json       {off}"));
    ended.complained("three  .mcp.json       governed\n").complained("2 servers, 2 calls");
    assert_eq!(machine.files(), before);
}

#[test]
fn rules_for_exact_commands_are_a_warning() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let rules = r#"{"allowedMcpServers":[{"serverCommand":["npx","x"]}]}"#;
    machine.write("home/.claude/settings.json", rules);
    let ended = machine.start(&[], &["say=started"]).end().exits(0).said("started");
    ended.complained("`allowedMcpServers` has rules for exact commands");
}

#[test]
fn vscodium_has_configs_of_its_own() {
    let machine = WrapMachine::new();
    let config = machine.config(&["s"]).replace("mcpServers", "servers");
    machine.write("home/.config/VSCodium/User/mcp.json", &config);
    machine.write(
        "home/.config/VSCodium/User/profiles/a1/mcp.json",
        &config.replace("\"s\"", "\"p\""),
    );
    let other = machine.write("home/.config/Code/User/mcp.json", &config);
    let before = machine.files();
    let steps = [
        "start=~/.config/VSCodium/User/mcp.json#servers",
        "start=~/.config/VSCodium/User/profiles/a1/mcp.json#servers",
        "call",
        &format!("cat={}", other.display()),
        "close",
    ];
    let ended = machine.start(&["--agent-type", "vscodium"], &steps).end().exits(0);
    let ended = ended.said("s {").said("p {").said(&config);
    ended.complained("2 servers, 2 calls");
    assert_eq!(machine.files(), before);
}

#[test]
fn servers_in_places_that_cannot_be_governed_are_named() {
    let machine = WrapMachine::new();
    let servers = machine.config(&["s"]);
    for (config, key) in [
        ("home/.cursor/mcp.json", "mcpServers"),
        ("home/.config/Claude/claude_desktop_config.json", "mcpServers"),
        ("home/.config/Code/User/mcp.json", "servers"),
    ] {
        machine.write(config, &servers.replace("mcpServers", key));
    }
    machine.write("home/.cursor/plugins/p/mcp.json", &servers);
    let extension = "home/.config/Claude/Claude Extensions/ant.dir.x/manifest.json";
    machine.write(extension, r#"{"server":{"type":"node","mcp_config":{"command":"node"}}}"#);
    machine.write("project/.mcp.json", &servers);
    machine.write("home/.copilot/mcp-config.json", &servers);
    let container =
        r#"{"customizations":{"vscode":{"mcp":{"servers":{"c":{"command":"x"}}}}}} // x"#;
    machine.write("project/.devcontainer/devcontainer.json", container);
    let plugin = "NOT governed: servers of a plugin, an extension or an agent";
    let host = "NOT governed: the agent host of VS Code starts these servers";
    for (agent, expected) in [
        ("cursor", &[("plugins/p/mcp.json", plugin)][..]),
        ("claude-desktop", &[("Claude Extensions/", plugin)]),
        (
            "vscode",
            &[
                (".mcp.json ", host),
                ("mcp-config.json", host),
                ("devcontainer.json", "NOT governed: these servers are started in the project's"),
            ],
        ),
    ] {
        let before = machine.files();
        let ended = machine.start(&["--agent-type", agent], &["say=started"]).end().exits(0);
        for (path, reason) in expected {
            let mut lines = ended.errors.lines();
            assert!(
                lines.any(|line| line.contains(path) && line.contains(reason)),
                "{path}: {}",
                ended.errors
            );
        }
        assert_eq!(machine.files(), before);
    }
}

#[test]
fn configs_in_a_folder_that_a_variable_names_are_governed() {
    for (client, variable, path) in [
        ("cline", "CLINE_DIR", "data/settings/cline_mcp_settings.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("continue", "CONTINUE_GLOBAL_DIR", "config.yaml"),
    ] {
        let machine = WrapMachine::new();
        let config = machine.write(&format!("elsewhere/{path}"), &machine.config(&["s"]));
        let mut command = machine.wrap(&["--dry-run", "--agent-type", client], &[]);
        command.env(variable, machine.folder().join("elsewhere"));
        let ended = WrapProcess::start(command).end().exits(0);
        assert!(ended.output.contains(&format!("+++ {}\n", config.display())), "{ended:?}");
        assert!(ended.output.contains("\"--server-id\", \"s\""), "{ended:?}");
        // Set for the agent alone, it would lead past what is governed.
        let mut command = machine.command(&["wrap", "--agent-type", client, "--", "env"]);
        command.arg(format!("{variable}=/elsewhere")).arg(client);
        let ended = WrapProcess::start(command).end().exits(2);
        ended.complained(&format!("the command sets `{variable}`"));
    }
}
