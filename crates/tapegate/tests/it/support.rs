//! Shared test support: a real session around a scripted server, and what it leaves behind.
//!
//! A [`Run`] is a guard: however a test ends, every process it started is killed and the proxy is
//! reaped. Processes are found by a mark in their environment, so grandchildren are included. Tests
//! only wait for things that must happen; time limits just keep a broken build from hanging.

mod acceptance;
mod ended_session;
mod messages;
mod process_output;
pub(crate) mod process_table;
mod processes;
mod seeded_random;
mod session_files;
mod terminal;
mod tmux;
mod waiting;

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use tapegate_store::approvals::ApprovalStore;
use tapegate_store::user_state::PrivateDir;
use tempfile::TempDir;

pub(crate) use acceptance::{accept_policy, write_key};
pub(crate) use ended_session::EndedSession;
pub(crate) use messages::{reply, request};
use process_output::{ProcessOutput, lock};
pub(crate) use processes::{fake_server, marked};
pub(crate) use seeded_random::SeededRandom;
pub(crate) use session_files::{TapedFrame, beside, check, kept, text_of};
pub(crate) use terminal::{
    TerminalStep, at_terminal, at_terminal_answering, at_terminal_in_steps,
    at_terminal_typing_ahead, terminal,
};
pub(crate) use tmux::{TmuxServer, script_of};
pub(crate) use waiting::{
    GUARD, Latch, StepGate, descriptor, hang, is_stalled, wait_for, wait_for_exit, wait_until,
    wait_until_full, wait_until_idle, wait_until_read, wait_until_stalled, within,
};

/// The binary under test.
pub(crate) fn tapegate() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tapegate"))
}

/// The approvals of a project whose state folder is also the user's.
pub(crate) fn approvals_of(state: &Path) -> ApprovalStore {
    ApprovalStore::open_project(state, state).expect("a folder of approvals")
}

/// Writes a file atomically, as editors do: a reader finds the old text or the new one.
pub(crate) fn replace_file(path: &Path, text: &str) {
    let half = path.with_extension("half");
    fs::write(&half, text).unwrap();
    fs::rename(half, path).unwrap();
}

/// The flags that authorize a script to decide calls of such a project.
pub(crate) fn key_flags(state: &Path) -> [String; 3] {
    let key = PrivateDir::open(state, state).unwrap().key().unwrap();
    let copy = state.join("copy-of-key");
    write_key(&copy, key.bytes());
    ["--non-interactive".to_owned(), "--key-file".to_owned(), copy.display().to_string()]
}

/// A session to be started.
pub(crate) struct SessionSetup {
    folder: TempDir,
    /// The folder that it runs in, if not its own.
    place: Option<PathBuf>,
    command: &'static str,
    program: PathBuf,
    tape: PathBuf,
    flags: Vec<String>,
    server: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Option<Stdio>,
    stdout: Option<Stdio>,
    reading: bool,
}

/// `tapegate record` around a scripted server, whose steps are in `tests/fake/server.rs`.
pub(crate) fn record(steps: &[&str]) -> SessionSetup {
    SessionSetup::new("record", steps)
}

/// `tapegate tape` around a scripted server.
pub(crate) fn tape(steps: &[&str]) -> SessionSetup {
    SessionSetup::new("tape", steps)
}

/// `tapegate replay` of a tape.
pub(crate) fn replay(tape: impl AsRef<[u8]>) -> SessionSetup {
    let setup = SessionSetup { server: Vec::new(), ..SessionSetup::new("replay", &[]) };
    fs::write(&setup.tape, tape).unwrap();
    setup
}

/// `tapegate shim` around a scripted server, in a folder with this policy unless it is empty. Its
/// state is in `state` there; the server's id is `s`.
pub(crate) fn shim(policy: &str, steps: &[&str]) -> SessionSetup {
    let setup = SessionSetup::new("shim", steps).flags(&["--server-id", "s"]);
    if !policy.is_empty() {
        fs::write(setup.folder.path().join("tapegate.yaml"), policy).unwrap();
    }
    let state = setup.folder.path().join("state").display().to_string();
    let config = setup.folder.path().join("config").display().to_string();
    // The user who runs the tests may have a policy.
    setup.env("TAPEGATE_HOME", &state).env("XDG_CONFIG_HOME", &config)
}

impl SessionSetup {
    fn new(command: &'static str, steps: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tape = folder.path().join("t.jsonl");
        let fake = fake_server().to_str().unwrap().to_owned();
        let server = std::iter::once(fake).chain(steps.iter().map(|s| (*s).to_owned())).collect();
        let program = env!("CARGO_BIN_EXE_tapegate").into();
        let flags = Vec::new();
        let (stdin, stdout, reading) = (None, None, true);
        let env = Vec::new();
        let place = None;
        Self { folder, place, command, program, tape, flags, server, env, stdin, stdout, reading }
    }

