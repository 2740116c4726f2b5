//! `tapegate agents install`

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use super::{AgentMachine, CURSOR, POLICY, mode};
use crate::support::fake_server;

#[test]
fn an_installed_server_runs_behind_the_policy_without_a_hub() {
    let machine = AgentMachine::new();
    machine.write("home/project/tapegate.yaml", POLICY);
    let server = fake_server().display().to_string();
    let config = serde_json::json!({"mcpServers": {"s": {"command": server, "args": ["mcp=rm"]}}});
    machine.write("home/.cursor/mcp.json", &config.to_string());
    let done = machine.ok("install cursor");
    assert_eq!(done, "~/.cursor/mcp.json (Cursor): governed: s\n");
    let config: serde_json::Value =
        serde_json::from_str(&machine.read("home/.cursor/mcp.json")).unwrap();
    let entry = &config["mcpServers"]["s"];
    let words = |value: &serde_json::Value| {
        value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    let args: Vec<String> = words(&entry["args"]);
    let policy = machine.at("home/project/tapegate.yaml").display().to_string();
    let shim = ["shim", "--require-policy", "--config", &policy, "--server-id", "s", "--"];
    assert_eq!(args[..7], shim);
    // As an editor starts it: elsewhere, with a few variables.
    let mut shim = Command::new(entry["command"].as_str().unwrap());
    shim.args(&args).current_dir("/").env_clear();
    shim.env("HOME", machine.at("home")).env("TAPEGATE_HOME", machine.at("state"));
    let mut shim = shim.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"rm"}}"#;
    let mut input = shim.stdin.take().unwrap();
    writeln!(input, "{call}").unwrap();
    drop(input);
    let answer = String::from_utf8(shim.wait_with_output().unwrap().stdout).unwrap();
    assert!(answer.contains("-32014") && answer.contains("\"id\":7"), "{answer}");
}

#[test]
fn a_second_run_takes_in_what_was_added_and_changes_nothing_else() {
    let machine = AgentMachine::new();
    machine.write("home/project/tapegate.yaml", POLICY);
    machine.write("home/.cursor/mcp.json", CURSOR);
    machine.ok("install cursor");
    let first = machine.read("home/.cursor/mcp.json");
    let again = machine.ok("install cursor");
    assert_eq!(again, "~/.cursor/mcp.json (Cursor): nothing to change; governed: files\n");
    assert_eq!(machine.read("home/.cursor/mcp.json"), first);
    let new = "    \"new\": {\"command\": \"n\", \"args\": []},\n  },\n}";
    machine.write("home/.cursor/mcp.json", &first.replace("  },\n}", new));
    let again = machine.ok("install cursor");
    assert_eq!(again, "~/.cursor/mcp.json (Cursor): governed: files, new\n");
    let second = machine.read("home/.cursor/mcp.json");
    let (before, after) = second.split_once("\n    \"new\"").unwrap();
    assert!(first.starts_with(before), "{second}");
    assert!(after.contains("\"--server-id\", \"new\", \"--\", \"n\"]},\n  },\n}\n"), "{second}");
    // Back to what it would be without us: the original, with the server of the user.
    machine.ok("uninstall cursor");
    assert_eq!(machine.read("home/.cursor/mcp.json"), CURSOR.replace("  },\n}", new));
}

#[test]
fn a_dry_run_prints_a_patch_and_writes_nothing() {
    let machine = AgentMachine::new();
    machine.write("home/project/tapegate.yaml", POLICY);
    let config = machine.write("home/.cursor/mcp.json", CURSOR);
    let before = machine.files();
    let patch = machine.ok("install cursor --dry-run");
    assert_eq!(machine.files(), before);
    assert!(!machine.at("state").exists());
    assert!(patch.starts_with(&format!("--- {0}\n+++ {0}\n@@ ", config.display())), "{patch}");
    assert!(patch.contains("\n-    \"files\": {\"command\": \"npx\""), "{patch}");
    machine.ok("install cursor");
    let installed = machine.read("home/.cursor/mcp.json");
    // The patch leads to what an installation writes, and back.
    fs::write(&config, CURSOR).unwrap();
    let mut tool = Command::new("patch");
    tool.args(["-s", "-p0", "--"]).arg(&config).stdin(Stdio::piped());
    let Ok(mut tool) = tool.spawn() else { return };
    tool.stdin.take().unwrap().write_all(patch.as_bytes()).unwrap();
    assert!(tool.wait().unwrap().success());
    assert_eq!(machine.read("home/.cursor/mcp.json"), installed);
    let patch = machine.ok("uninstall cursor --dry-run");
    assert!(patch.contains("\n+    \"files\": {\"command\": \"npx\""), "{patch}");
    assert_eq!(machine.read("home/.cursor/mcp.json"), installed);
}

