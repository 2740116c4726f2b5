//! Servers that the agent gets from its command line, or in another folder: none runs around the gate.

use crate::wrap_machine::{WrapMachine, WrapProcess};

/// `wrap` around a shell that is started as Claude Code, with these arguments for it.
fn wrap_claude(machine: &WrapMachine, words: &[&str]) -> WrapProcess {
    let mut command = machine.command(&["wrap", "--", "claude", "-c"]);
    command.arg("cat \"$@\"").args(words);
    let path = format!("{}/bin:{}", machine.folder().display(), std::env::var("PATH").unwrap());
    command.env("PATH", path);
    WrapProcess::start(command)
}

#[test]
fn a_config_that_is_named_for_the_agent_is_governed() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let extra = machine.write("project/extra.json", &machine.config(&["extra"]));
    let before = machine.files();
    let named = extra.display().to_string();
    let ended = wrap_claude(&machine, &["--mcp-config", &named]).end();
    let ended = ended.exits(0).said("\"--server-id\", \"extra\"");
    ended.complained("extra  extra.json");
    assert_eq!(machine.files(), before);
}

#[test]
fn servers_that_are_in_no_config_are_refused() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    machine.write("home/.codex/config.toml", "[mcp_servers.s]\ncommand = 'x'\n");
    let before = machine.files();
    let inline = machine.config(&["inline"]);
    for words in [["--mcp-config", &inline], ["--plugin-dir", "/opt/plugin"]] {
        let ended = wrap_claude(&machine, &words).end().exits(2);
        let ended = ended.complained(&format!("`{}` gives Claude Code servers", words[0]));
        assert_eq!(ended.complained("add the servers to a config").output, "");
    }
    let words = ["wrap", "--", "codex", "-c", "mcp_servers.s.command='y'"];
    let ended = WrapProcess::start(machine.command(&words)).end().exits(2);
    ended.complained("`-c` gives Codex servers");
    let words = ["wrap", "--", "env", "CODEX_HOME=/opt/other", "codex"];
    let ended = WrapProcess::start(machine.command(&words)).end().exits(2);
    ended.complained("the command sets `CODEX_HOME`, with which Codex reads other configs");
    assert_eq!(machine.files(), before);
    // The project's servers would be read from a copy.
    machine.write("project/.mcp.json", &machine.config(&["p"]));
    let ended = wrap_claude(&machine, &["--worktree"]).end().exits(2);
    ended.complained("with `--worktree`, Claude Code reads a copy of the project's config");
}

#[test]
fn configs_of_a_folder_that_the_agent_is_told_to_work_in_are_governed() {
    let machine = WrapMachine::new();
    let path = machine.write("other/.cursor/mcp.json", &machine.config(&["o"]));
    let before = std::fs::read(&path).unwrap();
    machine.write("home/.cursor/mcp.json", &machine.config(&["s"]));
    let cat = format!("cat={}", path.display());
    let mut command = machine.wrap(&["--agent-type", "cursor"], &[&cat]);
    command.arg(format!("say={}/other", machine.folder().display()));
    let ended = WrapProcess::start(command).end().exits(0).said("\"--server-id\", \"o\"");
    ended.complained("governed");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn servers_of_plugins_are_named_as_not_governed() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    machine.write("home/.claude/plugins/cache/m/p/.mcp.json", "{\"mcpServers\":{}}");
    machine.write("home/.claude/plugins/cache/m/p/README.md", "mcpServers");
    machine.write("home/.claude/agents/own.md", "---\nmcpServers: [x]\n---\n");
    let ended = machine.start(&[], &["say=started"]).end().exits(0).said("started");
    let ended = ended.complained("p/.mcp.json");
    let ended = ended.complained("agents/own.md");
    let ended = ended.complained("NOT governed: servers of a plugin, an extension or an agent");
    assert!(!ended.errors.contains("README"), "{}", ended.errors);
}
