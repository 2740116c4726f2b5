//! `tapegate init`

mod entry_notes;
mod policy_file;
mod state_only;
mod tapes;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the binary in `folder`, with its own home folder.
fn tapegate(folder: &Path, args: &[&str]) -> Output {
    let home = folder.join("home");
    fs::create_dir_all(&home).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    command.args(args).current_dir(folder).env("HOME", home).env("PATH", "/usr/bin:/bin");
    for name in
        ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "TAPEGATE_HOME"]
    {
        command.env_remove(name);
    }
    command.output().unwrap()
}

fn said(run: &Output) -> String {
    String::from_utf8_lossy(&run.stdout).into_owned()
}

fn put(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

const TAPE: &str = r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"npx -y files","thoughtjack_version":"1"}
{"type":"message","seq":1,"ts":"2026-01-01T00:00:00Z","dir":"c2s","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/a/b"}}}}
"#;

#[test]
fn a_policy_to_start_with_is_valid_and_names_the_servers_of_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let config = r#"{"mcpServers":{"files":{"command":"npx","args":["-y","files"]}}}"#;
    put(folder, ".mcp.json", config);
    let run = tapegate(folder, &["init"]);
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    let binary = env!("CARGO_BIN_EXE_tapegate");
    assert_eq!(
        said(&run),
        format!(
            "tapegate.yaml: written
.tapegate: written
.tapegate/.gitignore: written
  server files, Claude Code (project), .mcp.json

To put these servers behind the gate:

  Claude Code, .mcp.json: run
    claude mcp remove --scope project files
    claude mcp add --scope project files -- {binary} shim --require-policy --server-id files -- npx -y files

What to do next:
  tapegate wrap -- claude
      to put the agent's servers behind the gate for one session
  tapegate agents install claude-code
      to put them there for all sessions, without editing configs yourself
  tapegate check tapegate.yaml
  tapegate policy pin --server-id files -- npx -y files
      to accept the tools as they are; tools that are pinned and read-only then pass unasked
  tapegate policy accept tapegate.yaml
      after each change; until then the accepted policy stays in force
  tapegate init --force --from-tape TAPE
      once your work is on tape, to permit only what it used
"
        )
    );
    let check = tapegate(folder, &["check", "tapegate.yaml"]);
    assert!(check.status.success(), "{}", said(&check));
    assert!(said(&check).contains("2 sources, 4 rules"), "{}", said(&check));
    // Until a tool is pinned, none is known to be read-only, which is reported.
    assert!(said(&check).contains("run `tapegate policy pin`"), "{}", said(&check));
    let explained = |name: &str| said(&tapegate(folder, &["policy", "explain", name]));
    for name in ["delete_file", "read_file", "anything"] {
        assert!(explained(name).contains("approv"), "{}", explained(name));
    }
    let mode = fs::metadata(folder.join(".tapegate")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    assert_eq!(fs::read_to_string(folder.join(".tapegate/.gitignore")).unwrap(), "*\n");
}

