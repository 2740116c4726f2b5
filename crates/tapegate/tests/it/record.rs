//! `tapegate record` on standard input and output.

mod existing_tape;
mod flush_on_exit;
mod not_mcp;
mod server_end;

use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn a_line_goes_through_a_copying_server_and_onto_the_tape() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    let mut run = Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(["record", "-o"])
        .arg(&tape)
        .args(["--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let line = b"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"b\":1.0,\"a\":1}}\n";
    run.stdin.take().unwrap().write_all(line).unwrap();
    let done = run.wait_with_output().unwrap();
    assert!(done.status.success());
    assert_eq!(done.stdout, line);
    let text = std::fs::read_to_string(&tape).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.contains(
            r#""dir":"c2s","msg":{"jsonrpc":"2.0","method":"x","params":{"b":1.0,"a":1}}"#
        )
    );
}

#[test]
fn a_url_without_its_scheme_is_told_what_it_lacks() {
    let run = Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(["record", "-o", "never.jsonl", "--upstream-http", "localhost:3000/mcp"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(64));
    let output_text =
        "error: `localhost:3000/mcp` is not a valid HTTP URL: it has no scheme such as https://\n";
    assert_eq!(String::from_utf8_lossy(&run.stderr), output_text);
}
