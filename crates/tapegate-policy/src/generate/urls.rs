//! The origins of URLs.

use std::collections::BTreeSet;

/// The maximum number of origins in a test.
const ORIGINS_MAX: usize = 6;

/// Whether a text is a URL with a host.
pub(super) fn is_url(text: &str) -> bool {
    origin(text).is_some()
}

/// The origins of URLs, if there are not too many.
pub(super) fn origins(texts: &BTreeSet<String>) -> Option<Vec<String>> {
    let found: Option<BTreeSet<&str>> = texts.iter().map(|text| origin(text)).collect();
    let found = found.filter(|all| !all.is_empty() && all.len() <= ORIGINS_MAX)?;
    Some(found.into_iter().map(str::to_owned).collect())
}

/// The scheme, host and port of a URL that all readers parse alike.
fn origin(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    if !["http", "https", "ws", "wss"].contains(&scheme) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = &rest[..end];
    // Readers disagree about user names and backslashes before the host.
    let plain =
        |one: char| one.is_ascii_lowercase() || one.is_ascii_digit() || ".-:[]".contains(one);
    let is_plain = !host.is_empty() && host.chars().all(plain);
    let whole = !text.contains(|one: char| one.is_whitespace() || one.is_control());
    (is_plain && whole).then(|| &text[..scheme.len() + 3 + end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_is_what_all_readers_take_for_it() {
        assert_eq!(origin("https://a.example/x?y"), Some("https://a.example"));
        assert_eq!(origin("http://127.0.0.1:80"), Some("http://127.0.0.1:80"));
        for odd in
            ["file:///x", "https://", "https://a@b/", "https://a\\b/", "https://A.example/", "x"]
        {
            assert_eq!(origin(odd), None, "{odd}");
        }
    }
}
