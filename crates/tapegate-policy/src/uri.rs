//! URIs as URL parsers and code that opens files resolve them.
//!
//! Follows the WHATWG URL standard as far as it affects which resource a URI leads to: letter case,
//! default ports, user names, spellings of IP addresses and of names, backslashes, `..`.

mod host;
mod punycode;

use tapegate_core::lenient::folder::normal_path;
use tapegate_core::lenient::spelling::{form_decode, is_invisible, nfkc};

use host::normal_host;

/// Schemes whose URLs have a host, with their default ports; they treat a backslash as a slash.
const SPECIAL: [(&str, u16); 5] =
    [("http", 80), ("https", 443), ("ws", 80), ("wss", 443), ("ftp", 21)];

/// The kind of code that reads a URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UriReader {
    /// A parser that follows the standard.
    Url,
    /// Code that extracts the path of a URI and opens it: it ignores hosts of files and empty
    /// steps, and takes every backslash for a slash.
    Path,
    /// Code that strips the scheme and opens the rest: `?` and `#` are ordinary characters to it,
    /// and it drops blanks and parameters from each step.
    Rest,
}

/// Whether a text is a URL that a parser finds a host or a path in, rather than prose with a colon.
pub(crate) fn is_url(text: &str) -> bool {
    // Parsers drop tabs and line ends even inside a scheme, so `ht\ntp://` is a URL too.
    let is_dropped =
        |letter: char| letter.is_whitespace() || letter.is_control() || is_invisible(letter);
    let start: String = text.chars().filter(|letter| !is_dropped(*letter)).take(64).collect();
    let start = unwrapped(&start).unwrap_or(&start);
    let known = |scheme: &str| scheme == "file" || default_port(scheme).is_some();
    split_scheme(&nfkc(start))
        .is_some_and(|(scheme, rest)| known(&scheme) || rest.starts_with(['/', '\\']))
}

/// Whether a URI certainly has only one reading. A cheap check that covers nearly all.
pub(crate) fn is_plain(uri: &str) -> bool {
    let Some((scheme, rest)) = uri.split_once(':') else {
        return uri.bytes().all(|byte| is_plain_byte(byte) && !matches!(byte, b'/'));
    };
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if scheme.is_empty() || !scheme.bytes().all(|byte| lower(byte) || b"+-.".contains(&byte)) {
        return false;
    }
    let hosted = default_port(scheme).is_some();
    let Some(place) = rest.strip_prefix("//") else {
        // Parsers find a host or a path in `http:a` and `file:a` even without slashes.
        let opaque = scheme != "file" && !hosted;
        return opaque && rest.bytes().all(|byte| is_plain_byte(byte) && !matches!(byte, b'/'));
    };
    let (host, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let plain_host = match scheme {
        "file" => host.is_empty(),
        // IP addresses and Punycode names have several spellings, and a URL with a host needs a
        // path.
        _ if hosted => {
            let last = host.rsplit('.').next().unwrap_or(host);
            let named = last.starts_with(|first: char| first.is_ascii_lowercase());
            !path.is_empty() && named && !host::may_be_encoded(host)
        }
        // Clients of other schemes resolve addresses too, but `demo://1/` needs no host.
        _ => !host.starts_with(|first: char| first.is_ascii_digit()) && !host::may_be_encoded(host),
    };
    let ended = scheme == "file" && path.contains(['?', '#']);
    plain_host
        && !ended
        && host.bytes().all(|byte| lower(byte) || b"-._{}".contains(&byte))
        && path.bytes().all(is_plain_byte)
        // `/.` also covers `/..`.
        && !path.as_bytes().windows(2).any(|pair| matches!(pair, b"//" | b"/."))
        && !path.ends_with(['?', '#'])
}

/// Whether a byte is printable, and neither part of an escape nor read as another.
fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'%' | b'\\' | b'+')
}

