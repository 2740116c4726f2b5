//! The folders that a client exposes to its server as roots.
//!
//! A server resolves relative paths from its roots. With a root inside our state, `key` names a key
//! file, and a call that uses it looks like any other. So such a root is not passed on. A root
//! above our files, such as the home folder, is fine: paths below it still name them.

use tapegate_core::frame::lenient_key_match;
use tapegate_core::json::{JsonFault, children};

use super::OwnFiles;
use super::strings::{TextKind, each_string};

/// How deep roots are searched for: in a response, or in the responses that a request carries.
const DEPTH_MAX: usize = 8;

impl OwnFiles {
    /// The name by which a root in a client's response is, or is inside, one of our files and
    /// folders.
    pub(crate) fn named_by_roots(&self, answer: Option<&[u8]>) -> Option<String> {
        let answer = answer.filter(|_| self.refuse)?;
        let mut found = None;
        let mut look = |text: &str, kind: TextKind| {
            let may_be_path =
                matches!(kind, TextKind::Path | TextKind::Url) || text.contains(['/', '\\', '%']);
            if found.is_none() && may_be_path {
                // A path inside the root is checked: it is ours only if the root itself is, not if
                // the root is above.
                let inside = format!("{}/root", text.trim().trim_end_matches(['/', '\\']));
                found = self.file_named_in(&inside, TextKind::Path);
            }
        };
        // Invalid JSON is refused because of its form.
        for_each_roots(answer, 0, &mut |roots| each_string(roots, &mut look)).ok();
        found
    }
}

/// Calls `take` with the value of every member `roots`.
fn for_each_roots(
    value: &[u8],
    depth: usize,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(), JsonFault> {
    if depth == DEPTH_MAX {
        return Ok(());
    }
    for child in children(value) {
        let (key, child) = child?;
        match key.is_some_and(|key| lenient_key_match(key, &["roots"]).is_some()) {
            true => take(child),
            false => for_each_roots(child, depth + 1, take)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_in_our_folders_is_found_and_one_above_them_is_not() {
        let mut own = OwnFiles::default();
        own.add("/opt/keys/tapegate");
        let named = |uri: &str| {
            let result = format!(r#"{{"roots":[{{"uri":"file:///srv/x"}},{{"uri":{uri:?}}}]}}"#);
            let nested = format!(r#"{{"inputResponses":{{"r":{result}}}}}"#);
            let found = own.named_by_roots(Some(result.as_bytes()));
            assert_eq!(found, own.named_by_roots(Some(nested.as_bytes())), "{uri}");
            found
        };
        for uri in [
            "file:///home/u/.local/state/tapegate",
            "file:///home/u/.local/state/tapegate/private/",
            "file:///home/u/.local/state/x/../tapegate/private/abc",
            "file:///proj/.tapegate",
            "/proj/.tapegate/",
            "file:///opt/keys/tapegate",
            "file:///opt/keys/%74apegate/private",
            "file:///home/u/.config/tapegate?x",
        ] {
            assert!(named(uri).is_some(), "{uri}");
        }
        for uri in [
            "file:///home/u",
            "file:///home/u/",
            "file:///home/u/.local",
            "file:///home/u/.local/state",
            "file:///opt/keys",
            "file:///",
            "file:///proj",
            "file:///src/tapegate",
        ] {
            assert_eq!(named(uri), None, "{uri}");
        }
        let lifted = OwnFiles { refuse: false, ..OwnFiles::default() };
        assert_eq!(lifted.named_by_roots(Some(br#"{"roots":["/p/.tapegate"]}"#)), None);
        for broken in ["", "{", r#"{"roots":"#, "[]", "5"] {
            assert_eq!(own.named_by_roots(Some(broken.as_bytes())), None, "{broken}");
        }
    }
}
