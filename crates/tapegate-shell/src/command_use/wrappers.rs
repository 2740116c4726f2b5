//! Programs that run another program, and what they run.

mod builtins;
mod find;
mod options;
mod shells;
mod xargs;

use super::{CommandArgument, CommandUse};
use options::{WrapperOptions, parse};

/// Programs that run the command in their arguments, in forms that are not read.
const UNREAD_WRAPPERS: [&str; 31] = [
    "bwrap",
    "capsh",
    "chroot",
    "chrt",
    "daemonize",
    "dbus-run-session",
    "entr",
    "fakeroot",
    "firejail",
    "flock",
    "hyperfine",
    "ltrace",
    "nsenter",
    "parallel",
    "pkexec",
    "prlimit",
    "runuser",
    "script",
    "setpriv",
    "start-stop-daemon",
    "strace",
    "su",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "xterm",
    "xvfb-run",
];

/// What a program runs in turn.
pub(super) struct WrapperUse {
    /// The commands that it runs.
    pub(super) inner: Vec<InnerCommand>,
    /// Whether it does nothing else.
    pub(super) is_wrapper: bool,
    /// Whether they run in the same folder.
    pub(super) keeps_folder: bool,
}

/// Where an inner command line runs, which decides what its functions mean for the outer line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinePlace {
    /// At once, in the same shell.
    Here,
    /// Later, in the same shell.
    Later,
    /// In another bash.
    NewShell,
    /// In another shell than bash, which follows POSIX.
    NewPosixShell,
}

/// A command that another one runs.
pub(super) enum InnerCommand {
    /// A program with arguments.
    Words(Vec<CommandArgument>),
    /// A command line.
    Line {
        text: String,
        /// Where it runs.
        place: LinePlace,
    },
    /// Something unknown; the text says why.
    Unknown(String),
}

/// What a command runs in turn; `None` if it runs nothing else.
pub(super) fn descend(one: &CommandUse) -> Option<WrapperUse> {
    let arguments = one.arguments();
    match one.program()? {
        "nice" => wrapped(arguments, &options::NICE),
        "timeout" => wrapped(arguments, &options::TIMEOUT),
        "ionice" => wrapped(arguments, &options::IONICE),
        "stdbuf" => wrapped(arguments, &options::STDBUF),
        "setsid" => wrapped(arguments, &options::SETSID),
        "nohup" | "builtin" | "busybox" | "toybox" | "time" => wrapped(arguments, &options::PLAIN),
        "exec" => wrapped(arguments, &options::EXEC),
        "command" => command(arguments),
        "env" => env(arguments),
        // Not a mere wrapper, since running as another user is an effect of its own.
        "sudo" | "doas" => wrapped(arguments, &options::SUDO)
            .map(|descent| WrapperUse { is_wrapper: false, ..descent }),
        "xargs" => xargs::descend(arguments),
        "find" => find::descend(arguments),
        "eval" => eval(arguments),
        "trap" => trap(arguments),
        // Others, such as zsh, read lines too differently.
        name @ ("bash" | "sh" | "dash" | "ash") => shells::descend(name, one),
        name if UNREAD_WRAPPERS.contains(&name) => unread(name, arguments),
        "zsh" | "ksh" | "mksh" | "fish" => unknown("another shell than bash runs commands"),
        name => builtins::descend(name, arguments),
    }
}

fn unknown(problem: &str) -> Option<WrapperUse> {
    let inner = vec![InnerCommand::Unknown(problem.to_owned())];
    Some(WrapperUse { inner, is_wrapper: false, keeps_folder: true })
}

/// A wrapper of whose arguments only a question about itself is read.
fn unread(name: &str, arguments: &[CommandArgument]) -> Option<WrapperUse> {
    let asks =
        |word: &CommandArgument| ["--version", "--help", "-V"].iter().any(|ask| word.is(ask));
    match arguments {
        [] => None,
        [only] if asks(only) => None,
        _ => unknown(&format!("`{name}` runs a command in a form that is not read")),
    }
}

