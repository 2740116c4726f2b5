//! The options of programs that run another program.

use super::CommandArgument;

pub(super) struct WrapperOptions {
    /// Options that stand alone.
    pub(super) alone: &'static [&'static str],
    /// Options that take a value.
    pub(super) valued: &'static [&'static str],
    /// How many operands come before the program.
    pub(super) operands: usize,
    /// Options whose value must be in the same word: `--replace=R`.
    pub(super) attached: &'static [&'static str],
}

pub(super) const NICE: WrapperOptions =
    WrapperOptions { alone: &[], valued: &["-n", "--adjustment"], operands: 0, attached: &[] };
pub(super) const TIMEOUT: WrapperOptions = WrapperOptions {
    alone: &["--foreground", "--preserve-status", "-v", "--verbose"],
    valued: &["-s", "--signal", "-k", "--kill-after"],
    operands: 1,
    attached: &[],
};
pub(super) const IONICE: WrapperOptions = WrapperOptions {
    alone: &["-t"],
    valued: &["-c", "-n", "--class", "--classdata"],
    operands: 0,
    attached: &[],
};
pub(super) const STDBUF: WrapperOptions =
    WrapperOptions { alone: &[], valued: &["-i", "-o", "-e"], operands: 0, attached: &[] };
pub(super) const SETSID: WrapperOptions = WrapperOptions {
    alone: &["-w", "--wait", "-f", "--fork"],
    valued: &[],
    operands: 0,
    attached: &[],
};
pub(super) const ENV: WrapperOptions = WrapperOptions {
    alone: &["-i", "-", "--ignore-environment", "-0", "-v"],
    valued: &["-u", "--unset", "-C", "--chdir"],
    operands: 0,
    attached: &[],
};
pub(super) const SUDO: WrapperOptions = WrapperOptions {
    alone: &["-n", "-E", "-H", "-S", "--non-interactive", "--preserve-env"],
    valued: &["-u", "--user", "-g", "--group"],
    operands: 0,
    attached: &[],
};
pub(super) const COMMAND: WrapperOptions =
    WrapperOptions { alone: &["-p"], valued: &[], operands: 0, attached: &[] };
pub(super) const EXEC: WrapperOptions =
    WrapperOptions { alone: &["-c", "-l"], valued: &["-a"], operands: 0, attached: &[] };
pub(super) const XARGS: WrapperOptions = WrapperOptions {
    alone: &["-0", "-r", "-t", "-x", "-r0", "-0r", "--null", "--no-run-if-empty", "--verbose"],
    valued: &[
        "-I",
        "-L",
        "-n",
        "-P",
        "-s",
        "-d",
        "-E",
        "-a",
        "--max-args",
        "--max-procs",
        "--delimiter",
        "--arg-file",
    ],
    operands: 0,
    attached: &["--max-lines", "--replace"],
};
pub(super) const PLAIN: WrapperOptions =
    WrapperOptions { alone: &[], valued: &[], operands: 0, attached: &[] };

/// The arguments of a wrapper.
pub(super) struct ParsedOptions<'a> {
    /// The options, by the names in the table, with their values where these are known.
    pub(super) options: Vec<(&'static str, Option<&'a str>)>,
    /// What follows the options and operands.
    pub(super) words: &'a [CommandArgument],
}

impl ParsedOptions<'_> {
    /// Whether an option is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(option, _)| *option == name)
    }
}

/// Separates options from what follows; `None` if that is uncertain.
pub(super) fn parse<'a>(
    mut arguments: &'a [CommandArgument],
    table: &WrapperOptions,
) -> Option<ParsedOptions<'a>> {
    let mut options = Vec::new();
    while let Some((first, rest)) = arguments.split_first() {
        let Some(text) = first.text.as_deref() else {
            if first.may_be_option() {
                return None;
            }
            break;
        };
        if !text.starts_with('-') {
            break;
        }
        arguments = rest;
        if text == "--" {
            break;
        }
        if let Some(option) = table.alone.iter().find(|option| **option == text) {
            options.push((*option, None));
        } else if let Some(option) = table.valued.iter().find(|option| **option == text) {
            // The value must be one word, or the program would be another.
            let value = rest.first().filter(|value| value.is_one_word())?;
            options.push((*option, value.text.as_deref()));
            arguments = rest.get(1..)?;
        } else {
            let all = table.valued.iter().chain(table.attached);
            let found = all.filter_map(|option| Some((*option, value_in(text, option)?))).next();
            let (option, value) = found?;
            options.push((option, Some(value)));
        }
    }
    let operands = arguments.get(..table.operands)?;
    if !operands.iter().all(CommandArgument::is_one_word) {
        return None;
    }
    Some(ParsedOptions { options, words: arguments.get(table.operands..)? })
}

/// The value in a word that holds an option with its value: `-n5`, `--max-args=5`.
fn value_in<'a>(text: &'a str, option: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(option)?;
    match option.starts_with("--") {
        true => rest.strip_prefix('='),
        false => Some(rest).filter(|_| !text.starts_with("--")),
    }
}
