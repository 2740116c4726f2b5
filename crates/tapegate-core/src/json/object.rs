//! Writes objects and arrays on one line, without a tree.

use super::{JsonStr, write_str};

/// An object that is written member by member, in the order of the calls. Values that are JSON
/// already are copied byte by byte.
#[derive(Debug, Default)]
pub struct JsonObject {
    /// The members, each after a comma.
    members: Vec<u8>,
}

impl JsonObject {
    /// An object without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a string.
    pub fn text(self, key: &str, text: &str) -> Self {
        self.value(key, |out| write_str(out, text))
    }

    /// Adds a number.
    pub fn number(self, key: &str, number: impl Into<i128>) -> Self {
        self.raw(key, number.into().to_string())
    }

    /// Adds `true` or `false`.
    pub fn flag(self, key: &str, flag: bool) -> Self {
        self.raw(key, if flag { "true" } else { "false" })
    }

    /// Adds a value that is JSON already.
    pub fn raw(self, key: &str, json: impl AsRef<[u8]>) -> Self {
        self.value(key, |out| out.extend_from_slice(json.as_ref()))
    }

    /// Adds a value that is JSON already, if there is one.
    pub fn raw_opt(self, key: &str, json: Option<impl AsRef<[u8]>>) -> Self {
        match json {
            Some(json) => self.raw(key, json),
            None => self,
        }
    }

    /// Adds a member of another object, whose key keeps its spelling.
    pub fn copy(mut self, key: JsonStr<'_>, json: &[u8]) -> Self {
        for part in [&b",\""[..], key.raw, b"\":", json] {
            self.members.extend_from_slice(part);
        }
        self
    }

    /// Adds an object.
    pub fn object(self, key: &str, object: Self) -> Self {
        self.raw(key, object.finish())
    }

    /// The text of the object.
    pub fn finish(mut self) -> Vec<u8> {
        match self.members.first_mut() {
            Some(comma) => *comma = b'{',
            None => self.members.push(b'{'),
        }
        self.members.push(b'}');
        self.members
    }

    /// The members, each after a comma, to add them to the text of another object.
    pub fn into_members(self) -> Vec<u8> {
        self.members
    }

    /// The members, with commas only between them.
    pub fn into_bare_members(self) -> String {
        String::from_utf8_lossy(self.members.get(1..).unwrap_or_default()).into_owned()
    }

    fn value(mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        self.members.push(b',');
        write_str(&mut self.members, key);
        self.members.push(b':');
        write(&mut self.members);
        self
    }
}

/// An array of values that are JSON already.
pub fn array(items: impl IntoIterator<Item: AsRef<[u8]>>) -> Vec<u8> {
    let mut out = b"[".to_vec();
    for item in items {
        out.extend((out.len() > 1).then_some(b','));
        out.extend_from_slice(item.as_ref());
    }
    out.push(b']');
    out
}

/// A text as a JSON string, with its quotes.
pub fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_str(&mut out, text);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_the_order_of_the_calls() {
        let key = JsonStr::read(br#""\u006b""#).unwrap();
        let object = JsonObject::new()
            .text("a\"", "b\n")
            .number("n", -1)
            .flag("f", true)
            .raw("r", b"[ 1 ]")
            .raw_opt("none", None::<&str>)
            .copy(key, b"1e0")
            .object("o", JsonObject::new());
        let text = r#"{"a\"":"b\n","n":-1,"f":true,"r":[ 1 ],"\u006b":1e0,"o":{}}"#;
        assert_eq!(String::from_utf8(object.finish()).unwrap(), text);
        assert_eq!(JsonObject::new().number("n", 1u64).into_members(), b",\"n\":1");
        assert_eq!(
            JsonObject::new().number("n", 1).flag("f", false).into_bare_members(),
            "\"n\":1,\"f\":false"
        );
    }

    #[test]
    fn arrays_may_be_empty() {
        assert_eq!(array([""; 0]), b"[]");
        assert_eq!(array([quoted("a"), b"1".to_vec()]), b"[\"a\",1]");
    }
}
