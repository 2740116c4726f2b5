//! The settings of the bash tool under a policy.
//!
//! A policy decides about a line as bash reads it. So settings that make something else of a
//! permitted line are refused, and the files that they come from are Tapegate's own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tapegate_bash::config::BashConfig;
use tapegate_shell::command_use::posix_difference;

use super::settings_file::SettingsFile;
use crate::exit::{Exit, Failure};

/// Shells that read a line as bash does where [`posix_difference`] finds nothing.
const POSIX_SHELLS: [&str; 3] = ["sh", "dash", "ash"];
/// Variables by which a shell, or every program, runs code or reads a line in another way.
const CODE_VARIABLES: [&str; 21] = [
    "BASH_COMPAT",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BASHOPTS",
    "CDPATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "ENV",
    "EXECIGNORE",
    "GLOBIGNORE",
    "IFS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS4",
    "SHELLOPTS",
    "BASH_XTRACEFD",
    "ZDOTDIR",
];
/// Among them, those that a person may need for programs, and that a shell without a terminal does
/// not read.
const OFTEN_NEEDED: [&str; 3] = ["ENV", "LD_", "DYLD_"];

/// Refuses settings under which a permitted line could run something else than it says.
pub(super) fn check(config: &BashConfig) -> Result<(), Failure> {
    let execution = &config.execution;
    if reader_of(&execution.shell).is_none() {
        let message = format!(
            "`{}` cannot be used under a policy, which reads command lines as bash does",
            execution.shell.display()
        );
        return Err(Failure::new(Exit::Invalid, message)
            .hint("set `execution.shell` to bash, or to sh or dash, which get plain lines only"));
    }
    let found = execution.env_overrides.iter().find(|(name, _)| runs_code(OsStr::new(name)));
    if let Some((name, _)) = found {
        let message = format!("`env_overrides` sets `{name}`, by which a shell runs other code");
        return Err(Failure::new(Exit::Invalid, message)
            .hint("under a policy, leave it out; nothing would decide about that code"));
    }
    Ok(())
}

/// Why a line is not run by the shell of these settings; `None` if the policy has read the same.
pub(super) fn misreading(shell: &Path, line: &str) -> Option<String> {
    if reader_of(shell)? == "bash" {
        return None;
    }
    posix_difference(line).map(|form| {
        format!(
            "The command was not executed: {} may read {form} differently than the policy does, which reads it as bash",
            shell.display()
        )
    })
}

/// Whether a variable is not passed on to commands under a policy.
pub(super) fn is_withheld(name: &OsStr) -> bool {
    let is_needed = OFTEN_NEEDED.iter().any(|prefix| starts_with(name, prefix));
    runs_code(name) && !is_needed
}

/// The files that decide about the tool, and its recordings.
pub(super) fn own_files(named: Option<&Path>, config: &BashConfig, folder: &Path) -> Vec<PathBuf> {
    let files = SettingsFile::candidates(None).into_iter().chain(named.map(Path::to_owned));
    let mut all: Vec<PathBuf> = files.map(|file| folder.join(file)).collect();
    all.push(folder.join(&config.recording.directory));
    all
}

/// The folder of command lines that name none, for tests of paths; `None` if it is not certain: a
/// link on the way may lead elsewhere by the time of a command.
pub(super) fn command_folder(config: &BashConfig, folder: &Path) -> Option<String> {
    let folder = config.execution.working_directory.as_deref().unwrap_or(folder);
    let is_real = folder.canonicalize().is_ok_and(|real| real == folder);
    folder.to_str().filter(|_| is_real).map(str::to_owned)
}

/// Refuses another folder than the one that the policy decides about: each client of a shim gets a
/// tool of its own, which reads the settings again.
pub(super) fn check_folder(
    judged: Option<&str>,
    config: &BashConfig,
    folder: &Path,
) -> Result<(), Failure> {
    if judged.is_none() || command_folder(config, folder).as_deref() == judged {
        return Ok(());
    }
    let message = "the folder of commands has changed since the policy was loaded";
    Err(Failure::new(Exit::Invalid, message).hint("look at the settings, then start again"))
}

fn reader_of(shell: &Path) -> Option<&'static str> {
    let name = shell.file_name()?.to_str()?;
    ["bash"].into_iter().chain(POSIX_SHELLS).find(|known| *known == name)
}

fn runs_code(name: &OsStr) -> bool {
    // An exported function replaces the program of its name.
    CODE_VARIABLES.iter().any(|one| name == *one) || starts_with(name, "BASH_FUNC_")
}

fn starts_with(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes().starts_with(prefix.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(shell: &str, variable: &str) -> BashConfig {
        let mut config = BashConfig::default();
        config.execution.shell = shell.into();
        config.execution.env_overrides = vec![(variable.to_owned(), "x".to_owned())];
        config
    }

    #[test]
    fn only_shells_that_the_policy_can_read_are_used() {
        for shell in ["/bin/bash", "/bin/sh", "/usr/bin/dash"] {
            assert!(check(&config(shell, "LANG")).is_ok(), "{shell}");
        }
        for shell in ["/bin/zsh", "/usr/bin/fish", "/bin/ksh", "/usr/bin/python3", "/"] {
            assert!(check(&config(shell, "LANG")).is_err(), "{shell}");
        }
    }

    #[test]
    fn no_variable_runs_code() {
        for name in ["BASH_ENV", "ENV", "LD_PRELOAD", "PROMPT_COMMAND", "BASH_FUNC_ls%%"] {
            assert!(check(&config("/bin/bash", name)).is_err(), "{name}");
        }
        assert!(is_withheld(OsStr::new("BASH_ENV")) && !is_withheld(OsStr::new("PATH")));
        assert!(!is_withheld(OsStr::new("LD_LIBRARY_PATH")));
    }

    #[test]
    fn only_a_folder_without_links_on_the_way_is_certain() {
        let scratch = tempfile::tempdir().unwrap();
        let real = scratch.path().canonicalize().unwrap();
        let link = real.join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut config = BashConfig::default();
        assert_eq!(command_folder(&config, &real).as_deref(), real.to_str());
        assert_eq!(command_folder(&config, &link), None);
        config.execution.working_directory = Some(real.join("missing"));
        assert_eq!(command_folder(&config, &real), None);
        config.execution.working_directory = Some("/".into());
        assert!(check_folder(Some("/"), &config, &real).is_ok());
        assert!(check_folder(real.to_str(), &config, &real).is_err());
        assert!(check_folder(None, &config, &real).is_ok());
    }

    #[test]
    fn a_line_that_dash_reads_differently_is_not_run_by_it() {
        let line = r"echo $'\'; touch pwn #\''";
        assert!(misreading(Path::new("/bin/sh"), line).is_some());
        assert_eq!(misreading(Path::new("/bin/bash"), line), None);
        assert_eq!(misreading(Path::new("/bin/sh"), "ls | head"), None);
    }
}
