//! Tests of the overlays of all agents that have one.

use std::path::PathBuf;

use super::*;
use crate::detection::by_id;
use crate::discovery::{DiscoveryContext, find_of_client};
use crate::shim_entry::shim_command;

/// A home folder with configs.
struct OverlayHome {
    folder: tempfile::TempDir,
}

impl OverlayHome {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("project/.git")).unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    fn plan(&self, client: &str, words: &str, set: &str) -> Result<SessionOverlay, OverlayRefusal> {
        let client = by_id(client).unwrap();
        let home = self.folder.path().as_os_str().to_owned();
        let variable = |name: &str| (name == "HOME").then(|| home.clone());
        let project = self.folder.path().join("project");
        let context = DiscoveryContext { folder: &project, variable: &variable };
        let scan = find_of_client(&context, client);
        let mut paths: Vec<PathBuf> = scan.servers.iter().map(|one| one.config.clone()).collect();
        paths.dedup();
        let texts: Vec<String> =
            paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let source = |(path, text): (&'_ PathBuf, &'_ String)| {
            let servers: Vec<&ConfiguredServer> =
                scan.servers.iter().filter(|one| one.config == *path).collect();
            let words = ["/t/tapegate", "shim"].map(str::to_owned);
            let rewrite = |one: &&ConfiguredServer| {
                let shim = shim_command(one, &words).ok()?;
                Some(EntryRewrite { place: one.place.clone(), style: client.style, shim })
            };
            let rewrites = servers.iter().filter_map(rewrite).collect();
            (path.clone(), text.clone(), servers[0].format, servers, rewrites)
        };
        let parts: Vec<_> = paths.iter().zip(&texts).map(source).collect();
        let sources: Vec<OverlaySource<'_>> = parts
            .iter()
            .map(|(path, text, format, servers, rewrites)| OverlaySource {
                path,
                text,
                format: *format,
                servers: servers.clone(),
                rewrites: Vec::clone(rewrites),
            })
            .collect();
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let session = OverlaySession {
            folder: Path::new("/private"),
            words: &words,
            is_set: &|name| name == set,
            other_sources: &other_sources::find(&context, client),
        };
        plan(client, &sources, &session)
    }

    #[track_caller]
    fn refusal(&self, client: &str, words: &str, set: &str) -> String {
        self.plan(client, words, set).unwrap_err().to_string()
    }
}

#[test]
fn claude_code_reads_a_private_file_and_nothing_else() {
    let home = OverlayHome::new(&[(
        ".claude.json",
        r#"{"mcpServers":{"a":{"command":"x","env":{"K":"${V}"}},"o":{"type":"http","url":"https://x","oauth":{}}}}"#,
    )]);
    let overlay = home.plan("claude-code", "claude -p x", "").unwrap();
    assert_eq!(overlay.arguments, ["--mcp-config", "/private/mcp.json", "--strict-mcp-config"]);
    let expected = r#"{"mcpServers": {"a": {"args": ["shim", "--server-id", "a", "--", "x"], "command": "/t/tapegate", "env": {"K": "${V}"}}, "o": {"type": "http", "url": "https://x", "oauth": {}}}}"#;
    assert_eq!(overlay.file, Some(("mcp.json", expected.to_owned())));
    assert!(overlay.environment.is_empty());
}

#[test]
fn codex_gets_the_command_of_each_server() {
    let home = OverlayHome::new(&[
        (
            ".codex/config.toml",
            "[mcp_servers.a]\ncommand = 'x'\nargs = ['y \"z\"']\n[mcp_servers.off]\ncommand = 'n'\nenabled = false\n",
        ),
        (".codex/work.config.toml", "[mcp_servers.w]\ncommand = 'w'\n"),
    ]);
    let overlay = home.plan("codex", "codex exec hi", "").unwrap();
    let expected = [
        "-c",
        "mcp_servers.a.command=\"/t/tapegate\"",
        "-c",
        "mcp_servers.a.args=[\"shim\", \"--server-id\", \"a\", \"--\", \"x\", \"y \\\"z\\\"\"]",
    ];
    assert_eq!(overlay.arguments, expected);
    // A profile is read if it is chosen.
    let overlay = home.plan("codex", "codex --profile work exec hi", "").unwrap();
    assert!(overlay.arguments.contains(&"mcp_servers.w.command=\"/t/tapegate\"".to_owned()));
    let remote =
        OverlayHome::new(&[(".codex/config.toml", "[mcp_servers.r]\nurl = 'https://x'\n")]);
    assert!(remote.refusal("codex", "codex", "").contains("its URL cannot be replaced"));
    let odd = OverlayHome::new(&[(".codex/config.toml", "[mcp_servers.'a.b']\ncommand = 'x'\n")]);
    assert!(odd.refusal("codex", "codex", "").contains("its name cannot be written"));
}

