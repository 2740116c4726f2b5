//! The example about approved writes, followed to the letter with its server.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::peers;

#[test]
fn the_example_of_approved_writes_fits_the_server_that_it_is_pinned_to() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/approve-writes");
    let folder = tempfile::tempdir().unwrap();
    for name in ["tapegate.yaml", "tapegate.test.yaml"] {
        fs::copy(example.join(name), folder.path().join(name)).unwrap();
    }
    let program = "npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let server = [peers::node(), peers::tools(program), data.display().to_string()];
    let run = |args: &[&str], server: &[String]| {
        let run = Command::new(peers::tapegate())
            .args(args)
            .args(server)
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("TAPEGATE_HOME", folder.path().join("state"))
            .output()
            .unwrap();
        let (text, errors) =
            (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{args:?}\n{text}{errors}");
    };
    run(&["policy", "pin", "--all", "--server-id", "files", "--"], &server);
    run(&["policy", "test"], &[]);
    // The folder ships exactly what a new user gets.
    let lock = |folder: &Path| fs::read_to_string(folder.join("tapegate.lock")).unwrap();
    assert_eq!(lock(folder.path()), lock(&example));
}
