//! Processes of a test: those that belong to it, and the scripted server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Pid;

/// The processes that carry `mark` in their environment.
pub(crate) fn marked(mark: &str) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    };
    pids.filter(has).filter_map(Pid::from_raw).collect()
}

/// The scripted server, compiled if it does not exist yet or is older than its source.
pub(crate) fn fake_server() -> PathBuf {
    let source = include_bytes!("../../fake/server.rs");
    let sum = source.iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("fake-server-{sum:016x}"));
    let lock = File::create(folder.join("fake-server.lock")).unwrap();
    lock.lock().unwrap();
    if !program.exists() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/server.rs");
        let half = program.with_extension("half");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut compile = Command::new(rustc);
        compile.args(["--edition", "2024", "-O", "-o"]).arg(&half).arg(path);
        assert!(compile.status().unwrap().success(), "the scripted server does not compile");
        fs::rename(half, &program).unwrap();
    }
    program
}
