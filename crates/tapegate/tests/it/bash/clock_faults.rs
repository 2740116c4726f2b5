//! A wall clock that is wrong, or is set while commands run.

use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::client::{BashClient, entries, metadata};
use crate::support::{replace_file, wait_until};

/// A library that moves the wall clock by as many seconds as a file says.
const SHIFTED_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    long shift = 0;
    FILE *file = clock == CLOCK_REALTIME ? fopen(getenv("CLOCK_SHIFT"), "r") : NULL;
    if (file) { if (fscanf(file, "%ld", &shift) == 1) now->tv_sec += shift; fclose(file); }
    return result;
}
"#;

/// A folder whose servers have a wall clock of their own.
struct MovedClock {
    folder: TempDir,
}

impl MovedClock {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("clock.c"), SHIFTED_CLOCK).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]).arg(at("clock.so")).arg(at("clock.c"));
        assert!(compiler.arg("-ldl").status().unwrap().success());
        Self { folder }
    }

    /// Starts a server with that clock.
    fn start(&self) -> BashClient {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let (library, shift) = (path("clock.so"), path("shift"));
        let variables = [("LD_PRELOAD", library.as_str()), ("CLOCK_SHIFT", shift.as_str())];
        BashClient::spawn_with(self.folder.path(), &variables)
    }

    /// Moves the clock away from the real time.
    fn set(&self, seconds: i64) {
        replace_file(&self.folder.path().join("shift"), &seconds.to_string());
    }
}

#[test]
fn a_clock_that_is_set_changes_neither_durations_nor_the_order() {
    let clock = MovedClock::new();
    let folder = clock.folder.path();
    let at = |name: &str| folder.join(name);
    let mut client = clock.start();
    client.execute("mkfifo gate; echo 1");
    for (number, seconds) in [(2, -3 * 86_400), (3, 0), (4, 2 * 86_400), (5, -3600)] {
        let call = json!({"command": format!("touch begun{number}; read < gate; echo {number}")});
        let id =
            client.ask("tools/call", &json!({"name": "bash_recorder.execute", "arguments": call}));
        wait_until("it runs", || at(&format!("begun{number}")).exists());
        // While the command runs.
        clock.set(seconds);
        std::fs::write(at("gate"), "\n").unwrap();
        let result = client.answer(id)["result"]["structuredContent"].clone();
        assert!(result["duration_ms"].as_u64().unwrap() < 3_600_000, "{result}");
        assert!(result["recording_id"].is_string(), "{result}");
    }
    client.close();
    let recordings = at(".cuff/recordings");
    let all = entries(&recordings);
    let said: Vec<&str> =
        all.iter().map(|entry| entry["stdout"].as_str().unwrap().trim()).collect();
    let mut sorted = said.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["1", "2", "3", "4", "5"]);
    assert!(metadata(&recordings).iter().all(|session| session["status"] != "active"));
    let mut list = crate::support::tapegate();
    let done = list.args(["sessions", "stats"]).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_server_that_starts_with_a_clock_far_ahead_deletes_nothing() {
    let clock = MovedClock::new();
    let folder = clock.folder.path();
    let mut client = clock.start();
    client.execute("echo kept");
    client.close();
    let recordings = folder.join(".cuff/recordings");
    clock.set(10 * 365 * 86_400);
    for _ in 0..3 {
        let mut client = clock.start();
        client.execute("date +%Y");
        client.close();
        assert!(entries(&recordings).iter().any(|entry| entry["command"] == "echo kept"));
    }
    let log = BashClient::log(folder);
    assert!(
        log.contains("Old recordings will be deleted") && log.contains(" sessions=1 "),
        "{log}"
    );
    // With the right time it is not old, and nothing is left to be deleted.
    clock.set(0);
    clock.start().close();
    assert!(!recordings.join("retention.json").exists());
    assert_eq!(entries(&recordings).len(), 4);
}