/// A URI as form decoders read it: every `+` after the scheme is a blank, and escapes are decoded.
/// `None` if there is no `+`.
pub(crate) fn form_decoded(uri: &str) -> Option<String> {
    let rest = split_scheme(uri).map_or(uri, |(_, rest)| rest);
    let decoded = form_decode(rest)?;
    Some(format!("{}{decoded}", &uri[..uri.len() - rest.len()]))
}

/// A URI as a reader resolves it; `None` if it has no path.
pub(crate) fn resolve(uri: &str, reader: UriReader) -> Option<String> {
    let by_path = reader != UriReader::Url;
    let Some((scheme, rest)) = split_scheme(uri) else {
        return normal_path(uri).filter(|_| by_path);
    };
    if reader == UriReader::Rest {
        return resolve_rest(rest).map(|rest| format!("{scheme}:{rest}"));
    }
    let (place, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let is_file = scheme == "file";
    let slashes = is_file || by_path || default_port(&scheme).is_some();
    let place = if slashes { place.replace('\\', "/") } else { place.to_owned() };
    let (host, path) = locate(&scheme, &place, reader);
    // Code that opens files drops query and fragment; to others an empty one makes no difference.
    let tail = if by_path && is_file { "" } else { tail.trim_end_matches(['?', '#']) };
    let path = match path.starts_with('/') {
        true => resolve_path(path, by_path),
        false if by_path => normal_path(path).unwrap_or_else(|| path.to_owned()),
        false => path.to_owned(),
    };
    let path = if path.is_empty() && default_port(&scheme).is_some() { "/" } else { &path };
    Some(format!("{scheme}:{host}{path}{tail}"))
}

/// The start of a glob with its scheme and host in the form of [`resolve`]. What follows is
/// unknown, so a host is recognised only if it ends within `start`.
pub(crate) fn resolve_start(start: &str) -> Option<String> {
    let (scheme, rest) = split_scheme(start)?;
    let slashes = rest.bytes().take_while(|byte| *byte == b'/').count();
    if slashes == 2 && !rest[slashes..].contains('/') {
        return Some(format!("{scheme}:{}", rest.to_lowercase()));
    }
    if slashes == 0 {
        return Some(format!("{scheme}:{rest}"));
    }
    let (host, path) = locate(&scheme, rest, UriReader::Path);
    Some(format!("{scheme}:{host}{path}"))
}

/// A URI without what Python's `urllib` removes around it: `<http://a/>`, `URL:http://a/`.
pub(crate) fn unwrapped(uri: &str) -> Option<&str> {
    let inner = uri.trim();
    let inner = inner.strip_prefix('<').unwrap_or(inner);
    let inner = inner.strip_suffix('>').unwrap_or(inner).trim();
    let inner = match inner.get(..4) {
        Some(start) if start.eq_ignore_ascii_case("url:") => inner[4..].trim(),
        _ => inner,
    };
    (inner != uri).then_some(inner)
}

/// A URI with its host in the other form, Unicode or Punycode, which leads to the same place:
/// `münchen.de` is `xn--mnchen-3ya.de`. `None` if the host has only one form.
pub(crate) fn other_host_form(uri: &str) -> Option<String> {
    let start = uri.find("://")? + 3;
    let place = &uri[start..];
    let (place, rest) = place.split_at(place.find(['/', '?', '#']).unwrap_or(place.len()));
    let (user, host) = place.split_at(place.rfind('@').map_or(0, |at| at + 1));
    Some(format!("{}{user}{}{rest}", &uri[..start], host::other_form(host)?))
}

/// A URI without the user name that only some parsers find in it: to those that do not treat a
/// backslash as a slash, `x\` is the user in `http://x\@a.example/`.
pub(crate) fn without_user(uri: &str) -> Option<String> {
    let start = uri.find("://")? + 3;
    let place = &uri[start..];
    let end = place.find('/').unwrap_or(place.len());
    let (user, _) = place[..end].rsplit_once('@')?;
    user.contains(['\\', '?', '#'])
        .then(|| format!("{}{}", &uri[..start], &place[user.len() + 1..]))
}

/// The scheme of a URI, in lower case, and the text after its colon.
fn split_scheme(uri: &str) -> Option<(String, &str)> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let (scheme, rest) = uri.split_once(':')?;
    let first = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    (first && scheme.bytes().all(letter)).then(|| (scheme.to_ascii_lowercase(), rest))
}

