//! Tests of rewriting entries and putting them back.

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn entry(place: &[&str], style: EntryStyle, shim: ShimCommand) -> EntryRewrite {
    let place = place.iter().map(|step| match step.strip_prefix('@') {
        Some(name) => PlaceStep::Named(name.to_owned()),
        None => PlaceStep::Key((*step).to_owned()),
    });
    EntryRewrite { place: place.collect(), style, shim }
}

fn before() -> ShimCommand {
    ShimCommand::Before(words("/t/tapegate shim --server-id s --"))
}

fn instead() -> ShimCommand {
    ShimCommand::Instead(words("/t/tapegate shim --entry s"))
}

#[track_caller]
fn check(text: &str, format: ConfigFormat, one: EntryRewrite, expected: &str) {
    let rewrites = [one];
    let edited = rewrite(text, format, &rewrites).unwrap();
    assert_eq!(edited, expected);
    let back = put_back(text, &edited, format, &rewrites).unwrap();
    assert_eq!((back.text.as_str(), back.is_merged), (text, false));
    // Others have appended something that does not matter.
    let touched = format!("{edited}\n");
    let back = put_back(text, &touched, format, &rewrites).unwrap();
    assert_eq!((back.text, back.is_merged), (format!("{text}\n"), true));
}

#[test]
fn json_keeps_its_comments_order_and_line_breaks() {
    check(
        "\u{feff}{\r\n  // mine\r\n  \"mcpServers\": {\r\n    \"s\": {\r\n      \"command\": \"npx\", // here\r\n      \"args\": [\r\n        \"-y\",\r\n        \"files\",\r\n      ],\r\n      \"env\": {\"A\": \"1\"},\r\n    },\r\n  },\r\n}\r\n",
        ConfigFormat::Json,
        entry(&["mcpServers", "s"], EntryStyle::Json, before()),
        "\u{feff}{\r\n  // mine\r\n  \"mcpServers\": {\r\n    \"s\": {\r\n      \"command\": \"/t/tapegate\", // here\r\n      \"args\": [\r\n        \"shim\",\r\n        \"--server-id\",\r\n        \"s\",\r\n        \"--\",\r\n        \"npx\",\r\n        \"-y\",\r\n        \"files\",\r\n      ],\r\n      \"env\": {\"A\": \"1\"},\r\n    },\r\n  },\r\n}\r\n",
    );
    check(
        r#"{"mcpServers":{"s":{"command":"x"}}}"#,
        ConfigFormat::Json,
        entry(&["mcpServers", "s"], EntryStyle::Json, before()),
        r#"{"mcpServers":{"s":{"args": ["shim", "--server-id", "s", "--", "x"], "command":"/t/tapegate"}}}"#,
    );
    check(
        r#"{"mcp":{"s":{"type":"local","command":["x", "y"]}}}"#,
        ConfigFormat::Json,
        entry(&["mcp", "s"], EntryStyle::OpencodeJson, before()),
        r#"{"mcp":{"s":{"type":"local","command":["/t/tapegate", "shim", "--server-id", "s", "--", "x", "y"]}}}"#,
    );
    check(
        r#"{"context_servers":{"s":{"source":"custom","command":{"path":"x","args":[]}}}}"#,
        ConfigFormat::Json,
        entry(&["context_servers", "s"], EntryStyle::Json, before()),
        r#"{"context_servers":{"s":{"source":"custom","command":{"path":"/t/tapegate","args":["shim", "--server-id", "s", "--", "x"]}}}}"#,
    );
}

#[test]
fn a_url_becomes_a_command() {
    check(
        r#"{"mcpServers":{"s":{"type":"http","url":"https://x","headers":{"A":"secret"},"timeout":5}}}"#,
        ConfigFormat::Json,
        entry(&["mcpServers", "s"], EntryStyle::ClaudeCode, instead()),
        r#"{"mcpServers":{"s":{"type":"stdio","args": ["shim", "--entry", "s"], "command":"/t/tapegate","timeout":5}}}"#,
    );
    check(
        r#"{"mcp":{"s":{"type":"remote","url":"https://x","oauth":{}}}}"#,
        ConfigFormat::Json,
        entry(&["mcp", "s"], EntryStyle::OpencodeJson, instead()),
        r#"{"mcp":{"s":{"type":"local","command":["/t/tapegate", "shim", "--entry", "s"]}}}"#,
    );
    check(
        "[mcp_servers.s]\nurl = \"https://x\" # there\nenabled = true\n\n[mcp_servers.s.http_headers]\nA = \"b\"\n\n[other]\na = 1\n",
        ConfigFormat::Toml,
        entry(&["mcp_servers", "s"], EntryStyle::Toml, instead()),
        "[mcp_servers.s]\nargs = [\"shim\", \"--entry\", \"s\"]\ncommand = \"/t/tapegate\" # there\nenabled = true\n\n[other]\na = 1\n",
    );
    check(
        "mcpServers:\n  - name: s\n    type: sse\n    url: https://x\n  - name: t\n    command: y\n",
        ConfigFormat::Yaml,
        entry(&["mcpServers", "@s"], EntryStyle::ListYaml, instead()),
        "mcpServers:\n  - name: s\n    type: \"stdio\"\n    args: [\"shim\", \"--entry\", \"s\"]\n    command: \"/t/tapegate\"\n  - name: t\n    command: y\n",
    );
}

