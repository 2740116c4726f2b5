//! The policies of `docs/examples`: each loads, and its tests pass and reach every rule.

use std::path::Path;
use std::process::Command;

#[test]
fn the_policies_of_the_docs_stop_the_attacks_that_their_tests_name() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let mut count = 0;
    for folder in std::fs::read_dir(examples).unwrap() {
        let folder = folder.unwrap().path();
        if !folder.is_dir() {
            continue;
        }
        let home = tempfile::tempdir().unwrap();
        for args in [
            &["check", "--strict", "tapegate.yaml"][..],
            &["policy", "test", "--coverage", "tapegate.test.yaml"],
        ] {
            let run = Command::new(env!("CARGO_BIN_EXE_tapegate"))
                .args(args)
                .current_dir(&folder)
                .env("HOME", home.path())
                .env("TAPEGATE_HOME", home.path().join("state"))
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&run.stdout);
            let errors = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{}: {args:?}\n{text}{errors}", folder.display());
        }
        count += 1;
    }
    assert!(count >= 3, "{count}");
}
