//! `tapegate init --state-only`

use std::fs;

use super::{put, said, tapegate};

#[test]
fn a_policy_that_is_there_gets_a_state_folder_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    put(folder, "tapegate.yaml", "schema: 1\n");
    let refused = tapegate(folder, &["init"]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("`tapegate init --state-only` keeps it, and gives"), "{text}");
    let run = tapegate(folder, &["init", "--state-only"]);
    assert!(run.status.success(), "{run:?}");
    assert_eq!(said(&run), ".tapegate: written\n.tapegate/.gitignore: written\n");
    assert_eq!(fs::read_to_string(folder.join("tapegate.yaml")).unwrap(), "schema: 1\n");
    let again = tapegate(folder, &["init", "--state-only"]);
    assert_eq!(said(&again), ".tapegate: exists already\n");
    let text = String::from_utf8_lossy(&tapegate(folder, &["init"]).stderr).into_owned();
    assert!(!text.contains("--state-only"), "{text}");
    // A flag that would have no effect is refused.
    let run = tapegate(folder, &["init", "--state-only", "--force"]);
    assert_eq!(run.status.code(), Some(64));
}
