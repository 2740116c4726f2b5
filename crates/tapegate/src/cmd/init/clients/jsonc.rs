//! JSON with comments and trailing commas.

/// JSON without the comments and trailing commas that editors allow.
pub(super) fn strip_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => quoted(rest),
            '/' if rest.starts_with("//") => {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
                continue;
            }
            // A comma before it is legal in the configs of VS Code and Zed, but not in JSON.
            ']' | '}' => {
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
                1
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out
}

/// The length of the string that a text starts with.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_stray_commas_are_left_out_and_strings_are_not() {
        let text = "{ // one, \"two\"\n \"a//b\": [1, 2,], /* \" */ \"c,}\": \"d\\\"//\", }";
        let value: serde_json::Value = serde_json::from_str(&strip_comments(text)).unwrap();
        assert_eq!(value, serde_json::json!({ "a//b": [1, 2], "c,}": "d\"//" }));
    }
}
