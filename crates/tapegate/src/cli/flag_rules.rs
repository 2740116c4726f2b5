//! Flags that have an effect only beside another flag, or beside certain values of it.
//!
//! A flag that is accepted and does nothing misleads: whoever passes it believes in its effect. Clap
//! knows `requires` and `conflicts_with`, which go by what is present. This table goes by values, given
//! or by default, and is the one place for such rules. It is checked after parsing.
//!
//! Preferences about a terminal (`--color`, `--no-pager`) are not in it: they are put into aliases.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::exit::{Exit, Failure};

/// One such flag, by the ids that clap has for it.
struct FlagRule {
    /// The command, with the commands above it.
    command: &'static [&'static str],
    flag: &'static str,
    needs: Need,
}

/// What gives a flag its effect.
enum Need {
    /// A value of another flag.
    Value(&'static str, &'static str),
    /// Any of these flags.
    AnyOf(&'static [&'static str]),
    /// A file in this flag, not standard output.
    File(&'static str),
}

const fn rule(command: &'static [&'static str], flag: &'static str, needs: Need) -> FlagRule {
    FlagRule { command, flag, needs }
}

const RULES: &[FlagRule] = &[
    rule(&["replay"], "fuzzy_threshold", Need::Value("match_mode", "fuzzy")),
    rule(&["replay"], "strict_params", Need::Value("match_mode", "sequential")),
    // Only requests of the server are replied to.
    rule(&["replay"], "strict_replies", Need::Value("server_messages", "all")),
    rule(&["verify"], "details", Need::Value("format", "text")),
    rule(&["show"], "full", Need::Value("format", "text")),
    rule(&["convert"], "phase_after", Need::Value("style", "phased")),
    rule(&["convert"], "force", Need::File("output")),
    rule(&["policy", "generate"], "force", Need::AnyOf(&["output", "cedar"])),
];

/// Refuses a flag that can have no effect on this command line.
pub(super) fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let mut path = Vec::new();
    let mut innermost = matches;
    while let Some((name, inner)) = innermost.subcommand() {
        path.push(name);
        innermost = inner;
    }
    let of_command = RULES.iter().filter(|rule| rule.command == path);
    for rule in of_command.filter(|rule| is_given(innermost, rule.flag)) {
        let Some(needed) = rule.needs.unmet(innermost) else { continue };
        let flag = dashed(rule.flag);
        let words = format!("{flag} has no effect without {needed}");
        let hint = format!("add {needed}, or leave out {flag}");
        return Err(Failure::new(Exit::Usage, words).hint(hint));
    }
    Ok(())
}

impl Need {
    /// What is missing, if it is.
    fn unmet(&self, matches: &ArgMatches) -> Option<String> {
        match *self {
            Self::Value(flag, wanted) => {
                (raw(matches, flag) != Some(wanted)).then(|| format!("{} {wanted}", dashed(flag)))
            }
            Self::AnyOf(flags) => {
                let any = flags.iter().any(|flag| is_given(matches, flag));
                let named: Vec<String> =
                    flags.iter().map(|flag| format!("{} FILE", dashed(flag))).collect();
                (!any).then(|| named.join(" or "))
            }
            Self::File(flag) => {
                (raw(matches, flag) == Some("-")).then(|| format!("a file in {}", dashed(flag)))
            }
        }
    }
}

fn is_given(matches: &ArgMatches, flag: &str) -> bool {
    matches.value_source(flag) == Some(ValueSource::CommandLine)
}

/// The value of a flag as it was written, or its default.
fn raw<'m>(matches: &'m ArgMatches, flag: &str) -> Option<&'m str> {
    matches.get_raw(flag)?.next()?.to_str()
}

fn dashed(flag: &str) -> String {
    format!("--{}", flag.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule about a flag that was renamed would be a panic, or say nothing.
    #[test]
    fn every_rule_is_about_flags_and_values_that_exist() {
        for rule in RULES {
            let mut command = crate::cli::command();
            for name in rule.command {
                command = command.find_subcommand(name).expect(name).clone();
            }
            let find = |flag: &str| {
                let args = &mut command.get_arguments();
                args.find(|arg| arg.get_id() == flag).unwrap_or_else(|| panic!("{flag}")).clone()
            };
            let long = |flag: &str| assert_eq!(find(flag).get_long(), Some(&dashed(flag)[2..]));
            long(rule.flag);
            match rule.needs {
                Need::Value(flag, wanted) => {
                    long(flag);
                    let values = find(flag).get_possible_values();
                    assert!(values.iter().any(|value| value.matches(wanted, false)), "{wanted}");
                }
                Need::AnyOf(flags) => flags.iter().for_each(|flag| long(flag)),
                Need::File(flag) => long(flag),
            }
        }
    }
}
