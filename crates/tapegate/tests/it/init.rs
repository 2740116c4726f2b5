//! `tapegate init`

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn tapegate(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    command.args(args).current_dir(folder).output().unwrap()
}

fn said(run: &Output) -> String {
    String::from_utf8_lossy(&run.stdout).into_owned()
}

const TAPE: &str = r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"npx -y files","thoughtjack_version":"1"}
{"type":"message","seq":1,"ts":"2026-01-01T00:00:00Z","dir":"c2s","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/a"}}}}
"#;

#[test]
fn a_policy_to_start_with_is_valid_and_names_the_servers_of_the_project() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let config = r#"{"mcpServers":{"files":{"command":"npx","args":["-y","files"]}}}"#;
    fs::write(folder.join(".mcp.json"), config).unwrap();
    let run = tapegate(folder, &["init"]);
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
    assert_eq!(
        said(&run),
        "tapegate.yaml: written
  server files, from .mcp.json

What to do next:
  tapegate check tapegate.yaml
  tapegate shim --server-id files -- npx -y files
      in the place of `npx -y files` in your client's config
  tapegate init --force --from-tape TAPE
      once a session is on tape, to let through only what it used
"
    );
    let check = tapegate(folder, &["check", "tapegate.yaml"]);
    assert!(check.status.success(), "{}", said(&check));
    assert!(said(&check).starts_with("tapegate.yaml: ok, 2 sources, 1 rule"), "{}", said(&check));
    let explained = |name: &str| said(&tapegate(folder, &["policy", "explain", name]));
    assert!(explained("delete_file").contains("approv"), "{}", explained("delete_file"));
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
    fs::write(folder.join("t.jsonl"), TAPE).unwrap();
    let config = r#"{"servers":{"db":{"command":"db"}}, /* none */ }"#;
    fs::create_dir(folder.join(".vscode")).unwrap();
    fs::write(folder.join(".vscode/mcp.json"), config).unwrap();
    let run = tapegate(folder, &["init", "--from-tape", "t.jsonl", "p.yaml"]);
    let words = said(&run);
    let lost = "  server db, from .vscode/mcp.json; it is on no tape, so nothing of it passes\n";
    assert!(words.contains(lost), "{words}");
    assert!(words.contains("  tapegate shim --server-id files -- SERVER ARGS\n"), "{words}");
    let text = fs::read_to_string(folder.join("p.yaml")).unwrap();
    assert!(text.contains("path: { equals: /a }") && text.contains("redaction:"), "{text}");
    assert!(tapegate(folder, &["check", "p.yaml"]).status.success());
}
