//! Writes JSON member by member.

use tapegate_core::json::diff::{JsonDifferences, ValueChange};
use tapegate_core::json::{compact, write_str};

use super::json_sanitizer::sanitize_json;

/// Writes JSON member by member, each on its own line.
#[derive(Debug, Default)]
pub(crate) struct JsonWriter {
    out: Vec<u8>,
    depth: usize,
    /// Whether the open object or list already has content.
    filled: bool,
}

impl JsonWriter {
    /// An object as the top-level value.
    pub(crate) fn object(then: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut writer = Self::default();
        writer.write_nested(*b"{}", then);
        writer.out
    }

    /// An object indented for this depth of a larger value.
    pub(crate) fn item(depth: usize, then: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut writer = Self { depth, ..Self::default() };
        writer.write_nested(*b"{}", then);
        writer.out
    }

    /// A list of objects, on one line.
    pub(crate) fn line_of<T>(
        items: impl IntoIterator<Item = T>,
        each: impl FnMut(&mut Self, T),
    ) -> Vec<u8> {
        let mut writer = Self::default();
        writer.items(items, each);
        compact(&writer.out).into_owned()
    }

    /// Writes a string member.
    pub(crate) fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        write_str(&mut self.out, text);
    }

    /// Writes a number member.
    pub(crate) fn number(&mut self, key: &str, number: u64) {
        self.raw(key, number.to_string().as_bytes());
    }

    /// Writes a member that is a list of strings, on one line.
    pub(crate) fn texts(&mut self, key: &str, texts: &[String]) {
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| quoted(text)).collect();
        self.raw(key, &[b"[", texts.join(&b","[..]).as_slice(), b"]"].concat());
    }

    /// Writes a member that is already JSON, on one line; invalid JSON becomes a string.
    pub(crate) fn raw(&mut self, key: &str, json: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(&sanitize_json(json));
    }

    /// Writes a member that is an object.
    pub(crate) fn object_member(&mut self, key: &str, then: impl FnOnce(&mut Self)) {
        self.key(key);
        self.write_nested(*b"{}", then);
    }

    /// Writes a member that is a list of objects.
    pub(crate) fn list<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        each: impl FnMut(&mut Self, T),
    ) {
        self.key(key);
        self.items(items, each);
    }

    /// Writes a member that is a list of objects made by [`JsonWriter::item`].
    pub(crate) fn raw_list(&mut self, key: &str, items: &[&[u8]]) {
        self.key(key);
        self.write_nested(*b"[]", |list| {
            for item in items {
                list.next();
                list.out.extend_from_slice(item);
            }
        });
    }

    fn items<T>(&mut self, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        self.write_nested(*b"[]", |list| {
            for item in items {
                list.next();
                list.write_nested(*b"{}", |object| each(object, item));
            }
        });
    }

    fn key(&mut self, key: &str) {
        self.next();
        write_str(&mut self.out, key);
        self.out.extend_from_slice(b": ");
    }

    fn next(&mut self) {
        if self.filled {
            self.out.push(b',');
        }
        self.filled = true;
        self.new_line();
    }

    fn write_nested(&mut self, [open, close]: [u8; 2], then: impl FnOnce(&mut Self)) {
        self.out.push(open);
        self.depth += 1;
        self.filled = false;
        then(self);
        self.depth -= 1;
        if self.filled {
            self.new_line();
        }
        self.out.push(close);
        self.filled = true;
    }

    fn new_line(&mut self) {
        self.out.push(b'\n');
        self.out.extend((0..self.depth).flat_map(|_| *b"  "));
    }
}

/// Encodes text as a JSON string.
pub(crate) fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_str(&mut out, text);
    out
}

/// The elements of an array as written; empty for anything else.
pub(crate) fn elements(array: &[u8]) -> Vec<&[u8]> {
    // A truncated file is not a report; its reader will notice.
    tapegate_core::json::elements(array).flatten().collect()
}

/// The differences as facts of a case: keys with JSON values.
pub(crate) fn differences(differences: &JsonDifferences<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let list = JsonWriter::line_of(&differences.listed, |json, difference| {
        json.text("path", &difference.location.to_string());
        let (kind, old, new) = match difference.change {
            ValueChange::Added(new) => ("added", None, Some(new)),
            ValueChange::Removed(old) => ("removed", Some(old), None),
            ValueChange::Value { old, new } => ("changed", Some(old), Some(new)),
            ValueChange::Kind { old, new } => ("type", Some(old), Some(new)),
        };
        json.text("kind", kind);
        old.into_iter().for_each(|old| json.raw("old", old));
        new.into_iter().for_each(|new| json.raw("new", new));
    });
    let more = (differences.more > 0).then(|| differences.more.to_string().into_bytes());
    let more = more.map(|more| ("differences_more", more));
    std::iter::once(("differences", list)).chain(more).collect()
}
