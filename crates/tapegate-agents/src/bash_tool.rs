//! Entries that start our bash tool, which applies a policy by itself.

use crate::entry::{ServerEntry, ServerTarget, is_own_program};

/// Which policy a bash tool applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BashToolPolicy {
    /// It does not start without one.
    Required,
    /// The one that it finds where it is started; without one, it only records.
    Found,
    /// None.
    Off,
}

/// The policy of an entry that starts the bash tool; `None` if it starts something else.
pub fn policy_of(entry: &ServerEntry) -> Option<BashToolPolicy> {
    let ServerTarget::Command(argv) = &entry.target else { return None };
    let is_tool = |words: &[String]| words[1] == "bash" && is_own_program(&words[0]);
    let at = argv.windows(2).position(is_tool)?;
    let has = |flags: &[&str]| {
        argv[at + 2..].iter().any(|word| {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            flags.contains(&name)
        })
    };
    Some(if has(&["--no-policy"]) {
        BashToolPolicy::Off
    } else if has(&["--policy", "-p", "--require-policy"]) {
        BashToolPolicy::Required
    } else {
        BashToolPolicy::Found
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{ConfigFormat, ConfigNode};

    #[test]
    fn the_policy_of_a_bash_tool_is_on_its_command_line() {
        let policy = |line: &str| {
            let argv = line.split(' ').map(|word| format!("{word:?}")).collect::<Vec<_>>();
            let text = format!("{{\"command\":[{}]}}", argv.join(","));
            let tree = ConfigNode::read(&text, ConfigFormat::Json).unwrap();
            policy_of(&ServerEntry::read(&tree).unwrap())
        };
        for (line, expected) in [
            ("tapegate bash", Some(BashToolPolicy::Found)),
            ("/opt/tapegate bash --config settings.yml", Some(BashToolPolicy::Found)),
            ("tapegate bash --policy commands.yml", Some(BashToolPolicy::Required)),
            ("env A=1 tapegate bash --policy=commands.yml", Some(BashToolPolicy::Required)),
            ("tapegate bash -p commands.yml", Some(BashToolPolicy::Required)),
            ("tapegate bash --require-policy", Some(BashToolPolicy::Required)),
            ("tapegate bash --no-policy", Some(BashToolPolicy::Off)),
            ("bash tapegate", None),
            ("tapegate record -- bash", None),
        ] {
            assert_eq!(policy(line), expected, "{line}");
        }
    }
}
