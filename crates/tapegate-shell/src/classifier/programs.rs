//! The tables of programs, a flat list.

use super::options::{has_option, operands};
use super::{CommandEffects, EffectFinding, READS, found, is_device};
use crate::command_use::CommandArgument;

/// A program that only reads, whatever its arguments.
const READERS: &[&str] = &[
    "arch",
    "b2sum",
    "base32",
    "basename",
    "cat",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cut",
    "df",
    "dirname",
    "du",
    "egrep",
    "env",
    "expand",
    "expr",
    "false",
    "fgrep",
    "fold",
    "free",
    "getconf",
    "grep",
    "groups",
    "head",
    "hexdump",
    "id",
    "join",
    "jq",
    "ls",
    "lsblk",
    "lscpu",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "pgrep",
    "printenv",
    "ps",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "sleep",
    "stat",
    "sum",
    "tac",
    "tail",
    "tr",
    "true",
    "tsort",
    "uname",
    "unexpand",
    "uptime",
    "users",
    "vdir",
    "wc",
    "which",
    "whereis",
    "who",
    "whoami",
    "xargs",
    "yes",
    "zipinfo",
    "fmt",
    "pstree",
    "locale",
];

/// Programs that only read without certain options: short options, long options, and what the
/// options do.
const READERS_WITHOUT: &[(&str, &str, &[&str], CommandEffects)] = &[
    // Other systems than Linux write with `-o`.
    ("base64", "o", &["output"], CommandEffects::WRITES),
    ("ag", "", &["pager"], CommandEffects::RUNS),
    ("date", "s", &["set"], CommandEffects::WRITES),
    ("diff", "l", &["paginate"], CommandEffects::RUNS),
    ("diff3", "", &["diff-program"], CommandEffects::RUNS),
    ("fd", "xX", &["exec", "exec-batch", "list-details"], CommandEffects::RUNS),
    ("fdfind", "xX", &["exec", "exec-batch", "list-details"], CommandEffects::RUNS),
    ("file", "CzZ", &["compile", "uncompress", "uncompress-noreport"], CommandEffects::WRITES),
    ("lsof", "D", &[], CommandEffects::WRITES),
    // Plugins are libraries that are loaded; debug information may be fetched.
    ("objdump", "WPgG", &["dwarf", "plugin", "debugging"], CommandEffects::RUNS),
    ("readelf", "w", &["debug-dump"], CommandEffects::NETWORK),
    ("strings", "", &["plugin"], CommandEffects::RUNS),
    ("rg", "z", &["pre", "pre-glob", "hostname-bin", "search-zip"], CommandEffects::RUNS),
    (
        "sort",
        "oTS",
        &["output", "compress-program", "temporary-directory", "files0-from"],
        CommandEffects::WRITES,
    ),
    ("ss", "KD", &["kill", "diag"], CommandEffects::WRITES),
    ("tree", "oR", &["output"], CommandEffects::WRITES),
];

/// Programs that change files or processes.
const WRITERS: &[&str] = &[
    "chattr",
    "chgrp",
    "chmod",
    "chown",
    "cp",
    "csplit",
    "dd",
    "fallocate",
    "gunzip",
    "gzip",
    "bzip2",
    "bunzip2",
    "install",
    "kill",
    "killall",
    "link",
    "ln",
    "mkdir",
    "mkfifo",
    "mknod",
    "mktemp",
    "mv",
    "patch",
    "pkill",
    "renice",
    "rm",
    "rmdir",
    "setfacl",
    "shred",
    "split",
    "sync",
    "touch",
    "truncate",
    "unlink",
    "unxz",
    "unzip",
    "xz",
    "zip",
    "zstd",
    "unzstd",
    "sponge",
    "dos2unix",
    "strip",
    "tar",
];

/// Programs that use the network and nothing else.
const NETWORK: &[&str] =
    &["dig", "host", "nslookup", "ping", "ping6", "traceroute", "tracepath", "whois", "getent"];

/// Programs that use the network and write files.
const DOWNLOADERS: &[&str] = &["wget", "aria2c", "scp", "rsync"];

