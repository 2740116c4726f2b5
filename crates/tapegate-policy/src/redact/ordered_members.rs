//! The optional members of a tape line.

use tapegate_core::json::{Cursor, JsonFault};

/// Members in file order, with decoded keys and raw values.
pub(super) struct OrderedMembers(pub(super) Vec<(String, Vec<u8>)>);

impl OrderedMembers {
    /// Parses `,"key":value` text, as tape lines keep it in `extra`.
    pub(super) fn read(extra: &[u8]) -> Result<Self, JsonFault> {
        let body = extra.strip_prefix(b",").unwrap_or(extra);
        Self::read_object(&[b"{", body, b"}"].concat())
    }

    /// Parses the members of an object.
    pub(super) fn read_object(text: &[u8]) -> Result<Self, JsonFault> {
        let mut members = Vec::new();
        let mut cursor = Cursor::new(text)?;
        let mut first = true;
        cursor.open()?;
        while let Some(key) = cursor.key(&mut first)? {
            members.push((key.decode().into_owned(), cursor.value()?.to_vec()));
        }
        cursor.expect_end()?;
        Ok(Self(members))
    }

    /// The value of the first member with this name.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_slice())
    }
}
