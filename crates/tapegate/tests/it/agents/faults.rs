//! Configs that are in use or cannot be written, and kill -9 at any moment.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use tapegate_agents::config_guard::ConfigLock;

use super::{AgentMachine, CURSOR, POLICY, errors};
use crate::support::SeededRandom;

#[test]
fn a_config_that_a_session_has_is_left_alone() {
    let machine = AgentMachine::new();
    let config = machine.write("home/.cursor/mcp.json", CURSOR);
    machine.write("home/.kimi/mcp.json", CURSOR);
    let lock = ConfigLock::acquire(&config).unwrap();
    let done = machine.run("install cursor kimi");
    assert_eq!(done.status.code(), Some(3));
    let told = errors(&done);
    assert!(told.contains("is in use by another session"), "{told}");
    assert!(told.contains("hint: end that session"), "{told}");
    assert_eq!(machine.read("home/.cursor/mcp.json"), CURSOR);
    // The others are not kept from being governed.
    assert!(machine.read("home/.kimi/mcp.json").contains("--require-policy"));
    drop(lock);
    machine.ok("install cursor");
    let lock = ConfigLock::acquire(&config).unwrap();
    assert!(machine.fails("uninstall cursor", 3).contains("in use"));
    drop(lock);
    machine.ok("uninstall cursor");
    assert_eq!(machine.read("home/.cursor/mcp.json"), CURSOR);
}

#[test]
fn what_a_killed_session_left_is_put_back_before_anything_is_installed() {
    let machine = AgentMachine::new();
    machine.write("home/project/tapegate.yaml", POLICY);
    let rewritten = CURSOR
        .replace("\"npx\", ", "\"/t/tapegate\", ")
        .replace("[\"-y\"", "[\"shim\", \"--governance-endpoint\", \"u\", \"--\", \"npx\", \"-y\"");
    machine.write("home/.cursor/mcp.json", &rewritten);
    machine.write("home/.cursor/mcp.json.tapegate-backup", CURSOR);
    let told = errors(&machine.run("install cursor"));
    assert!(told.contains("a session that was killed had left"), "{told}");
    let text = machine.read("home/.cursor/mcp.json");
    assert!(text.contains("--require-policy") && !text.contains("--governance-endpoint"), "{text}");
    assert!(!machine.at("home/.cursor/mcp.json.tapegate-backup").exists());
    machine.ok("uninstall cursor");
    assert_eq!(machine.read("home/.cursor/mcp.json"), CURSOR);
}

/// Runs a command whose files may have this many blocks; more fails, as on a full disk.
fn with_blocks(machine: &AgentMachine, line: &str, blocks: &str) -> std::process::Output {
    let command = machine.command(line);
    let mut shell = Command::new("sh");
    let script = "ulimit -f \"$0\"; trap '' XFSZ; exec \"$@\"";
    shell.args(["-c", script, blocks]).arg(command.get_program()).args(command.get_args());
    shell.current_dir(command.get_current_dir().unwrap()).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.output().unwrap()
}

#[test]
fn a_full_disk_leaves_the_config_as_it_was() {
    let machine = AgentMachine::new();
    let large = CURSOR.replace("// mine", &format!("// {}", "m".repeat(20_000)));
    let config = machine.write("home/.cursor/mcp.json", &large);
    let done = with_blocks(&machine, "install cursor", "1");
    assert_eq!(done.status.code(), Some(3), "{}", errors(&done));
    assert_eq!(machine.read("home/.cursor/mcp.json"), large);
    assert_eq!(machine.statuses(), ["cursor files ungoverned"]);
    machine.ok("install cursor");
    let installed = machine.read("home/.cursor/mcp.json");
    let done = with_blocks(&machine, "uninstall cursor", "1");
    assert_eq!(done.status.code(), Some(3), "{}", errors(&done));
    assert!(errors(&done).contains("it is as it was"), "{}", errors(&done));
    assert_eq!(machine.read("home/.cursor/mcp.json"), installed);
    machine.ok("uninstall cursor");
    assert_eq!(machine.read("home/.cursor/mcp.json"), large);
    assert_eq!(fs::read_dir(config.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_config_that_cannot_be_locked_or_written_is_named() {
    let machine = AgentMachine::new();
    machine.write("home/.cursor/mcp.json", CURSOR);
    // A folder in the place of the lock: root could write a read-only folder.
    let lock = machine.at("home/.cursor/mcp.json.tapegate-lock");
    fs::create_dir(&lock).unwrap();
    let told = machine.fails("install cursor", 3);
    assert!(told.contains("cannot lock") && told.contains("folder must be writable"), "{told}");
    assert_eq!(machine.read("home/.cursor/mcp.json"), CURSOR);
    assert!(!machine.at("state/installed").exists());
}

#[test]
fn after_kill_9_the_config_is_old_or_new_and_can_be_put_right() {
    let machine = AgentMachine::new();
    machine.write("home/project/tapegate.yaml", POLICY);
    let entry = |n: usize| format!("    \"s{n}\": {{\"command\": \"x\", \"args\": [\"{n}\"]}}");
    let entries: Vec<String> = (0..40).map(entry).collect();
    let text = format!("{{ // mine\n  \"mcpServers\": {{\n{}\n  }}\n}}\n", entries.join(",\n"));
    machine.write("home/.cursor/mcp.json", &text);
    machine.ok("install cursor");
    let installed = machine.read("home/.cursor/mcp.json");
    machine.ok("uninstall cursor");
    let mut dice = SeededRandom::roll();
    for round in 0..60 {
        let verb = if round % 2 == 0 { "install" } else { "uninstall" };
        let mut command = machine.command(&format!("{verb} cursor"));
        command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut child = command.spawn().unwrap();
        dice.pause_us(40_000);
        child.kill().unwrap();
        child.wait().unwrap();
        let now = machine.read("home/.cursor/mcp.json");
        assert!(now == text || now == installed, "round {round}: {now}");
        // Nobody has to know how far it came.
        machine.ok("install cursor");
        assert_eq!(machine.read("home/.cursor/mcp.json"), installed, "round {round}");
        if round % 2 == 0 {
            machine.ok("uninstall cursor");
            assert_eq!(machine.read("home/.cursor/mcp.json"), text, "round {round}");
        }
    }
    machine.run("uninstall cursor");
    let names = fs::read_dir(machine.at("home/.cursor")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["mcp.json"], "nothing is left over");
}
