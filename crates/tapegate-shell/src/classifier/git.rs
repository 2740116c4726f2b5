//! What `git` does, by its subcommand and options.

use super::launchers;
use super::options::{has_option, operands};
use super::{CommandEffects, EffectFinding, READS, found};
use crate::command_use::CommandArgument;

/// Subcommands that only read without the options below.
const READERS: &[&str] = &[
    "blame",
    "cat-file",
    "check-attr",
    "check-ignore",
    "cherry",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "range-diff",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "version",
    "whatchanged",
    "annotate",
];
/// Options of these that write a file or run a program, by their short and long names.
const RISKY_LETTERS: &str = "O";
const RISKY_NAMES: &[&str] = &[
    "output",
    "ext-diff",
    "textconv",
    "open-files-in-pager",
    "filters",
    "exec",
    "upload-pack",
    "paginate",
    "output-directory",
    // Runs `gpg`, which creates its folder.
    "show-signature",
];
/// Subcommands that change the repository or its work tree.
const WRITERS: &[&str] = &[
    "add",
    "am",
    "apply",
    "branch",
    "checkout",
    "cherry-pick",
    "clean",
    "commit-tree",
    "config",
    "gc",
    "hash-object",
    "init",
    "mv",
    "notes",
    "prune",
    "read-tree",
    "reflog",
    "remote",
    "replace",
    "reset",
    "restore",
    "revert",
    "rm",
    "sparse-checkout",
    "stash",
    "switch",
    "tag",
    "update-index",
    "update-ref",
    "worktree",
    "write-tree",
    "symbolic-ref",
    "repack",
    "mktag",
];
/// Subcommands that talk to other repositories.
pub(super) const REMOTE: &[&str] = &["clone", "fetch", "pull", "push", "ls-remote", "send-pack"];
/// Subcommands that run hooks or other programs.
const RUNNERS: &[&str] = &[
    "bisect",
    "commit",
    "difftool",
    "filter-branch",
    "merge",
    "mergetool",
    "rebase",
    "submodule",
    "subtree",
    "send-email",
    "instaweb",
    "maintenance",
];

pub(super) fn classify(arguments: &[CommandArgument]) -> EffectFinding {
    let mut words = arguments.iter();
    let mut index = 0;
    let subcommand = loop {
        // `git` alone prints its help.
        let Some(word) = words.next() else { return READS() };
        index += 1;
        let Some(text) = &word.text else {
            return found(CommandEffects::UNKNOWN, "the subcommand of `git` is not known");
        };
        match text.as_str() {
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" => {}
            "--version" | "-v" => return READS(),
            "-C" => {
                if words.next().is_none_or(|folder| !folder.is_one_word()) {
                    return found(CommandEffects::UNKNOWN, "the folder of `git -C` is not known");
                }
                index += 1;
            }
            // Among them is `-c`, which sets any key, also those that name programs.
            text if text.starts_with('-') => {
                let reason = format!("`git {text}` may run programs of its configuration");
                return found(CommandEffects::UNKNOWN, reason);
            }
            text => break text,
        }
    };
    let rest = arguments.get(index..).unwrap_or_default();
    by_subcommand(subcommand, rest)
}

fn by_subcommand(subcommand: &str, arguments: &[CommandArgument]) -> EffectFinding {
    // By the first word only: aliases cannot hide a subcommand of git's own.
    if READERS.contains(&subcommand) {
        if has_option(arguments, letters_of(subcommand), RISKY_NAMES) || shows_signature(arguments)
        {
            let reason = format!("`git {subcommand}` may have an option that does more than read");
            return found(CommandEffects::RUNS | CommandEffects::WRITES, reason);
        }
        return READS();
    }
    if is_listing(subcommand, arguments) {
        return READS();
    }
    let named =
        |effects: CommandEffects, what: &str| found(effects, format!("`git {subcommand}` {what}"));
    if launchers::git_launches(subcommand, arguments) {
        return named(
            CommandEffects::RUNS | CommandEffects::NETWORK | CommandEffects::WRITES,
            "may have an option that runs a program, now or later",
        );
    }
    if WRITERS.contains(&subcommand) {
        let is_remote = subcommand == "remote";
        let effects = if is_remote {
            CommandEffects::WRITES | CommandEffects::NETWORK
        } else {
            CommandEffects::WRITES
        };
        return named(effects, "changes the repository");
    }
    if REMOTE.contains(&subcommand) {
        return named(
            CommandEffects::NETWORK | CommandEffects::WRITES,
            "talks to another repository",
        );
    }
    if RUNNERS.contains(&subcommand) {
        return named(
            CommandEffects::RUNS | CommandEffects::WRITES,
            "may run hooks or other programs",
        );
    }
    named(CommandEffects::UNKNOWN, "is not a known subcommand; it may be an alias")
}

