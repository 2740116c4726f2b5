//! Backups of ThoughtGate, whose sessions Tapegate can end as well.
//!
//! It writes the whole config again, in its own layout, and marks what it has written. If the config
//! has no other changes, the bytes of its backup are the original.

use crate::entry::{ServerEntry, ServerTarget};
use crate::rewrite::is_target_key;
use crate::tree::{ConfigFormat, ConfigMember, ConfigNode, ConfigValue};

/// What is added to the name of a config for its backup.
pub(super) const BACKUP: &str = ".thoughtgate-backup";
/// What is added to the name of a config for its lock.
pub(super) const LOCK: &str = ".thoughtgate-lock";
/// Keys that it adds.
const MARKS: [&str; 2] = ["THOUGHTGATE_SERVER_ID", "__thoughtgate_managed"];

/// Whether a config differs from its original only by what ThoughtGate does.
pub(super) fn is_only_rewritten(original: &str, current: &str, format: ConfigFormat) -> bool {
    let read = |text| ConfigNode::read(text, format);
    matches!((read(original), read(current)), (Ok(was), Ok(now)) if is_same(&was, &now))
}

fn is_same(was: &ConfigNode, now: &ConfigNode) -> bool {
    if let (Ok(own), Ok(shim)) = (ServerEntry::read(was), ServerEntry::read(now))
        && shim.is_governed
        && !own.is_governed
    {
        return is_shim_of(&own, &shim) && has_same_members(was, now, is_target_key);
    }
    match (&was.value, &now.value) {
        (ConfigValue::Map(_), ConfigValue::Map(_)) => has_same_members(was, now, |_| false),
        (ConfigValue::List(own), ConfigValue::List(others)) => {
            own.len() == others.len() && own.iter().zip(others).all(|(a, b)| is_same(a, b))
        }
        _ => was.is_same(now),
    }
}

fn is_shim_of(was: &ServerEntry, now: &ServerEntry) -> bool {
    let (ServerTarget::Command(argv), ServerTarget::Command(words)) = (&was.target, &now.target)
    else {
        return false;
    };
    let end = words.iter().position(|word| word == "--");
    end.is_some_and(|end| words[end + 1..] == argv[..])
}

/// Whether two maps have the same members, in any order, but for these keys and the marks.
fn has_same_members(was: &ConfigNode, now: &ConfigNode, is_left_out: fn(&str) -> bool) -> bool {
    let is_mark = |member: &ConfigMember| MARKS.contains(&member.key.as_str());
    let is_counted = |member: &&ConfigMember| {
        let inner = member.node.members();
        let is_added = !inner.is_empty() && inner.iter().all(is_mark);
        !is_mark(member) && !is_added && !is_left_out(&member.key)
    };
    let count = |node: &ConfigNode| node.members().iter().filter(is_counted).count();
    let mut own = was.members().iter().filter(is_counted);
    count(was) == count(now)
        && own.all(|member| now.get(&member.key).is_some_and(|now| is_same(&member.node, now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: &str =
        r#"{"theme":1,"mcpServers":{"s":{"command":"npx","args":["-y","x"],"env":{"A":"1"}}}}"#;

    #[test]
    fn what_thoughtgate_has_written_is_told_from_other_changes() {
        let written = r#"{"__thoughtgate_managed":true,"mcpServers":{"s":{"args":["shim",
            "--server-id","s","--","npx","-y","x"],"command":"/opt/thoughtgate",
            "env":{"A":"1","THOUGHTGATE_SERVER_ID":"s"}}},"theme":1}"#;
        let is = |current: &str| is_only_rewritten(ORIGINAL, current, ConfigFormat::Json);
        assert!(is(written));
        assert!(is(ORIGINAL));
        assert!(!is(&written.replace("\"theme\":1", "\"theme\":2")));
        assert!(!is(&written.replace("\"A\":\"1\"", "\"A\":\"2\"")));
        assert!(!is(&written.replace("\"-y\",\"x\"", "\"-y\",\"z\"")));
        assert!(!is(&written.replace("\"theme\":1", "\"theme\":1,\"new\":{}")));
    }
}
