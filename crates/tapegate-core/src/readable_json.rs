//! Formats JSON for people: one member per line, and texts of several lines line by line.
//!
//! Every line of a text follows a bar, so that none can be mistaken for our own output, and only
//! visible characters reach the terminal.

use crate::json::{Cursor, JsonFault, JsonKind, JsonStr, children};

use crate::visible_text;

/// Nothing is truncated.
const CHARS_MAX: usize = usize::MAX / 8;
/// Deeper values are written on one line.
const DEPTH_MAX: usize = 16;
/// Shorter values are written on one line.
const SHORT_CHARS: usize = 60;

/// The lines of a value, each after `indent`.
pub fn lines(raw: &[u8], indent: &str) -> Vec<String> {
    let mut out = Vec::new();
    if write(raw, indent, "", 0, &mut out).is_err() {
        out.push(format!("{indent}{}", visible_text::value(raw, CHARS_MAX)));
    }
    out
}

/// Whether a value is better shown on several lines.
pub fn has_lines(raw: &[u8]) -> bool {
    raw.windows(2).any(|pair| pair == b"\\n") || visible_text::value(raw, 200).chars().count() > 150
}

fn write(
    raw: &[u8],
    indent: &str,
    label: &str,
    depth: usize,
    out: &mut Vec<String>,
) -> Result<(), JsonFault> {
    let mut cursor = Cursor::new(raw)?;
    let kind = cursor.kind()?;
    let is_flat = !raw.windows(2).any(|pair| pair == b"\\n");
    let short = visible_text::value(raw, SHORT_CHARS + 1);
    if kind == JsonKind::String && !is_flat {
        out.push(format!("{indent}{}", label.trim_end()));
        text(cursor.string()?, indent, out);
        return Ok(());
    }
    // The call chooses the depth, and each level is a recursion and an indentation.
    let nests = matches!(kind, JsonKind::Object | JsonKind::Array) && depth < DEPTH_MAX;
    if !nests || is_flat && short.chars().count() <= SHORT_CHARS {
        out.push(format!("{indent}{label}{}", visible_text::value(raw, CHARS_MAX)));
        return Ok(());
    }
    let inner = match label.is_empty() {
        true => indent.to_owned(),
        false => {
            out.push(format!("{indent}{}", label.trim_end()));
            format!("{indent}  ")
        }
    };
    for child in children(raw) {
        let (key, value) = child?;
        let label = match key {
            Some(key) => format!("{}: ", visible_text::inline(&key.decode(), CHARS_MAX)),
            None => "- ".to_owned(),
        };
        write(value, &inner, &label, depth + 1, out)?;
    }
    Ok(())
}

/// The lines of a text, each after a bar.
fn text(text: JsonStr<'_>, indent: &str, out: &mut Vec<String>) {
    let mut line = String::new();
    let mut end = |line: &mut String| {
        out.push(format!("{indent}  │ {}", std::mem::take(line)).trim_end().to_owned());
    };
    for code in text.scalars() {
        match char::from_u32(code) {
            Some('\n') => end(&mut line),
            // Double a backslash as in JSON, so that no text looks like an escape.
            Some('\\') => line.push_str("\\\\"),
            _ => visible_text::push(&mut line, code),
        }
    }
    if !line.is_empty() {
        end(&mut line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_read_line_by_line_and_cannot_pass_for_anything_else() {
        let raw = br#"{"path":"/a","content":"fn main() {\n\tx\u202e\\n\n}\nstate  approved\n","n":[1,2]}"#;
        let expected = [
            "  path: \"/a\"",
            "  content:",
            "    │ fn main() {",
            "    │ \\tx\\u202e\\\\n",
            "    │ }",
            "    │ state  approved",
            "  n: [1,2]",
        ];
        assert_eq!(lines(raw, "  "), expected);
        assert_eq!(lines(b"nonsense", ""), ["nonsense"]);
    }
}