/// Whether a format may ask for a signature, for which `git` runs `gpg`.
fn shows_signature(arguments: &[CommandArgument]) -> bool {
    arguments.iter().any(|argument| match &argument.text {
        Some(text) => text.contains("%G") || text.contains("%(signature"),
        None => ["--format", "--pretty"].iter().any(|name| argument.prefix.starts_with(name)),
    })
}

/// Only `git grep -O` opens a pager; elsewhere `-O` names an order of files.
fn letters_of(subcommand: &str) -> &'static str {
    if subcommand == "grep" { RISKY_LETTERS } else { "" }
}

/// The options with which a subcommand lists names.
struct ListOptions {
    /// Options that stand alone.
    alone: &'static [&'static str],
    /// Options that take the next word if there is one, whatever it begins with.
    valued: &'static [&'static str],
    /// The options of both that make operands patterns; otherwise they are names to create.
    listing: &'static [&'static str],
}

const BRANCH_LIST: ListOptions = ListOptions {
    // `-l` created a reflog in old versions.
    alone: &[
        "-a",
        "-r",
        "-v",
        "-vv",
        "--all",
        "--remotes",
        "--list",
        "--show-current",
        "--no-color",
    ],
    valued: &["--merged", "--no-merged", "--contains", "--sort", "--format"],
    listing: &["--list", "--contains", "--merged", "--no-merged"],
};
const TAG_LIST: ListOptions = ListOptions {
    alone: &["-l", "--list", "-n"],
    valued: &["--contains", "--points-at", "--sort", "--format"],
    listing: &["-l", "--list", "--contains", "--points-at"],
};

/// Whether these arguments only list names.
fn only_lists(texts: &[&str], options: &ListOptions) -> bool {
    let (mut has_operand, mut lists) = (false, false);
    let mut words = texts.iter();
    while let Some(text) = words.next() {
        if !text.starts_with('-') {
            has_operand = true;
            continue;
        }
        let (name, value) =
            text.split_once('=').map_or((*text, None), |(name, value)| (name, Some(value)));
        if options.valued.contains(&name) {
            // Its value is no option, even if it looks like one.
            if value.is_none() {
                words.next();
            }
        } else if value.is_some() || !options.alone.contains(&name) {
            return false;
        }
        lists |= options.listing.contains(&name);
    }
    lists || !has_operand
}

/// Whether a subcommand that may write only lists.
fn is_listing(subcommand: &str, arguments: &[CommandArgument]) -> bool {
    let texts: Option<Vec<&str>> = arguments.iter().map(|word| word.text.as_deref()).collect();
    // An unknown word could be an option that changes something.
    let Some(texts) = texts else { return false };
    let only = |allowed: &[&str]| {
        texts.iter().filter(|text| text.starts_with('-')).all(|text| {
            let name = text.split('=').next().unwrap_or_default();
            allowed.contains(&name)
        })
    };
    let count = operands(arguments).map_or(usize::MAX, |all| all.len());
    let has =
        |options: &[&str]| texts.iter().any(|text| options.iter().any(|option| text == option));
    match subcommand {
        "branch" => only_lists(&texts, &BRANCH_LIST) && !shows_signature(arguments),
        "tag" => only_lists(&texts, &TAG_LIST) && !shows_signature(arguments),
        "remote" => matches!(texts.as_slice(), [] | ["-v" | "--verbose"] | ["get-url", _]),
        "stash" => {
            matches!(texts.as_slice(), ["list"] | ["show"] | ["show", "-p" | "--stat"])
        }
        "worktree" => matches!(texts.as_slice(), ["list"] | ["list", "--porcelain"]),
        "reflog" => texts.is_empty() || matches!(texts.as_slice(), ["show"] | ["-n", _]),
        "config" => {
            let flags = [
                "--get",
                "--get-all",
                "--get-regexp",
                "--list",
                "-l",
                "--show-origin",
                "--show-scope",
                "--global",
                "--local",
                "--system",
                "--name-only",
                "-z",
            ];
            let gets = has(&["--get", "--get-all", "--get-regexp", "--list", "-l"]);
            // With a single name, `git config` prints its value; with two it sets it.
            only(&flags) && (gets || count == 1 && !has(&["edit"]))
        }
        _ => false,
    }
}