/// The program after the options of a wrapper.
fn wrapped(arguments: &[CommandArgument], options: &WrapperOptions) -> Option<WrapperUse> {
    let Some(parsed) = parse(arguments, options) else {
        return unknown("a wrapper has options that are not known");
    };
    let words = parsed.words;
    if words.is_empty() {
        return None;
    }
    let inner = vec![InnerCommand::Words(words.to_vec())];
    Some(WrapperUse { inner, is_wrapper: true, keeps_folder: true })
}

fn command(arguments: &[CommandArgument]) -> Option<WrapperUse> {
    let asks = arguments.first().is_some_and(|first| first.is("-v") || first.is("-V"));
    if asks { None } else { wrapped(arguments, &options::COMMAND) }
}

/// The program of `env`; its assignments are looked at where its effects are decided.
fn env(arguments: &[CommandArgument]) -> Option<WrapperUse> {
    let Some(parsed) = parse(arguments, &options::ENV) else {
        return unknown("`env` has options that are not known");
    };
    let Some((_, words)) = split_assignments(parsed.words) else {
        return unknown("`env` has arguments that are not known");
    };
    if words.is_empty() {
        return None;
    }
    let keeps_folder = !parsed.has("-C") && !parsed.has("--chdir");
    let inner = vec![InnerCommand::Words(words.to_vec())];
    Some(WrapperUse { inner, is_wrapper: true, keeps_folder })
}

/// The assignments of `env`, and what follows them; `None` if that is uncertain.
fn split_assignments(
    words: &[CommandArgument],
) -> Option<(&[CommandArgument], &[CommandArgument])> {
    for (index, word) in words.iter().enumerate() {
        match &word.text {
            Some(text) if text.contains('=') => {}
            Some(_) => return Some(words.split_at(index)),
            None => return None,
        }
    }
    Some(words.split_at(words.len()))
}

/// The variables that the arguments of `env` set.
pub(crate) fn env_variables(arguments: &[CommandArgument]) -> Vec<&str> {
    let parsed = parse(arguments, &options::ENV);
    let assigned = parsed.and_then(|parsed| split_assignments(parsed.words));
    let assigned = assigned.map_or(&[][..], |(assigned, _)| assigned);
    let texts = assigned.iter().filter_map(|word| word.text.as_deref());
    texts.filter_map(|text| text.split_once('=')).map(|(name, _)| name).collect()
}

/// Makes the words unknown that hold a placeholder.
fn fill(words: &mut [CommandArgument], placeholder: &str, never_option: bool) {
    for word in words {
        let Some(at) = word.prefix.find(placeholder) else { continue };
        let prefix = word.prefix[..at].to_owned();
        *word = CommandArgument { prefix, never_option, ..CommandArgument::default() };
    }
}

fn eval(arguments: &[CommandArgument]) -> Option<WrapperUse> {
    let words: Option<Vec<&str>> = arguments.iter().map(|word| word.text.as_deref()).collect();
    let Some(words) = words.filter(|_| !arguments.iter().any(|word| word.has_tilde)) else {
        return unknown("`eval` runs a value that is not in the line");
    };
    let inner = vec![InnerCommand::Line { text: words.join(" "), place: LinePlace::Here }];
    Some(WrapperUse { inner, is_wrapper: true, keeps_folder: true }).filter(|_| !words.is_empty())
}

fn trap(arguments: &[CommandArgument]) -> Option<WrapperUse> {
    let words = match arguments.first() {
        Some(first) if first.is("--") => arguments.get(1..).unwrap_or_default(),
        _ => arguments,
    };
    let action = words
        .first()
        .filter(|_| words.len() > 1 || !words.iter().all(CommandArgument::is_one_word))?;
    match action.text.as_deref() {
        Some("-" | "" | "-p" | "-l") => None,
        Some(line) if words.iter().all(CommandArgument::is_one_word) => {
            let inner = vec![InnerCommand::Line { text: line.to_owned(), place: LinePlace::Later }];
            Some(WrapperUse { inner, is_wrapper: true, keeps_folder: true })
        }
        _ => unknown("`trap` runs a value that is not in the line"),
    }
}
