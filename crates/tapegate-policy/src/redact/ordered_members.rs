//! The optional members of a tape line.

use tapegate_core::json::{JsonFault, whole_object};

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
        let members = whole_object(text)?.into_iter();
        Ok(Self(members.map(|(key, value)| (key.decode().into_owned(), value.to_vec())).collect()))
    }

    /// The value of the first member with this name.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_slice())
    }
}
