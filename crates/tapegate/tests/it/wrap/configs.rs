//! Which configs are rewritten, how, and what is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::wrap_machine::{WrapMachine, WrapProcess};

/// The steps of an agent that has its servers in the user's config of Claude Code.
const CALL_ALL: [&str; 3] = ["start=~/.claude.json#mcpServers", "call", "close"];

#[test]
fn every_server_of_the_agent_is_behind_the_gate_and_then_the_configs_are_as_they_were() {
    let machine = WrapMachine::new();
    machine.claude(&["one", "two"]);
    let before = machine.files();
    let steps = [&CALL_ALL[..], &["show=TAPEGATE_ACTIVE", "show=THOUGHTGATE_ACTIVE", "exit=7"]];
    let ended = machine.start(&[], &steps.concat()).end();
    let ended = ended.exits(7).said("one {").said("two {");
    let ended = ended.said("TAPEGATE_ACTIVE=1").said("THOUGHTGATE_ACTIVE=1");
    let ended = ended.complained("Claude Code behind the hub at http://127.0.0.1:");
    let ended = ended.complained("no policy: observing only");
    ended.complained("2 servers, 2 calls, 0 denied, 0 approved, 2 tapes");
    assert_eq!(machine.files(), before);
    for id in ["one", "two"] {
        assert!(machine.log().contains(&format!("\"server_id\":\"{id}\"")));
    }
    machine.leaves_no_process();
}

#[test]
fn the_policy_holds_for_every_server() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let policy = "schema: 1\nsources: [{ id: \"*\", kind: mcp }]\n\
                  governance: { defaults: { action: forward }, rules: [{ match: no, action: deny }] }\n";
    machine.write("project/tapegate.yaml", policy);
    let steps = ["start=~/.claude.json#mcpServers", "call=no", "call=yes", "close"];
    let ended = machine.start(&[], &steps).end().exits(0).said("-32014").said("\"result\"");
    ended.complained("profile production").complained("1 server, 2 calls, 1 denied, 0 approved");
}

#[test]
fn ec_stdio_001_a_missing_config_is_an_error_that_lists_the_places() {
    let machine = WrapMachine::new();
    let ended = machine.start(&[], &["say=started"]).end().exits(3);
    let home = machine.home(".claude.json").display().to_string();
    let project = machine.project(".mcp.json").display().to_string();
    let ended = ended.complained("config file not found").complained(&home).complained(&project);
    assert_eq!(ended.output, "");
    let named = machine.project("none.json").display().to_string();
    let flags = ["--agent-type", "custom", "--config-path", &named];
    machine.start(&flags, &[]).end().exits(3).complained(&format!("not found at `{named}`"));
}

#[test]
fn ec_stdio_002_an_empty_or_broken_config_is_a_parse_error() {
    for (text, reason) in [("", "it is empty"), ("{\"mcpServers\":", ""), ("7", "not a map")] {
        let machine = WrapMachine::new();
        machine.claude(&["s"]);
        let path = machine.write("project/.mcp.json", text);
        let before = machine.files();
        let ended = machine.start(&[], &["say=started"]).end().exits(2);
        let ended = ended.complained("failed to parse config").complained(reason);
        let ended = ended.complained(&path.display().to_string());
        assert_eq!(ended.output, "");
        assert_eq!(machine.files(), before);
    }
}

#[test]
fn ec_stdio_003_a_config_without_servers_is_an_error_of_its_own() {
    let machine = WrapMachine::new();
    machine.write("home/.claude.json", "{\"mcpServers\":{}}");
    let ended = machine.start(&[], &["say=started"]).end().exits(2);
    assert_eq!(ended.complained("No MCP servers found in config").output, "");
}

#[test]
fn ec_stdio_004_a_config_whose_servers_are_all_disabled_is_an_error_of_its_own() {
    // Claude Code starts such a server all the same.
    let cline = r#"{"mcpServers":{"s":{"command":"x","disabled":true}}}"#;
    let zed = r#"{"context_servers":{"s":{"command":"x","enabled":false}}}"#;
    for (path, flags, text) in [
        ("home/.cline/mcp.json", &["--agent-type", "cline"][..], cline),
        ("home/.config/zed/settings.json", &["--agent-type", "zed"], zed),
    ] {
        let machine = WrapMachine::new();
        machine.write(path, text);
        let ended = machine.start(flags, &["say=started"]).end().exits(2);
        assert_eq!(ended.complained("All MCP servers are disabled").output, "");
    }
}

