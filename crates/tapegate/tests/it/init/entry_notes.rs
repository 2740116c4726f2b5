//! What `tapegate init` prints about single entries of a config, and about the file it writes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{put, said, tapegate};

#[test]
fn what_only_holds_for_a_url_is_to_be_removed_and_a_token_becomes_a_header() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(
        folder,
        "home/.codex/config.toml",
        "[mcp_servers.web]\nurl = \"https://x.example/mcp\"\nbearer_token_env_var = \"TOK\"\n\
         tool_timeout_sec = 60\nscopes = [\"a\"]\n",
    );
    put(
        folder,
        "home/.config/opencode/opencode.json",
        r#"{"mcp":{"far":{"type":"remote","url":"https://y.example","oauth":false}}}"#,
    );
    let text = said(&tapegate(folder, &["init", "--dry-run"]));
    for expected in [
        "\"--header-env\", \"Authorization=WEB_AUTHORIZATION\"]\n    tool_timeout_sec = 60\n",
        "env = { \"WEB_AUTHORIZATION\" = \"VALUE\" }\n",
        "(set WEB_AUTHORIZATION to `Bearer ` followed by the value of `TOK`)\n",
        "(remove the settings that only apply to a URL: bearer_token_env_var, scopes)\n",
        "\"--upstream-http\", \"https://y.example\"] }\n",
        "(remove the settings that only apply to a URL: oauth)\n",
        "(the shim does not sign in; give it a token with --header-env Authorization=VARIABLE)\n",
    ] {
        assert!(text.contains(expected), "{expected}\n--\n{text}");
    }
    assert!(!text.contains("keep the rest"), "{text}");
}

#[test]
fn claude_code_is_given_an_entry_where_it_would_refuse_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(
        folder,
        ".mcp.json",
        r#"{"mcpServers":{"sp ace":{"command":"x"},"fine_1-a":{"command":"two words"}}}"#,
    );
    let text = said(&tapegate(folder, &["init", "--dry-run"]));
    assert!(!text.contains("claude mcp remove --scope project 'sp ace'"), "{text}");
    assert!(text.contains("\"sp ace\": { \"command\": "), "{text}");
    assert!(text.contains("claude mcp add --scope project fine_1-a -- "), "{text}");
    // Lines to be run are quoted for a shell.
    put(folder, ".mcp.json", r#"{"mcpServers":{"a":{"command":"two words","args":["$x"]}}}"#);
    let text = said(&tapegate(folder, &["init", "--dry-run"]));
    assert!(text.contains("policy pin --server-id a -- 'two words' '$x'\n"), "{text}");
}

#[test]
fn the_folder_of_the_policy_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = tapegate(folder, &["init", "home/.config/tapegate/tapegate.yaml"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let made = folder.join("home/.config/tapegate");
    assert!(made.join("tapegate.yaml").is_file() && made.join(".tapegate").is_dir());
    assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_dry_run_says_what_stands_in_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "tapegate.yaml", "mine");
    let text = said(&tapegate(folder, &["init", "--dry-run"]));
    let expected = "tapegate.yaml: not written (dry run)\n  \
                    without --force, it could not be written: `tapegate.yaml` exists already\n";
    assert!(text.starts_with(expected), "{text}");
    let text = said(&tapegate(folder, &["init", "--dry-run", "--force"]));
    assert!(!text.contains("could not"), "{text}");
}
