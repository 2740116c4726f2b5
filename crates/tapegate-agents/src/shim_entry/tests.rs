//! Tests of shims for entries of all kinds, by what the edited config is.

use std::path::Path;

use super::*;
use crate::client_table::CLIENTS;
use crate::discovery::{DiscoveryContext, find_in_configs};
use crate::rewrite::{EntryRewrite, put_back, rewrite};

/// The config of a client with its first server behind a shim, or why that cannot be.
fn governed(client: &str, file: &str, text: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::write(&path, text).unwrap();
    let client = CLIENTS.iter().find(|one| one.id == client).unwrap();
    let context = DiscoveryContext { folder: Path::new("/"), variable: &|_| None };
    let scan = find_in_configs(&context, client, std::slice::from_ref(&path));
    let server = scan.servers.first().expect("a server");
    let words = ["t", "shim"].map(str::to_owned);
    let shim = shim_command(server, &words).map_err(|reason| reason.to_string())?;
    let rewrites = [EntryRewrite { place: server.place.clone(), style: client.style, shim }];
    let edited = rewrite(text, server.format, &rewrites).map_err(|error| error.to_string())?;
    assert_eq!(put_back(text, &edited, server.format, &rewrites).unwrap().text, text);
    Ok(edited)
}

#[test]
fn headers_become_variables_of_the_shim_and_stay_as_they_are_written() {
    for (client, file, text, expected) in [
        (
            "claude-code",
            "c.json",
            r#"{"mcpServers":{"my web":{"type":"http","url":"https://x","headers":{"X-Key":"${KEY}"}}}}"#,
            r#"{"mcpServers":{"my web":{"type":"stdio","args": ["shim", "--server-id", "my-web", "--upstream-http", "https://x", "--header-env", "X-Key=MY_WEB_X_KEY"], "command":"t","env":{"MY_WEB_X_KEY":"${KEY}"}}}}"#,
        ),
        (
            "cline",
            "c.json",
            r#"{"mcpServers":{"w":{"transport":{"type":"streamableHttp","url":"https://x","headers":{"A":"1"}},"disabled":false}}}"#,
            r#"{"mcpServers":{"w":{"transport":{"type":"stdio","args": ["shim", "--server-id", "w", "--upstream-http", "https://x", "--header-env", "A=W_A"], "command":"t","env":{"W_A":"1"}},"disabled":false}}}"#,
        ),
        (
            "opencode",
            "c.jsonc",
            r#"{"mcp":{"w":{"type":"remote","url":"https://x","headers":{"A":"{env:T}"}}}}"#,
            r#"{"mcp":{"w":{"type":"local","command":["t", "shim", "--server-id", "w", "--upstream-http", "https://x", "--header-env", "A=W_A"],"environment":{"W_A":"{env:T}"}}}}"#,
        ),
        (
            "cursor",
            "c.json",
            r#"{"mcpServers":{"w":{"url":"https://x","headers":{},"type":"http"}}}"#,
            r#"{"mcpServers":{"w":{"args": ["shim", "--server-id", "w", "--upstream-http", "https://x"], "command":"t"}}}"#,
        ),
        (
            "goose",
            "c.yaml",
            "extensions:\n  w:\n    type: streamable_http\n    uri: https://x\n    headers:\n      A: '1' # mine\n",
            "extensions:\n  w:\n    type: \"stdio\"\n    args: [\"shim\", \"--server-id\", \"w\", \"--upstream-http\", \"https://x\", \"--header-env\", \"A=W_A\"]\n    cmd: \"t\"\n    envs:\n      W_A: '1' # mine\n",
        ),
        (
            "codex",
            "c.toml",
            "[mcp_servers.w]\nurl = \"https://x\"\nbearer_token_env_var = \"T\"\nenv_http_headers = { B = \"V\" }\n[mcp_servers.w.http_headers]\nA = '1'\n",
            "[mcp_servers.w]\nargs = [\"shim\", \"--server-id\", \"w\", \"--upstream-http\", \"https://x\", \"--header-env\", \"A=W_A\", \"--header-env\", \"B=V\", \"--bearer-env\", \"T\"]\ncommand = \"t\"\nenv_vars = [\"T\", \"V\"]\n[mcp_servers.w.env]\nW_A = '1'\n",
        ),
    ] {
        assert_eq!(governed(client, file, text), Ok(expected.to_owned()), "{client}");
    }
}

#[test]
fn what_a_shim_cannot_do_is_told() {
    for (entry, expected) in [
        (r#"{"command":"tapegate","args":["shim","--","x"]}"#, "governed already"),
        (r#"{"url":"ws://x"}"#, "its URL is neither http nor https"),
        (r#"{"url":"https://x","oauth":{"clientId":"c"}}"#, "its setting `oauth`"),
        (r#"{"url":"https://x","headers":{"a-b":"1","a_b":"2"}}"#, "too similar: `a_b`"),
        (r#"{"url":"https://x","headers":{"A":"1"},"env":{"B":"2"}}"#, "cannot be edited"),
    ] {
        let text = format!(r#"{{"mcpServers":{{"s":{entry}}}}}"#);
        let told = governed("claude-code", "c.json", &text).unwrap_err();
        assert!(told.contains(expected), "{told}");
        assert!(!told.contains("\"1\""), "{told}");
    }
    let off = r#"{"mcpServers":{"s":{"command":"x","disabled":true}}}"#;
    assert_eq!(governed("cline", "c.json", off).unwrap_err(), "disabled");
    // Claude Code starts it all the same.
    assert!(governed("claude-code", "c.json", off).is_ok());
}

#[test]
fn a_variable_is_named_after_server_and_header() {
    assert_eq!(header_variable("my-web", "X-Api.Key"), "MY_WEB_X_API_KEY");
    assert_eq!(header_variable("7", "A"), "_7_A");
}

#[test]
fn a_server_that_needs_no_login_is_governed() {
    let text = r#"{"mcp":{"w":{"type":"remote","url":"https://x","oauth":false}}}"#;
    let edited = governed("opencode", "c.json", text).unwrap();
    assert!(edited.contains("--upstream-http") && !edited.contains("oauth"), "{edited}");
    let login = text.replace("false", "{}");
    assert!(governed("opencode", "c.json", &login).unwrap_err().contains("`oauth`"));
}
