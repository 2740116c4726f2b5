//! Which calls a grant with argument patterns covers.
//!
//! A grant covers calls that equal the approved one, except in the arguments that have a pattern.
//! Those are tested as a rule with `action: forward` tests them: exactly as they are written.

use tapegate_core::grant_pattern::{ArgumentRange, GrantPattern};
use tapegate_core::json::path::JsonPath;
use tapegate_core::json::{JsonKind, member, members, write_str};
use tapegate_core::lenient::folder::FolderPath;

use crate::approval_channel::call_hash;
use crate::decide::ApprovalScope;
use crate::glob::Glob;
use crate::predicate::{Predicate, ValueTest};

/// A call that a grant may cover.
#[derive(Debug, Clone, Copy)]
pub struct GrantedCall<'a> {
    pub method: &'a str,
    /// The raw JSON of the whole `params`.
    pub params: &'a [u8],
    /// What its approval is for.
    pub scope: ApprovalScope<'a>,
}

impl GrantedCall<'_> {
    /// The hash shared by all calls that differ from this one only in these arguments; `None` if
    /// the call does not have one of them.
    pub fn hash_without(&self, patterns: &[GrantPattern]) -> Option<String> {
        let arguments = member(self.params, "arguments")?;
        let mut rest = b"{".to_vec();
        let mut found = 0;
        for entry in members(arguments) {
            let (key, value) = entry.ok()?;
            let key = key.decode();
            if patterns.iter().any(|pattern| pattern.argument == key) {
                found += 1;
                continue;
            }
            push_member(&mut rest, &key, value);
        }
        rest.push(b'}');
        // Twice the same key would count twice, so such a call is covered by no pattern.
        if found != patterns.len() {
            return None;
        }
        let mut params = b"{".to_vec();
        for entry in members(self.params) {
            let (key, value) = entry.ok()?;
            let key = key.decode();
            push_member(&mut params, &key, if key == "arguments" { &rest } else { value });
        }
        params.push(b'}');
        // The names are part of the hash: without them, a call that lacks an argument would be the
        // same as one whose argument has a pattern.
        let names: Vec<&str> = patterns.iter().map(|pattern| pattern.argument.as_str()).collect();
        let method = format!("{} without {}", self.method, names.join("\n"));
        Some(call_hash(&method, Some(&params), self.scope))
    }

    /// Whether the arguments with a pattern have values that it permits.
    pub fn has_values_of(&self, patterns: &[GrantPattern]) -> bool {
        let Some(arguments) = member(self.params, "arguments") else { return false };
        patterns
            .iter()
            .all(|pattern| predicate(pattern).is_ok_and(|predicate| predicate.must_hold(arguments)))
    }

    /// Whether a grant with these patterns, whose approved call had this hash, covers the call.
    pub fn is_covered(&self, patterns: &[GrantPattern], hash: &str) -> bool {
        self.has_values_of(patterns) && self.hash_without(patterns).is_some_and(|own| own == hash)
    }
}

/// Checks a pattern; the error says what is wrong with it.
pub fn check_pattern(pattern: &GrantPattern) -> Result<(), String> {
    predicate(pattern).map(drop)
}

fn predicate(pattern: &GrantPattern) -> Result<Predicate, String> {
    let name = pattern.argument.as_str();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    // Only arguments themselves: the rest of the call is compared without them.
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("`{}` is not the name of an argument", name.escape_debug()));
    }
    let path = JsonPath::read(name).map_err(|fault| fault.what.to_string())?;
    let test = match &pattern.range {
        ArgumentRange::Under(folder) => ValueTest::Under(vec![FolderPath::parse(folder)?]),
        ArgumentRange::Matching(glob) => ValueTest::Glob(Glob::parse(glob)?),
    };
    Ok(Predicate::new(path, name.to_owned(), test, false))
}

fn push_member(object: &mut Vec<u8>, key: &str, value: &[u8]) {
    if object.len() > 1 {
        object.push(b',');
    }
    write_str(object, key);
    object.push(b':');
    object.extend_from_slice(value);
}