    /// Sets a variable for the command.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Another program, or none, in place of the scripted server.
    pub(crate) fn server(mut self, argv: &[&str]) -> Self {
        self.server = argv.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Other steps for the scripted server.
    pub(crate) fn steps(mut self, steps: &[&str]) -> Self {
        self.server = Self::new("", steps).server;
        self
    }

    /// A shell script in place of the scripted server; `$FAKE` is the scripted server.
    pub(crate) fn sh(mut self, script: &str) -> Self {
        self.server = ["sh", "-c", script].map(str::to_owned).to_vec();
        self
    }

    /// A scripted server behind the tape that is played.
    pub(crate) fn behind(self, steps: &[&str]) -> Self {
        self.steps(steps).flags(&["--on-unmatched", "passthrough"])
    }

    /// More flags for the recorder.
    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// Another id for the server behind a shim.
    pub(crate) fn server_id(mut self, id: &str) -> Self {
        self.flags = ["--server-id", id].map(str::to_owned).to_vec();
        self
    }

    /// Another path for the tape, relative to the test's folder.
    pub(crate) fn tape_at(mut self, path: impl AsRef<Path>) -> Self {
        self.tape = self.folder.path().join(path);
        self
    }

    /// The client's end of standard input.
    pub(crate) fn stdin(mut self, stdin: impl Into<Stdio>) -> Self {
        self.stdin = Some(stdin.into());
        self
    }

    /// The client's end of standard output.
    pub(crate) fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = Some(stdout.into());
        self
    }

    /// The client does not read until [`Run::read_on`].
    pub(crate) fn not_reading(mut self) -> Self {
        self.reading = false;
        self
    }

    /// Runs in the folder of another session, with its state.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.place = Some(folder.to_owned());
        self.env("TAPEGATE_HOME", &folder.join("state").display().to_string())
    }

    /// The folder of the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The path of the tape, before it exists.
    pub(crate) fn tape_path(&self) -> &Path {
        &self.tape
    }

    /// Starts the session.
    pub(crate) fn start(self) -> RunningSession {
        let mark = format!("RUN_OF_TEST={}", self.folder.path().display());
        let mut command = Command::new(&self.program);
        command.arg(self.command);
        match self.command {
            "shim" => {
                let place = self.place.as_deref().unwrap_or(self.folder.path());
                command.current_dir(place);
            }
            "tape" => drop(command.arg("--tape").arg(&self.tape)),
            "replay" => drop(command.arg("-r").arg(&self.tape)),
            _ => drop(command.arg("-o").arg(&self.tape)),
        }
        command.args(&self.flags).envs(self.env);
        if !self.server.is_empty() {
            command.arg("--").args(&self.server);
        }
        command.env("RUN_OF_TEST", self.folder.path()).env("FAKE", fake_server());
        command.stdin(self.stdin.unwrap_or_else(Stdio::piped));
        command.stdout(self.stdout.unwrap_or_else(Stdio::piped)).stderr(Stdio::piped());
        let mut proxy = command.spawn().unwrap();
        let input = proxy.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let output = ProcessOutput::new(proxy.stdout.take().map(OwnedFd::from), self.reading);
        let errors = ProcessOutput::new(proxy.stderr.take().map(OwnedFd::from), true);
        RunningSession {
            folder: self.folder,
            tape: self.tape,
            mark,
            proxy,
            status: None,
            input,
            output,
            errors,
        }
    }

    /// Starts the session, sends `bytes`, closes the input and waits for the end.
    pub(crate) fn run(self, bytes: &[u8]) -> EndedSession {
        let mut run = self.start();
        run.send_aside(bytes.to_vec());
        run.end()
    }
}

/// A running session.
pub(crate) struct RunningSession {
    folder: TempDir,
    tape: PathBuf,
    mark: String,
    proxy: Child,
    status: Option<ExitStatus>,
    input: Option<File>,
    output: ProcessOutput,
    errors: ProcessOutput,
}

impl RunningSession {
    /// Writes to the recorder's standard input.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Writes from another thread and closes the input; a recorder that has exited is not an error.
    pub(crate) fn send_aside(&mut self, bytes: Vec<u8>) {
        if let Some(mut input) = self.input.take() {
            thread::spawn(move || drop(input.write_all(&bytes)));
        }
    }

