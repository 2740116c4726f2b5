//! Whether unstructured text may contain a field that must be masked.
//!
//! Paths cannot be followed in a web page or in a program's dump, but a field has its name beside
//! it: `password=…`, `Password: …`, `"password"`, `<password>`. A sentence that merely mentions
//! passwords is left alone.

use tapegate_core::json::path::{JsonPath, StepSelector};

/// Whether `text` may contain a value at one of `paths`.
pub(super) fn may_hold(paths: &[JsonPath], text: &str) -> bool {
    if paths.is_empty() {
        return false;
    }
    // An escape may hide any name.
    if text.contains("\\u") || text.contains('\0') {
        return true;
    }
    let text = text.to_lowercase();
    paths.iter().any(|path| {
        let keys: Vec<String> = path
            .steps
            .iter()
            .filter_map(|step| match &step.select {
                StepSelector::Key(key) => Some(key.to_lowercase()),
                StepSelector::Index(_) | StepSelector::All => None,
            })
            .collect();
        match keys.split_last() {
            // A path without keys, such as `[*]`, has no name to look for.
            None => true,
            Some((field, above)) => {
                names(&text, field) && above.iter().all(|key| text.contains(key.as_str()))
            }
        }
    })
}

/// Whether `key` occurs in `text` as the name of a field.
fn names(text: &str, key: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_quote = |letter: char| matches!(letter, '"' | '\'' | '`' | '\\');
    text.match_indices(key).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + key.len()..]);
        if before.ends_with(is_word) || behind.starts_with(is_word) {
            return false;
        }
        let quoted = before.ends_with(is_quote) && behind.starts_with(is_quote);
        let rest =
            behind.trim_start_matches(|c: char| is_quote(c) || c.is_whitespace() || c == ']');
        quoted || rest.starts_with(['=', ':', '<', '>', '|'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(path: &str, text: &str) -> bool {
        may_hold(&[JsonPath::read(path).unwrap()], text)
    }

    #[test]
    fn a_field_beside_its_name_is_found() {
        for text in [
            "password=hunter2",
            "Password : hunter2",
            "a&password=x",
            "{\"password\": \"hunter2\",",
            "<password>hunter2</password>",
            "<input name=\"password\" value=\"hunter2\">",
            "| password | hunter2 |",
            "params[password]=hunter2",
            "pass\\u0077ord: x",
        ] {
            assert!(held("..password", text), "{text}");
        }
        assert!(held("..[0]", "anything"));
        assert!(held("result.token", "result: token: x"));
    }

    #[test]
    fn prose_that_names_a_field_is_left_alone() {
        for text in [
            "Not Found",
            "the password is wrong",
            "Bearer error=\"invalid_token\", error_description=\"the token has expired\"",
            "password_hint=x",
        ] {
            assert!(!held("..password", text) && !held("..token", text), "{text}");
        }
        assert!(!held("result.token", "token: x"));
        assert!(!may_hold(&[], "password=x"));
    }
}
