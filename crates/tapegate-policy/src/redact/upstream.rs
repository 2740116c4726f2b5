//! Secrets in a command line or URL, by which a tape's header identifies its server.
//!
//! This is applied to every tape, with or without redaction, so there is no key: every secret
//! becomes `[REDACTED]`. All other characters stay, including percent-encoding and quotes.

use std::ops::Range;

use super::pattern_search::SecretPatterns;
use super::secret_names::is_secret_name;

const MASK: &str = "[REDACTED]";

/// `text`, a command line or a URL, without the secrets recognised by position, name or format.
///
/// It masks the userinfo of URLs; the values of key-like query parameters, flags (`--token X`,
/// `--api-key=X`), variables (`NAME=value`), headers (`X-Api-Key: X`) and JSON members; and what
/// the built-in patterns find. A value that only names a variable (`$TOKEN`) stays.
pub fn mask_upstream(text: &str) -> String {
    let mut spans = Vec::new();
    let mut flagged = false;
    for word in shell_words(text) {
        let inner = unquoted(text, word.clone());
        let content = &text[inner.clone()];
        let is_flag = content.starts_with('-') && !content.contains(['=', ' ']);
        if flagged && !is_flag {
            spans.push(inner.clone());
        } else {
            find_logins(text, inner.clone(), &mut spans);
            find_assignments(text, inner, &mut spans);
        }
        flagged = is_flag && content.starts_with("--") && is_secret_name(content);
    }
    // Logins are found above; without their pattern, a plain URL compiles no regular expression.
    let patterns = SecretPatterns::select(|name| name != "url-credentials", false);
    spans.extend(patterns.hits(text).into_iter().map(|hit| hit.span));
    // `--token $TOKEN` shows how the server was started without showing the secret.
    spans.retain(|span| !is_reference(&text[span.clone()]));
    mask_spans(text, spans)
}

/// The words of a command line as a shell sees them, quotes included.
fn shell_words(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let (mut start, mut quote, mut escape) = (None, None, false);
    for (at, letter) in text.char_indices() {
        match quote {
            _ if escape => escape = false,
            _ if letter == '\\' && quote != Some('\'') => escape = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None if letter.is_whitespace() => {
                words.extend(start.take().map(|start| start..at));
                continue;
            }
            None => {}
        }
        start = start.or(Some(at));
    }
    words.extend(start.map(|start| start..text.len()));
    words
}

/// A word without the quotes around it.
fn unquoted(text: &str, word: Range<usize>) -> Range<usize> {
    let content = &text[word.clone()];
    let quoted = ['\'', '"']
        .iter()
        .any(|&quote| content.len() >= 2 && content.starts_with(quote) && content.ends_with(quote));
    if quoted { word.start + 1..word.end - 1 } else { word }
}

/// The userinfo of every URL in a word.
fn find_logins(text: &str, word: Range<usize>, spans: &mut Vec<Range<usize>>) {
    for (found, scheme) in text[word.clone()].match_indices("://") {
        let start = word.start + found + scheme.len();
        let rest = &text[start..word.end];
        let end = rest.find(['/', '?', '#', ' ', '"', '\'', '\\']).unwrap_or(rest.len());
        if let Some(at) = rest[..end].rfind('@').filter(|&at| at > 0) {
            spans.push(start..start + at);
        }
    }
}

/// The values that are assigned to key-like names in a word with `=` or `:`.
fn find_assignments(text: &str, word: Range<usize>, spans: &mut Vec<Range<usize>>) {
    let content = &text[word.clone()];
    let mut from = 0;
    while let Some(found) = content[from..].find(['=', ':']) {
        let at = from + found;
        from = at + 1;
        let before = content[..at].trim_end_matches(['"', '\'', '\\']);
        let inside = |letter: char| letter.is_ascii_alphanumeric() || "-_.%[]".contains(letter);
        let name_at = before
            .rfind(|letter| !inside(letter))
            .map_or(0, |last| last + before[last..].chars().next().map_or(1, char::len_utf8));
        if !is_secret_name(&before[name_at..]) {
            continue;
        }
        let skipped = content[from..].trim_start_matches([' ', '"', '\'', '\\']);
        let start = content.len() - skipped.len();
        let end = start + value_length(content, start, name_at);
        if start < end {
            spans.push(word.start + start..word.start + end);
            from = end;
        }
    }
}

