//! Tables of programs for generated patterns, a flat list.

use crate::command_tree::RedirectionKind;
use crate::command_use::{CommandArgument, CommandUse};

/// Programs whose first words say what they do, and how many.
const SUBCOMMANDS: &[(&str, usize)] = &[
    ("apt", 1),
    ("apt-get", 1),
    ("brew", 1),
    ("bun", 1),
    ("bundle", 1),
    ("cargo", 1),
    ("composer", 1),
    ("deno", 1),
    ("docker", 1),
    ("dotnet", 1),
    ("gem", 1),
    ("gh", 2),
    ("git", 1),
    ("go", 1),
    ("gradle", 1),
    ("helm", 1),
    ("just", 1),
    ("kubectl", 1),
    ("make", 1),
    ("mvn", 1),
    ("npm", 1),
    ("pip", 1),
    ("pip3", 1),
    ("pipenv", 1),
    ("pnpm", 1),
    ("podman", 1),
    ("poetry", 1),
    ("rustup", 1),
    ("systemctl", 1),
    ("terraform", 1),
    ("uv", 1),
    ("yarn", 1),
];

/// Subcommands that are followed by another one.
const NESTED: &[(&str, &str)] = &[
    ("docker", "compose"),
    ("docker", "image"),
    ("docker", "container"),
    ("npm", "run"),
    ("pnpm", "run"),
    ("yarn", "run"),
    ("bun", "run"),
    ("git", "stash"),
    ("git", "remote"),
    ("git", "worktree"),
    ("git", "config"),
    ("uv", "run"),
    ("uv", "pip"),
    ("poetry", "run"),
    ("podman", "compose"),
];

/// Programs that run what they are given, or destroy what they are pointed at.
const NEVER_WIDENED: &[&str] = &[
    "ash",
    "awk",
    "bash",
    "builtin",
    "bun",
    "busybox",
    "chmod",
    "chown",
    "command",
    "crontab",
    "csh",
    "dash",
    "dd",
    "deno",
    "doas",
    "docker",
    "env",
    "eval",
    "exec",
    "expect",
    "fish",
    "gawk",
    "gdb",
    "kill",
    "killall",
    "ksh",
    "lua",
    "mkfs",
    "mount",
    "nc",
    "ncat",
    "node",
    "npx",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pkill",
    "podman",
    "powershell",
    "pwsh",
    "python",
    "python2",
    "python3",
    "rm",
    "rsync",
    "ruby",
    "scp",
    "screen",
    "script",
    "sed",
    "sh",
    "shred",
    "source",
    "ssh",
    "strace",
    "su",
    "sudo",
    "systemctl",
    "tee",
    "tmux",
    "trap",
    "truncate",
    "uvx",
    "watch",
    "xargs",
    "zsh",
    ".",
];

/// Options and subcommands that make a command one of these.
const NEVER_WIDENED_WITH: &[(&str, &[&str])] = &[
    ("find", &["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprintf", "-fls"]),
    (
        "git",
        &[
            "filter-branch",
            "--force",
            "-f",
            "--hard",
            "clean",
            "rebase",
            "bisect",
            "submodule",
            "config",
        ],
    ),
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("npm", &["exec", "publish", "x"]),
    ("pnpm", &["exec", "dlx", "publish"]),
    ("yarn", &["dlx", "exec", "publish"]),
    ("cargo", &["publish", "yank"]),
    ("gh", &["api", "auth", "secret"]),
    ("kubectl", &["delete", "exec", "apply"]),
    ("terraform", &["destroy", "apply"]),
];

/// Names and descriptions of groups, with their programs.
const GROUPS: &[(&str, &str, &[&str])] = &[
    ("git-operations", "Git version control commands", &["git", "gh"]),
    ("npm-commands", "Node.js package manager commands", &["npm", "npx", "pnpm", "yarn", "bun"]),
    (
        "file-operations",
        "File viewing and listing",
        &[
            "ls", "cat", "head", "tail", "find", "wc", "grep", "rg", "tree", "stat", "file", "du",
            "df", "sort", "uniq", "cut", "diff", "less", "fd", "egrep", "realpath", "readlink",
        ],
    ),
    (
        "file-changes",
        "Creating, moving and removing files",
        &["cp", "mv", "rm", "mkdir", "touch", "ln", "chmod", "chown", "tee", "rmdir", "sed"],
    ),
    ("cargo-commands", "Rust build and package commands", &["cargo", "rustc", "rustup"]),
    (
        "python-commands",
        "Python programs and packages",
        &["python", "python3", "pip", "pip3", "uv", "poetry"],
    ),
    ("testing", "Test runners", &["pytest", "jest", "vitest", "tox"]),
    ("docker-commands", "Container commands", &["docker", "podman", "docker-compose"]),
    (
        "build-commands",
        "Build tools",
        &["make", "cmake", "ninja", "gradle", "mvn", "just", "bazel"],
    ),
    ("network-commands", "Network access", &["curl", "wget", "ssh", "scp", "rsync", "ping", "dig"]),
    (
        "shell-commands",
        "Shells and what they are given to run",
        &["bash", "sh", "zsh", "env", "xargs", "sudo"],
    ),
];

/// The name and description of the group of a program.
pub(super) fn group(program: &str) -> (String, String) {
    let known = GROUPS.iter().find(|(_, _, programs)| programs.contains(&program));
    if let Some((name, description, _)) = known {
        return ((*name).to_owned(), (*description).to_owned());
    }
    let file = program.rsplit('/').next().unwrap_or(program);
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let name: String =
        file.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect();
    let name = if name.is_empty() { "other".to_owned() } else { name };
    (format!("{name}-commands"), format!("Commands of {name}"))
}

/// How many words after the program say what it does.
pub(super) fn subcommand_depth(words: &[CommandArgument]) -> usize {
    let mut texts = words.iter().map(|word| word.text.as_deref().unwrap_or_default());
    let program = texts.next().unwrap_or_default();
    let Some((_, depth)) = SUBCOMMANDS.iter().find(|(name, _)| *name == program) else { return 0 };
    let first = texts.find(|text| !text.starts_with(['-', '+'])).unwrap_or_default();
    depth + usize::from(NESTED.contains(&(program, first)))
}

/// Whether a pattern for such a command must not have a star, and a person should look at it.
pub fn is_never_widened(one: &CommandUse) -> bool {
    let program = one.program().unwrap_or_default();
    // By the last part of the path, since `/opt/bin/bash` runs anything too.
    let name = program.rsplit('/').next().unwrap_or(program);
    let has = |options: &[&str]| {
        one.arguments()
            .iter()
            .any(|word| word.text.as_deref().is_some_and(|text| options.contains(&text)))
    };
    let only_asks = matches!(one.arguments(), [only] if only.is("--version") || only.is("-V"));
    let is_bare_git = name == "git" && one.arguments().is_empty();
    // A download that is piped into a shell, and a file that a redirection writes.
    let writes = one
        .redirections
        .iter()
        .any(|redirection| redirection.kind == RedirectionKind::Write && redirection.writes_file());
    !only_asks && NEVER_WIDENED.contains(&name)
        || is_bare_git
        || writes
        || NEVER_WIDENED_WITH.iter().any(|(program, options)| *program == name && has(options))
}
