//! The command lines of the specification, under the link name `thoughtgate`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::wrap_machine::{WrapMachine, WrapProcess};

/// Prints the config that its entry of the table below names.
const AGENT: &str = "#!/bin/sh\necho \"$(basename \"$0\") $*\"\ncat \"$CONFIG\"\n";

/// Runs a line in a shell that finds the link and the agents on its path.
fn run(machine: &WrapMachine, line: &str, config: &str) -> crate::wrap_machine::EndedWrap {
    let plain = machine.command(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(machine.project(""));
    plain.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(command.env(name, value)),
        None => drop(command.env_remove(name)),
    });
    let path = format!("{}/bin:{}", machine.folder().display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("CONFIG", machine.folder().join(config));
    WrapProcess::start(command).end()
}

#[test]
fn every_example_line_of_wrap_works_as_it_is_written() {
    let machine = WrapMachine::new();
    let bin = machine.folder().join("bin");
    symlink(env!("CARGO_BIN_EXE_tapegate"), bin.join("thoughtgate")).unwrap();
    for name in ["claude-code", "cursor", "my-agent"] {
        fs::write(bin.join(name), AGENT).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    machine.claude(&["s"]);
    let configs = ["home/.claude.json", "home/.cursor/mcp.json", "home/.config/custom/mcp.json"];
    configs.iter().for_each(|path| drop(machine.write(path, &machine.config(&["s"]))));
    let before = machine.files();
    let [claude, cursor, custom] = configs;
    for (line, config, first, profile) in [
        ("thoughtgate wrap -- claude-code", claude, "claude-code ", "production"),
        ("thoughtgate wrap --agent-type cursor -- cursor .", cursor, "cursor .", "production"),
        ("thoughtgate wrap -- cursor .", cursor, "cursor .", "production"),
        (
            "thoughtgate wrap --profile development -- claude-code",
            claude,
            "claude-code ",
            "development",
        ),
        (
            "thoughtgate wrap --config-path ~/.config/custom/mcp.json --agent-type custom -- my-agent",
            custom,
            "my-agent ",
            "production",
        ),
        (
            "thoughtgate wrap --thoughtgate-config thoughtgate.yaml --governance-port 0 --verbose -- claude-code",
            claude,
            "claude-code ",
            "production",
        ),
    ] {
        machine.write(
            "project/thoughtgate.yaml",
            "schema: 1\nsources: [{ id: '*', kind: mcp }]\ngovernance: { defaults: { action: forward } }\n",
        );
        let ended = run(&machine, line, config).exits(0).said(first).said("\"--server-id\", \"s\"");
        let ended = ended.said(&format!("\"--profile\", \"{profile}\""));
        ended.complained("thoughtgate: ").complained(&format!("profile {profile}"));
        fs::remove_file(machine.project("thoughtgate.yaml")).unwrap();
        assert_eq!(machine.files(), before, "{line}");
    }
    let ended = run(&machine, "thoughtgate wrap --dry-run -- claude-code", claude).exits(0);
    assert!(!ended.output.contains("claude-code \n"), "it started the agent: {ended:?}");
    ended.said("+");
    assert_eq!(machine.files(), before);
    let ended = run(&machine, "thoughtgate wrap --no-restore -- claude-code", claude).exits(0);
    ended.complained("thoughtgate unwrap");
    run(&machine, "thoughtgate unwrap", claude).exits(0).said("it is restored");
    assert_eq!(machine.files(), before);
    run(&machine, "thoughtgate wrap --version", claude).exits(0).said("thoughtgate ");
}

#[test]
fn the_shim_line_that_wrap_writes_works_as_it_is_written() {
    let machine = WrapMachine::new();
    let bin = machine.folder().join("bin");
    symlink(env!("CARGO_BIN_EXE_tapegate"), bin.join("thoughtgate")).unwrap();
    let server = crate::support::fake_server();
    fs::write(bin.join("npx"), format!("#!/bin/sh\nexec {} serve\n", server.display())).unwrap();
    fs::set_permissions(bin.join("npx"), fs::Permissions::from_mode(0o755)).unwrap();
    machine.claude(&["s"]);
    // The hub of a session, and beside it a shim with no token file on its command line.
    let mut session = machine.start(&[], &["say=ready", "line"]);
    session.says("ready");
    let config = fs::read_to_string(machine.home(".claude.json")).unwrap();
    let (_, rest) = config.split_once("\"--governance-endpoint\", \"").unwrap();
    let (endpoint, _) = rest.split_once('"').unwrap();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#;
    for line in [
        format!(
            "thoughtgate shim --server-id files --governance-endpoint {endpoint} --profile production"
        ),
        format!("THOUGHTGATE_SERVER_ID=files thoughtgate shim --governance-endpoint {endpoint}"),
    ] {
        let command = "npx -y @modelcontextprotocol/server-filesystem /tmp";
        let line = format!("echo '{call}' | {line} -- {command}");
        run(&machine, &line, "home/.claude.json").exits(0).said("\"result\"");
    }
    assert!(machine.log().contains("\"server_id\":\"files\""));
    drop(session.input.take());
    session.end().exits(0).complained("2 calls");
}

#[test]
fn what_a_session_of_thoughtgate_has_left_is_put_back_byte_for_byte() {
    for is_unwrap in [true, false] {
        let machine = WrapMachine::new();
        let path = machine.claude(&["s"]);
        let original = fs::read_to_string(&path).unwrap();
        let before = machine.files();
        fs::write(machine.home(".claude.json.thoughtgate-backup"), &original).unwrap();
        // As it writes it: all in its own layout, and with an id in the environment.
        let mut config: serde_json::Value = serde_json::from_str(&original).unwrap();
        let entry = &mut config["mcpServers"]["s"];
        let words = "shim --server-id s --governance-endpoint http://127.0.0.1:19090 \
                     --profile production --";
        let mut words: Vec<serde_json::Value> = words.split_whitespace().map(Into::into).collect();
        words.push(entry["command"].take());
        words.extend(entry["args"].as_array().unwrap().clone());
        entry["command"] = "/opt/thoughtgate".into();
        entry["args"] = words.into();
        entry["env"]["THOUGHTGATE_SERVER_ID"] = "s".into();
        fs::write(&path, config.to_string()).unwrap();
        match is_unwrap {
            true => {
                let done = machine.command(&["unwrap"]).output().unwrap();
                let text = String::from_utf8_lossy(&done.stdout).into_owned();
                assert!(text.contains(".claude.json: it is restored"), "{text}");
            }
            false => {
                let steps = ["start=~/.claude.json#mcpServers", "call", "close"];
                let ended = machine.start(&[], &steps).end().exits(0).said("s {");
                ended.complained("was left rewritten by a session that was killed; it is restored");
            }
        }
        assert_eq!(machine.files(), before);
    }
}
