//! Any text as a command line: reading never panics, bash accepts what is read, and no line that counts as read-only
//! makes bash write a file, or makes dash do so where nothing in the line is said to differ for dash.
#![no_main]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use libfuzzer_sys::fuzz_target;
use tapegate_shell::classifier::CommandClass;
use tapegate_shell::command_use::{posix_difference, read_line};
use tapegate_shell::reader::read_commands;

/// The names and sizes of the files in a folder.
fn listing(folder: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(folder).expect("the scratch folder can be read");
    let mut all: Vec<(String, u64)> = entries
        .filter_map(Result::ok)
        .map(|entry| {
            let length = entry.metadata().map_or(0, |metadata| metadata.len());
            (entry.file_name().to_string_lossy().into_owned(), length)
        })
        .collect();
    all.sort();
    all
}

/// Runs a shell in an empty environment with nothing but builtins: no program of the machine can be
/// reached by its name.
fn run(shell: &str, folder: &Path, arguments: &[&str]) -> bool {
    let status = Command::new("/usr/bin/timeout")
        .args(["-k", "1", "2", shell])
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", "/nonexistent")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("timeout starts").success()
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    let is_read = read_commands(line).is_ok();
    let report = read_line(line);
    let reads_only = report.effects().class() == CommandClass::ReadOnly;
    assert!(is_read || !reads_only || line.trim().is_empty());
    // Starting bash is slow, so only short lines are run.
    if !is_read || line.len() > 300 || line.contains('/') {
        return;
    }
    let folder = std::env::temp_dir().join(format!("tapegate-fuzz-shell-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the scratch folder can be made");
    assert!(run("/bin/bash", &folder, &["-n", "-c", "--", line]), "bash rejects {line:?}");
    if reads_only {
        run("/bin/bash", &folder, &["-c", "--", line]);
        if posix_difference(line).is_none() {
            run("/bin/dash", &folder, &["-c", line]);
        }
        let found = listing(&folder);
        assert!(found.is_empty(), "{line:?} wrote {found:?}");
    }
});
