//! The arguments that a rule names, and whether a call has others.
//!
//! A test covers only the values at its path, so an argument that no test names goes unchecked. A
//! rule with `other_arguments` matches only if there is none: each key, on every level that a path
//! passes through, must be named exactly, and no string may replace an object or a list.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use tapegate_core::json::path::{JsonPath, StepSelector};
use tapegate_core::json::{self, JsonFault, JsonKind, children};

/// The arguments that a rule names.
#[derive(Debug, Default)]
pub struct KnownArguments {
    root: KnownValue,
    /// The paths as written.
    paths: Vec<String>,
}

/// The permitted children of a value. A value with no entries may contain anything.
#[derive(Debug, Default)]
struct KnownValue {
    keys: BTreeMap<String, KnownValue>,
    /// The value of every other child.
    each: Option<Box<KnownValue>>,
}

impl KnownArguments {
    /// Adds the arguments that a path names.
    pub fn add(&mut self, path: &JsonPath, path_text: &str) {
        let mut value = &mut self.root;
        for step in &path.steps {
            value = match &step.select {
                StepSelector::Key(key) => value.keys.entry(key.clone()).or_default(),
                // A path with an index names the whole list: other elements are not tested, but
                // they are known.
                StepSelector::Index(_) | StepSelector::All => value.each.get_or_insert_default(),
            };
        }
        let text = path_text.to_owned();
        if !self.paths.contains(&text) {
            self.paths.push(text);
        }
    }

    /// Whether the raw JSON of a call's arguments has no others; false if it is not JSON.
    pub(super) fn cover(&self, arguments: &[u8]) -> bool {
        let is_object = arguments.trim_ascii_start().first() == Some(&b'{');
        // A rule that names no arguments applies to calls without any.
        let named = match self.root.is_open() {
            true => is_empty(arguments),
            false => self.root.covers(arguments),
        };
        is_object && named.unwrap_or(false)
    }
}

impl KnownValue {
    fn is_open(&self) -> bool {
        self.keys.is_empty() && self.each.is_none()
    }

    fn covers(&self, value: &[u8]) -> Result<bool, JsonFault> {
        if self.is_open() {
            return Ok(true);
        }
        if !matches!(JsonKind::of(value)?, JsonKind::Object | JsonKind::Array) {
            // A string could hold JSON with further keys, which a server such as FastMCP parses.
            return Ok(value.trim_ascii() == b"null");
        }
        for child in children(value) {
            let (key, child) = child?;
            // Exact, unlike elsewhere: a lookalike of a known key is an argument that no test
            // covers.
            let named = key.and_then(|key| self.keys.get(key.decode().as_ref()));
            match named.or(self.each.as_deref()) {
                Some(known) if known.covers(child)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn is_empty(object: &[u8]) -> Result<bool, JsonFault> {
    let is_object = JsonKind::of(object)? == JsonKind::Object;
    Ok(is_object && json::members(object).next().transpose()?.is_none())
}

impl KnownArguments {
    /// A message for arguments that fail the test.
    pub(crate) fn mismatch_text(&self) -> String {
        match self.paths.is_empty() {
            true => "there are arguments".to_owned(),
            false => format!("there are arguments besides `{}`", self.paths.join("`, `")),
        }
    }
}

impl Display for KnownArguments {
    /// The test, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.paths.is_empty() {
            true => f.write_str("there are no arguments"),
            false => write!(f, "there are no arguments besides `{}`", self.paths.join("`, `")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(paths: &[&str]) -> KnownArguments {
        let mut known = KnownArguments::default();
        for path in paths {
            known.add(&JsonPath::read(path).unwrap(), path);
        }
        known
    }

    #[test]
    fn an_argument_that_is_not_named_is_found_on_every_level() {
        for (paths, good, bad) in [
            (
                &["path"][..],
                &[r#"{"path":"/a"}"#, "{}", r#" {"path":{"any":1}} "#][..],
                &[
                    r#"{"path":"/a","paths":["/b"]}"#,
                    r#"{"Path":"/a"}"#,
                    r#"{"path ":"/a"}"#,
                    r#"["/a"]"#,
                    r#""{}""#,
                    "",
                    "null",
                ][..],
            ),
            (&[], &["{}", "{ }"], &[r#"{"a":1}"#, "[]"]),
            (&["*"], &[r#"{"a":1,"b":2}"#], &["[1]"]),
            (
                &["opts.path", "head"],
                &[r#"{"opts":{"path":"/a"},"head":1}"#, r#"{"opts":null}"#, r#"{"opts":{}}"#],
                &[
                    r#"{"opts":{"path":"/a","cwd":"/b"}}"#,
                    r#"{"opts":"{\"cwd\":1}"}"#,
                    r#"{"opts":[{"path":"/a"}]}"#,
                    r#"{"opts":5}"#,
                ],
            ),
            (
                &["items[*].path"],
                &[r#"{"items":[{"path":"/a"},{}]}"#],
                &[r#"{"items":[{"path":"/a","x":1}]}"#, r#"{"items":["x"]}"#],
            ),
            (&["..path"], &[r#"{"path":1}"#], &[r#"{"a":{"path":1}}"#]),
        ] {
            for arguments in good {
                assert!(named(paths).cover(arguments.as_bytes()), "{paths:?} {arguments}");
            }
            for arguments in bad {
                assert!(!named(paths).cover(arguments.as_bytes()), "{paths:?} {arguments}");
            }
        }
    }
}
