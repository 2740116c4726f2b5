//! Flags that have an effect only with another flag, or with certain values of it.
//!
//! Accepting a flag that does nothing misleads the user who passes it. Clap's `requires` and
//! `conflicts_with` check only whether a flag is present. This table checks values, whether given
//! or by default, and is the only place for such rules. It is checked after parsing.
//!
//! Terminal preferences (`--color`, `--no-pager`) are left out because users put them into aliases.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::exit::{Exit, Failure};

/// One such flag, by its clap ids.
struct FlagRule {
    /// The command, preceded by its parent commands.
    command: &'static [&'static str],
    flag: &'static str,
    needs: FlagCondition,
}

/// The condition under which a flag has an effect.
enum FlagCondition {
    /// Another flag has this value.
    Value(&'static str, &'static str),
    /// Any of these flags is given.
    AnyOf(&'static [&'static str]),
    /// This flag names a file, not standard output.
    File(&'static str),
}

const fn rule(
    command: &'static [&'static str],
    flag: &'static str,
    needs: FlagCondition,
) -> FlagRule {
    FlagRule { command, flag, needs }
}

const RULES: &[FlagRule] = &[
    rule(&["replay"], "fuzzy_threshold", FlagCondition::Value("match_mode", "fuzzy")),
    rule(&["replay"], "strict_params", FlagCondition::Value("match_mode", "sequential")),
    // Only requests from the server are replied to.
    rule(&["replay"], "strict_replies", FlagCondition::Value("server_messages", "all")),
    rule(&["verify"], "details", FlagCondition::Value("format", "text")),
    rule(&["show"], "full", FlagCondition::Value("format", "text")),
    rule(&["convert"], "phase_after", FlagCondition::Value("style", "phased")),
    rule(&["convert"], "force", FlagCondition::File("output")),
    rule(&["policy", "generate"], "force", FlagCondition::AnyOf(&["output", "cedar"])),
];

/// Rejects a flag that cannot have an effect on this command line.
pub(super) fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let mut path = Vec::new();
    let mut innermost = matches;
    while let Some((name, inner)) = innermost.subcommand() {
        path.push(name);
        innermost = inner;
    }
    let of_command = RULES.iter().filter(|rule| rule.command == path);
    for rule in of_command.filter(|rule| is_given(innermost, rule.flag)) {
        let Some(needed) = rule.needs.unmet_reason(innermost) else { continue };
        let flag = dashed(rule.flag);
        let message = format!("{flag} has no effect without {needed}");
        let hint = format!("add {needed}, or leave out {flag}");
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    Ok(())
}

impl FlagCondition {
    /// Describes the missing flag or value, or `None` if the condition is met.
    fn unmet_reason(&self, matches: &ArgMatches) -> Option<String> {
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

    /// A rule for a flag that was renamed would panic, or never apply.
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
                FlagCondition::Value(flag, wanted) => {
                    long(flag);
                    let values = find(flag).get_possible_values();
                    assert!(values.iter().any(|value| value.matches(wanted, false)), "{wanted}");
                }
                FlagCondition::AnyOf(flags) => flags.iter().for_each(|flag| long(flag)),
                FlagCondition::File(flag) => long(flag),
            }
        }
    }
}
