//! A walk through a whole JSON text, without recursion.

use super::{BracketStack, Cursor, JsonFault, JsonKind, JsonStr};

/// The next item of a walk.
#[derive(Debug, Clone, Copy)]
pub enum JsonToken<'a> {
    /// An object or array begins.
    Open(JsonKind),
    /// A key; its value follows.
    Key(JsonStr<'a>),
    /// A string that is not a key.
    String(JsonStr<'a>),
    /// A number, `true`, `false` or `null`.
    Scalar(&'a [u8]),
    /// The innermost open object or array ends.
    Close,
}

/// The tokens of the value at the start of `text`, at any depth. The iteration ends after the first
/// fault; bytes after the value are not read.
pub fn tokens(
    text: &[u8],
) -> Result<impl Iterator<Item = Result<JsonToken<'_>, JsonFault>>, JsonFault> {
    let mut walk =
        TokenWalk { cursor: Cursor::new(text)?, open: BracketStack::default(), due: true };
    let mut ended = false;
    let next = move || {
        let token = if ended { None } else { walk.next().transpose() };
        ended = !matches!(token, Some(Ok(_)));
        token
    };
    Ok(std::iter::from_fn(next))
}

struct TokenWalk<'a> {
    cursor: Cursor<'a>,
    open: BracketStack,
    /// Whether a value comes next.
    due: bool,
}

impl<'a> TokenWalk<'a> {
    fn next(&mut self) -> Result<Option<JsonToken<'a>>, JsonFault> {
        if !std::mem::take(&mut self.due) {
            let Some(is_object) = self.open.top() else { return Ok(None) };
            let key = if is_object { self.cursor.next_key()? } else { None };
            if let Some(key) = key {
                self.due = true;
                return Ok(Some(JsonToken::Key(key)));
            }
            if is_object || !self.cursor.next_item()? {
                self.open.pop();
                return Ok(Some(JsonToken::Close));
            }
        }
        let kind = self.cursor.kind()?;
        Ok(Some(match kind {
            JsonKind::Object | JsonKind::Array => {
                self.open.push(self.cursor.open()? == JsonKind::Object);
                JsonToken::Open(kind)
            }
            JsonKind::String => JsonToken::String(self.cursor.string()?),
            _ => JsonToken::Scalar(self.cursor.value()?),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(text: &str) -> String {
        let show = |token: Result<JsonToken<'_>, JsonFault>| match token {
            Ok(JsonToken::Open(JsonKind::Object)) => "{".to_owned(),
            Ok(JsonToken::Open(_)) => "[".to_owned(),
            Ok(JsonToken::Key(key)) => format!("{}:", key.decode()),
            Ok(JsonToken::String(text)) => format!("'{}'", text.decode()),
            Ok(JsonToken::Scalar(value)) => value.escape_ascii().to_string(),
            Ok(JsonToken::Close) => ".".to_owned(),
            Err(fault) => format!("!{}", fault.at),
        };
        tokens(text.as_bytes()).unwrap().map(show).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_key_and_value_is_seen_once_and_in_order() {
        assert_eq!(
            walk(r#"{"a":[1,"x",{}],"b":{"c":[[]]}} 5"#),
            "{ a: [ 1 'x' { . . b: { c: [ [ . . . ."
        );
        assert_eq!(walk("\"x\""), "'x'");
        assert_eq!(walk("[1,]"), "[ 1 !3");
        assert_eq!(walk(r#"{"a":1 "b"}"#), "{ a: 1 !7");
        assert_eq!(walk("[}"), "[ !1");
    }

    #[test]
    fn depth_needs_no_stack() {
        let deep = "[".repeat(1_000_000);
        assert_eq!(tokens(deep.as_bytes()).unwrap().count(), 1_000_001);
    }
}