#[test]
fn a_disabled_server_is_left_alone_unless_the_client_starts_it() {
    let machine = WrapMachine::new();
    let off = machine.entry().replace("{ \"command\"", "{ \"disabled\": true, \"command\"");
    let config =
        machine.config(&["on"]).replace("\n  }\n}", &format!(",\n    \"off\": {off}\n  }}\n}}"));
    let path = machine.write("project/mcp.json", &config);
    let named = path.display().to_string();
    let show = ["--agent-type", "cline", "--config-path", &named];
    let ended = machine.start(&show, &[&format!("cat={named}")]).end().exits(0);
    assert_eq!(ended.output.matches("--server-id").count(), 1, "{}", ended.output);
    ended.complained("disabled");
    // Claude Code starts it.
    let show = ["--agent-type", "claude-code", "--config-path", &named];
    let ended = machine.start(&show, &[&format!("cat={named}")]).end().exits(0);
    assert_eq!(ended.output.matches("--server-id").count(), 2, "{}", ended.output);
    assert_eq!(fs::read_to_string(path).unwrap(), config);
}

#[test]
fn ec_stdio_005_a_second_session_on_the_same_config_is_refused_and_another_agent_is_not() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    machine.write("project/.cursor/mcp.json", &machine.config(&["c"]));
    let before = machine.files();
    let mut first = machine.start(&[], &["start=~/.claude.json#mcpServers", "call", "line"]);
    first.says("s {");
    let during = machine.files();
    let ended = machine.start(&[], &["say=started"]).end().exits(1);
    let ended = ended.complained(&format!("`{}` is in use by another session", path.display()));
    assert_eq!(ended.complained(&format!("(process {})", first.id())).output, "");
    assert_eq!(machine.files(), during);
    // Side by side, each with a hub of its own: the end of one does not end the other.
    let steps = ["start=.cursor/mcp.json#mcpServers", "call", "close"];
    machine.start(&["--agent-type", "cursor"], &steps).end().exits(0).said("c {");
    assert_eq!(machine.files(), during);
    drop(first.input.take());
    first.end().exits(0);
    assert_eq!(machine.files(), before);
    machine.leaves_no_process();
}

#[test]
fn ec_stdio_006_ec_stdio_044_what_a_killed_session_has_left_is_put_right_first() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    let before = machine.files();
    let mut first = machine.start(&[], &["say=ready", "linger"]);
    first.says("ready");
    // The hub first: it would put the config back.
    for pid in machine.processes() {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    }
    first.end().exits(-9);
    let left: Vec<_> = machine.files().into_keys().collect();
    assert!(left.len() > before.len(), "the backup and the lock are left: {left:?}");
    assert!(fs::read_to_string(&path).unwrap().contains("--server-id"));
    let ended = machine.start(&[], &CALL_ALL).end().exits(0).said("s {");
    ended.complained("was left rewritten by a session that was killed; it is restored");
    assert_eq!(machine.files(), before);
}

#[test]
fn ec_stdio_007_a_config_that_cannot_be_written_is_an_error_and_stays_as_it_was() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    // Another user may read everything, and write to the state folder alone.
    let open = |path: &std::path::Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir(machine.state()).unwrap();
    open(machine.folder(), 0o755);
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let chown = Command::new("chown").arg("65534:65534").arg(machine.state()).status().unwrap();
    assert!(chown.success(), "these tests run as root");
    open(&machine.state(), 0o700);
    let before = machine.files();
    // Not by its mode, which is for the next test: by the rights of the user.
    for folder_mode in [0o755, 0o777] {
        // A folder that is not writable, then a config that belongs to someone else.
        open(&machine.home(""), folder_mode);
        let wrap = machine.wrap(&[], &["say=started"]);
        let mut command = Command::new("setpriv");
        command.args(user).arg(wrap.get_program()).args(wrap.get_args());
        command.current_dir(machine.project(""));
        wrap.get_envs().for_each(|(name, value)| match value {
            Some(value) => drop(command.env(name, value)),
            None => drop(command.env_remove(name)),
        });
        let ended = WrapProcess::start(command).end().exits(3).complained(".claude.json");
        assert_eq!(ended.output, "");
        assert_eq!(machine.files(), before);
    }
}

