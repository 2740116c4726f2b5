//! A client that sends its lines one by one, so that a session is the same on every run.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Runs `command`, sends each line and waits for the given number of lines, then closes the input.
pub(crate) fn talk<'a>(
    mut command: Command,
    script: impl IntoIterator<Item = (&'a str, usize)>,
) -> String {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to_server = child.stdin.take().unwrap();
    let mut from_server = BufReader::new(child.stdout.take().unwrap());
    for (line, answers) in script {
        writeln!(to_server, "{line}").unwrap();
        for _ in 0..answers {
            let mut answer = Vec::new();
            from_server.read_until(b'\n', &mut answer).unwrap();
            assert!(!answer.is_empty(), "the session ended at {line}");
        }
    }
    drop(to_server);
    let run = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{said}");
    said
}
