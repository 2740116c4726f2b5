//! `tapegate hub` from outside: a real process, real sockets, real files.

mod access;
mod hostile_requests;
mod lifecycle;
mod reload;
mod scrape;
mod unaccepted_policy;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tapegate_hub::hub_lock::{approver_token_file, token_file};
use tapegate_store::user_state::PrivateDir;
use tempfile::TempDir;

use crate::support::{GUARD, tapegate, wait_for_exit, within, write_key};

const POLICY: &str = "\
schema: 1
governance:
  defaults: { action: forward }
  rules:
    - { match: rm, action: deny }
    - { match: pay, action: approve }
";

/// A folder with a policy, in which hubs are started.
struct HubFolder {
    folder: TempDir,
}

/// A running hub; it is killed when the test ends.
struct RunningHub {
    child: Child,
    said: Arc<Mutex<String>>,
    /// Reads until the hub has closed its standard error.
    listener: Option<JoinHandle<()>>,
    address: String,
    /// The shims' token.
    token: String,
    approver_token: String,
}

/// A reply.
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl HubFolder {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(place.policy(), POLICY).unwrap();
        place
    }

    fn policy(&self) -> PathBuf {
        self.folder.path().join("tapegate.yaml")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join(".tapegate")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.state().join("hub").join(name)
    }

    /// The default file of the shims' token.
    fn token_file(&self) -> PathBuf {
        token_file(&self.folder.path().join("tapegate"), &self.state())
    }

    /// The default file of the approvers' token.
    fn approver_token_file(&self) -> PathBuf {
        approver_token_file(&self.folder.path().join("tapegate"), &self.state())
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = tapegate();
        command.arg("hub").args(["--log-format", "human", "--state"]).arg(self.state());
        command.args(flags).current_dir(self.folder.path());
        for name in ["TAPEGATE_CONFIG", "TAPEGATE_PROFILE", "TAPEGATE_LOG"] {
            command.env_remove(name);
        }
        // Accepted policies are kept in the user's state folder, here the test's.
        command
            .env("XDG_STATE_HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path());
        command
    }

    /// A copy of the project's key.
    fn key_file(&self) -> PathBuf {
        let home = self.folder.path().join("tapegate");
        let key = PrivateDir::open(&home, &self.state()).unwrap().key().unwrap();
        let key_file = self.folder.path().join("copy-of-key");
        write_key(&key_file, key.bytes());
        key_file
    }

    /// Starts a hub that accepts decisions.
    fn start_deciding(&self) -> RunningHub {
        let key_file = self.key_file();
        self.start_with(&["--non-interactive", "--key-file", key_file.to_str().unwrap()])
    }

    /// Accepts the policy as it is now.
    fn accept(&self) {
        self.accept_with(&[]);
    }

    /// The same with variables set.
    fn accept_with(&self, variables: &[(&str, &str)]) {
        let key_file = self.key_file();
        let mut command = tapegate();
        command.args(["policy", "accept", "--non-interactive", "--key-file"]).arg(key_file);
        command.env_remove("TAPEGATE_HOME").env_remove("TAPEGATE_CONFIG");
        command.envs(variables.iter().copied());
        command.env("XDG_STATE_HOME", self.folder.path()).current_dir(self.folder.path());
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Runs a hub that is expected to exit by itself.
    fn fails(&self, flags: &[&str]) -> Output {
        self.command(flags).output().unwrap()
    }

    fn start(&self) -> RunningHub {
        self.start_with(&[])
    }

    fn start_with(&self, flags: &[&str]) -> RunningHub {
        RunningHub::start(self.command(flags))
    }
}

impl RunningHub {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said: Arc<Mutex<String>> = Arc::default();
        let (mut stderr, heard) = (child.stderr.take().unwrap(), Arc::clone(&said));
        let listener = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        let (address, token, approver_token) = Default::default();
        let listener = Some(listener);
        let mut run = Self { child, said, listener, address, token, approver_token };
        // The rest of this line is written together with it, and everything else before it.
        run.hears("where it listens", |output| {
            output.split_once("listening on http://").is_some_and(|(_, rest)| rest.contains('\n'))
        });
        let output = run.said.lock().unwrap().clone();
        let after = |output_text: &str| {
            output.split(output_text).nth(1).unwrap().split(';').next().unwrap()
        };
        after("listening on http://").clone_into(&mut run.address);
        let token =
            |output_text: &str| fs::read_to_string(after(output_text)).unwrap().trim().to_owned();
        run.token = token("the shims' token is in ");
        run.approver_token = token("the approvers' token is in ");
        run
    }

    /// Waits for a text on standard error.
    fn says(&mut self, output_text: &str) {
        self.hears(output_text, |output| output.contains(output_text));
    }

    fn hears(&mut self, output_text: &str, is_said: impl Fn(&str) -> bool) {
        let heard = within(GUARD, || {
            if is_said(&self.said.lock().unwrap()) {
                return Some(());
            }
            // The last output of a hub may be read after it has ended.
            self.child.try_wait().unwrap()?;
            self.listener.take().map(JoinHandle::join);
            let output = self.said.lock().unwrap();
            assert!(is_said(&output), "the hub has ended: {output}");
            Some(())
        });
        let output = self.said.lock().unwrap();
        assert!(heard.is_some(), "`{output_text}` was never said: {output}");
    }

    fn get(&self, path: &str) -> Reply {
        self.send(format!("GET {path} HTTP/1.1\r\n{}\r\n", self.headers()))
    }

    fn post(&self, path: &str, body: &str) -> Reply {
        let headers = self.headers();
        self.send(format!(
            "POST {path} HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// Headers of a client that may make any request.
    fn headers(&self) -> String {
        self.headers_with(&self.approver_token)
    }

    fn headers_with(&self, token: &str) -> String {
        let address = &self.address;
        format!("Host: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n")
    }

    /// Sends raw bytes and reads to the end.
    fn send(&self, request: impl AsRef<[u8]>) -> Reply {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        // A hub may refuse before it has read everything.
        stream.write_all(request.as_ref()).ok();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).ok();
        Reply::read(&reply)
    }

    /// Evaluates a call of a tool.
    fn evaluate(&self, tool: &str) -> Value {
        let reply = self.post("/governance/evaluate", &call(tool, "{}"));
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end.
    fn end(&mut self) -> ExitStatus {
        wait_for_exit("the hub", &mut self.child)
    }
}

impl Drop for RunningHub {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Reply {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// The body of a request to evaluate a call.
fn call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"server_id":"fs","direction":"agent_to_server","method":"tools/call","id":1,"params":{{"name":"{tool}","arguments":{arguments}}},"message_type":"request","profile":"production"}}"#
    )
}

/// The activity log of a state folder.
fn log(state: &Path) -> String {
    fs::read_to_string(state.join("activity.jsonl")).unwrap()
}