#[test]
fn ec_stdio_007_a_config_that_its_user_has_made_read_only_is_left_alone() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let path = machine.write("project/.mcp.json", &machine.config(&["p"]));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let before = machine.files();
    let ended = machine.start(&[], &["say=started"]).end().exits(3);
    let ended = ended.complained(&format!("`{}` is read-only", path.display()));
    assert_eq!(ended.complained("use --overlay").output, "");
    assert_eq!(machine.files(), before);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o444);
}

#[test]
fn ec_stdio_008_an_agent_that_cannot_be_started_leaves_the_configs_as_they_were() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let mut command = machine.command(&["wrap", "--agent-type", "claude-code", "--", "no-such"]);
    let ended = WrapProcess::start(std::mem::replace(&mut command, Command::new("true"))).end();
    ended.exits(4).complained("cannot start `no-such`").complained("the configs are restored");
    assert_eq!(machine.files(), before);
    machine.leaves_no_process();
}

#[test]
fn an_agent_that_is_not_known_is_an_error_that_lists_the_types() {
    let machine = WrapMachine::new();
    let done = machine.command(&["wrap", "--", "my-agent"]).output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(64), "{text}");
    assert!(text.contains("could not be detected from command: `my-agent`"), "{text}");
    assert!(text.contains("claude-code") && text.contains("--agent-type custom"), "{text}");
    let done = machine.command(&["wrap", "--agent-type", "custom", "--", "x"]).output().unwrap();
    assert_eq!(done.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&done.stderr).contains("needs --config-path"));
}

#[test]
fn the_agent_is_known_by_its_command() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let mut command = machine.command(&["wrap", "--", "claude", "-c", "cat ~/.claude.json"]);
    let path = format!("{}/bin:{}", machine.folder().display(), std::env::var("PATH").unwrap());
    command.env("PATH", path);
    let done = command.output().unwrap();
    assert!(String::from_utf8_lossy(&done.stdout).contains("\"--server-id\", \"s\""), "{done:?}");
}

#[test]
fn ec_stdio_023_vs_code_has_its_servers_under_another_key() {
    let machine = WrapMachine::new();
    let config = machine.config(&["s"]).replace("mcpServers", "servers");
    machine.write("project/.vscode/mcp.json", &config);
    let before = machine.files();
    let steps = ["start=.vscode/mcp.json#servers", "call", "close"];
    machine.start(&["--agent-type", "vscode"], &steps).end().exits(0).said("s {");
    assert_eq!(machine.files(), before);
}

#[test]
fn ec_stdio_024_zed_has_its_servers_among_its_settings() {
    let machine = WrapMachine::new();
    let config = machine.config(&["s"]).replace("mcpServers", "context_servers");
    machine.write("home/.config/zed/settings.json", &config);
    let before = machine.files();
    let steps = ["start=~/.config/zed/settings.json#context_servers", "call", "close"];
    machine.start(&["--agent-type", "zed"], &steps).end().exits(0).said("s {");
    assert_eq!(machine.files(), before);
}

#[test]
fn ec_stdio_025_of_servers_with_one_name_the_project_s_counts_and_both_are_governed() {
    let machine = WrapMachine::new();
    machine.claude(&["user", "both"]);
    let own = machine.config(&["project", "both"]).replace("[\"serve\"]", "[\"serve\", \"x\"]");
    machine.write("project/.mcp.json", &own);
    let before = machine.files();
    // As Claude Code merges them: what is started later replaces what has the same name.
    let steps = [
        "start=~/.claude.json#mcpServers",
        "start=.mcp.json#mcpServers",
        "cat=~/.claude.json",
        "call",
        "close",
    ];
    let ended = machine.start(&[], &steps).end().exits(0);
    let ended = ended.said("user {").said("project {").said("both {");
    // Should the agent take the other one, it is governed as well.
    let ended = ended.said("\"--server-id\", \"both\"");
    let ended = ended.complained("both     ~/.claude.json  governed; overridden by .mcp.json");
    let ended = ended.complained("both     .mcp.json       governed\n");
    ended.complained("3 servers, 3 calls");
    assert_eq!(machine.files(), before);
}

