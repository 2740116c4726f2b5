//! `tapegate man`

use crate::support::tapegate;

#[test]
fn every_command_has_a_manual_page_and_no_other_word_has() {
    let page = |words: &[&str]| tapegate().arg("man").args(words).output().unwrap();
    let whole = page(&[]);
    assert!(whole.status.success());
    assert!(String::from_utf8_lossy(&whole.stdout).contains("tapegate"));
    for name in crate::tidy::commands() {
        let done = page(&[&name]);
        assert!(done.status.success(), "{name}");
        assert!(String::from_utf8_lossy(&done.stdout).contains(".SH"), "{name}");
    }
    let none = page(&["no-such-command"]);
    assert_eq!(none.status.code(), Some(64));
    let message =
        "error: there is no command `no-such-command`\n\nhint: `tapegate --help` lists them\n";
    assert_eq!(String::from_utf8_lossy(&none.stderr), message);
}
