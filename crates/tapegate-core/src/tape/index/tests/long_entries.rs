//! Entries that are too long to be read.

use super::*;

#[test]
fn an_entry_that_is_too_long_refuses_the_tape_unless_it_may_be_left_out() {
    let text = tape(&[("c", &call("1"), ""), ("s", &answer("1"), "")]);
    let splice = |leave_out| {
        let mut splicer = IndexSplicer::new(Signer::default()).skipping_too_long(leave_out);
        let mut reader = TapeReader::new(text.as_bytes());
        while let Some(next) = reader.next() {
            splicer.line(next)?;
            let fault = LineFault::TooLong(100);
            splicer.line(Err(LineProblem::Line { line: 9, fault }))?;
        }
        splicer.finish()
    };
    let refusal = splice(false).unwrap_err().to_string();
    assert!(refusal.starts_with("cannot be played: line 9: longer than 100 bytes"), "{refusal}");
    let (index, findings) = splice(true).unwrap();
    assert_eq!(index.len(), 2);
    let told = |finding: &&TapeFinding| finding.message.starts_with("longer than");
    assert!(findings.iter().filter(told).count() >= 2, "{findings:?}");
}
