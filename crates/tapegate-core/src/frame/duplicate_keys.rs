//! Detects params that every reader understands in the same way.
//!
//! A gate must know that no member of a call's params occurs twice, even to a lenient reader. For
//! most calls this can be checked during the scan.

use super::envelope::ScanObserver;
use crate::json::{Cursor, JsonFault, JsonKind, JsonStr};

/// The maximum number of members in an object that is checked during the scan.
const FEW: usize = 8;

/// Checks during a scan whether params are plain.
#[derive(Debug, Default)]
pub(super) struct DuplicateKeyCheck {
    /// Which of the usual members of params have occurred, as bits.
    seen: u8,
    odd: bool,
}

impl DuplicateKeyCheck {
    /// Whether the params were plain: each of `name`, `uri`, `arguments` and `_meta` at most once,
    /// and nothing else; those that are objects have few, distinct members without nested values.
    pub(super) fn is_unambiguous(&self) -> bool {
        !self.odd
    }

    fn key(&mut self, key: JsonStr<'_>) {
        let bit = match key.raw {
            b"name" => 1,
            b"arguments" => 2,
            b"_meta" => 4,
            b"uri" => 8,
            _ => 0,
        };
        // Any other member needs the full check, whatever it is.
        self.odd |= bit == 0 || self.seen & bit != 0;
        self.seen |= bit;
    }
}

impl<'a> ScanObserver<'a> for DuplicateKeyCheck {
    fn params_begin(&mut self) {
        // Of repeated params the last count, and `repeated` reports that there were several.
        *self = Self::default();
    }

    fn string(&mut self, key: JsonStr<'a>, _: JsonStr<'a>) {
        self.key(key);
    }

    fn member(&mut self, key: JsonStr<'a>, cursor: &mut Cursor<'a>) -> Result<&'a [u8], JsonFault> {
        self.key(key);
        if cursor.kind()? == JsonKind::Object {
            // A copy, so that a failed attempt leaves the cursor before the value.
            let (start, mut ahead) = (cursor.position(), cursor.clone());
            if matches!(scan_small_object(&mut ahead), Ok(true)) {
                *cursor = ahead;
                return Ok(cursor.slice(start, cursor.position()));
            }
            self.odd = true;
        }
        self.odd |= cursor.kind()? == JsonKind::Array;
        cursor.value()
    }

    fn meta(&mut self, key: JsonStr<'a>, cursor: &Cursor<'a>) {
        self.key(key);
        // The envelope scans `_meta` itself, so only a copy moves here.
        self.odd |= !matches!(scan_small_object(&mut cursor.clone()), Ok(true));
    }

    fn scan_non_object(&mut self, cursor: &mut Cursor<'a>) -> Result<&'a [u8], JsonFault> {
        self.odd = true;
        cursor.value()
    }
}

/// Moves over an object and returns true if its members are few, have distinct plain names and are
/// not objects or arrays; otherwise stops and returns false.
fn scan_small_object(cursor: &mut Cursor<'_>) -> Result<bool, JsonFault> {
    let mut keys: [&[u8]; FEW] = [b""; FEW];
    let mut count = 0;
    cursor.open()?;
    while let Some(key) = cursor.next_key()? {
        let same =
            |other: &&[u8]| other.len() == key.raw.len() && other.eq_ignore_ascii_case(key.raw);
        // Other letters may fold to the same key in some readers, which the full check knows.
        let plain = !key.escaped && key.raw.is_ascii();
        if !plain || count == FEW || keys[..count].iter().any(same) {
            return Ok(false);
        }
        keys[count] = key.raw;
        count += 1;
        if matches!(cursor.kind()?, JsonKind::Object | JsonKind::Array) {
            return Ok(false);
        }
        cursor.value()?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use crate::frame::Frame;

    fn plain(params: &str) -> bool {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let frame = Frame::read(text.as_bytes());
        let envelope = frame.envelope().unwrap();
        assert_eq!(envelope.params, Some(params.as_bytes()));
        envelope.plain
    }

    #[test]
    fn the_params_of_most_calls_are_plain() {
        for params in [
            "{}",
            r#"{"name":"x"}"#,
            r#"{"name":"x","arguments":{ "a":1,"b":"y", "c":null}, "_meta":{"progressToken":1}}"#,
            r#"{"uri":"file:///x","arguments":7}"#,
        ] {
            assert!(plain(params), "{params}");
        }
    }

    #[test]
    fn whatever_may_be_two_things_to_somebody_is_not() {
        for params in [
            r#"{"name":"x","name":"y"}"#,
            r#"{"name":"x","Name":"y"}"#,
            r#"{"n\u0061me":"x"}"#,
            r#"{"name":"x","other":1}"#,
            r#"{"_meta":{},"_meta":{}}"#,
            r#"{"_meta":1,"_meta":{}}"#,
            r#"{"_meta":{"a":1,"A":1}}"#,
            r#"{"_meta":{"a":{}}}"#,
            r#"{"arguments":{"a":1,"a":2}}"#,
            r#"{"arguments":{"a":1,"A":2}}"#,
            r#"{"arguments":{"\u0061":1}}"#,
            r#"{"arguments":{"ä":1}}"#,
            r#"{"arguments":{"a":[]}}"#,
            r#"{"arguments":{"a":{}}}"#,
            r#"{"arguments":[{}]}"#,
            r#"{"arguments":{"1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"8":1,"9":1}}"#,
            "[]",
            "1",
        ] {
            assert!(!plain(params), "{params}");
        }
    }

    #[test]
    fn what_is_no_json_is_none_to_whoever_looks_on_the_way() {
        for text in [
            r#"{"params":{"arguments":{"a":}}}"#,
            r#"{"params":{"arguments":{"a":1,}}}"#,
            r#"{"params":{"arguments":{"a" 1}}}"#,
            r#"{"params":{"arguments":{"#,
            r#"{"params":{"_meta":{"a":1]}}"#,
        ] {
            assert!(Frame::read(text.as_bytes()).envelope().is_none(), "{text}");
        }
    }
}
