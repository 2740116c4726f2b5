//! `tapegate demo`

use crate::support::{check, tapegate};

#[test]
fn the_demo_records_a_session_and_replays_it_and_says_where_the_tape_is() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("demo.jsonl");
    let done = tapegate().args(["demo", "--output"]).arg(&tape).output().unwrap();
    let output_text = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{output_text}");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains(tape.to_str().unwrap()), "{text}");
    let next = format!("\n  {} check {}\n", env!("CARGO_BIN_EXE_tapegate"), tape.display());
    assert!(text.contains(&next), "what to try next cannot be tried: {text}");
    assert!(text.contains("The agent saw and sent exactly the same."), "{text}");
    assert!(text.contains("The approved call was forwarded; the other was not sent."), "{text}");
    let found = check(&tape, 0);
    assert!(found.contains(": ok, "), "{found}");
}

#[test]
fn the_demo_overwrites_a_tape_only_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let demo = |more: &[&str]| {
        let mut demo = tapegate();
        demo.args(["demo", "-o", "demo.jsonl"]).args(more).current_dir(folder.path());
        demo.output().unwrap()
    };
    assert_eq!(demo(&[]).status.code(), Some(0));
    let again = demo(&[]);
    assert_eq!(again.status.code(), Some(3));
    let output_text = String::from_utf8(again.stderr).unwrap();
    assert!(
        output_text.starts_with("error: `demo.jsonl` exists already\n\nhint: "),
        "{output_text}"
    );
    assert!(
        output_text.contains("--force") && output_text.matches("error: ").count() == 1,
        "{output_text}"
    );
    assert_eq!(demo(&["--force"]).status.code(), Some(0));
}
