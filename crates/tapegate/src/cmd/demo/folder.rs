//! The folder of the demo: a home with a key, a project with a policy, a config of the agent.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context;
use serde_json::json;

use super::no_folder;

/// What the server wants. No tool takes it for a real key.
pub(super) const KEY: &str = "demo-key-7f3a91c5d2";
/// Where it is, as the agent and the server write it.
pub(super) const KEY_FILE: &str = "~/.ssh/id_demo";
/// The name of the server in the config, and in policies.
pub(super) const SERVER: &str = "weather";

/// A new folder that contains all that the demo reads and writes.
pub(super) struct DemoFolder {
    us: PathBuf,
    root: PathBuf,
}

impl DemoFolder {
    /// Creates the folder, with the key in it. `us` is this program.
    pub(super) fn create(us: PathBuf) -> anyhow::Result<Self> {
        let demo = Self { us, root: fresh_folder()? };
        for folder in ["home/.ssh", "project", "state"] {
            fs::create_dir_all(demo.path(folder)).context("cannot create the demo's folder")?;
        }
        let key = demo.path("home/.ssh/id_demo");
        fs::write(key, format!("{KEY}\n")).context("cannot write the demo's key")?;
        Ok(demo)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Removes the folder; returns what became of it.
    pub(super) fn remove(&self) -> String {
        let name = self.root.display();
        match fs::remove_dir_all(&self.root) {
            Ok(()) => format!("interrupted; `{name}` is removed"),
            // A process of the demo may still be ending, and write there.
            Err(error) => format!("interrupted; `{name}` cannot be removed: {error}"),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The state folder: tapes, log and approvals of the demo alone.
    pub(super) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(super) fn config(&self) -> PathBuf {
        self.path("project/mcp.json")
    }

    fn loot_file(&self) -> PathBuf {
        self.path("stolen.txt")
    }

    /// What the server has got since [`DemoFolder::forget_loot`].
    pub(super) fn loot(&self) -> String {
        fs::read_to_string(self.loot_file()).unwrap_or_default()
    }

    /// Removes what the server has got.
    pub(super) fn forget_loot(&self) {
        // There is none if nothing was stolen.
        fs::remove_file(self.loot_file()).ok();
    }

    /// The command line of the server.
    pub(super) fn server(&self) -> Vec<String> {
        let loot = self.loot_file().display().to_string();
        let words = ["demo", "--role", "server", "--with", &loot];
        std::iter::once(self.us.display().to_string()).chain(words.map(str::to_owned)).collect()
    }

    /// Writes the agent's config: `before` is put in front of the server's command line, or in its
    /// place.
    pub(super) fn write_config(&self, before: &[&str], with_server: bool) -> anyhow::Result<()> {
        let us = self.us.display().to_string();
        let mut line: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        if !before.is_empty() {
            line.insert(0, us);
        }
        if with_server {
            line.extend(self.server());
        }
        let entry = json!({ "command": line[0], "args": line[1..] });
        let config = json!({ "mcpServers": { SERVER: entry } });
        fs::write(self.config(), format!("{config:#}\n")).context("cannot write the agent's config")
    }

    /// This program, with the demo's home, state and project instead of the user's.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.us);
        command.current_dir(self.path("project"));
        command.env("HOME", self.path("home")).env("TAPEGATE_HOME", self.state());
        // The user's own settings must not lead out of the folder, nor into another session.
        for name in ["TAPEGATE_ACTIVE", "THOUGHTGATE_ACTIVE", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            command.env_remove(name);
        }
        command
    }

    /// The command line of the agent.
    pub(super) fn agent_line(&self) -> Vec<String> {
        let config = self.config().display().to_string();
        let words = ["demo", "--role", "agent", "--with", &config];
        std::iter::once(self.us.display().to_string()).chain(words.map(str::to_owned)).collect()
    }

    /// The agent on its own.
    pub(super) fn agent(&self) -> Command {
        let mut command = self.command();
        command.args(&self.agent_line()[1..]);
        command
    }

    /// Runs the agent to its end and copies what it prints.
    pub(super) fn run_agent(
        &self,
        mut command: Command,
        out: &mut dyn Write,
    ) -> anyhow::Result<ExitStatus> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let printed = child.stdout.take().context("the agent has no output")?;
        for line in BufReader::new(printed).lines() {
            writeln!(out, "{}", line?)?;
        }
        Ok(child.wait()?)
    }
}

/// Creates a new folder for temporary files.
fn fresh_folder() -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    for attempt in 0..1000 {
        let folder =
            std::env::temp_dir().join(format!("tapegate-demo-{}-{attempt}", std::process::id()));
        // Never an existing folder: in /tmp, another user could have prepared it.
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context("cannot make a folder for the demo"),
        }
    }
    Err(no_folder().into())
}