/// The length of the value at `start`: up to its closing quote, the next query parameter, or the
/// end of the word.
fn value_length(content: &str, start: usize, name_at: usize) -> usize {
    let rest = &content[start..];
    let length = |ends: &[char]| rest.find(ends).unwrap_or(rest.len());
    if content[..start].ends_with(['"', '\'']) {
        return length(&['"', '\'', '\\']);
    }
    if content[..name_at].ends_with(['?', '&', ';', '#']) {
        return length(&['&', ';', '#', ' ', '"', '\'', '\\']);
    }
    length(&['"', '\''])
}

/// Whether a value is a placeholder, or a variable that is filled in later.
fn is_reference(value: &str) -> bool {
    let named = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let variable = value.strip_prefix('$').is_some_and(|rest| {
        named(rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest))
    });
    variable || value == MASK
}

/// `text` with `spans`, which may overlap, masked.
fn mask_spans(text: &str, mut spans: Vec<Range<usize>>) -> String {
    spans.sort_by_key(|span| span.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        if span.start >= at {
            out.push_str(&text[at..span.start]);
            out.push_str(MASK);
        }
        at = at.max(span.end);
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(mask_upstream(text), expected);
        assert_eq!(mask_upstream(expected), expected, "masked twice");
    }

    #[test]
    fn urls() {
        check("https://example.com/mcp?x=1#top", "https://example.com/mcp?x=1#top");
        check("https://u:p%40@example.com/mcp", "https://[REDACTED]@example.com/mcp");
        check(
            "https://h/mcp?a=%20&API_KEY=s%2Fx&b=2&Token=#t",
            "https://h/mcp?a=%20&API_KEY=[REDACTED]&b=2&Token=#t",
        );
        check("https://h/cb?code=abc&state=1", "https://h/cb?code=[REDACTED]&state=1");
        check("https://h/?keyboard=1&author=x", "https://h/?keyboard=1&author=x");
        check("https://h/#access_token=abc", "https://h/#access_token=[REDACTED]");
    }

    #[test]
    fn flags_and_variables() {
        check("server --token abc --port 80", "server --token [REDACTED] --port 80");
        check("server --api-key=abc -p 80", "server --api-key=[REDACTED] -p 80");
        check("server --token 'a b' x", "server --token '[REDACTED]' x");
        check("server --token --verbose x", "server --token --verbose x");
        check("docker run -e DB_PASSWORD=a=b img", "docker run -e DB_PASSWORD=[REDACTED] img");
        check("env \"API_KEY=a b\" srv", "env \"API_KEY=[REDACTED]\" srv");
        check("srv --token ${TOKEN} --key=$KEY", "srv --token ${TOKEN} --key=$KEY");
        check("npx -y @scope/server --max-tokens 5", "npx -y @scope/server --max-tokens 5");
        check("srv --token-file /etc/t", "srv --token-file /etc/t");
    }

    #[test]
    fn headers_and_json() {
        check(
            "mcp-remote https://h --header 'X-Api-Key: abc' -H \"Authorization: Bearer x\"",
            "mcp-remote https://h --header 'X-Api-Key: [REDACTED]' -H \"Authorization: [REDACTED]\"",
        );
        check(
            "mcp-remote --header Authorization:${AUTH}",
            "mcp-remote --header Authorization:${AUTH}",
        );
        check(
            "cli --config '{\"apiKey\":\"abc\",\"n\":1}'",
            "cli --config '{\"apiKey\":\"[REDACTED]\",\"n\":1}'",
        );
        check(
            r#"cli --config "{\"apiKey\": \"abc\",\"n\":1}""#,
            r#"cli --config "{\"apiKey\": \"[REDACTED]\",\"n\":1}""#,
        );
    }

    #[test]
    fn shapes_are_found_anywhere() {
        let token = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4";
        check(&format!("srv {token} x"), "srv [REDACTED] x");
        check(&format!("srv --x=é{token}"), "srv --x=é[REDACTED]");
        check("", "");
        check("srv 'unclosed --token", "srv 'unclosed --token");
    }
}