#[test]
fn ec_stdio_026_variables_stay_as_they_are_written_and_one_without_value_is_an_error() {
    let machine = WrapMachine::new();
    let config = machine.config(&["s"]).replace("\"1\"", "\"${TOKEN}-${OTHER:-x}\"");
    machine.write("home/.claude.json", &config);
    let before = machine.files();
    let ended = machine.start(&[], &["say=started"]).end().exits(2);
    let ended = ended.complained("server `s`: the variable `TOKEN` is not set");
    assert_eq!(ended.output, "");
    let mut command = machine.wrap(&[], &["cat=~/.claude.json"]);
    command.env("TOKEN", "secret");
    let ended = WrapProcess::start(command).end().exits(0).said("${TOKEN}-${OTHER:-x}");
    assert!(!format!("{ended:?}").contains("secret"));
    assert_eq!(machine.files(), before);
}

#[test]
fn a_server_with_a_url_is_governed_and_its_headers_are_on_no_command_line() {
    let machine = WrapMachine::new();
    let text = r#"{"mcpServers":{
        "web":{"type":"http","url":"http://127.0.0.1:1/mcp","headers":{"Authorization":"Bearer horse"}},
        "login":{"type":"http","url":"http://127.0.0.1:3/mcp","oauth":{}},
        "socket":{"type":"ws","url":"ws://127.0.0.1:4/mcp"}}}"#;
    let path = machine.write("home/.claude.json", text);
    let before = machine.files();
    let ended = machine.start(&[], &["cat=~/.claude.json"]).end().exits(0);
    let config: serde_json::Value = serde_json::from_str(&ended.output).unwrap();
    let web = &config["mcpServers"]["web"];
    let words = web["args"].to_string();
    assert!(words.contains("--upstream-http\",\"http://127.0.0.1:1/mcp"), "{words}");
    assert!(words.contains("--header-env") && !words.contains("horse"), "{words}");
    assert!(web["env"].to_string().contains("Bearer horse"), "{web}");
    let original: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for name in ["login", "socket"] {
        assert_eq!(config["mcpServers"][name], original["mcpServers"][name]);
    }
    let ended = ended.complained("NOT governed: the client signs in to it");
    ended.complained("NOT governed: a shim cannot connect to it");
    assert_eq!(machine.files(), before);
}

#[test]
fn tapes_are_recorded_on_request_whatever_the_policy_says() {
    let policy = "schema: 1\nsources: [{ id: \"*\", kind: mcp }]\nrecording: { enabled: false }\n\
                  governance: { defaults: { action: forward } }\n";
    for (flag, folder) in
        [("--verbose", ""), ("--record", "state/tapes/s"), ("--record=own", "project/own/s")]
    {
        let machine = WrapMachine::new();
        machine.claude(&["s"]);
        machine.write("project/tapegate.yaml", policy);
        machine.start(&[flag], &CALL_ALL).end().exits(0).said("s {");
        let tapes = |folder: &str| {
            fs::read_dir(machine.folder().join(folder)).into_iter().flatten().count()
        };
        match folder {
            "" => assert_eq!(tapes("state/tapes"), 0),
            folder => assert_eq!(tapes(folder), 1, "{folder}"),
        }
    }
}

#[test]
fn ec_stdio_029_the_shim_is_started_by_its_absolute_path_without_links() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    symlink(env!("CARGO_BIN_EXE_tapegate"), machine.folder().join("bin/thoughtgate")).unwrap();
    let wrap =
        machine.wrap(&[], &["start=~/.claude.json#mcpServers", "cat=~/.claude.json", "call"]);
    let mut command = Command::new("thoughtgate");
    command.args(wrap.get_args()).current_dir(machine.project(""));
    wrap.get_envs().filter_map(|(name, value)| Some((name, value?))).for_each(|(name, value)| {
        command.env(name, value);
    });
    // The link is found by the shell's path, and nothing of ours is on the agent's.
    command.env("PATH", format!("{}/bin:/usr/bin:/bin", machine.folder().display()));
    let own = fs::canonicalize(env!("CARGO_BIN_EXE_tapegate")).unwrap();
    let ended = WrapProcess::start(command).end().exits(0).said("s {");
    ended.said(&format!("\"command\": \"{}\"", own.display())).complained("thoughtgate: ");
}

#[test]
fn a_name_that_occurs_twice_or_has_no_letter_is_governed_and_put_back() {
    let machine = WrapMachine::new();
    let entry = machine.entry();
    let text = format!(
        "{{\"mcpServers\":{{\"s\":{{\"command\":\"old\"}},\"s\":{entry},\"数据\":{entry},\"☃\":{entry}}}}}"
    );
    machine.write("home/.claude.json", &text);
    let before = machine.files();
    let ended = machine.start(&[], &CALL_ALL).end().exits(0).said("s {").said("数据 {");
    ended.complained("3 servers, 3 calls");
    assert_eq!(machine.files(), before);
}

