//! Options by which programs that only copy or convert files run other programs.

use super::git::REMOTE;
use super::options::has_option;
use super::{CommandEffects, EffectFinding, found};
use crate::command_use::CommandArgument;

/// Programs with the short and long options that name a program to run, or a file that may.
const LAUNCHERS: &[(&str, &str, &[&str])] = &[
    (
        "aria2c",
        "",
        &[
            "conf-path",
            "on-bt-download-complete",
            "on-download-complete",
            "on-download-error",
            "on-download-pause",
            "on-download-start",
            "on-download-stop",
        ],
    ),
    ("curl", "", &["engine"]),
    ("install", "", &["strip-program"]),
    ("patch", "e", &["ed"]),
    ("rsync", "e", &["config", "daemon", "rsh", "rsync-path"]),
    ("scp", "DFSo", &[]),
    ("sort", "", &["compress-program"]),
    ("split", "", &["filter"]),
    ("strip", "", &["plugin"]),
    (
        "tar",
        "FI",
        &[
            "checkpoint-action",
            "info-script",
            "new-volume-script",
            "rmt-command",
            "rsh-command",
            "to-command",
            "use-compress-program",
        ],
    ),
    ("wget", "e", &["config", "execute", "use-askpass"]),
    ("zip", "T", &["test", "unzip-command"]),
];

/// The effects of a program that is told to run another one; `None` if it is not.
pub(super) fn classify(program: &str, arguments: &[CommandArgument]) -> Option<EffectFinding> {
    let (_, letters, names) = LAUNCHERS.iter().find(|(name, ..)| *name == program)?;
    let launches = has_option(arguments, letters, names) || program == "tar" && tar(arguments);
    let reason = || format!("`{program}` may have an option that runs a program");
    let effects = CommandEffects::RUNS | CommandEffects::NETWORK | CommandEffects::WRITES;
    launches.then(|| found(effects, reason()))
}

/// The first word of `tar` needs no dash, and an archive `host:name` is read by a remote shell.
fn tar(arguments: &[CommandArgument]) -> bool {
    let text = |word: &CommandArgument| word.text.clone().unwrap_or_default();
    arguments.first().is_some_and(|mode| text(mode).contains(['F', 'I']))
        || arguments.iter().any(|word| text(word).contains(':'))
}

/// Options of subcommands of `git` by which another program runs, at once or from the new configuration or
/// hooks.
const GIT_LAUNCHING: &[&str] = &["config", "exec", "receive-pack", "template", "upload-pack"];
/// Beginnings of its keys that name no program. Most others may: `core.pager`, `alias.x`.
const PLAIN_KEYS: [&str; 5] =
    ["user.name", "user.email", "advice.", "color.", "init.defaultbranch"];

/// Whether a subcommand of `git` that writes is told to run a program.
pub(super) fn git_launches(subcommand: &str, arguments: &[CommandArgument]) -> bool {
    match subcommand {
        "clone" => has_option(arguments, "cu", GIT_LAUNCHING) || names_transport(arguments),
        "init" => has_option(arguments, "", GIT_LAUNCHING),
        "config" => {
            let mut keys = arguments.iter().filter(|word| !word.may_be_option());
            !keys.any(|word| is_plain_key(word.text.as_deref().unwrap_or_default()))
        }
        "remote" => names_transport(arguments),
        _ if REMOTE.contains(&subcommand) => {
            has_option(arguments, "", GIT_LAUNCHING) || names_transport(arguments)
        }
        _ => false,
    }
}

fn is_plain_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    PLAIN_KEYS.iter().any(|start| key.starts_with(start))
}

/// Whether a repository is reached by a program that its address names: `ext::sh -c …`.
fn names_transport(arguments: &[CommandArgument]) -> bool {
    arguments.iter().any(|word| word.text.as_deref().is_some_and(|text| text.contains("::")))
}
