//! Unambiguous `Content-Type` values.

/// A `Content-Type` that all parsers read alike.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContentType {
    /// Type and subtype, in lower case.
    pub(super) essence: String,
    charset: Option<String>,
    /// Whether there are parameters other than `charset`.
    pub(super) has_others: bool,
}

impl ContentType {
    /// Parses a value. `None` if it is malformed, or if a lenient parser could find a different
    /// charset in it than a strict one.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(value).ok().filter(|text| text.is_ascii())?;
        let mut rest = text.trim_matches([' ', '\t']);
        let end = rest.find([';', ' ', '\t']).unwrap_or(rest.len());
        let (kind, subtype) = rest[..end].split_once('/')?;
        if !is_token(kind) || !is_token(subtype) {
            return None;
        }
        let essence = rest[..end].to_ascii_lowercase();
        rest = &rest[end..];
        let (mut charset, mut has_others) = (None, false);
        while let Some(parameter) = next_parameter(&mut rest)? {
            let (name, value) = parameter;
            if name != "charset" {
                has_others = true;
            } else if charset.replace(value.to_ascii_lowercase()).is_some() {
                return None;
            }
        }
        // A parser that searches the value for `charset=` must find that parameter, or nothing.
        let mentions = text.to_ascii_lowercase().matches("charset").count();
        (mentions == usize::from(charset.is_some())).then_some(Self {
            essence,
            charset,
            has_others,
        })
    }

    /// Whether text of this type is UTF-8, which JSON and forms are by default.
    pub(super) fn is_utf8(&self) -> bool {
        matches!(self.charset.as_deref(), None | Some("utf-8" | "utf8"))
    }
}

/// The next `; name=value`, with the name in lower case. The outer `None` means malformed.
#[expect(clippy::option_option, reason = "malformed and at the end are different things")]
fn next_parameter<'a>(rest: &mut &'a str) -> Option<Option<(String, &'a str)>> {
    loop {
        let text = rest.trim_start_matches([' ', '\t']);
        if text.is_empty() {
            return Some(None);
        }
        let text = text.strip_prefix(';')?.trim_start_matches([' ', '\t']);
        if text.is_empty() || text.starts_with(';') {
            // Skip an empty parameter.
            *rest = text;
            continue;
        }
        let (name, after) = text.split_once('=')?;
        let value = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, after) = quoted.split_once('"')?;
                *rest = after;
                // Parsers differ in what a backslash means.
                if value.contains('\\') || !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                    return None;
                }
                value
            }
            None => {
                let end = after.find([';', ' ', '\t']).unwrap_or(after.len());
                *rest = &after[end..];
                Some(&after[..end]).filter(|value| is_token(value))?
            }
        };
        return is_token(name).then(|| Some((name.to_ascii_lowercase(), value)));
    }
}

fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_utf8_without_a_second_reading_is_utf8() {
        let is_utf8 = |value: &str| {
            ContentType::parse(value.as_bytes()).is_some_and(|parsed| parsed.is_utf8())
        };
        for value in [
            "application/json",
            "Application/JSON",
            "application/json;charset=utf-8",
            "application/json ; Charset=\"UTF-8\"",
            "application/json; charset=utf8;",
            "application/json; ; version=1; x=\"a b\"",
            "\tapplication/json\t",
        ] {
            assert!(is_utf8(value), "{value}");
        }
        for value in [
            "",
            "json",
            "application/",
            "application/json; charset=utf-7",
            "application/json; CHARSET=UTF-7",
            "application/json; charset=\"utf-7\"",
            "application/json; charset=\"ut\\f-7\"",
            "application/json; charset='utf-8'",
            "application/json; charset=utf-8; charset=utf-7",
            "application/json; charset=utf-7; charset=utf-8",
            "application/json; charset*=utf-8''utf-7",
            "application/json; charset*0=utf; charset*1=-7",
            "application/json; charset =utf-7",
            "application/json; charset= utf-7",
            "application/json; charset",
            "application/json; x=\"; charset=utf-7\"",
            "application/json; x=\"charset=utf-7",
            "application/json, application/json; charset=utf-7",
            "application/json charset=utf-7",
            "application/json; charset=utf-16le",
            "application/json; charset=iso-8859-1",
            "application/json; charset=us-ascii",
            "application/json; charset=utf-8-strict",
            "application/json; charset=base64",
            "application/json; charset=",
            "application/json; charset=\"\"",
            "application/json; charset=utf\u{2d}8\u{0}",
            "application/json; charset=utf‑8",
        ] {
            assert!(!is_utf8(value), "{value}");
        }
    }
}
