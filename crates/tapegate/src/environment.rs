//! The environment variables: their part of the help, and the detection of misspelt names.
//! `docs/environment.md` lists all variables, and a test checks both lists against the code.

use std::ffi::OsString;

use tapegate_yaml::shape::nearest_name_within;

use crate::exit::{Exit, Failure};
use crate::terminal_output;
use crate::views::visible_text;

/// The part of the help that lists variables.
pub(crate) const HELP: &str = "\
Environment variables (flags win; docs/environment.md lists all):
  TAPEGATE_HOME                  the user's state folder [default: ~/.local/state/tapegate]
  TAPEGATE_CONFIG                the policy, as --config
  TAPEGATE_PROFILE               production or development, as --profile
  TAPEGATE_REQUIRE_POLICY        1: refuse to start without a policy, as --require-policy
  TAPEGATE_SERVER_ID             the server's name, as --server-id
  TAPEGATE_GOVERNANCE_ENDPOINT   the hub to join, as --governance-endpoint
  TAPEGATE_TOKEN_FILE            the shims' token of the hub, as --token-file
  TAPEGATE_APPROVER_TOKEN_FILE   the approvers' token of the hub, as --approver-token-file
  TAPEGATE_LOG                   error, warn, info, debug or trace, as --log-level
  TAPEGATE_MAX_TOOLS, ...        limits for scenarios
  NO_COLOR, CLICOLOR_FORCE, COLUMNS, PAGER, TZ   how output looks";

/// The variables that decide what is governed, by which policy, and by whom.
const GOVERNING: [&str; 12] = [
    "TAPEGATE_HOME",
    "TAPEGATE_CONFIG",
    "TAPEGATE_PROFILE",
    "TAPEGATE_REQUIRE_POLICY",
    "TAPEGATE_SERVER_ID",
    "TAPEGATE_GOVERNANCE_ENDPOINT",
    "TAPEGATE_TOKEN_FILE",
    "TAPEGATE_APPROVER_TOKEN_FILE",
    "THOUGHTGATE_CONFIG",
    "THOUGHTGATE_PROFILE",
    "THOUGHTGATE_SERVER_ID",
    "THOUGHTGATE_GOVERNANCE_ENDPOINT",
];

/// Our other variables.
const OTHERS: [&str; 13] = [
    "TAPEGATE_LOG",
    "TAPEGATE_BEHIND_SHIM",
    "TAPEGATE_ACTIVE",
    "THOUGHTGATE_ACTIVE",
    "TAPEGATE_MAX_PHASES",
    "TAPEGATE_MAX_TOOLS",
    "TAPEGATE_MAX_RESOURCES",
    "TAPEGATE_MAX_PROMPTS",
    "TAPEGATE_MAX_INCLUDE_DEPTH",
    "TAPEGATE_MAX_CONFIG_BYTES",
    "TAPEGATE_MAX_PAYLOAD_BYTES",
    "TAPEGATE_MAX_NEST_DEPTH",
    "TAPEGATE_MAX_BATCH_SIZE",
];

/// The prefix of all our variables. ThoughtGate has many that mean nothing here, so its names are
/// only checked for similarity to ours.
const PREFIX: &str = "TAPEGATE_";
/// The maximum edit distance of a misspelt name.
const DISTANCE_MAX: usize = 2;

/// A variable that looks like one of ours but is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownVariable {
    name: String,
    /// The variable that was probably meant.
    meant: Option<&'static str>,
}

impl UnknownVariable {
    /// Whether the intended variable decides what is governed: without it, less may be.
    pub(crate) fn is_governing(&self) -> bool {
        self.meant.is_some_and(|meant| GOVERNING.contains(&meant))
    }

    /// The warning about it.
    pub(crate) fn warning_text(&self) -> String {
        let name = visible_text::inline(&self.name, 100);
        match self.meant {
            Some(meant) => {
                format!("the variable `{name}` is not known; did you mean `{meant}`?")
            }
            None => {
                format!(
                    "the variable `{name}` is not known; docs/environment.md lists those that are"
                )
            }
        }
    }

