//! A notification is read before the next message is sent, so that no client reads both together.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use super::{answer, call, tape};
use crate::support::tapegate;

const NOTE: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"busy"}}"#;
/// The number of attempts. A machine may be too busy to read a notification in time.
const TRIES: usize = 100;

/// A server of ours with a connection like that of SDKs: a pipe or a socket.
struct ReplayProcess {
    child: Child,
    output: Box<dyn Read>,
}

impl Drop for ReplayProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ReplayProcess {
    fn start(mut command: Command, socket: bool) -> Self {
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let (output, theirs): (Box<dyn Read>, OwnedFd) = if socket {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (Box::new(ours), theirs.into())
        } else {
            let (ours, theirs) = std::io::pipe().unwrap();
            (Box::new(ours), theirs.into())
        };
        let child = command.stdout(theirs).spawn().unwrap();
        // Our copy of their end is closed with the command.
        drop(command);
        Self { child, output }
    }

    /// Makes a call, and returns the result of each read until its answer arrives.
    fn call(&mut self, id: usize) -> Vec<String> {
        let line = call(id, "a", 1) + "\n";
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let (mut reads, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while !reads.iter().any(|read: &String| read.contains("\"result\"")) {
            let count = self.output.read(&mut buffer).unwrap();
            assert!(count > 0, "it has ended: {reads:?}");
            reads.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
        }
        reads
    }

    /// Asserts that the notification is read by itself, unless we read it late.
    fn hands_over(mut self) {
        let apart = |reads: Vec<String>| reads.len() > 1 && reads[0] == format!("{NOTE}\n");
        let found = (1..=TRIES).any(|id| apart(self.call(id)));
        assert!(found, "the notification and the answer are always read together");
    }
}

fn replay(folder: &std::path::Path, script: &str, flags: &[&str]) -> Command {
    let path = folder.join("tape.jsonl");
    fs::write(&path, tape(script)).unwrap();
    let mut command = tapegate();
    command.arg("replay").arg("-r").arg(path).args(flags);
    command
}

#[test]
fn a_replayed_notification_is_read_before_the_answer_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("> {}\n< {NOTE}\n< {}\n", call(1, "a", 1), answer(1, "one"));
    for socket in [false, true] {
        let flags = ["--match-mode", "by-request", "--on-exhausted", "last"];
        ReplayProcess::start(replay(folder.path(), &script, &flags), socket).hands_over();
    }
}

#[test]
fn so_is_one_of_the_server_behind_the_tape() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("> {}\n< {}\n", call(1, "other", 1), answer(1, "one"));
    // It writes both at once.
    let server = format!(
        "import sys, json\nfor line in sys.stdin:\n  id = json.loads(line)['id']\n  sys.stdout.write('{NOTE}\\n' + json.dumps({{'jsonrpc': '2.0', 'id': id, 'result': {{}}}}) + '\\n')\n  sys.stdout.flush()\n"
    );
    let flags = ["--on-unmatched", "passthrough", "--", "python3", "-c", &server];
    ReplayProcess::start(replay(folder.path(), &script, &flags), true).hands_over();
}

#[test]
fn so_is_one_of_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "\
server: { name: s, capabilities: { logging: {} } }
tools:
  - tool: { name: a, description: A., inputSchema: { type: object } }
    response:
      before:
        - send_notification: { method: notifications/message, params: { level: info, data: busy } }
      content: [{ type: text, text: done }]
";
    let path = folder.path().join("scenario.yaml");
    fs::write(&path, scenario).unwrap();
    let mut command = tapegate();
    command.arg("serve").arg(path);
    let mut spoken = ReplayProcess::start(command, true);
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let input = spoken.child.stdin.as_mut().unwrap();
    input.write_all(format!("{hello}\n{ready}\n").as_bytes()).unwrap();
    let mut buffer = vec![0; 64 * 1024];
    assert!(spoken.output.read(&mut buffer).unwrap() > 0);
    spoken.hands_over();
}
