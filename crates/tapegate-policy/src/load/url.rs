//! Checks whether a text is a URL that requests can be sent to.

/// Checks a URL; the error describes what is wrong with it.
pub(super) fn check(text: &str) -> Result<(), String> {
    let bad = |reason: &str| Err(format!("`{text}` is not a valid URL: {reason}"));
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest else { return bad("it must begin with `http://` or `https://`") };
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return bad("it contains whitespace or a control character");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match host.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => return bad("a `]` is missing"),
        },
        None => match host.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (host, None),
        },
    };
    match (host.is_empty(), port.map(str::parse::<u16>)) {
        (true, _) => bad("it names no host"),
        (false, Some(Err(_))) => bad("its port is not a number up to 65535"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_scheme_a_host_and_perhaps_a_port() {
        for good in ["http://a", "https://a.b:80/c?d#e", "http://[::1]:9/x", "http://u:p@h:1/"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "a",
            "ftp://a",
            "http://",
            "http:///x",
            "http://a b",
            "http://a:x",
            "http://[::1",
            "http://a:70000",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