#[test]
fn links_modes_and_private_records_are_kept() {
    let machine = AgentMachine::new();
    let real = machine.write("home/dotfiles/mcp.json", CURSOR);
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir_all(machine.at("home/.cursor")).unwrap();
    let link = machine.at("home/.cursor/mcp.json");
    symlink("../dotfiles/mcp.json", &link).unwrap();
    machine.ok("install cursor");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(mode(&real), 0o600);
    assert!(machine.read("home/dotfiles/mcp.json").contains("--require-policy"));
    // Nothing of ours is beside the config.
    assert_eq!(fs::read_dir(machine.at("home/dotfiles")).unwrap().count(), 1);
    let installed = machine.at("state/installed");
    let record = fs::read_dir(&installed).unwrap().next().unwrap().unwrap().path();
    let modes = (mode(&installed), mode(&record), mode(&record.join("record.json")));
    assert_eq!(modes, (0o700, 0o700, 0o600));
    machine.ok("uninstall cursor");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!((machine.read("home/dotfiles/mcp.json").as_str(), mode(&real)), (CURSOR, 0o600));
    assert_eq!(fs::read_dir(&installed).unwrap().count(), 0);
}

#[test]
fn only_the_servers_that_were_picked_are_installed() {
    let machine = AgentMachine::new();
    let text = r#"{"mcpServers":{"a b":{"command":"a"},"c":{"command":"c"}}}"#;
    machine.write("home/.cursor/mcp.json", text);
    machine.ok("install cursor --server a-b");
    // The other one was left out on purpose.
    let expected = ["cursor a b governed install", "cursor c ungoverned"];
    assert_eq!(machine.statuses(), expected);
    machine.ok("install cursor");
    assert_eq!(machine.statuses()[1], "cursor c governed install");
    machine.ok("uninstall cursor --server c");
    assert_eq!(machine.statuses(), expected);
    machine.ok("uninstall cursor");
    assert_eq!(machine.read("home/.cursor/mcp.json"), text);
    let told = machine.fails("install cursor --server d", 64);
    assert!(told.contains("there is no server `d`") && told.contains("a b, c"), "{told}");
}

#[test]
fn the_policy_of_an_entry_is_the_one_that_the_agent_would_not_find() {
    let machine = AgentMachine::new();
    let policy = machine.write("home/project/tapegate.yaml", POLICY).display().to_string();
    let one = r#"{"mcpServers":{"s":{"command":"x"}}}"#;
    for path in [".claude.json", ".cursor/mcp.json"] {
        machine.write(&format!("home/{path}"), one);
    }
    machine.ok("install claude-code cursor");
    // Claude Code starts servers in the project's folder; an editor may start them anywhere.
    assert!(!machine.read("home/.claude.json").contains("--config"));
    assert!(machine.read("home/.cursor/mcp.json").contains(&policy));
    machine.ok("install claude-code --config tapegate.yaml");
    assert!(machine.read("home/.claude.json").contains(&policy));
    machine.ok("uninstall --all");
    assert_eq!(machine.read("home/.claude.json"), one);
    let told = machine.fails("install cursor --config none.yaml", 2);
    assert!(told.contains("there is no policy") && told.contains("tapegate init"), "{told}");
    fs::remove_file(&policy).unwrap();
    let told = super::errors(&machine.run("install cursor"));
    assert!(told.contains("warning: there is no policy here"), "{told}");
}

#[test]
fn any_other_agent_is_named_by_its_config() {
    let machine = AgentMachine::new();
    let texts = [
        ("a.json", r#"{"servers":{"s":{"command":"x"}}} // mine"#),
        ("a.toml", "[mcp_servers.s]\ncommand = 'x' # mine\n"),
        ("a.yaml", "mcpServers:\n  - name: s\n    command: x # mine\n"),
    ];
    for (name, text) in texts {
        machine.write(&format!("home/project/{name}"), text);
        machine.ok(&format!("install custom --config-path {name}"));
        assert!(machine.read(&format!("home/project/{name}")).contains("--require-policy"));
        machine.ok(&format!("uninstall custom --config-path {name}"));
        assert_eq!(machine.read(&format!("home/project/{name}")), text);
    }
}

#[test]
fn a_wrong_command_line_is_refused_with_the_way_out() {
    let machine = AgentMachine::new();
    for (line, code, expected) in [
        ("install curser", 64, "did you mean `cursor`?"),
        ("install custom", 64, "name it with --config-path FILE"),
        ("install", 64, "NAME"),
        ("install cursor --all", 64, "cannot be used with"),
        ("install cursor", 1, "no MCP server of Cursor was found"),
        ("install --all", 1, "nothing to install"),
        ("uninstall cursor", 1, "nothing is installed for cursor"),
        ("install cursor --config-path none.json", 3, "there is no config"),
        ("install cursor zed --config-path x", 64, "--config-path is for one agent"),
    ] {
        let told = machine.fails(line, code);
        assert!(told.contains(expected), "{line}: {told}");
    }
    assert!(!machine.at("state").exists());
}