fn default_port(scheme: &str) -> Option<u16> {
    SPECIAL.iter().find(|(name, _)| *name == scheme).map(|(_, port)| *port)
}

/// The host, including the slashes before it, and the path.
fn locate<'p>(scheme: &str, place: &'p str, reader: UriReader) -> (String, &'p str) {
    let split = |after: &'p str| after.split_at(after.find('/').unwrap_or(after.len()));
    if let Some(port) = default_port(scheme) {
        // A host follows, however many slashes there are.
        let (host, path) = split(place.trim_start_matches('/'));
        return (format!("//{}", normal_host(host, Some(port), reader)), path);
    }
    let is_file = scheme == "file";
    match place.strip_prefix("//").map(split) {
        Some((host, path)) if is_file => {
            // Code that opens files ignores the host, whichever it is.
            let here = reader != UriReader::Url || host.eq_ignore_ascii_case("localhost");
            (format!("//{}", if here { String::new() } else { host.to_lowercase() }), path)
        }
        // To a URL parser the host of another scheme is opaque, but `demo://@h:/` is `demo://h/`.
        Some((host, path)) if reader == UriReader::Url => {
            (format!("//{}", host::opaque_host(host)), path)
        }
        Some((host, path)) => (format!("//{}", normal_host(host, None, reader)), path),
        None if is_file && place.starts_with('/') => ("//".to_owned(), place),
        None if is_file => ("///".to_owned(), place),
        None => (String::new(), place),
    }
}

/// A path with `.` and `..` resolved. URL parsers also resolve escaped dots; code that opens files
/// skips empty steps.
fn resolve_path(path: &str, by_path: bool) -> String {
    let mut steps: Vec<&str> = Vec::new();
    let mut ends_open = false;
    for step in path.strip_prefix('/').unwrap_or(path).split('/') {
        let plain = match by_path {
            true => step.to_owned(),
            false => step.replace("%2e", ".").replace("%2E", "."),
        };
        ends_open = plain == "." || plain == ".." || step.is_empty();
        match plain.as_str() {
            "." => {}
            ".." => drop(steps.pop()),
            "" if by_path => {}
            _ => steps.push(step),
        }
    }
    let open =
        if ends_open && steps.last().is_some_and(|step| !step.is_empty()) { "/" } else { "" };
    format!("/{}{open}", steps.join("/"))
}

/// The text after a scheme, resolved as one path from the host on. `None` if it has no `.` or `..`:
/// then the other readers cover it, and a query may contain a URL.
fn resolve_rest(rest: &str) -> Option<String> {
    let rest = rest.replace('\\', "/");
    if !rest.split('/').any(|step| dots(step).is_some()) {
        return None;
    }
    let place = rest.strip_prefix("//").unwrap_or(&rest);
    let root = if place.starts_with('/') { "/" } else { "" };
    let mut steps: Vec<&str> = Vec::new();
    for step in place.split('/') {
        match dots(step).unwrap_or(step) {
            "" | "." => {}
            ".." if steps.last().is_some_and(|last| *last != "..") => drop(steps.pop()),
            ".." if !root.is_empty() => {}
            step => steps.push(step),
        }
    }
    let slashes = if place.len() < rest.len() { "//" } else { "" };
    Some(format!("{slashes}{root}{}", steps.join("/")))
}

/// The `.` or `..` that a step is, ignoring blanks around it and parameters after it.
fn dots(step: &str) -> Option<&str> {
    let name = step.split(';').next().unwrap_or(step).trim();
    matches!(name, "." | "..").then_some(name)
}

#[cfg(test)]
mod tests;