#[test]
fn each_client_is_told_in_its_own_language_what_to_put_into_its_config() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let entry = r#"{"mcpServers":{"files":{"command":"npx","args":["-y","my files"],"env":{"TOKEN":"hush-hush"}}}}"#;
    put(
        folder,
        "home/.claude.json",
        r#"{"mcpServers":{"web":{"type":"http","url":"https://x.example/mcp","headers":{"Authorization":"Bearer hush-hush"}}}}"#,
    );
    put(folder, "home/.config/Claude/claude_desktop_config.json", entry);
    put(folder, ".cursor/mcp.json", entry);
    put(
        folder,
        "home/.codex/config.toml",
        "[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\"mcp-server-git\"]\n",
    );
    put(
        folder,
        "home/.config/opencode/opencode.jsonc",
        "{\"mcp\": {\"time\": {\"type\": \"local\", \"command\": [\"uvx\", \"time\"],}}} // mine",
    );
    put(folder, "home/.continue/config.yaml", "mcpServers:\n  - name: lite\n    command: lite\n");
    put(
        folder,
        "home/.config/goose/config.yaml",
        "extensions:\n  fetch: { type: stdio, cmd: fetch, enabled: true }\n",
    );
    put(
        folder,
        ".vscode/mcp.json",
        "{\"servers\": {\"db\": {\"command\": \"db\"}, \"on\": {\"command\": \"tapegate\", \"args\": [\"shim\", \"--\", \"x\"]}}}",
    );
    let off = r#"{"mcpServers":{"off":{"command":"x","disabled":true}}}"#;
    put(folder, "home/.kimi/mcp.json", off);
    put(folder, "home/.config/zed/settings.json", "{ broken");
    let before = fs::read(folder.join("home/.claude.json")).unwrap();
    let words = said(&tapegate(folder, &["init"]));
    let binary = env!("CARGO_BIN_EXE_tapegate");
    let project = folder.canonicalize().unwrap();
    let project = project.display();
    for expected in [
        format!(
            "    \"web\": {{ \"command\": \"{binary}\", \"args\": [\"shim\", \"--require-policy\", \"--server-id\", \"web\", \"--upstream-http\", \"https://x.example/mcp\", \"--header-env\", \"Authorization=WEB_AUTHORIZATION\"], \"env\": {{ \"WEB_AUTHORIZATION\": \"VALUE\" }} }}\n      (put the header values of the old entry into the variables: Authorization)\n"
        ),
        format!(
            "  Claude Desktop, ~/.config/Claude/claude_desktop_config.json: in the place of `files`\n    \"files\": {{ \"command\": \"{binary}\", \"args\": [\"shim\", \"--require-policy\", \"--config\", \"{project}/tapegate.yaml\", \"--server-id\", \"files\", \"--\", \"npx\", \"-y\", \"my files\"] }}\n      (keep the environment variables of the old entry)\n"
        ),
        "\"--config\", \"${workspaceFolder}/tapegate.yaml\", \"--server-id\", \"files\"".to_owned(),
        format!(
            "    [mcp_servers.\"git\"]\n    command = \"{binary}\"\n    args = [\"shim\", \"--require-policy\", \"--server-id\", \"git\", \"--\", \"uvx\", \"mcp-server-git\"]\n"
        ),
        format!(
            "    \"time\": {{ \"type\": \"local\", \"command\": [\"{binary}\", \"shim\", \"--require-policy\", \"--server-id\", \"time\", \"--\", \"uvx\", \"time\"] }}\n"
        ),
        format!("    - name: \"lite\"\n      command: \"{binary}\"\n"),
        format!(
            "    \"fetch\":\n      enabled: true\n      type: stdio\n      name: \"fetch\"\n      cmd: \"{binary}\"\n"
        ),
        "    \"db\": { \"type\": \"stdio\", \"command\": ".to_owned(),
        "  server off, Kimi (user), ~/.kimi/mcp.json; disabled\n".to_owned(),
        "  server on, VS Code (project), .vscode/mcp.json; behind the gate already\n".to_owned(),
        "  skipped ~/.config/zed/settings.json: not valid JSON: ".to_owned(),
        "  tapegate init ~/.config/tapegate/tapegate.yaml\n".to_owned(),
    ] {
        assert!(words.contains(&expected), "{expected}\n--\n{words}");
    }
    assert!(!words.contains("hush"), "{words}");
    assert_eq!(fs::read(folder.join("home/.claude.json")).unwrap(), before);
    assert!(tapegate(folder, &["check", "tapegate.yaml"]).status.success());
}

#[test]
fn a_dry_run_writes_nothing_and_the_summary_is_one_document() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(
        folder,
        ".mcp.json",
        r#"{"mcpServers":{"files":{"command":"npx"},"web":{"url":"https://x.example"}}}"#,
    );
    put(folder, "home/.kimi/mcp.json", "{");
    put(folder, "tapes/a.jsonl", TAPE);
    put(folder, "tapegate.yaml", "mine");
    let run = tapegate(folder, &["init", "--dry-run", "--format", "json"]);
    let summary: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(summary["written"], serde_json::json!([]));
    assert_eq!(summary["servers"][0]["command"], serde_json::json!(["npx"]));
    assert_eq!(summary["servers"][1]["url"], "https://x.example");
    assert!(summary["servers"][0]["snippet"].as_str().unwrap().contains("--require-policy"));
    assert!(summary["skipped"][0]["config"].as_str().unwrap().ends_with(".kimi/mcp.json"));
    assert_eq!(summary["tapes"][0]["count"], 1);
    assert_eq!(fs::read_to_string(folder.join("tapegate.yaml")).unwrap(), "mine");
    assert!(!folder.join(".tapegate").exists());
}

