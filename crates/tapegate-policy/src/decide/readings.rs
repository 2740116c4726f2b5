//! What servers make of a URI before they look for the resource.
//!
//! A glob compares text, but `file:///data/../etc/passwd` is `file:///etc/passwd` to every reader
//! of URLs, and an escape is a letter to whoever opens the file. So a resource is decided about
//! under each name that its server may find it by, and the worst counts. Nearly every URI has one.

use super::gates;
use super::steps::Steps;
use super::{Call, Decision, Facts, Outcome};
use crate::gated::Gated;
use crate::model::Policy;

/// Schemes whose URLs have a host, and to which a backslash is a slash.
const HOSTED: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// What production does with a call, by whatever name its server reads.
pub(super) fn ask(
    policy: &Policy,
    call: &Call<'_>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Decision {
    let mut worst = gates::ask(policy, call, facts, steps);
    let by_uri = Gated::of(call.method).is_some_and(|gated| {
        matches!(gated, Gated::Read | Gated::Subscribe | Gated::Unsubscribe | Gated::Listen)
    });
    if !by_uri {
        return worst;
    }
    for reading in readings(call.name) {
        steps.add(|| format!("servers may read `{reading}`:"));
        let decision = gates::ask(policy, &Call { name: &reading, ..call.clone() }, facts, steps);
        if rank(&decision) > rank(&worst) {
            let reason = format!("{}, as it may be read as `{reading}`", decision.reason);
            worst = Decision { reason: reason.into(), ..decision };
        }
    }
    worst.by_name = false;
    worst
}

/// How strict a decision is.
pub(super) fn rank(decision: &Decision) -> u8 {
    match decision.strict {
        Outcome::Forward => 0,
        Outcome::Hold { .. } => 1,
        Outcome::Deny => 2,
    }
}

/// What a URI may be read as, besides as it is written.
fn readings(uri: &str) -> Vec<String> {
    let as_url = normal(uri, false);
    let as_path = normal(&unescaped(uri), true);
    let mut found = Vec::new();
    for reading in [as_url, as_path].into_iter().flatten() {
        if reading != uri && !found.contains(&reading) {
            found.push(reading);
        }
    }
    found
}

/// A URI as readers of URLs have it: without dots in its path and blanks around it. With `path`, as
/// those have it who open files: without empty steps and what comes after the path, too.
fn normal(uri: &str, path: bool) -> Option<String> {
    let kept: String = uri.chars().filter(|letter| !matches!(letter, '\t' | '\n' | '\r')).collect();
    let kept = kept.trim_matches(|letter: char| letter <= ' ');
    let (scheme, rest) = kept.split_once(':').filter(|(scheme, _)| is_scheme(scheme))?;
    let scheme = scheme.to_ascii_lowercase();
    let (is_file, hosted) = (scheme == "file", HOSTED.contains(&scheme.as_str()));
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (place, tail) = rest.split_at(end);
    let place = if is_file || hosted || path { place.replace('\\', "/") } else { place.to_owned() };
    let (host, steps) = match place.strip_prefix("//") {
        Some(after) => after.split_at(after.find('/').unwrap_or(after.len())),
        None if is_file => ("", place.as_str()),
        // `mailto:` and the like have no path that anybody walks.
        None => return (kept != uri).then(|| kept.to_owned()),
    };
    let host = match host.to_ascii_lowercase() {
        host if is_file && host == "localhost" => String::new(),
        host if is_file || hosted => host,
        _ => host.to_owned(),
    };
    let tail = if path && is_file { "" } else { tail };
    Some(format!("{scheme}://{host}{}{tail}", walked(steps, path && is_file)))
}

fn is_scheme(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(letter)
}

/// Where a path leads that goes up and stays where it is on the way.
fn walked(path: &str, skips_empty: bool) -> String {
    let mut steps: Vec<&str> = Vec::new();
    let Some(path) = path.strip_prefix('/').or(Some(path).filter(|path| !path.is_empty())) else {
        return String::new();
    };
    let mut ends_open = false;
    for step in path.split('/') {
        let plain = step.replace("%2e", ".").replace("%2E", ".");
        ends_open = plain == "." || plain == ".." || step.is_empty();
        match plain.as_str() {
            "." => {}
            ".." => drop(steps.pop()),
            "" if skips_empty => {}
            _ => steps.push(step),
        }
    }
    let open =
        if ends_open && steps.last().is_some_and(|step| !step.is_empty()) { "/" } else { "" };
    format!("/{}{open}", steps.join("/"))
}

/// A URI without the escapes in its path that no writer needs: of letters, digits and the like. In
/// the path of a file, those of slashes too.
fn unescaped(uri: &str) -> String {
    let start = uri.trim_start().as_bytes();
    let is_file = start.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"file:"));
    let plain = |byte: &u8| {
        let slash = matches!(byte, b'/' | b'\\');
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'.' | b'_' | b'~')
            || slash && is_file
    };
    let (mut rest, tail) = uri.split_at(uri.find(['?', '#']).unwrap_or(uri.len()));
    let mut out = String::with_capacity(uri.len());
    while let Some(at) = rest.find('%') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let byte = escape.get(1..3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte.filter(plain) {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &escape[3..];
            }
            None => {
                out.push('%');
                rest = &escape[1..];
            }
        }
    }
    out + rest + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_as_most_are_written_has_one_reading() {
        for uri in [
            "file:///data/a.txt",
            "file:///data/a%20b/.git/..x",
            "file:///data/",
            "file:///",
            "https://example.com/a?b=%41#c",
            "https://example.com",
            "https://example.com/projects/a%2Fb",
            "note://Team/a",
            "urn:isbn:1",
            "x",
            "",
            "mem:a/../b",
        ] {
            assert_eq!(readings(uri), [""; 0], "{uri}");
        }
    }

    #[test]
    fn a_uri_is_read_as_whatever_it_leads_to() {
        for (uri, reading) in [
            ("file:///a/../b", "file:///b"),
            ("file:///a/%2e%2E/b", "file:///b"),
            ("file:///a/..%2Fb", "file:///b"),
            ("file:///a//b", "file:///a/b"),
            ("file:///a//../b", "file:///a/b"),
            ("file:///a//../b", "file:///b"),
            ("file:///a/.", "file:///a/"),
            ("file:///..", "file:///"),
            ("file:///%62", "file:///b"),
            ("file:///b#x", "file:///b"),
            ("file:b", "file:///b"),
            ("file:/b", "file:///b"),
            ("file://LOCALHOST/b", "file:///b"),
            (r"file:\\\b", "file:///b"),
            ("FiLe:///b", "file:///b"),
            ("\tfile:///b ", "file:///b"),
            ("https://A.example/x/../b", "https://a.example/b"),
            ("note://Team/x/../b?c", "note://Team/b?c"),
            ("file:///%c3%A9/%", "file:///%c3%A9/%"),
            ("file:///a/%2", "file:///a/%2"),
        ] {
            let found = readings(uri);
            let there =
                uri == reading && found.is_empty() || found.iter().any(|one| one == reading);
            assert!(there, "{uri} {reading}: {found:?}");
        }
    }
}
