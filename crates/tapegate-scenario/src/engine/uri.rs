//! URI templates in reverse: the variables that expand to a given URI.
//!
//! Supports `{x}`, `{+x}`, `{#x}`, `{/x}`, `{.x}`, `{;x}`, `{?x,y}` and `{&x,y}` of RFC 6570.

use regex::{Regex, RegexBuilder};

/// The size limit of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

pub(super) struct UriTemplate {
    /// `None` if no URI can match.
    pattern: Option<Regex>,
    names: Vec<UriGroup>,
}

/// The meaning of one capture group.
enum UriGroup {
    /// A variable.
    Value(String),
    /// The query, with these variables in any order.
    Query(Vec<String>),
}

impl UriTemplate {
    /// Compiles a template.
    pub(super) fn new(template: &str) -> Self {
        let (mut pattern, mut names) = (String::from("^"), Vec::new());
        let mut rest = template;
        while let Some((before, inner, after)) = split(rest) {
            pattern.push_str(&regex::escape(before));
            add_hole(inner, &mut pattern, &mut names);
            rest = after;
        }
        pattern.push_str(&regex::escape(rest));
        pattern.push('$');
        let pattern = RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES_MAX).build().ok();
        Self { pattern, names }
    }

    /// The variables that expand to the URI, if it matches.
    pub(super) fn read(&self, uri: &str) -> Option<Vec<(String, String)>> {
        let groups = self.pattern.as_ref()?.captures(uri)?;
        let mut found = Vec::new();
        for (name, group) in self.names.iter().zip(groups.iter().skip(1)) {
            let Some(group) = group else { continue };
            match name {
                UriGroup::Value(name) => found.push((name.clone(), decode(group.as_str()))),
                UriGroup::Query(names) => {
                    for (key, value) in
                        group.as_str().split('&').filter_map(|one| one.split_once('='))
                    {
                        if names.iter().any(|name| name == key) {
                            found.push((key.to_owned(), decode(value)));
                        }
                    }
                }
            }
        }
        Some(found)
    }
}

fn split(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (inner, after) = rest.split_once('}')?;
    Some((before, inner, after))
}

fn add_hole(inner: &str, pattern: &mut String, names: &mut Vec<UriGroup>) {
    let operator = inner.chars().next().filter(|letter| "+#/.;?&".contains(*letter));
    let list = operator.map_or(inner, |letter| &inner[letter.len_utf8()..]);
    let variables = list.split(',').map(|name| {
        let name = name.trim_end_matches('*');
        name.split_once(':').map_or(name, |(name, _)| name).to_owned()
    });
    if let Some(mark @ ('?' | '&')) = operator {
        let mark = if mark == '?' { "\\?" } else { "&" };
        pattern.push_str(&format!("(?:{mark}([^#]*))?"));
        return names.push(UriGroup::Query(variables.collect()));
    }
    for (index, name) in variables.enumerate() {
        let one = match operator {
            Some('+') if index > 0 => ",(.+?)".to_owned(),
            Some('+') => "(.+?)".to_owned(),
            Some('#') => "(?:#(.+))?".to_owned(),
            Some('/') => "(?:/([^/?#]*))?".to_owned(),
            Some('.') => "(?:\\.([^/?#.]*))?".to_owned(),
            Some(_) => format!("(?:;{}=?([^/?#;]*))?", regex::escape(&name)),
            None if index > 0 => ",([^/?#,]*)".to_owned(),
            None => "([^/?#,]+)".to_owned(),
        };
        pattern.push_str(&one);
        names.push(UriGroup::Value(name));
    }
}

/// Decodes percent escapes.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(template: &str, uri: &str, wanted: Option<&str>) {
        let found = UriTemplate::new(template).read(uri);
        let shown = found.map(|found| {
            let all: Vec<String> =
                found.iter().map(|(name, value)| format!("{name}={value}")).collect();
            all.join(" ")
        });
        assert_eq!(shown.as_deref(), wanted, "{template} {uri}");
    }

    #[test]
    fn variables_are_found_in_a_uri() {
        check("test://template/{id}/data", "test://template/7%20a/data", Some("id=7 a"));
        check("test://template/{id}/data", "test://template/a/b/data", None);
        check("test://template/{id}/data", "test://template//data", None);
        check("file:///{+path}", "file:///a/b.txt", Some("path=a/b.txt"));
        check("s://x{?q,lang}", "s://x?lang=de&q=a%26b&z=1", Some("lang=de q=a&b"));
        check("s://x{?q,lang}", "s://x", Some(""));
        check("file:///{+path}{?line}", "file:///a/b?line=3", Some("path=a/b line=3"));
        check("s://{a}.{b}", "s://one.two", Some("a=one b=two"));
        check("s://x{/a,b}{#c}", "s://x/1/2#3", Some("a=1 b=2 c=3"));
        check("s://(.*){x}", "s://(.*)y", Some("x=y"));
        check("s://{open", "s://{open", Some(""));
        check("s://{x}", "s://%zz%e2", Some("x=%zz%e2"));
    }
}