#[test]
fn a_time_limit_of_the_old_entry_is_kept_and_what_cannot_be_shown_is_named() {
    let folder = tempfile::tempdir().unwrap();
    put(
        folder.path(),
        "home/.gemini/settings.json",
        r#"{"mcpServers":{"slow":{"command":"slow","timeout":60000,"trust":false,"includeTools":["a"]}}}"#,
    );
    let words = said(&tapegate(folder.path(), &["init"]));
    let kept = "\"slow\"], \"timeout\": 60000, \"trust\": false }\n      \
                (keep the rest of the old entry: includeTools)\n";
    assert!(words.contains(kept), "{words}");
}

#[test]
fn tapes_in_this_folder_are_said_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "a.jsonl", TAPE);
    let words = said(&tapegate(folder.path(), &["init"]));
    assert!(words.contains("  1 tape in this folder, not used\n"), "{words}");
}

#[test]
fn a_policy_that_is_there_is_kept_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("tapegate.yaml"), "mine").unwrap();
    let run = tapegate(folder, &["init"]);
    assert_eq!(run.status.code(), Some(3));
    assert!(
        String::from_utf8_lossy(&run.stderr).starts_with("error: `tapegate.yaml` exists already")
    );
    assert_eq!(fs::read_to_string(folder.join("tapegate.yaml")).unwrap(), "mine");
    assert!(tapegate(folder, &["init", "--force"]).status.success());
    assert!(fs::read_to_string(folder.join("tapegate.yaml")).unwrap().contains("schema: 1"));
}

#[test]
fn a_policy_under_the_older_name_is_not_put_out_of_use() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("thoughtgate.yaml"), "mine").unwrap();
    let run = tapegate(folder, &["init"]);
    assert_eq!(run.status.code(), Some(3));
    assert!(
        String::from_utf8_lossy(&run.stderr)
            .starts_with("error: `thoughtgate.yaml` would no longer be used")
    );
    assert!(!folder.join("tapegate.yaml").exists());
}

#[test]
fn with_a_tape_only_what_is_on_it_passes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "tapes/t.jsonl", TAPE);
    put(folder, ".vscode/mcp.json", r#"{"servers":{"db":{"command":"db"}}, /* none */ }"#);
    for (args, name) in [
        (&["init", "--from-tape", "tapes/t.jsonl", "p.yaml"][..], "p.yaml"),
        (&["init", "--from-tapes"], "tapegate.yaml"),
    ] {
        let message = said(&tapegate(folder, args));
        let shut =
            "  server db, VS Code (project), .vscode/mcp.json; not on any tape, so it is denied\n";
        assert!(message.contains(shut), "{message}");
        let text = fs::read_to_string(folder.join(name)).unwrap();
        assert!(text.contains("path: { under: /a/b }") && text.contains("redaction:"), "{text}");
        assert!(tapegate(folder, &["check", name]).status.success());
    }
}

#[test]
fn tapes_of_other_projects_are_not_read() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(home.path(), ".local/state/tapegate/tapes/other.jsonl", TAPE);
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(["init", "--from-tapes"])
        .current_dir(folder.path())
        .env("HOME", home.path())
        .env_remove("XDG_STATE_HOME")
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stderr).starts_with("error: no tapes in"));
}

#[test]
fn without_tapes_nothing_is_made_from_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = tapegate(folder.path(), &["init", "--from-tapes"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).starts_with("error: no tapes in"));
    let run = tapegate(folder.path(), &["init", "--server-id", "x"]);
    assert_eq!(run.status.code(), Some(64));
}
