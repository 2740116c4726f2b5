//! The children of objects and arrays, as texts.

use std::borrow::Cow;

use super::{Cursor, JsonFault, JsonKind, JsonStr};

/// A key, if the parent is an object, and a raw value.
type JsonChild<'a> = (Option<JsonStr<'a>>, &'a [u8]);

/// The members of an object, in order: keys and raw values. Another value has none. The iteration
/// ends after the first fault; bytes after the object are not read.
pub fn members(text: &[u8]) -> impl Iterator<Item = Result<(JsonStr<'_>, &[u8]), JsonFault>> {
    ChildIterator::of(text, &[JsonKind::Object])
        .filter_map(|child| child.map(|(key, value)| Some((key?, value))).transpose())
}

/// The elements of an array, in the same way.
pub fn elements(text: &[u8]) -> impl Iterator<Item = Result<&[u8], JsonFault>> {
    ChildIterator::of(text, &[JsonKind::Array]).map(|child| child.map(|(_, value)| value))
}

/// The children of an object or array, in the same way; elements have no key.
pub fn children(text: &[u8]) -> impl Iterator<Item = Result<JsonChild<'_>, JsonFault>> {
    ChildIterator::of(text, &[JsonKind::Object, JsonKind::Array])
}

/// All members of an object that is the whole text; a fault if it is anything else.
pub fn whole_object(text: &[u8]) -> Result<Vec<(JsonStr<'_>, &[u8])>, JsonFault> {
    let mut cursor = Cursor::new(text)?;
    if cursor.kind()? != JsonKind::Object {
        return Err(JsonFault { at: cursor.position(), what: "no object" });
    }
    cursor.open()?;
    let mut members = Vec::new();
    while let Some(key) = cursor.next_key()? {
        members.push((key, cursor.value()?));
    }
    cursor.expect_end()?;
    Ok(members)
}

/// The object `text` with the value that `kept` returns for each member; `None` leaves the member
/// out. Keys keep their spelling.
pub fn map_members<'a>(
    text: &'a [u8],
    mut kept: impl FnMut(JsonStr<'a>, &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, JsonFault>,
) -> Result<Vec<u8>, JsonFault> {
    let mut out = b"{".to_vec();
    for member in members(text) {
        let (key, value) = member?;
        if let Some(value) = kept(key, value)? {
            out.extend((out.len() > 1).then_some(b','));
            out.extend([b"\"", key.raw, b"\":", &value].concat());
        }
    }
    out.push(b'}');
    Ok(out)
}

/// A walk through the children of one value.
struct ChildIterator<'a> {
    /// The cursor inside the parent, and the kind of the parent; `None` at the end.
    parent: Option<(Cursor<'a>, JsonKind)>,
    /// Why the parent could not be entered.
    fault: Option<JsonFault>,
}

impl<'a> ChildIterator<'a> {
    /// The children of a value of one of these kinds; none of any other.
    fn of(text: &'a [u8], kinds: &[JsonKind]) -> Self {
        let enter = || {
            let mut cursor = Cursor::new(text)?;
            let kind = cursor.kind()?;
            if !kinds.contains(&kind) {
                return Ok(None);
            }
            cursor.open()?;
            Ok(Some((cursor, kind)))
        };
        match enter() {
            Ok(parent) => Self { parent, fault: None },
            Err(fault) => Self { parent: None, fault: Some(fault) },
        }
    }

    fn read(&mut self) -> Result<Option<JsonChild<'a>>, JsonFault> {
        let Some((cursor, kind)) = &mut self.parent else {
            return self.fault.take().map_or(Ok(None), Err);
        };
        let key = match kind {
            JsonKind::Object => cursor.next_key()?.map(Some),
            _ => cursor.next_item()?.then_some(None),
        };
        key.map(|key| Ok((key, cursor.value()?))).transpose()
    }
}

impl<'a> Iterator for ChildIterator<'a> {
    type Item = Result<JsonChild<'a>, JsonFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let child = self.read().transpose();
        // After the end or a fault the cursor is elsewhere, so nothing more may be read.
        if !matches!(child, Some(Ok(_))) {
            self.parent = None;
        }
        child
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let show = |child: Result<JsonChild<'_>, JsonFault>| match child {
            Ok((Some(key), value)) => format!("{}={}", key.decode(), value.escape_ascii()),
            Ok((None, value)) => value.escape_ascii().to_string(),
            Err(fault) => fault.to_string(),
        };
        children(text.as_bytes()).map(show).collect()
    }

    #[test]
    fn children_come_in_order_until_the_first_fault() {
        assert_eq!(read(r#" { "a" : [ 1 ] , "\u0061":{}, "b":2} x"#), ["a=[ 1 ]", "a={}", "b=2"]);
        assert_eq!(read("[1, [2,3] ,{}]"), ["1", "[2,3]", "{}"]);
        for childless in ["{}", "[ ]", "5", "null"] {
            assert!(read(childless).is_empty(), "{childless}");
        }
        assert_eq!(read("[1 2]"), ["1", "no comma or bracket at byte 3"]);
        assert_eq!(read("[1,]"), ["1", "no JSON value at byte 3"]);
        assert_eq!(read("[,1]"), ["no JSON value at byte 1"]);
        assert_eq!(read("{,}"), ["no key at byte 1"]);
        assert_eq!(read("{\"a\":[1}}"), ["a bracket that does not match at byte 7"]);
        assert_eq!(read("?"), ["no JSON value at byte 0"]);
    }

    #[test]
    fn only_objects_have_members_and_only_arrays_elements() {
        assert_eq!((members(b"[1]").count(), elements(b"[1]").count()), (0, 1));
        assert_eq!((members(b"{\"a\":1}").count(), elements(b"{\"a\":1}").count()), (1, 0));
        assert_eq!(whole_object(b"{} ").map(|members| members.len()), Ok(0));
        assert!(whole_object(b"{} {}").is_err());
        assert!(whole_object(b"[]").is_err());
    }
}
