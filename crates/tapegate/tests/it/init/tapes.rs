//! `tapegate init` with tapes: which servers they belong to, and which of them count.

use std::fs;

use super::{TAPE, put, said, tapegate};

#[test]
fn a_tape_belongs_to_the_entry_with_the_same_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "tapes/t.jsonl", TAPE);
    let config = r#"{"mcpServers":{"mine":{"command":"npx","args":["-y","files"]}}}"#;
    put(folder, ".mcp.json", config);
    let text = said(&tapegate(folder, &["init", "--from-tapes"]));
    assert!(text.contains("--server-id mine -- npx -y files\n"), "{text}");
    assert!(!text.contains("not on any tape"), "{text}");
    // The policy pins strictly; a hint alone never lets a call through.
    assert!(text.contains("a tool that changes is then refused\n"), "{text}");
    assert!(!text.contains("pass unasked"), "{text}");
    let policy = fs::read_to_string(folder.join("tapegate.yaml")).unwrap();
    assert!(policy.contains("- id: mine\n"), "{policy}");
    let explained = said(&tapegate(
        folder,
        &["policy", "explain", "read", "--server-id", "mine", "--arguments", r#"{"path":"/a/b"}"#],
    ));
    assert!(explained.contains("forward"), "{explained}");
}

#[test]
fn a_tape_of_a_server_in_no_config_says_how_its_shim_is_to_be_started() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "tapes/t.jsonl", TAPE);
    put(folder, ".mcp.json", r#"{"mcpServers":{"mine":{"command":"other"}}}"#);
    let text = said(&tapegate(folder, &["init", "--from-tapes"]));
    let shut =
        "  server mine, Claude Code (project), .mcp.json; not on any tape, so it is denied\n";
    assert!(text.contains(shut), "{text}");
    let needs =
        "  server files, on the tapes, in no client's config; its shim needs --server-id files\n";
    assert!(text.contains(needs), "{text}");
}

#[test]
fn only_the_tapes_that_were_used_are_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "tapes/a.jsonl", TAPE);
    put(folder, "tapes/b.jsonl", TAPE);
    put(folder, "c.jsonl", TAPE);
    let run = |args: &[&str]| said(&tapegate(folder, &[&["init", "--dry-run"], args].concat()));
    let text = run(&["--from-tape", "tapes/a.jsonl"]);
    assert!(text.contains("  made from 1 tape in tapes\n"), "{text}");
    assert!(!text.contains("this folder"), "{text}");
    let text = run(&["--from-tape", "tapes"]);
    assert!(text.contains("  made from 2 tapes in tapes\n"), "{text}");
    let text = run(&[]);
    assert!(text.contains("  2 tapes in tapes, not used\n"), "{text}");
}

#[test]
fn tapes_on_which_every_call_failed_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let refusal = r#"{"type":"message","seq":2,"ts":"2026-01-01T00:00:00Z","dir":"s2c","msg":{"jsonrpc":"2.0","id":1,"error":{"code":-32007,"message":"rejected"}}}"#;
    put(folder, "t.jsonl", &format!("{TAPE}{refusal}\n"));
    let run = tapegate(folder, &["init", "--from-tapes"]);
    assert_eq!(run.status.code(), Some(2));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.starts_with("error: every call on these tapes failed or was refused"), "{said}");
}
