//! `tapegate completions`

use crate::support::tapegate;

#[test]
fn every_shell_gets_a_script_that_names_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = tapegate().args(["completions", shell]).output().unwrap();
        assert!(done.status.success() && done.stderr.is_empty(), "{shell}");
        let script = String::from_utf8(done.stdout).unwrap();
        for name in crate::tidy::commands() {
            assert!(script.contains(&name), "{shell} {name}");
        }
    }
    assert_eq!(tapegate().args(["completions", "tcl"]).output().unwrap().status.code(), Some(64));
}