/// Programs that run code from files or of other machines. They may do anything that it does.
const RUNNERS: &[&str] = &[
    "ansible",
    "awk",
    "bash",
    "bazel",
    "bun",
    "bundle",
    "cargo",
    "cmake",
    "composer",
    "dash",
    "deno",
    "doas",
    "docker",
    "dotnet",
    "emacs",
    "ex",
    "expect",
    "find",
    "flock",
    // Both run `!command` from their input.
    "ftp",
    "gdb",
    "go",
    "gradle",
    "gem",
    "java",
    "jest",
    "just",
    "ksh",
    "lua",
    "make",
    "mvn",
    "ninja",
    "node",
    "npm",
    "npx",
    "nvim",
    "parallel",
    "perl",
    "php",
    "pip",
    "pip3",
    "pipenv",
    "pnpm",
    "podman",
    "poetry",
    "prettier",
    "pytest",
    "python",
    "python2",
    "python3",
    "rake",
    "ruby",
    "rustc",
    "rustup",
    "script",
    "sh",
    "ssh",
    "strace",
    "su",
    "sudo",
    "systemctl",
    "tmux",
    "screen",
    "sftp",
    "tox",
    "tsc",
    "uv",
    "uvx",
    "vi",
    "vim",
    "vitest",
    "watch",
    "yarn",
    "zsh",
    "apt",
    "apt-get",
    "brew",
    "kubectl",
    "terraform",
    "gh",
    "mypy",
    "ruff",
    "black",
    "eslint",
    "clang",
    "gcc",
    "g++",
    "cc",
    "clippy-driver",
];

/// Programs whose version can be asked for without anything else.
const ASKS_VERSION: [&str; 3] = ["--version", "-V", "--help"];

/// The effects of a program that is in a table.
pub(super) fn classify(program: &str, arguments: &[CommandArgument]) -> Option<EffectFinding> {
    // First, because some of them are in the tables below as well.
    if let Some(finding) = special(program, arguments) {
        return Some(finding);
    }
    if READERS.contains(&program) {
        return Some(READS());
    }
    if let Some((_, letters, names, effects)) =
        READERS_WITHOUT.iter().find(|(name, ..)| *name == program)
    {
        let is_changed = has_option(arguments, letters, names);
        let reason = || format!("`{program}` may have an option that does more than read");
        return Some(if is_changed { found(*effects, reason()) } else { READS() });
    }
    let has = |list: &[&str]| list.contains(&program);
    if has(WRITERS) {
        return Some(found(
            CommandEffects::WRITES,
            format!("`{program}` changes files or processes"),
        ));
    }
    if has(NETWORK) {
        return Some(found(CommandEffects::NETWORK, format!("`{program}` uses the network")));
    }
    if has(DOWNLOADERS) {
        let effects = CommandEffects::NETWORK | CommandEffects::WRITES;
        return Some(found(effects, format!("`{program}` uses the network and writes files")));
    }
    if has(RUNNERS) {
        // As the only argument: `python --version script.py` is not the same for all programs.
        let only = |text: &&str| matches!(arguments, [argument] if argument.is(text));
        if ASKS_VERSION.iter().any(only) {
            return Some(READS());
        }
        return Some(found(
            CommandEffects::RUNS,
            format!("`{program}` runs code that the line does not show"),
        ));
    }
    None
}

/// Programs whose effects depend on more than a list of options.
fn special(program: &str, arguments: &[CommandArgument]) -> Option<EffectFinding> {
    let writes = |reason: &str| Some(found(CommandEffects::WRITES, reason));
    match program {
        "find" => find(arguments),
        // The second operand is an output file.
        "uniq" | "xxd" => match operands(arguments) {
            Some(all) if all.len() < 2 => {
                let reverts = program == "xxd" && has_option(arguments, "r", &[]);
                if reverts { writes("`xxd -r` may write a file") } else { Some(READS()) }
            }
            _ => writes("the second operand is a file that is written"),
        },
        "tee" => match operands(arguments) {
            Some(files) if files.iter().all(|file| file.text.as_deref().is_some_and(is_device)) => {
                Some(READS())
            }
            _ => writes("`tee` writes files"),
        },
        "hostname"
            if arguments
                .iter()
                .all(|word| word.text.as_deref().is_some_and(|text| HOSTNAME.contains(&text))) =>
        {
            Some(READS())
        }
        "hostname" => writes("`hostname` may set the name of the machine"),
        // An operand without a `+` sets the clock.
        "date" if !arguments.iter().all(|word| word.prefix.starts_with(['-', '+'])) => {
            writes("`date` may set the clock")
        }
        "curl" => Some(curl(arguments)),
        "yq" if has_option(
            arguments,
            "is",
            &[
                "inplace",
                "in-place",
                "split-exp",
                "split-exp-file",
                "security-enable-system-operator",
            ],
        ) =>
        {
            writes("`yq` may change files")
        }
        "yq" => Some(READS()),
        "less" | "more" if arguments.iter().all(is_plain_for_pager) => Some(READS()),
        "dmesg" | "ip" | "mount" if arguments.is_empty() => Some(READS()),
        "tar" => tar(arguments),
        _ => None,
    }
}

