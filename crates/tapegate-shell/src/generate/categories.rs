//! What commands mean: the categories of the semantic strategy.

use crate::classifier::CommandClass;
use crate::command_use::{CommandArgument, CommandUse};

/// What a command does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EffectCategory {
    ReadOnly,
    WritesWorkspace,
    WritesOutside,
    Network,
    PackageInstall,
    VcsHistory,
    ProcessControl,
    Privilege,
    Destructive,
    RunsCode,
    Unknown,
}

/// Package managers and what they install with.
const INSTALLERS: &[(&str, &[&str])] = &[
    ("npm", &["install", "i", "ci", "add", "update"]),
    ("pnpm", &["install", "i", "add", "update"]),
    ("yarn", &["install", "add"]),
    ("pip", &["install"]),
    ("pip3", &["install"]),
    ("uv", &["add", "sync", "pip"]),
    ("cargo", &["install", "add", "fetch", "update"]),
    ("apt", &["install", "update", "upgrade"]),
    ("apt-get", &["install", "update", "upgrade"]),
    ("brew", &["install", "upgrade"]),
    ("gem", &["install"]),
    ("go", &["get", "install"]),
];
const HISTORY: &[&str] = &[
    "commit",
    "merge",
    "rebase",
    "push",
    "pull",
    "reset",
    "cherry-pick",
    "revert",
    "tag",
    "am",
    "filter-branch",
    "update-ref",
    "branch",
    "stash",
];

impl EffectCategory {
    pub(super) fn of(one: &CommandUse) -> Self {
        let program = one.program().unwrap_or_default();
        let mut texts = one.arguments().iter().filter_map(|word| word.text.as_deref());
        let subcommand = texts.find(|text| !text.starts_with(['-', '+'])).unwrap_or_default();
        let has = |options: &[&str]| {
            options.iter().any(|option| one.arguments().iter().any(|word| word.is(option)))
        };
        let installs =
            INSTALLERS.iter().any(|(name, with)| *name == program && with.contains(&subcommand));
        match program {
            "sudo" | "su" | "doas" => Self::Privilege,
            "kill" | "pkill" | "killall" | "systemctl" => Self::ProcessControl,
            "rm" | "shred" | "dd" | "truncate" | "mkfs" => Self::Destructive,
            "git" if has(&["--force", "-f", "--hard"]) || subcommand == "clean" => {
                Self::Destructive
            }
            "find" if has(&["-delete"]) => Self::Destructive,
            // Before history: `git log` and `git branch --list` only read.
            _ if one.effects.class() == CommandClass::ReadOnly => Self::ReadOnly,
            "git" if HISTORY.contains(&subcommand) => Self::VcsHistory,
            _ if installs => Self::PackageInstall,
            _ => match one.effects.class() {
                CommandClass::ReadOnly => Self::ReadOnly,
                CommandClass::Writes if leaves_workspace(one) => Self::WritesOutside,
                CommandClass::Writes => Self::WritesWorkspace,
                CommandClass::Network => Self::Network,
                CommandClass::RunsCommands => Self::RunsCode,
                CommandClass::Unknown => Self::Unknown,
            },
        }
    }

    /// The name and description of its group.
    pub(super) fn group(self) -> (String, String) {
        let (name, description) = match self {
            Self::ReadOnly => ("read-only", "Commands that only read"),
            Self::WritesWorkspace => {
                ("writes-workspace", "Commands that change files in the workspace")
            }
            Self::WritesOutside => ("writes-outside", "Commands that change files elsewhere"),
            Self::Network => ("network", "Commands that use the network"),
            Self::PackageInstall => ("package-install", "Commands that install packages"),
            Self::VcsHistory => ("vcs-history", "Commands that change the history of a repository"),
            Self::ProcessControl => {
                ("process-control", "Commands that control processes and services")
            }
            Self::Privilege => ("privilege", "Commands that run as another user"),
            Self::Destructive => ("destructive", "Commands that destroy data"),
            Self::RunsCode => ("runs-code", "Commands that build, test or run code"),
            Self::Unknown => ("unknown", "Commands whose effects are unknown"),
        };
        (name.to_owned(), description.to_owned())
    }

    /// The risk, and why.
    pub(super) fn meaning(self, arguments: &[&'static str]) -> (&'static str, String) {
        let (risk, why) = match self {
            Self::ReadOnly => ("low", "only reads"),
            Self::WritesWorkspace => ("medium", "changes files in the workspace"),
            Self::WritesOutside => ("high", "changes files outside of the workspace"),
            Self::Network => ("medium", "sends to or receives from the network"),
            Self::PackageInstall => ("high", "installs code from elsewhere, which may run at once"),
            Self::VcsHistory => ("medium", "changes the history of a repository"),
            Self::ProcessControl => ("medium", "controls processes"),
            Self::Privilege => ("high", "runs as another user"),
            Self::Destructive => ("high", "destroys data"),
            Self::RunsCode => ("medium", "runs code of the project"),
            Self::Unknown => ("high", "is not known to the tables"),
        };
        let seen = match arguments {
            [] => String::new(),
            kinds => format!("; arguments seen: {}", kinds.join(", ")),
        };
        (risk, format!("{why}{seen}"))
    }
}

/// Whether a path of a command leads out of the folder in which it runs.
fn leaves_workspace(one: &CommandUse) -> bool {
    let targets = one.redirections.iter().filter(|one| one.names_file()).map(|one| &one.target);
    one.arguments().iter().chain(targets).any(|word| {
        word.has_tilde
            || word.prefix.starts_with('/')
            || word.prefix.split('/').any(|step| step == "..")
    })
}

pub(super) fn argument_kind(argument: &CommandArgument) -> &'static str {
    let Some(text) = argument.text.as_deref() else {
        return if argument.prefix.is_empty() { "<value>" } else { "<glob>" };
    };
    let is_revision = || {
        text.starts_with("HEAD")
            || text.len() >= 7
                && text.len() <= 40
                && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match text {
        text if text.starts_with('-') => "<option>",
        text if text.contains("://") => "<url>",
        text if text.starts_with(|first: char| first.is_ascii_digit())
            && text.parse::<f64>().is_ok() =>
        {
            "<number>"
        }
        _ if is_revision() => "<rev>",
        text if text.ends_with('/') => "<dir>",
        text if text.contains(['*', '?']) => "<glob>",
        text if text.contains('/') || text.contains('.') && !text.contains(' ') => "<file>",
        _ => "<string>",
    }
}