/// Whether params have arguments that a pattern could name.
pub fn has_arguments(params: &[u8]) -> bool {
    let arguments = member(params, "arguments");
    arguments.is_some_and(|raw| JsonKind::of(raw).is_ok_and(|kind| kind == JsonKind::Object))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(params: &str) -> GrantedCall<'_> {
        let scope = ApprovalScope { workflow: "default", drift: None };
        GrantedCall { method: "tools/call", params: params.as_bytes(), scope }
    }

    fn under(argument: &str, folder: &str) -> GrantPattern {
        let range = ArgumentRange::Under(folder.to_owned());
        GrantPattern { argument: argument.to_owned(), range }
    }

    const APPROVED: &str = r#"{"name":"write","arguments":{"path":"/srv/a/x","mode":"new"}}"#;

    #[test]
    fn a_grant_covers_calls_that_differ_only_in_what_has_a_pattern() {
        let patterns = [under("path", "/srv/a")];
        let hash = call(APPROVED).hash_without(&patterns).unwrap();
        for (params, expected) in [
            (APPROVED, true),
            (r#"{"arguments":{"mode":"new","path":"/srv/a/b/c"},"name":"write"}"#, true),
            (r#"{"name":"write","arguments":{"path":"/srv/b","mode":"new"}}"#, false),
            (r#"{"name":"write","arguments":{"path":"/srv/a/../b","mode":"new"}}"#, false),
            (r#"{"name":"write","arguments":{"path":"srv/a/x","mode":"new"}}"#, false),
            (r#"{"name":"write","arguments":{"path":"/srv/a/x","mode":"old"}}"#, false),
            (r#"{"name":"write","arguments":{"path":"/srv/a/x","mode":"new","x":1}}"#, false),
            (
                r#"{"name":"write","arguments":{"path":"/srv/a/x","Path":"/etc","mode":"new"}}"#,
                false,
            ),
            (
                r#"{"name":"write","arguments":{"path":"/srv/a/x","path":"/srv/a/y","mode":"new"}}"#,
                false,
            ),
            (r#"{"name":"delete","arguments":{"path":"/srv/a/x","mode":"new"}}"#, false),
            (r#"{"name":"write","arguments":{"mode":"new"}}"#, false),
            (r#"{"name":"write"}"#, false),
            ("not JSON", false),
        ] {
            assert_eq!(call(params).is_covered(&patterns, &hash), expected, "{params}");
        }
        let scope = ApprovalScope { workflow: "default", drift: Some("changed") };
        assert!(!GrantedCall { scope, ..call(APPROVED) }.is_covered(&patterns, &hash));
        let other = GrantedCall { method: "prompts/get", ..call(APPROVED) };
        assert!(!other.is_covered(&patterns, &hash));
    }

    #[test]
    fn a_glob_is_for_texts_as_they_are_written() {
        let range = ArgumentRange::Matching("*.txt".to_owned());
        let patterns = [GrantPattern { argument: "path".to_owned(), range }];
        let text = r#"{"name":"w","arguments":{"path":"a.txt"}}"#;
        let hash = call(text).hash_without(&patterns).unwrap();
        assert!(call(r#"{"name":"w","arguments":{"path":"b.txt"}}"#).is_covered(&patterns, &hash));
        for other in [r#""b.TXT""#, r#""b.txt ""#, r#"["b.txt"]"#, "7"] {
            let params = format!("{{\"name\":\"w\",\"arguments\":{{\"path\":{other}}}}}");
            assert!(!call(&params).is_covered(&patterns, &hash), "{other}");
        }
    }

    #[test]
    fn only_plain_names_and_valid_ranges_are_patterns() {
        assert!(check_pattern(&under("path", "/srv")).is_ok());
        for (name, folder) in [("a.b", "/srv"), ("", "/srv"), ("a[0]", "/srv"), ("path", "srv")] {
            assert!(check_pattern(&under(name, folder)).is_err(), "{name} {folder}");
        }
    }
}
