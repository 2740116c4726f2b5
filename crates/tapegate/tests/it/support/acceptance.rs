//! Accepts a changed policy, like a script that has the project's key.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Output;

use tapegate_store::user_state::PrivateDir;

use super::tapegate;

/// Runs `tapegate policy accept` with these arguments in a project whose user state folder and state
/// folder are `home`.
pub(crate) fn accept_policy(project: &Path, home: &Path, arguments: &[&str]) -> Output {
    let key_file = home.join("copy-of-key");
    let key = PrivateDir::open(home, home).unwrap().key().unwrap();
    write_key(&key_file, key.bytes());
    tapegate()
        .args(["policy", "accept", "--non-interactive", "--key-file"])
        .arg(key_file)
        .args(arguments)
        .env("TAPEGATE_HOME", home)
        .current_dir(project)
        .output()
        .unwrap()
}

/// Writes a key to a file that only its owner can read, as `approvals export-key` does.
pub(crate) fn write_key(path: &Path, bytes: &[u8]) {
    let options = File::options().write(true).create(true).truncate(true).mode(0o600).clone();
    options.open(path).unwrap().write_all(bytes).unwrap();
}
