//! `tapegate agents`

mod faults;
mod install;
mod list;
mod stored_entries;
mod uninstall;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A machine with a home folder and a project in it.
struct AgentMachine {
    root: TempDir,
}

impl AgentMachine {
    fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(machine.at("home/project/.git")).unwrap();
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        // Without links, as the program shows it.
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// The command, in the project, with nothing of the user who runs the tests.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
        command.arg("agents").args(line.split(' ').filter(|word| !word.is_empty()));
        command.current_dir(self.at("home/project")).env_clear();
        command.env("HOME", self.at("home")).env("TAPEGATE_HOME", self.at("state"));
        command.env("PATH", "/usr/bin:/bin");
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// What a command prints; it must succeed.
    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let done = self.run(line);
        assert_eq!(done.status.code(), Some(0), "{line}: {}", errors(&done));
        String::from_utf8(done.stdout).unwrap()
    }

    /// What a command complains about; it must end with this code.
    #[track_caller]
    fn fails(&self, line: &str, code: i32) -> String {
        let done = self.run(line);
        assert_eq!(done.status.code(), Some(code), "{line}: {}", errors(&done));
        errors(&done)
    }

    /// The objects that `list` prints, as `agent server status by`.
    fn statuses(&self) -> Vec<String> {
        let list = self.ok("list --format json");
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let word = |one: &serde_json::Value, key: &str| {
            one[key].as_str().map(|word| format!(" {word}")).unwrap_or_default()
        };
        let line = |one: &serde_json::Value| {
            let words = ["agent", "server", "status", "by"].map(|key| word(one, key));
            words.concat().trim().to_owned()
        };
        list.as_array().unwrap().iter().map(line).collect()
    }

    /// All files below the home folder, with their content.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut open = vec![self.at("home")];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => open.push(entry.path()),
                    false => found.push((entry.path(), fs::read(entry.path()).unwrap())),
                }
            }
        }
        found.sort();
        found
    }
}

fn errors(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

const POLICY: &str = "schema: 1\nsources: [{ id: '*', kind: mcp }]\ngovernance:\n  defaults: { action: forward }\n  rules: [{ match: rm, action: deny }]\n";

const CURSOR: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"files\"]},\n  },\n}\n";
