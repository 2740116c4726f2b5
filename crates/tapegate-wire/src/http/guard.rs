//! Who may talk to a listener.
//!
//! A listener on loopback is reachable from every web page in the user's browser. A page cannot
//! forge `Host` or `Origin`, so a request must name a host that we are, and come from no page or
//! from one of ours.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Uri};

/// The rule of one listener.
#[derive(Debug, Clone)]
pub struct Guard {
    bound: SocketAddr,
    /// The host name as it was given, if it was one.
    name: Option<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is for somebody else.
    #[error("the Host header names `{0}`, which is not this listener")]
    Host(String),
    /// The request comes from a page that is not ours.
    #[error("the Origin header names `{0}`, which may not use this listener")]
    Origin(String),
}

impl Guard {
    /// The guard of a listener that was asked for by `name` and got the address `bound`.
    pub fn new(bound: SocketAddr, name: Option<String>) -> Self {
        Self { bound, name }
    }

    /// Checks the headers of a request.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let host = headers.get(HOST).map(text).unwrap_or_default();
        if !self.is_ours(&host) {
            return Err(Refusal::Host(host));
        }
        match headers.get(ORIGIN).map(text) {
            Some(origin) if !self.is_our_page(&origin) => Err(Refusal::Origin(origin)),
            _ => Ok(()),
        }
    }

    fn is_our_page(&self, origin: &str) -> bool {
        let uri: Option<Uri> = origin.parse().ok();
        uri.and_then(|uri| uri.authority().map(|authority| self.is_ours(authority.as_str())))
            .unwrap_or(false)
    }

    /// Whether `authority` names this machine in a way that only it can be meant.
    fn is_ours(&self, authority: &str) -> bool {
        let host = strip_port(authority);
        if host.eq_ignore_ascii_case("localhost")
            || self.name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(host))
        {
            return true;
        }
        match host.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || ip == self.bound.ip() || self.bound.ip().is_unspecified(),
            Err(_) => false,
        }
    }
}

/// The host of `host:port`, without brackets.
fn strip_port(authority: &str) -> &str {
    if let Some(rest) = authority.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>) -> bool {
        let guard = Guard::new("127.0.0.1:8080".parse().unwrap(), Some("tape.test".to_owned()));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        guard.check(&headers).is_ok()
    }

    #[test]
    fn only_names_of_this_machine_pass() {
        for host in [
            "127.0.0.1:8080",
            "localhost",
            "LOCALHOST:1",
            "[::1]:8080",
            "127.9.9.9",
            "tape.test:8080",
        ] {
            assert!(check(host, None), "{host}");
        }
        for host in ["", "evil.test", "127.0.0.1.evil.test:8080", "10.0.0.1", "localhost.evil.test"]
        {
            assert!(!check(host, None), "{host}");
        }
    }

    #[test]
    fn only_pages_of_this_machine_pass() {
        for origin in
            ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:1", "http://tape.test"]
        {
            assert!(check("localhost", Some(origin)), "{origin}");
        }
        for origin in ["null", "http://evil.test", "http://localhost.evil.test", "file://", "x"] {
            assert!(!check("localhost", Some(origin)), "{origin}");
        }
    }
}
