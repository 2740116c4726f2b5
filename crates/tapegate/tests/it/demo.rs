//! `tapegate demo`

use crate::support::{check, tapegate};

#[test]
fn the_demo_records_a_session_says_where_and_leaves_a_tape_without_faults() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("demo.jsonl");
    let done = tapegate().args(["demo", "--output"]).arg(&tape).output().unwrap();
    let words = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{words}");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains(tape.to_str().unwrap()), "{text}");
    let found = check(&tape, 0);
    assert!(found.contains(": ok, "), "{found}");
}
