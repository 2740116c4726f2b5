//! Resolves URLs that a server names, restricted to its own origin.

use http::uri::PathAndQuery;
use http::{StatusCode, Uri};

/// How many redirects are followed for one request.
pub(super) const REDIRECTS_MAX: usize = 3;

/// Whether a redirect keeps the method and the body of the request.
pub(super) fn keeps_request(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

/// Resolves `target` against `base` to a path at `origin`, or `None` for another origin. The path
/// must not start with `//`, which would name another host.
pub(super) fn resolve(origin: &str, base: &PathAndQuery, target: &str) -> Option<PathAndQuery> {
    find(origin, base, target).filter(|path| !path.as_str().starts_with("//"))
}

fn find(origin: &str, base: &PathAndQuery, target: &str) -> Option<PathAndQuery> {
    let target = target.trim().split('#').next().unwrap_or_default();
    // Browsers treat a backslash as a slash and ignore tabs, so `/\host` is another host.
    if target.bytes().any(|byte| byte == b'\\' || byte.is_ascii_control()) {
        return None;
    }
    let scheme = target.split(['/', '?']).next().and_then(|first| first.split_once(':'));
    if let Some((scheme, _)) = scheme {
        // Browsers read `https:host` as `https://host`.
        let rest = target.strip_prefix(scheme)?.strip_prefix("://")?;
        let uri: Uri = format!("{}://{rest}", scheme.to_ascii_lowercase()).parse().ok()?;
        let named = format!("{}://{}", uri.scheme_str()?, uri.authority()?);
        let same = normalized_origin(&named) == normalized_origin(origin);
        let root = || PathAndQuery::from_static("/");
        return same.then(|| uri.path_and_query().cloned().unwrap_or_else(root));
    }
    if target.starts_with("//") {
        let scheme = origin.split("://").next()?;
        return find(origin, base, &format!("{scheme}:{target}"));
    }
    let path = match target {
        "" => return Some(base.clone()),
        _ if target.starts_with('/') => target.to_owned(),
        _ if target.starts_with('?') => format!("{}{target}", base.path()),
        _ => {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{target}")
        }
    };
    without_dots(&path).parse().ok()
}

/// Removes the segments `.` and `..` from a path, as clients do.
fn without_dots(target: &str) -> String {
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    let mut kept = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

/// An origin in lower case, without the default port.
fn normalized_origin(origin: &str) -> String {
    let origin = origin.to_ascii_lowercase();
    let default = if origin.starts_with("https") { ":443" } else { ":80" };
    origin.strip_suffix(default).unwrap_or(&origin).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_at_the_origin_are_found_and_others_are_not() {
        let base = PathAndQuery::from_static("/a/sse?k=1");
        for (target, path) in [
            ("/message?s=1", Some("/message?s=1")),
            ("message?s=1", Some("/a/message?s=1")),
            ("?s=1", Some("/a/sse?s=1")),
            ("../m?s=../1", Some("/m?s=../1")),
            ("./m/..", Some("/a/")),
            ("/m/../../n/./", Some("/n/")),
            ("/m//n/", Some("/m//n/")),
            ("http://Host:80/m", Some("/m")),
            ("HTTP://host", Some("/")),
            ("//host/m", Some("/m")),
            ("/m?to=http://other/", Some("/m?to=http://other/")),
            ("", Some("/a/sse?k=1")),
            ("http://host:81/m", None),
            ("https://host/m", None),
            ("http://evil.test/m", None),
            ("//evil.test/m", None),
            ("/\\evil.test/m", None),
            ("\\\\evil.test/m", None),
            ("/\t/evil.test/m", None),
            ("https:evil.test/m", None),
            ("https:/evil.test/m", None),
            ("HTTPS:///evil.test/m", None),
            ("http:evil.test/m", None),
            ("a+b://host/m", None),
            ("http://host//evil.test/m", None),
            ("//host//evil.test/m", None),
            ("/.//evil.test/m", None),
            ("/x/..//evil.test/m", None),
            ("m:1", None),
            ("./m:1", Some("/a/m:1")),
            ("?to=a:b", Some("/a/sse?to=a:b")),
            ("http://host@evil.test/m", None),
        ] {
            let found = resolve("http://host", &base, target);
            assert_eq!(found.as_ref().map(PathAndQuery::as_str), path, "{target}");
        }
    }
}
