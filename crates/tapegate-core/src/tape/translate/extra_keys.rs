//! The unknown keys of a line.

use crate::json;

/// The unknown keys of a line, which can be removed and added.
pub(super) struct ExtraKeys {
    members: Vec<(Vec<u8>, Vec<u8>)>,
}

impl ExtraKeys {
    pub(super) fn of(extra: &[u8]) -> Self {
        let whole = object(extra);
        // It was read as part of a line, so it is JSON.
        let members = json::members(&whole).flatten();
        Self { members: members.map(|(key, value)| (key.raw.to_vec(), value.to_vec())).collect() }
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Vec<u8>> {
        let index = self.members.iter().position(|(name, _)| name == key.as_bytes())?;
        Some(self.members.remove(index).1)
    }

    pub(super) fn put(&mut self, key: &str, value: &[u8]) {
        self.members.push((key.as_bytes().to_vec(), value.to_vec()));
    }

    pub(super) fn text(&self) -> Vec<u8> {
        let member = |(key, value): &(Vec<u8>, Vec<u8>)| {
            [b",\"", key.as_slice(), b"\":", value.as_slice()].concat()
        };
        self.members.iter().flat_map(member).collect()
    }
}

/// Unknown keys as an object.
pub(super) fn object(extra: &[u8]) -> Vec<u8> {
    [b"{", extra.strip_prefix(b",").unwrap_or(extra), b"}"].concat()
}

/// Parses a non-negative integer.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