#[test]
fn toml_keeps_its_comments_and_spelling() {
    check(
        "# mine\r\n[mcp_servers.'s']\r\ncommand = 'npx' # here\r\nargs = [\r\n  '-y', # yes\r\n  'files',\r\n]\r\n[mcp_servers.s.env]\r\nA = '1'\r\n",
        ConfigFormat::Toml,
        entry(&["mcp_servers", "s"], EntryStyle::Toml, before()),
        "# mine\r\n[mcp_servers.'s']\r\ncommand = \"/t/tapegate\" # here\r\nargs = [\r\n  \"shim\",\r\n  \"--server-id\",\r\n  \"s\",\r\n  \"--\",\r\n  \"npx\",\r\n  '-y', # yes\r\n  'files',\r\n]\r\n[mcp_servers.s.env]\r\nA = '1'\r\n",
    );
    for (text, expected) in [
        (
            "mcp_servers.s.command = \"x\"\n",
            "mcp_servers.s.args = [\"shim\", \"--server-id\", \"s\", \"--\", \"x\"]\nmcp_servers.s.command = \"/t/tapegate\"\n",
        ),
        (
            "mcp_servers = { s = { command = \"x\" } }\n",
            "mcp_servers = { s = { args = [\"shim\", \"--server-id\", \"s\", \"--\", \"x\"], command = \"/t/tapegate\" } }\n",
        ),
    ] {
        let one = entry(&["mcp_servers", "s"], EntryStyle::Toml, before());
        check(text, ConfigFormat::Toml, one, expected);
    }
}

#[test]
fn yaml_keeps_its_lists_as_they_are_written() {
    check(
        "mcpServers:\n  - command: npx # here\n    name: s\n    args:\n      # yes\n      - -y\n      - files\n",
        ConfigFormat::Yaml,
        entry(&["mcpServers", "@s"], EntryStyle::ListYaml, before()),
        "mcpServers:\n  - command: \"/t/tapegate\" # here\n    name: s\n    args:\n      # yes\n      - \"shim\"\n      - \"--server-id\"\n      - \"s\"\n      - \"--\"\n      - \"npx\"\n      - -y\n      - files\n",
    );
    check(
        "extensions:\n  s:\n    cmd: ü\n    args:\n    enabled: true\n",
        ConfigFormat::Yaml,
        entry(&["extensions", "s"], EntryStyle::GooseYaml, before()),
        "extensions:\n  s:\n    cmd: \"/t/tapegate\"\n    args: [\"shim\", \"--server-id\", \"s\", \"--\", \"ü\"]\n    enabled: true\n",
    );
    check(
        "b: &b {cmd: x}\nextensions:\n  s:\n    <<: *b\n    enabled: true\n",
        ConfigFormat::Yaml,
        entry(&["extensions", "s"], EntryStyle::GooseYaml, before()),
        "b: &b {cmd: x}\nextensions:\n  s:\n    cmd: \"/t/tapegate\"\n    args: [\"shim\", \"--server-id\", \"s\", \"--\", \"x\"]\n    <<: *b\n    enabled: true\n",
    );
}

#[test]
fn an_edit_that_would_change_something_else_is_refused() {
    // Both entries share one list.
    let text = "a: {cmd: x, args: &l [1]}\ns: {cmd: y, args: *l}\n";
    let one = entry(&["a"], EntryStyle::GooseYaml, before());
    assert_eq!(rewrite(text, ConfigFormat::Yaml, &[one]), Err(RewriteError::Collateral));
    let one = entry(&["none"], EntryStyle::GooseYaml, before());
    let missing = RewriteError::Missing("none".to_owned());
    assert_eq!(rewrite(text, ConfigFormat::Yaml, &[one]), Err(missing));
}

#[test]
fn what_others_changed_meanwhile_stays() {
    let text =
        "{\n  \"mcpServers\": {\n    \"s\": {\"command\": \"x\", \"args\": [\"1\"]}\n  }\n}\n";
    let rewrites = [entry(&["mcpServers", "s"], EntryStyle::Json, before())];
    let wrapped = rewrite(text, ConfigFormat::Json, &rewrites).unwrap();
    let back = |current: &str| put_back(text, current, ConfigFormat::Json, &rewrites).unwrap();
    // A client that writes its whole config again, with another server.
    let added = r#"{"mcpServers":{"s":{"command":"/t/tapegate","args":["shim","--server-id","s","--","x","1"]},"new":{"command":"n"}},"count":2}"#;
    assert_eq!(
        back(added).text,
        r#"{"mcpServers":{"s":{"command": "x", "args": ["1"]},"new":{"command":"n"}},"count":2}"#
    );
    // The entry itself.
    let changed = wrapped.replace("\"1\"]", "\"2\"], \"disabled\": true");
    let expected = text.replace("\"1\"]", "\"2\"], \"disabled\": true");
    assert_eq!((back(&changed).text, back(&changed).conflicts), (expected, Vec::new()));
    // Removed, or something else in its place.
    for other in ["{\"mcpServers\":{}}", "{\"mcpServers\":{\"s\":{\"command\":\"other\"}}}"] {
        assert_eq!(back(other).text, other);
    }
    assert_eq!(put_back(text, "{", ConfigFormat::Json, &rewrites), None);
}
