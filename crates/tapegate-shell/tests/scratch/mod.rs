//! Runs command lines with bash and dash in scratch folders.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use tapegate_shell::command_use::posix_difference;

/// The paths below a folder, with their contents and modes.
fn tree(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let text = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            if metadata.is_dir() {
                folders.push(path.clone());
            }
            all.insert(path.display().to_string(), (metadata.permissions().mode(), text));
        }
    }
    all
}

/// Runs a line in a scratch folder; returns what changed. If dash reads it like bash, it runs too.
pub(crate) fn changes(line: &str) -> Vec<String> {
    let mut all = changes_by("bash", line);
    if posix_difference(line).is_none() {
        all.extend(changes_by("dash", line));
    }
    all
}

fn changes_by(shell: &str, line: &str) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("work");
    fs::create_dir_all(folder.join("src")).unwrap();
    for (name, text) in [
        ("a.txt", "foo\n2\n"),
        ("b.txt", "bar\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("data.json", "{}"),
        ("y.sh", "touch y\n"),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    // What a line runs that changes `PATH`, as `PATH=1` or `{PATH}>` do.
    for name in ["0", "1", "10", "11", "x"] {
        let program = folder.join(name).join("ls");
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(&program, "#!/bin/sh\n: > y\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let before = tree(scratch.path());
    let mut child = Command::new("timeout")
        .args(["-k", "1", "5", shell, "-c", "--", line])
        .current_dir(&folder)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", scratch.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.wait().unwrap();
    let after = tree(scratch.path());
    let paths = before.keys().chain(after.keys());
    paths.filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// Whether bash accepts the syntax of a line.
pub(crate) fn is_accepted(line: &str) -> bool {
    let status = Command::new("bash").args(["-n", "-c", "--", line]).stderr(Stdio::null()).status();
    status.unwrap().success()
}
