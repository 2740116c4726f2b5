//! The keys of one line of a tape, taken one by one; the remaining ones are unknown to us.

use std::borrow::Cow;

use super::line::{EntryTime, LineFault};
use crate::json::{self, Cursor, JsonKind, JsonStr};
use crate::side::Side;

/// The members of a line that have not been taken yet, in file order.
pub(super) struct LineKeys<'a>(Vec<(JsonStr<'a>, &'a [u8])>);

impl<'a> LineKeys<'a> {
    pub(super) fn read(text: &'a [u8]) -> Result<Self, LineFault> {
        let mut cursor = Cursor::new(text)?;
        let mut members = Vec::with_capacity(8);
        if cursor.kind()? != JsonKind::Object {
            // Read to its end all the same, so that broken JSON is reported as such.
            cursor.value()?;
            cursor.expect_end()?;
            return Err(LineFault::NotAnEntry("not an object".to_owned()));
        }
        cursor.open()?;
        while let Some(key) = cursor.next_key()? {
            members.push((key, cursor.value()?));
        }
        cursor.expect_end()?;
        Ok(Self(members))
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key.is(name))
    }

    pub(super) fn take(&mut self, name: &str) -> Option<&'a [u8]> {
        let at = self.0.iter().position(|(key, _)| key.is(name))?;
        Some(self.0.remove(at).1)
    }

    pub(super) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.0.iter().find(|(key, _)| key.is(name)).and_then(|(_, value)| json::string(value))
    }

    pub(super) fn take_string(&mut self, name: &str) -> Option<Cow<'a, str>> {
        // A value of another type is not taken, and so is kept among the unknown keys.
        let text = self.string(name)?;
        self.take(name);
        Some(text)
    }

    /// Takes a key if it has exactly this value; any other value is kept as unknown.
    pub(super) fn take_if(&mut self, name: &str, value: &[u8]) -> bool {
        let is = self.0.iter().find(|(key, _)| key.is(name)).is_some_and(|(_, v)| *v == value);
        is && self.take(name).is_some()
    }

    pub(super) fn number(&mut self, name: &'static str) -> Result<Option<u64>, LineFault> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        number.map(Some).ok_or(LineFault::Key { key: name, fault: "is not a whole number from 0" })
    }

    /// Takes a list of strings; an empty list, or one with other values, is left in place.
    pub(super) fn strings(&mut self, name: &str) -> Vec<String> {
        let found = self.0.iter().find(|(key, _)| key.is(name));
        let items = found.map(|(_, array)| crate::frame::array_items(array)).unwrap_or_default();
        let texts: Option<Vec<String>> =
            items.into_iter().map(|item| json::string(item).map(Cow::into_owned)).collect();
        // A list that is not understood stays, so that writing the line again keeps it (invariant
        // 9).
        let texts = texts.unwrap_or_default();
        if !texts.is_empty() {
            self.take(name);
        }
        texts
    }

    pub(super) fn stamp(&mut self) -> Result<EntryTime<'a>, LineFault> {
        let missing = LineFault::Key { key: "ts", fault: "is missing" };
        let text = self.take("ts").ok_or(missing)?;
        let text = std::str::from_utf8(text).unwrap_or_default();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inner.map(EntryTime::Text).ok_or(LineFault::Key { key: "ts", fault: "is not a string" })
    }

    pub(super) fn side(&mut self, name: &'static str) -> Result<Side, LineFault> {
        match (name, self.take_string(name).as_deref()) {
            ("dir", Some("c2s")) | ("direction", Some("client_to_server")) => Ok(Side::Client),
            ("dir", Some("s2c")) | ("direction", Some("server_to_client")) => Ok(Side::Server),
            ("dir", _) => Err(LineFault::Key { key: "dir", fault: "is neither `c2s` nor `s2c`" }),
            _ => Err(LineFault::Key {
                key: "direction",
                fault: "is neither `client_to_server` nor `server_to_client`",
            }),
        }
    }

    pub(super) fn rest(self) -> Vec<u8> {
        let mut extra = Vec::new();
        for (key, value) in self.0 {
            extra.extend_from_slice(b",\"");
            // The raw text, so that a line that is read and written again is the same (invariant
            // 9).
            extra.extend_from_slice(key.raw);
            extra.extend_from_slice(b"\":");
            extra.extend_from_slice(value);
        }
        extra
    }

    pub(super) fn names(&self) -> String {
        if self.0.is_empty() {
            return "an object with no keys".to_owned();
        }
        let names: Vec<_> = self.0.iter().map(|(key, _)| format!("`{}`", key.decode())).collect();
        format!("an object with the keys {}", names.join(", "))
    }
}
