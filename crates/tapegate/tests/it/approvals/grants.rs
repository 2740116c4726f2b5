//! `approvals approve --for`, `--session` and patterns, and `approvals grants`.

use super::{ID, RequestFolder};
use crate::support::at_terminal;

#[test]
fn what_is_granted_is_asked_and_listed() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    assert_eq!(state.says(&["grants"], 0).0, "nothing is granted\n");
    for answer in ["n\n", "y\n"] {
        let (code, said) = at_terminal(&state.command(&["approve", ID, "--for", "2h"]), answer);
        assert!(said.contains("grants      files delete_file: the same call, for 2h"), "{said}");
        assert!(said.contains("approve this call and these further ones?"), "{said}");
        assert_eq!(code, i32::from(answer == "n\n"), "{said}");
    }
    let (out, _) = state.says(&["grants", "list"], 0);
    assert!(out.contains("active") && out.contains("1h59m") && out.contains("alice"), "{out}");
    let id = out.split_whitespace().find(|word| word.starts_with("gr_")).unwrap().to_owned();
    assert!(state.says(&["grants", "revoke", &id[..6]], 0).0.starts_with(&format!("revoked {id}")));
    state.says(&["grants", "revoke", &id], 1);
    state.says(&["grants", "revoke", "gr_nothere"], 2);
}

#[test]
fn options_that_make_no_sense_grant_nothing() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    for args in [
        &["approve", ID, "--under", "path=/etc"][..],
        &["approve", ID, "--for", "25h"],
        &["approve", ID, "--for", "0s"],
        &["approve", ID, "--for", "10"],
        &["approve", ID, "--for", "1h30m"],
        &["approve", ID, "--session", "--under", "path"],
        &["approve", ID, "--session", "--under", "path=etc"],
        &["approve", ID, "--session", "--under", "a.b=/etc"],
        &["approve", ID, "--session", "--under", "path=/etc", "--matching", "path=*"],
        &["approve", "--all", "--session"],
        &["deny", ID, "--session"],
        &["list", "--for", "1m"],
        &["grants", "revoke"],
        &["grants", "what"],
    ] {
        let (code, said) = {
            let run = state.run(args);
            (run.status.code(), String::from_utf8(run.stderr).unwrap())
        };
        assert_eq!(code, Some(64), "{args:?}: {said}");
    }
    // The call itself is not covered, or its request does not hold what would be compared.
    let (_, said) = state.says(&["approve", ID, "--session", "--under", "path=/srv"], 1);
    assert!(said.contains("definition of its tool has changed"), "{said}");
    assert!(state.approvals().decision(ID).unwrap().is_none());
    assert!(state.approvals().grants().unwrap().is_empty());
}