    fn failure(&self) -> Failure {
        Failure::new(Exit::Usage, self.warning_text())
            .hint("correct it, or unset it; a session does not start with an unknown setting")
    }
}

/// The unknown variables among these. An empty variable counts as unset.
pub(crate) fn unknown(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<UnknownVariable> {
    let named = variables.filter(|(_, value)| !value.is_empty());
    let mut found: Vec<UnknownVariable> =
        named.filter_map(|(name, _)| find_misspelled(&name.to_string_lossy())).collect();
    found.sort_by(|one, two| one.name.cmp(&two.name));
    found
}

/// Warns of unknown variables on standard error.
pub(crate) fn warn_of_unknown() {
    for variable in unknown(std::env::vars_os()) {
        terminal_output::warn(&variable.warning_text());
    }
}

/// Fails if a variable that decides what is governed is misspelt.
pub(crate) fn require_known(unknown: &[UnknownVariable]) -> Result<(), Failure> {
    match unknown.iter().find(|variable| variable.is_governing()) {
        Some(variable) => Err(variable.failure()),
        None => Ok(()),
    }
}

fn find_misspelled(name: &str) -> Option<UnknownVariable> {
    let known = || GOVERNING.iter().chain(&OTHERS).copied();
    if known().any(|known| known == name) {
        return None;
    }
    let meant = nearest_name_within(DISTANCE_MAX, name, known()).or_else(|| {
        // The same words in another order: `TAPEGATE_POLICY_REQUIRED`.
        let sorted_name = sorted(name);
        known().find(|known| {
            nearest_name_within(DISTANCE_MAX, &sorted_name, [&*sorted(known)]).is_some()
        })
    });
    // Names are case-sensitive, so `tapegate_profile` has no effect; its author should know.
    let is_ours = name.to_ascii_uppercase().starts_with(PREFIX);
    (is_ours || meant.is_some()).then(|| UnknownVariable { name: name.to_owned(), meant })
}

/// A name with its words in alphabetical order.
fn sorted(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    let mut words: Vec<&str> = upper.split(['_', '-']).collect();
    words.sort_unstable();
    words.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(name: &str) -> Option<Option<&'static str>> {
        let found = unknown([(name.into(), "1".into())].into_iter());
        found.first().map(|variable| variable.meant)
    }

    #[test]
    fn a_name_that_is_nearly_one_of_ours_is_told_from_others() {
        for (name, wanted) in [
            ("TAPEGATE_REQIRE_POLICY", "TAPEGATE_REQUIRE_POLICY"),
            ("TAPEGATE_POLICY_REQUIRED", "TAPEGATE_REQUIRE_POLICY"),
            ("tapegate_require_policy", "TAPEGATE_REQUIRE_POLICY"),
            ("TAPGATE_PROFILE", "TAPEGATE_PROFILE"),
            ("TAPEGATE-PROFILE", "TAPEGATE_PROFILE"),
            ("THOUGHTGATE_PROFIL", "THOUGHTGATE_PROFILE"),
            ("TAPEGATE_MAX_TOOL", "TAPEGATE_MAX_TOOLS"),
        ] {
            assert_eq!(meant(name), Some(Some(wanted)), "{name}");
        }
        assert_eq!(meant("TAPEGATE_POLICY"), Some(None));
        for name in GOVERNING.iter().chain(&OTHERS) {
            assert_eq!(meant(name), None, "{name}");
        }
        for name in ["HOME", "PATH", "THOUGHTGATE_LISTEN", "X", "XDG_STATE_HOME", "ACTIVE"] {
            assert_eq!(meant(name), None, "{name}");
        }
        assert_eq!(unknown([("TAPEGATE_X".into(), "".into())].into_iter()), []);
    }

    #[test]
    fn only_a_variable_that_decides_what_is_governed_stops_a_start() {
        let one = |name: &str| unknown([(name.into(), "1".into())].into_iter());
        assert!(require_known(&one("TAPEGATE_REQIRE_POLICY")).is_err());
        assert!(require_known(&one("TAPEGATE_MAX_TOOL")).is_ok());
        assert!(require_known(&one("TAPEGATE_SOMETHING")).is_ok());
    }
}