#[test]
fn opencode_and_gemini_get_the_entries_that_change() {
    let home = OverlayHome::new(&[
        (
            ".config/opencode/opencode.json",
            r#"{"mcp":{"a":{"type":"local","command":["x"]},"w":{"type":"remote","url":"https://x","headers":{"A":"{env:T}"}},"off":{"type":"local","command":["n"],"enabled":false}}}"#,
        ),
        ("project/opencode.json", r#"{"mcp":{"a":{"type":"local","command":["p"]}}}"#),
        (
            ".gemini/settings.json",
            r#"{"ui":1,"mcpServers":{"a":{"command":"x","trust":true},"s":{"url":"ws://x"}}}"#,
        ),
    ]);
    let overlay = home.plan("opencode", "opencode run x", "").unwrap();
    // The project's entry is the one that opencode would start.
    let expected = r#"{"mcp": {"a": {"type": "local", "command": ["/t/tapegate", "shim", "--server-id", "a", "--", "p"]}, "w": {"type": "local", "command": ["/t/tapegate", "shim", "--server-id", "w", "--upstream-http", "https://x", "--header-env", "A=W_A"], "environment": {"W_A": "{env:T}"}}}}"#;
    let variable = ("OPENCODE_CONFIG_CONTENT".to_owned(), expected.to_owned());
    assert_eq!(overlay, SessionOverlay { environment: vec![variable], ..Default::default() });
    let set = home.refusal("opencode", "opencode", "OPENCODE_CONFIG_CONTENT");
    assert!(set.starts_with("the variable `OPENCODE_CONFIG_CONTENT` is set"), "{set}");
    let overlay = home.plan("gemini", "gemini", "").unwrap();
    let path = "/private/settings.json".to_owned();
    assert_eq!(overlay.environment, [("GEMINI_CLI_SYSTEM_SETTINGS_PATH".to_owned(), path)]);
    let expected = r#"{"mcpServers": {"a": {"args": ["shim", "--server-id", "a", "--", "x"], "command": "/t/tapegate", "trust": true}}}"#;
    assert_eq!(overlay.file, Some(("settings.json", expected.to_owned())));
}

#[test]
fn cline_and_continue_read_a_copy_of_their_config() {
    let yaml = "name: me # mine\nmcpServers:\n  - name: a\n    command: x\n";
    let home = OverlayHome::new(&[
        (
            ".cline/data/settings/cline_mcp_settings.json",
            r#"{"x":1,"mcpServers":{"a":{"command":"x"}}}"#,
        ),
        (".continue/config.yaml", yaml),
        (".continue/mcpServers/b.yaml", "mcpServers:\n  - name: b\n    command: y\n"),
    ]);
    let overlay = home.plan("cline", "cline hi", "").unwrap();
    assert_eq!(overlay.environment[0].1, "/private/cline_mcp_settings.json");
    // A background process that runs already would take the servers from the user's settings.
    let backend = ("CLINE_SESSION_BACKEND_MODE".to_owned(), "local".to_owned());
    assert_eq!(overlay.environment[1], backend);
    let set = home.refusal("cline", "cline hi", "CLINE_SESSION_BACKEND_MODE");
    assert!(set.starts_with("the variable `CLINE_SESSION_BACKEND_MODE` is set"), "{set}");
    assert!(overlay.file.unwrap().1.starts_with(r#"{"x":1,"mcpServers":{"a":{"args": ["shim""#));
    let overlay = home.plan("continue", "cn -p x", "").unwrap();
    assert_eq!(overlay.arguments, ["--config", "/private/config.yaml"]);
    assert!(overlay.file.unwrap().1.starts_with("name: me # mine\n"));
    let given = home.refusal("continue", "cn --config=x.yaml", "");
    assert!(given.contains("has `--config`"), "{given}");
    let two = OverlayHome::new(&[
        (".cline/data/settings/cline_mcp_settings.json", r#"{"mcpServers":{"a":{"command":"x"}}}"#),
        (".cline/mcp.json", r#"{"mcpServers":{"b":{"command":"x"}}}"#),
    ]);
    assert!(two.refusal("cline", "cline", "").contains(".cline/mcp.json` may define servers"));
}

#[test]
fn no_server_is_lost_or_started_without_consent() {
    let plain = r#"{"mcpServers":{"a":{"command":"x"}}}"#;
    let project = OverlayHome::new(&[("project/.mcp.json", plain)]);
    let told = project.refusal("claude-code", "claude", "");
    assert!(
        told.contains("`a` is a server of the project, which Claude Code starts only"),
        "{told}"
    );
    let plugin = OverlayHome::new(&[
        (".claude.json", plain),
        (".claude/plugins/cache/m/p/1/.mcp.json", "{}"),
    ]);
    assert!(
        plugin.refusal("claude-code", "claude", "").contains("p/1/.mcp.json` may define servers")
    );
    let harmless = OverlayHome::new(&[
        (".claude.json", plain),
        (".claude/plugins/cache/m/p/plugin.json", r#"{"name":"p"}"#),
    ]);
    harmless.plan("claude-code", "claude", "").unwrap();
    let given = harmless.refusal("claude-code", "claude --mcp-config y", "");
    assert!(given.contains("has `--mcp-config`"), "{given}");
    let none = harmless.refusal("cursor", "cursor", "");
    assert_eq!(none, "Cursor has no way to take its servers from elsewhere");
}

#[test]
fn a_folder_that_others_can_write_is_not_secure() {
    assert!(other_sources::is_secure_folder(Path::new("/usr")));
    assert!(!other_sources::is_secure_folder(Path::new("/tmp")));
    assert!(!other_sources::is_secure_folder(tempfile::tempdir().unwrap().path()));
    assert!(!other_sources::is_secure_folder(Path::new("/does/not/exist")));
}
