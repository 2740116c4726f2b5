//! Makes JSON from others acceptable to stricter readers than ours.
//!
//! Legal JSON can still be rejected: lone surrogates, numbers beyond the range of a double, and
//! more nesting than a parser's stack allows. In a report, such a surrogate becomes a replacement
//! character, such a number a string, and a value that is too deep the text it is written with.

use tapegate_core::json::{JsonStr, check, compact, write_str};

use super::visible_text::first_string;

/// Common parsers stop at 128 levels, and a value is some levels deep in its report.
const DEPTH_MAX: usize = 64;

/// JSON on one line with the meaning of `text`, as far as common readers allow.
pub(super) fn sanitize_json(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    match check(text) {
        Ok(json) if depth(json) <= DEPTH_MAX => copy(&compact(json), &mut out),
        _ => write_str(&mut out, &String::from_utf8_lossy(text)),
    }
    out
}

/// The maximum number of brackets open at once.
fn depth(mut json: &[u8]) -> usize {
    let (mut open, mut most) = (0usize, 0);
    while let Some(&byte) = json.first() {
        match byte {
            b'"' => {
                json = first_string(json).1;
                continue;
            }
            b'{' | b'[' => open += 1,
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
        json = &json[1..];
    }
    most
}

fn copy(mut json: &[u8], out: &mut Vec<u8>) {
    while let Some(&byte) = json.first() {
        let length = match byte {
            b'"' => {
                let (string, behind) = first_string(json);
                copy_string(string, out);
                json = behind;
                continue;
            }
            b'-' | b'0'..=b'9' => {
                let ends =
                    |byte: &u8| !matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = json.iter().position(ends).unwrap_or(json.len());
                copy_number(&String::from_utf8_lossy(&json[..length]), out);
                length
            }
            _ => {
                out.push(byte);
                1
            }
        };
        json = &json[length..];
    }
}

fn copy_string(string: JsonStr<'_>, out: &mut Vec<u8>) {
    // Without escapes there can be none, so most strings are copied as they are.
    let lone = string.escaped && string.scalars().any(|code| char::from_u32(code).is_none());
    if lone {
        let letter = |code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        write_str(out, &string.scalars().map(letter).collect::<String>());
    } else {
        out.push(b'"');
        out.extend_from_slice(string.raw);
        out.push(b'"');
    }
}

fn copy_number(number: &str, out: &mut Vec<u8>) {
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() => out.extend_from_slice(number.as_bytes()),
        _ => write_str(out, number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn becomes(text: &str, tamed: &str) {
        let seen = sanitize_json(text.as_bytes());
        assert_eq!(String::from_utf8_lossy(&seen), tamed);
        serde_json::from_slice::<serde_json::Value>(&seen).unwrap();
    }

    #[test]
    fn what_every_reader_takes_is_left_alone() {
        for text in
            [r#"{"a":[1,-2.5e3,"x\n\ud83d\ude00",true,null,{}]}"#, "1.50", "18446744073709551616"]
        {
            becomes(text, text);
        }
        becomes("{\n \"a b\": 1\n}", r#"{"a b":1}"#);
    }

    #[test]
    fn what_some_readers_refuse_is_made_fit() {
        becomes(r#"["\ud800x\udc00","\\ud800"]"#, "[\"\u{fffd}x\u{fffd}\",\"\\\\ud800\"]");
        becomes(r#"{"a":1e309,"b":-1e999,"c":1e-999}"#, r#"{"a":"1e309","b":"-1e999","c":1e-999}"#);
        becomes("no JSON", "\"no JSON\"");
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        becomes(&deep, &format!("\"{deep}\""));
        becomes(&deep[1..129], &deep[1..129]);
        becomes(&format!("\"{deep}\""), &format!("\"{deep}\""));
    }
}