#[test]
fn an_entry_that_says_in_several_ways_what_to_start_is_named_as_not_governed() {
    let machine = WrapMachine::new();
    let entries = format!(
        r#"{{"mcpServers":{{"s":{},"two":{{"command":"x","httpUrl":"http://127.0.0.1:1"}}}}}}"#,
        machine.entry()
    );
    machine.write("home/.gemini/settings.json", &entries);
    let ended = machine.start(&["--agent-type", "gemini"], &["say=started"]).end().exits(0);
    ended.complained("NOT governed: entry \"two\": it says in several ways what to start");
}

#[test]
fn ec_stdio_034_a_config_that_is_managed_already_is_refused() {
    let machine = WrapMachine::new();
    let own = env!("CARGO_BIN_EXE_tapegate");
    let text = format!(
        "{{\"mcpServers\":{{\"s\":{{\"command\":{own:?},\"args\":[\"shim\",\"--\",\"x\"]}},\"t\":{{\"command\":\"y\"}}}}}}"
    );
    machine.write("home/.claude.json", &text);
    let before = machine.files();
    let ended = machine.start(&[], &["say=started"]).end().exits(1);
    let ended = ended.complained("config already managed by Tapegate: the server `s`");
    assert_eq!(ended.complained("or take the shim off this entry by hand first").output, "");
    assert_eq!(machine.files(), before);
}

#[test]
fn ec_stdio_038_a_dry_run_prints_a_diff_and_writes_nothing() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    machine.write("project/.mcp.json", &machine.config(&["p"]));
    let before = machine.files();
    let done = machine.wrap(&["--dry-run"], &["touch=started"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(machine.files(), before);
    assert!(!machine.state().exists(), "not even a lock");
    // The diff is one that `patch` takes.
    fs::write(machine.folder().join("diff"), &done.stdout).unwrap();
    let patch = ["-s", "-p0", "-d", "/", "-i"];
    let diff = machine.folder().join("diff");
    let done = Command::new("patch").args(patch).arg(&diff).status().unwrap();
    assert!(done.success(), "{}", fs::read_to_string(diff).unwrap());
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("\"--server-id\", \"s\"") && text.contains("\"theme\": \"dark\""));
}

#[test]
fn ec_stdio_039_what_was_added_or_changed_during_the_session_stays() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    let original = fs::read_to_string(&path).unwrap();
    let named = path.display().to_string();
    let steps = [
        "say=begun".to_owned(),
        format!("replace={named}|\"dark\"|\"light\""),
        format!(
            "replace={named}|\"mcpServers\": {{|\"mcpServers\": {{\n    \"new\": {{ \"command\": \"n\" }},"
        ),
    ];
    let ended = machine.start(&[], &steps.each_ref().map(String::as_str)).end().exits(0);
    ended.complained("what else has changed in it is kept");
    let expected = original
        .replace("dark", "light")
        .replace("\"mcpServers\": {", "\"mcpServers\": {\n    \"new\": { \"command\": \"n\" },");
    assert_eq!(fs::read_to_string(path).unwrap(), expected);
}

#[test]
fn ec_stdio_040_a_port_in_use_is_named_before_anything_is_changed() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = machine.start(&["--governance-port", &port], &["say=started"]).end().exits(4);
    let ended = ended.complained(&format!("port {port} is already in use"));
    assert_eq!(ended.complained("without --governance-port").output, "");
    assert_eq!(machine.files(), before);
    drop(taken);
    let ended = machine.start(&["--governance-port", &port], &CALL_ALL).end().exits(0).said("s {");
    ended.complained(&format!("http://127.0.0.1:{port}"));
}

#[test]
fn ec_stdio_043_an_editor_that_saves_by_renaming_does_not_take_the_lock_away() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    let original = fs::read_to_string(&path).unwrap();
    let save = format!("replace={}|dark|light", path.display());
    let mut first = machine.start(&[], &[&save, "say=saved", "line"]);
    first.says("saved");
    machine.start(&[], &[]).end().exits(1).complained("is in use by another session");
    drop(first.input.take());
    first.end().exits(0);
    assert_eq!(fs::read_to_string(path).unwrap(), original.replace("dark", "light"));
}
