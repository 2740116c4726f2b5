//! Backslash escapes as in programming languages.

/// A text with its backslash escapes decoded; `None` if it has none. A backslash before any other
/// character is dropped, and so is a line ending after one.
pub fn unescaped(text: &str) -> Option<String> {
    if !text.contains('\\') {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = decode_escape(&rest[at + 1..], &mut out);
    }
    out.push_str(rest);
    Some(out)
}

/// Decodes the escape at the start of a text, whose backslash was removed, and returns the rest.
pub(super) fn decode_escape<'t>(text: &'t str, out: &mut String) -> &'t str {
    let Some(kind) = text.chars().next() else { return text };
    let after = &text[kind.len_utf8()..];
    match kind {
        'u' | 'x' | 'U' => return code(kind, after, out),
        '0'..='7' => return octal(text, out),
        '\n' => {}
        '\r' => return after.strip_prefix('\n').unwrap_or(after),
        'n' => out.push('\n'),
        't' => out.push('\t'),
        'r' => out.push('\r'),
        'b' => out.push('\u{8}'),
        'f' => out.push('\u{c}'),
        'v' => out.push('\u{b}'),
        'a' => out.push('\u{7}'),
        'e' => out.push('\u{1b}'),
        '_' => out.push('\u{a0}'),
        other => out.push(other),
    }
    after
}

/// Decodes `\u0066`, `\u{66}`, `\x66`, `\U00000066`, and a surrogate pair.
fn code<'t>(kind: char, text: &'t str, out: &mut String) -> &'t str {
    if let Some((digits, rest)) = text.strip_prefix('{').and_then(|text| text.split_once('}'))
        && let Some(letter) = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)
    {
        out.push(letter);
        return rest;
    }
    let length = match kind {
        'x' => 2,
        'u' => 4,
        _ => 8,
    };
    let Some((number, rest)) = hex(text, length) else {
        out.push(kind);
        return text;
    };
    let second = rest.strip_prefix("\\u").and_then(|rest| hex(rest, 4));
    if let (0xd800..=0xdbff, Some((low @ 0xdc00..=0xdfff, rest))) = (number, second) {
        let number = 0x1_0000 + ((number - 0xd800) << 10) + (low - 0xdc00);
        out.push(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER));
        return rest;
    }
    out.push(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER));
    rest
}

fn hex(text: &str, length: usize) -> Option<(u32, &str)> {
    let digits = text.get(..length)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex)?;
    Some((number, &text[length..]))
}

fn octal<'t>(text: &'t str, out: &mut String) -> &'t str {
    let length = text.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let number = u32::from_str_radix(&text[..length], 8).unwrap_or_default();
    out.push(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER));
    &text[length..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_all_languages_are_decoded() {
        for (text, plain) in [
            (r"\u0066orce", "force"),
            (r"\x66orce", "force"),
            (r"\U00000066orce", "force"),
            (r"\u{66}orce", "force"),
            (r"\146orce", "force"),
            (r"\force", "\u{c}orce"),
            (r"f\orce", "force"),
            ("fo\\\nrce", "force"),
            (r"\ud83d\ude00", "\u{1f600}"),
            (r"\ud83dx", "\u{fffd}x"),
            (r"\uzz", "uzz"),
            (r"a\", "a"),
            (r"\\u0066", r"\u0066"),
        ] {
            assert_eq!(unescaped(text).as_deref(), Some(plain), "{text}");
        }
        assert_eq!(unescaped("force"), None);
    }
}