/// Options of `hostname` that only print.
const HOSTNAME: [&str; 12] = [
    "-a",
    "-A",
    "-d",
    "-f",
    "-i",
    "-I",
    "-s",
    "--fqdn",
    "--ip-address",
    "--short",
    "--long",
    "--domain",
];

/// Whether an argument of a pager is a file, or a switch that only affects what it shows.
fn is_plain_for_pager(word: &CommandArgument) -> bool {
    let file = !word.may_be_option() && !word.prefix.is_empty() && !word.prefix.starts_with('+');
    let switch = word.text.as_deref().and_then(|text| text.strip_prefix('-'));
    file || switch.is_some_and(|all| all.bytes().all(|letter| b"RNSFXEinrsq".contains(&letter)))
}

/// The effects of `find` besides those of the commands in `-exec`.
fn find(arguments: &[CommandArgument]) -> Option<EffectFinding> {
    for word in arguments {
        let Some(text) = &word.text else {
            // An unknown word may be `-delete`.
            if word.may_be_option() {
                return Some(found(
                    CommandEffects::UNKNOWN,
                    "`find` has arguments that are not known",
                ));
            }
            continue;
        };
        if matches!(text.as_str(), "-delete" | "-fls" | "-fprint" | "-fprint0" | "-fprintf") {
            return Some(found(CommandEffects::WRITES, format!("`find {text}` changes files")));
        }
    }
    Some(READS())
}

/// Options of `curl` that neither write files nor read options from a file.
const CURL_READS: &[&str] = &[
    "-s",
    "-S",
    "-f",
    "-L",
    "-I",
    "-i",
    "-k",
    "-v",
    "-G",
    "-g",
    "-sS",
    "-fsSL",
    "-sL",
    "-fsS",
    "-sSL",
    "-sSf",
    "-sSfL",
    "-sf",
    "-fsL",
    "-si",
    "-sI",
    "-sv",
    "-Ls",
    "-LsS",
    "--silent",
    "--show-error",
    "--fail",
    "--location",
    "--head",
    "--include",
    "--insecure",
    "--verbose",
    "--get",
    "--compressed",
    "--http1.1",
    "--http2",
    "-4",
    "-6",
];
/// Options of `curl` that take a value and do not write files.
const CURL_VALUED: &[&str] = &[
    "-H",
    "-X",
    "-d",
    "-A",
    "-u",
    "-m",
    "-e",
    "--header",
    "--request",
    "--data",
    "--data-raw",
    "--user-agent",
    "--user",
    "--max-time",
    "--connect-timeout",
    "--retry",
    "--referer",
    "-w",
    "--write-out",
    "--json",
    "--data-urlencode",
    "--url",
];

fn curl(arguments: &[CommandArgument]) -> EffectFinding {
    let both = CommandEffects::NETWORK | CommandEffects::WRITES;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(text) = &word.text else {
            if word.may_be_option() {
                return found(both, "`curl` has arguments that are not known");
            }
            continue;
        };
        if CURL_VALUED.contains(&text.as_str()) {
            let value = words.next();
            // `%output{file}` of newer versions writes a file.
            let writes_out = matches!(text.as_str(), "-w" | "--write-out")
                && !value
                    .and_then(|value| value.text.as_deref())
                    .is_some_and(|value| !value.contains("%output") && !value.starts_with('@'));
            if value.is_none_or(|value| !value.is_one_word()) || writes_out {
                return found(both, "`curl` has arguments that are not known");
            }
        } else if matches!(text.as_str(), "-o" | "--output") {
            let target = words.next().and_then(|value| value.text.as_deref());
            if !target.is_some_and(|target| target == "-" || is_device(target)) {
                return found(both, "`curl` uses the network and writes a file");
            }
        // Options that are not listed may be short for `-O` in a cluster, or read more from a file.
        } else if text.starts_with('-') && !CURL_READS.contains(&text.as_str()) {
            return found(both, format!("`curl {text}` may write a file"));
        }
    }
    found(CommandEffects::NETWORK, "`curl` uses the network")
}

/// Listing an archive reads; everything else that `tar` does is in the list of writers.
fn tar(arguments: &[CommandArgument]) -> Option<EffectFinding> {
    let (first, rest) = arguments.split_first()?;
    let mode = first.text.as_deref()?;
    let lists = mode.trim_start_matches('-');
    // Without `z` and `j`, which run a program to unpack.
    let is_list = lists.contains('t') && lists.bytes().all(|letter| b"tvf".contains(&letter));
    // A colon in the name of the archive makes `tar` run a remote shell.
    let is_plain = |word: &CommandArgument| {
        word.text.as_deref().is_some_and(|text| !text.starts_with('-') && !text.contains(':'))
    };
    (is_list && rest.iter().all(is_plain)).then(READS)
}