    /// The client's end of standard input.
    pub(crate) fn take_input(&mut self) -> File {
        self.input.take().unwrap()
    }

    /// Closes the recorder's standard input.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Starts to read the recorder's output.
    pub(crate) fn read_on(&self) {
        let (state, changed) = &*self.output.0;
        lock(state).reading = true;
        changed.notify_all();
    }

    /// Waits until the client has received `count` lines, and returns what it has received.
    pub(crate) fn lines(&self, count: usize) -> Vec<u8> {
        let enough = |bytes: &[u8]| bytes.iter().filter(|b| **b == b'\n').count() >= count;
        let wanted = format!("{count} lines (stderr: {})", self.complaints());
        self.output.wait(&wanted, enough)
    }

    /// Waits until the client has received `text`.
    pub(crate) fn gets(&self, text: &str) {
        let text = text.as_bytes();
        let enough = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text);
        self.output.wait(&String::from_utf8_lossy(text), enough);
    }

    /// Waits until the client has received a complete line with `text` in it, and returns that
    /// line.
    pub(crate) fn line_with(&self, text: &str) -> String {
        let find = |bytes: &[u8]| {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let got = String::from_utf8_lossy(&bytes[..whole]).into_owned();
            got.lines().find(|line| line.contains(text)).map(str::to_owned)
        };
        let wanted = format!("{text} (stderr: {})", self.complaints());
        find(&self.output.wait(&wanted, |bytes| find(bytes).is_some())).unwrap()
    }

    /// Waits until `text` is on standard error.
    pub(crate) fn says(&self, text: &str) {
        let enough = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
        self.errors.wait(&format!("{text} on standard error"), enough);
    }

    /// What the client has received so far.
    pub(crate) fn got(&self) -> Vec<u8> {
        lock(&self.output.0.0).bytes.clone()
    }

    /// Waits until it listens, and returns the port.
    pub(crate) fn port(&self) -> u16 {
        let read = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let (_, rest) = text.split_once("listening on http://127.0.0.1:")?;
            rest.split_once('/')?.0.parse().ok()
        };
        read(&self.errors.wait("a port", |bytes| read(bytes).is_some())).unwrap()
    }

    fn complaints(&self) -> String {
        String::from_utf8_lossy(&lock(&self.errors.0.0).bytes).into_owned()
    }

    /// Waits until a condition holds.
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        wait_until(what, || holds(self));
    }

    /// Sends a signal to the recorder.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.proxy), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.proxy.id()
    }

    /// The live processes of this session, without the recorder.
    pub(crate) fn others(&self) -> Vec<Pid> {
        let proxy = Pid::from_child(&self.proxy);
        marked(&self.mark).into_iter().filter(|pid| *pid != proxy).collect()
    }

    /// The pipe that the first process of the session writes its messages to.
    pub(crate) fn server_output(&self) -> PathBuf {
        descriptor(self.others()[0].as_raw_pid().cast_unsigned(), 1)
    }

    /// The peak memory of the recorder, in KB.
    pub(crate) fn memory_kb_max(&self) -> u64 {
        self.status_kb("VmHWM:")
    }

    /// The same without the pages of the program itself, which grows with every feature.
    pub(crate) fn own_memory_kb_max(&self) -> u64 {
        self.memory_kb_max().saturating_sub(self.status_kb("RssFile:"))
    }

    /// A value of the recorder's `/proc/PID/status`, in KB.
    pub(crate) fn status_kb(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.proxy.id());
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or_default()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn tape_path(&self) -> &Path {
        &self.tape
    }

    /// Whether the recorder still runs.
    pub(crate) fn lives(&mut self) -> bool {
        self.status = self.status.or_else(|| self.proxy.try_wait().unwrap());
        self.status.is_none()
    }

    /// Closes the input and waits for the recorder to end.
    pub(crate) fn end_of_input(mut self) -> EndedSession {
        self.close_input();
        self.end()
    }

    /// Waits for the recorder to end by itself.
    pub(crate) fn end(mut self) -> EndedSession {
        let ended = within(GUARD, || (!self.lives()).then_some(()));
        assert!(ended.is_some(), "the recorder does not end: {}", self.complaints());
        self.read_on();
        let (stdout, stderr) = (self.output.all(), self.errors.all());
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        EndedSession { status: self.status.unwrap(), stdout, stderr, run: self }
    }
}

impl Drop for RunningSession {
    fn drop(&mut self) {
        self.read_on();
        if self.status.is_none() {
            drop(self.proxy.kill());
            drop(self.proxy.wait());
        }
        for pid in marked(&self.mark) {
            kill_process(pid, Signal::KILL).ok();
        }
    }
}
