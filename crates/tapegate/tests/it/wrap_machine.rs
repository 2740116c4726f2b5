//! A machine with a home and a project, on which an agent is wrapped.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::process_table::{self, ListedProcess};
use crate::support::{GUARD, fake_server, marked, wait_for_exit, wait_until, within};

/// The scripted agent.
pub(crate) const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake/agent.py");

/// A home, a project and a state folder. Dropping it ends every process that was started on it.
pub(crate) struct WrapMachine {
    folder: TempDir,
}

impl WrapMachine {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "project"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        // The agent, under the name by which it is known.
        fs::create_dir(folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.path().join("bin/claude")).unwrap();
        // So that processes that nothing waits for are found, too.
        process_table::adopt_orphans();
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self, path: &str) -> PathBuf {
        self.folder().join("home").join(path)
    }

    pub(crate) fn project(&self, path: &str) -> PathBuf {
        self.folder().join("project").join(path)
    }

    /// Writes a file, and the folders that it is in.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The entry of a server that answers everything.
    pub(crate) fn entry(&self) -> String {
        let program = fake_server().display().to_string();
        format!(
            "{{ \"command\": {program:?}, \"args\": [\"serve\"], \"env\": {{ \"A\": \"1\" }} }}"
        )
    }

    /// A config with such servers.
    pub(crate) fn config(&self, names: &[&str]) -> String {
        let entries = names.iter().map(|name| format!("    {name:?}: {}", self.entry()));
        let entries = entries.collect::<Vec<_>>().join(",\n");
        format!("{{\n  \"theme\": \"dark\",\n  \"mcpServers\": {{\n{entries}\n  }}\n}}\n")
    }

    /// The user's config of Claude Code with such servers.
    pub(crate) fn claude(&self, names: &[&str]) -> PathBuf {
        self.write("home/.claude.json", &self.config(names))
    }

    /// Our binary in the project.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = crate::support::tapegate();
        command.args(arguments).current_dir(self.project("")).stdin(Stdio::null());
        command.env("HOME", self.home("")).env("XDG_CONFIG_HOME", self.home(".config"));
        command.env("TAPEGATE_HOME", self.state()).env("RUN_OF_TEST", self.folder());
        for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "TAPEGATE_ACTIVE"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder().join("state")
    }

    /// `wrap` with these flags around the scripted agent with these steps, as Claude Code unless the
    /// flags say otherwise.
    pub(crate) fn wrap(&self, flags: &[&str], steps: &[&str]) -> Command {
        let mut command = self.command(&["wrap"]);
        if !flags.contains(&"--agent-type") {
            command.args(["--agent-type", "claude-code"]);
        }
        command.args(flags).args(["--", "python3", AGENT]).args(steps);
        command
    }

    /// Starts such a session.
    pub(crate) fn start(&self, flags: &[&str], steps: &[&str]) -> WrapProcess {
        WrapProcess::start(self.wrap(flags, steps))
    }

    /// Every file of the home and the project.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut open = vec![self.home(""), self.project("")];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                match path.is_dir() {
                    true => open.push(path),
                    false => drop(files.insert(path.clone(), fs::read(path).unwrap_or_default())),
                }
            }
        }
        files
    }

    fn mark(&self) -> String {
        format!("RUN_OF_TEST={}", self.folder().display())
    }

    /// The processes that were started on it and still run.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        marked(&self.mark())
    }

    /// The processes that run this command of ours.
    pub(crate) fn processes_of(&self, command: &str) -> Vec<Pid> {
        let runs = |pid: &Pid| {
            let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words.next().is_some_and(|word| word.ends_with(b"tapegate"))
                && words.next() == Some(command.as_bytes())
        };
        self.processes().into_iter().filter(runs).collect()
    }

    /// The scripted agents that run.
    pub(crate) fn agents(&self) -> Vec<Pid> {
        let is_agent = |pid: &Pid| {
            let line = fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            words.next().is_some_and(|word| word.ends_with(b"python3"))
                && words.next() == Some(AGENT.as_bytes())
        };
        self.processes().into_iter().filter(is_agent).collect()
    }

    /// Asserts that every process of a session ends, whatever else was started.
    #[track_caller]
    pub(crate) fn ends_every_session(&self) {
        wait_until("the end of every session", || {
            let ours = ["wrap", "hub", "shim"].map(|command| self.processes_of(command).len());
            ours == [0; 3] && self.agents().is_empty()
        });
    }

    /// Asserts that every process ends, and that each was waited for by the one that has started
    /// it.
    #[track_caller]
    pub(crate) fn leaves_no_process(&self) {
        // Clients need not wait for their servers, which are shims here. A hub leads a session.
        let is_shim = |one: &ListedProcess| one.name == "tapegate" && one.session != Some(one.pid);
        let left: Vec<ListedProcess> =
            self.end_of_processes().into_iter().filter(|one| !is_shim(one)).collect();
        assert!(left.is_empty(), "zombies: {left:?}");
    }

    /// Asserts that every process ends, although the parents of some were killed.
    #[track_caller]
    pub(crate) fn ends_every_process(&self) {
        self.end_of_processes();
    }

    /// Waits for the end of every process, and returns those that their parents have not waited for.
    #[track_caller]
    fn end_of_processes(&self) -> Vec<ListedProcess> {
        let mut buried = Vec::new();
        wait_until("the end of every process", || {
            buried.extend(process_table::bury_orphans());
            self.processes().is_empty() && process_table::orphans().is_empty()
        });
        buried
    }

    /// Asserts that `wrap`, its hub and its shims wait for every process that they have started and
    /// that has ended, while they run on.
    #[track_caller]
    pub(crate) fn has_no_zombie(&self) {
        wait_until("a session without zombies", || {
            let ours = ["wrap", "hub", "shim"].map(|command| self.processes_of(command)).concat();
            process_table::zombies_of(&ours).is_empty()
        });
    }

    /// The lines of the activity log.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.state().join("activity.jsonl")).unwrap_or_default()
    }
}

