//! A terminal that people use: tmux, whose screen is read and whose keys are typed.

use std::fs;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::{GUARD, within};

/// How long the effect of a key may take before it is typed again.
const KEY_MAX: Duration = Duration::from_secs(5);

/// A tmux server of a test, with a window in which a script runs and another in front of it.
pub(crate) struct TmuxServer {
    folder: TempDir,
}

impl TmuxServer {
    /// Runs a script in a window of this size. It ends with the line `ended CODE`.
    pub(crate) fn start(script: &str, columns: u16, rows: u16) -> Self {
        let server = Self { folder: tempfile::tempdir().unwrap() };
        let path = server.folder.path().join("script");
        fs::write(&path, script).unwrap();
        let run = format!("sh {}; echo ended $?; cat", path.display());
        let (columns, rows) = (columns.to_string(), rows.to_string());
        server.tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, "-s", "s", &run]);
        server.tmux(&["new-window", "-t", "s:1", "cat"]);
        server
    }

    /// Runs a command of tmux, and returns what it prints.
    pub(crate) fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.folder.path().join("socket")).args(["-f", "/dev/null"]);
        let done = command.args(arguments).env_remove("TMUX").output();
        let done = done.expect("tmux runs; `scripts/peers` installs it");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "s:0"])
    }

    /// Waits until the screen has this text, and returns the screen.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> String {
        let found = self.shows_within(GUARD, text);
        found.unwrap_or_else(|| panic!("waited for `{text}` in tmux:\n{}", self.screen()))
    }

    /// Types these keys until the screen has this text: a program may drop keys while it starts or
    /// opens a dialog.
    #[track_caller]
    pub(crate) fn types_until(&self, keys: &str, text: &str) {
        let typed = within(GUARD, || {
            self.types(keys);
            self.shows_within(KEY_MAX, text)
        });
        assert!(typed.is_some(), "typed `{keys}` and waited for `{text}`:\n{}", self.screen());
    }

    fn shows_within(&self, limit: Duration, text: &str) -> Option<String> {
        within(limit, || Some(self.screen()).filter(|screen| screen.contains(text)))
    }

    pub(crate) fn types(&self, keys: &str) {
        self.tmux(&["send-keys", "-t", "s:0", keys]);
    }

    pub(crate) fn has_bell(&self) -> bool {
        self.tmux(&["list-windows", "-t", "s", "-F", "#{window_index}#{window_bell_flag}"])
            .contains("01")
    }
}

impl Drop for TmuxServer {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// A script that runs a command with its variables, in this folder.
pub(crate) fn script_of(command: &Command, folder: &std::path::Path) -> String {
    let mut script = String::new();
    for (name, value) in command.get_envs() {
        let name = name.to_string_lossy();
        match value {
            Some(value) => {
                script.push_str(&format!("export {name}='{}'\n", value.to_string_lossy()))
            }
            None => script.push_str(&format!("unset {name}\n")),
        }
    }
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
    format!("{script}cd '{}'\nexec {}\n", folder.display(), words.join(" "))
}
