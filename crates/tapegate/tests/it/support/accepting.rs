//! Accepting a changed policy as a script does that has the project's key.

use std::path::Path;
use std::process::Output;

use tapegate_store::user_state::PrivateDir;

use super::tapegate;

/// Runs `tapegate policy accept` with these arguments in a project whose user state folder and state
/// folder are `home`.
pub(crate) fn accept_policy(project: &Path, home: &Path, arguments: &[&str]) -> Output {
    let key_file = home.join("copy-of-key");
    let key = PrivateDir::open(home, home).unwrap().key().unwrap();
    std::fs::write(&key_file, key.bytes()).unwrap();
    tapegate()
        .args(["policy", "accept", "--non-interactive", "--key-file"])
        .arg(key_file)
        .args(arguments)
        .env("TAPEGATE_HOME", home)
        .current_dir(project)
        .output()
        .unwrap()
}