impl Drop for WrapMachine {
    fn drop(&mut self) {
        for pid in self.processes() {
            kill_process(pid, Signal::KILL).ok();
        }
    }
}

/// A running session of `wrap`.
pub(crate) struct WrapProcess {
    child: Child,
    output: Transcript,
    errors: Transcript,
    /// Our end of its standard input.
    pub(crate) input: Option<std::process::ChildStdin>,
}

/// What a session has written, read by a thread.
struct Transcript {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

/// How a session has ended.
#[derive(Debug)]
pub(crate) struct EndedWrap {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl WrapProcess {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        process_table::note_own_child(child.id());
        let output = Transcript::read_lines(child.stdout.take().unwrap());
        let errors = Transcript::read_errors(child.stderr.take().unwrap());
        let input = child.stdin.take();
        Self { child, output, errors, input }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the agent has written this.
    #[track_caller]
    pub(crate) fn says(&mut self, text: &str) {
        let found = within(GUARD, || self.output.contains(text).then_some(()));
        assert!(found.is_some(), "waited for {text}: {} {}", self.output.get(), self.errors.get());
    }

    /// Waits until this is on standard error.
    #[track_caller]
    pub(crate) fn complains(&mut self, text: &str) {
        let found = within(GUARD, || self.errors.contains(text).then_some(()));
        assert!(found.is_some(), "waited for {text}: {}", self.errors.get());
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn end(mut self) -> EndedWrap {
        let status = wait_for_exit("wrap", &mut self.child);
        let (output, errors) = (self.output.all(), self.errors.all());
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        EndedWrap { code: status.code().or(signal.map(|signal| -signal)), output, errors }
    }
}

impl Drop for WrapProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Transcript {
    fn read_lines(source: ChildStdout) -> Self {
        Self::read(BufReader::new(source))
    }

    fn read_errors(source: ChildStderr) -> Self {
        Self::read(BufReader::new(source))
    }

    fn read(mut source: impl BufRead + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut line = Vec::new();
            while source.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                shared.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn get(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    fn contains(&self, text: &str) -> bool {
        self.text.lock().unwrap().contains(text)
    }

    /// All of it, once the other end is closed: no process of the session is left that could write.
    fn all(&mut self) -> String {
        self.reader.take().into_iter().for_each(|reader| reader.join().unwrap());
        self.get()
    }
}
