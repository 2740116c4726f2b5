//! What a command does, by tables of programs, subcommands and options.
//!
//! A command counts as read-only only if a table says so for its program and nothing in its
//! arguments, assignments and redirections says otherwise. Whatever the tables do not know is
//! unknown. Tables are about command lines: configuration files, such as `.git/config`, may make a
//! program run others, and which program a name leads to is decided by `PATH`.

mod builtins;
mod effects;
mod git;
mod launchers;
mod options;
mod programs;
mod scripts;
mod variables;

pub use effects::{CommandClass, CommandEffects};
pub use variables::is_harmless_variable;

use crate::command_tree::RedirectionKind;
use crate::command_use::{CommandArgument, CommandUse, RedirectionUse, env_variables};

/// The effects of something, and why; the reason is empty for what only reads.
type EffectFinding = (CommandEffects, String);

const READS: fn() -> EffectFinding = || (CommandEffects::READ_ONLY, String::new());

fn found(effects: CommandEffects, reason: impl Into<String>) -> EffectFinding {
    (effects, reason.into())
}

/// What a command itself does, without the commands that it runs in turn.
pub(crate) fn classify(one: &CommandUse) -> EffectFinding {
    if let Some(problem) = &one.problem {
        return found(CommandEffects::UNKNOWN, problem.clone());
    }
    let mut all = classify_program(one);
    let others = one.redirections.iter().map(redirection);
    // `IFS= read` splits input in its own way, and nothing else is split.
    let reads_fields = one.program() == Some("read");
    let assigned = one.assignments.iter().filter(|(name, _)| !(reads_fields && name == "IFS"));
    let others = others.chain(assigned.map(|(name, _)| variables::assignment(name)));
    for (effects, reason) in others {
        all.0 = all.0 | effects;
        // The program's own reason says most; others are kept only where it has none.
        if all.1.is_empty() {
            all.1 = reason;
        }
    }
    all
}

fn classify_program(one: &CommandUse) -> EffectFinding {
    if one.words.is_empty() {
        return READS();
    }
    let Some(program) = one.program() else {
        return found(CommandEffects::UNKNOWN, "the program is only known when the line runs");
    };
    // The commands in its body are in the list themselves.
    if one.calls_function {
        return READS();
    }
    // A path such as `/bin/echo` is never a builtin.
    let by_name = one.words.first().is_some_and(|word| word.is(program));
    let arguments = one.arguments();
    if one.is_wrapper {
        return wrapper(program, arguments);
    }
    let builtin = by_name.then(|| builtins::classify(program, one)).flatten();
    builtin
        .or_else(|| (program == "git").then(|| git::classify(arguments)))
        .or_else(|| launchers::classify(program, arguments))
        .or_else(|| scripts::classify(program, arguments))
        .or_else(|| programs::classify(program, arguments))
        .unwrap_or_else(|| {
            found(CommandEffects::UNKNOWN, format!("`{program}` is not a known program"))
        })
}

/// What a wrapper does besides running its command.
fn wrapper(program: &str, arguments: &[CommandArgument]) -> EffectFinding {
    match program {
        "env" => env_variables(arguments)
            .into_iter()
            .map(variables::assignment)
            .find(|(effects, _)| *effects != CommandEffects::READ_ONLY)
            .unwrap_or_else(READS),
        // It writes `nohup.out` if its output is a terminal.
        "nohup" => found(CommandEffects::WRITES, "`nohup` may write `nohup.out`"),
        _ => READS(),
    }
}

/// The effects of a redirection.
fn redirection(redirection: &RedirectionUse) -> EffectFinding {
    let target = &redirection.target;
    if is_socket(target) && redirection.kind != RedirectionKind::Text {
        let writes = redirection.kind == RedirectionKind::Write;
        let effects = if writes { CommandEffects::WRITES } else { CommandEffects::READ_ONLY };
        let reason = "a redirection may open a network connection";
        return found(effects | CommandEffects::NETWORK, reason);
    }
    // Only now, since reading from such a file is a connection too.
    if redirection.kind != RedirectionKind::Write {
        return READS();
    }
    if target.is_pipe || target.text.as_deref().is_some_and(is_device) {
        return READS();
    }
    found(CommandEffects::WRITES, "a redirection writes a file")
}

/// Whether bash may take a file for a network connection, which it can also be written to.
fn is_socket(target: &CommandArgument) -> bool {
    ["/dev/tcp/", "/dev/udp/"].iter().any(|start| {
        let is_open = target.text.is_none() && !target.is_pipe;
        target.prefix.starts_with(start) || is_open && start.starts_with(&target.prefix)
    })
}

/// Whether a file is a device that keeps nothing.
pub(crate) fn is_device(path: &str) -> bool {
    let devices = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"];
    devices.contains(&path)
}
