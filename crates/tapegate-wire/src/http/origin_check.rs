//! Decides which requests may use a listener.
//!
//! A listener on loopback is reachable from every web page in the user's browser. A page cannot
//! forge `Host`, `Origin` or `Sec-Fetch-Site`, so a request must name one of our hosts, and come
//! from one of our pages or from no page. Images, frames and links have no `Origin`; for those,
//! browsers report in `Sec-Fetch-Site` that another page caused them.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, HeaderValue, Uri};

/// The header in which a browser reports what caused a request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The origin check of one listener.
#[derive(Debug, Clone)]
pub struct OriginCheck {
    bound: SocketAddr,
    /// The host name the listener was configured with, if it was a name.
    name: Option<String>,
    allowed: AllowedNames,
}

/// Additional names that are accepted, such as that of a service in a container.
#[derive(Debug, Clone, Default)]
pub struct AllowedNames {
    /// Hosts, without a port.
    pub hosts: Vec<String>,
    /// Origins, such as `https://app.example.com`.
    pub origins: Vec<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginRefusal {
    /// The request names another host.
    #[error("the Host header names `{0}`, which is not this listener")]
    Host(String),
    /// The request comes from a page of another origin.
    #[error("the Origin header names `{0}`, which may not use this listener")]
    Origin(String),
    /// A browser sent the request on behalf of another site's page.
    #[error("the Sec-Fetch-Site header is `{0}`: a page of another site may not use this listener")]
    OtherSite(String),
}

impl OriginCheck {
    /// The check for a listener configured as `name` and bound to `bound`.
    pub fn new(bound: SocketAddr, name: Option<String>) -> Self {
        Self { bound, name, allowed: AllowedNames::default() }
    }

    /// Accepts additional names. Pages of an allowed host are accepted too.
    pub fn with_allowed(self, allowed: AllowedNames) -> Self {
        Self { allowed, ..self }
    }

    /// Checks the target, and every header that names a host or an origin.
    pub fn check(&self, target: &Uri, headers: &HeaderMap) -> Result<(), OriginRefusal> {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let named = target.authority().map(|authority| authority.as_str().to_owned());
        let mut hosts: Vec<_> = headers.get_all(HOST).iter().map(text).chain(named).collect();
        if !headers.contains_key(HOST) {
            hosts.push(String::new());
        }
        if let Some(host) = hosts.into_iter().find(|host| !self.is_local_authority(host)) {
            return Err(OriginRefusal::Host(host));
        }
        let mut origins = headers.get_all(ORIGIN).iter().map(text);
        if let Some(origin) = origins.find(|origin| !self.is_own_origin(origin)) {
            return Err(OriginRefusal::Origin(origin));
        }
        // An Origin that got here is accepted, and is more specific than Sec-Fetch-Site.
        let mut sites = headers.get_all(FETCH_SITE).iter().map(text);
        match sites.find(|site| !is_own_site(site)) {
            Some(site) if !headers.contains_key(ORIGIN) => Err(OriginRefusal::OtherSite(site)),
            _ => Ok(()),
        }
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        if self.allowed.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return true;
        }
        origin.split_once("://").is_some_and(|(_, authority)| self.is_local_authority(authority))
    }

    /// Whether `authority` unambiguously names this machine.
    fn is_local_authority(&self, authority: &str) -> bool {
        let Some(host) = host_of(authority) else { return false };
        if host.eq_ignore_ascii_case("localhost")
            || self.name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(host))
            || self.allowed.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
        {
            return true;
        }
        match host.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || ip == self.bound.ip() || self.bound.ip().is_unspecified(),
            Err(_) => false,
        }
    }
}

/// Whether `Sec-Fetch-Site` names the user or a page of the listener as the cause of a request.
fn is_own_site(site: &str) -> bool {
    ["none", "same-origin"].iter().any(|own| own.eq_ignore_ascii_case(site.trim()))
}

/// The host in `host` or `host:port`, without brackets; `None` for anything else, such as user info
/// before an `@`.
fn host_of(authority: &str) -> Option<&str> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>) -> bool {
        let guard =
            OriginCheck::new("127.0.0.1:8080".parse().unwrap(), Some("tape.test".to_owned()));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        guard.check(&Uri::from_static("/mcp"), &headers).is_ok()
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
        for host in [
            "",
            "evil.test",
            "127.0.0.1.evil.test:8080",
            "10.0.0.1",
            "localhost.evil.test",
            "localhost:80@evil.test",
            "localhost@evil.test",
            "[::1]evil.test",
            "[::1",
            "localhost:x",
        ] {
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
        for origin in [
            "null",
            "http://evil.test",
            "http://localhost.evil.test",
            "file://",
            "x",
            "localhost",
            "http://localhost:80@evil.test",
            "http://[::1]evil.test",
        ] {
            assert!(!check("localhost", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn names_that_are_allowed_pass_and_no_others() {
        let allowed = AllowedNames {
            hosts: vec!["Tapes".to_owned()],
            origins: vec!["https://app.test".to_owned()],
        };
        let guard = OriginCheck::new("127.0.0.1:8080".parse().unwrap(), None).with_allowed(allowed);
        let check = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            origin.into_iter().for_each(|it| drop(headers.insert(ORIGIN, it.parse().unwrap())));
            guard.check(&Uri::from_static("/mcp"), &headers).is_ok()
        };
        assert!(check("tapes:8080", None) && check("tapes", Some("https://app.test")));
        assert!(check("tapes", Some("http://tapes:8080")));
        for host in ["tapes.evil.test", "evil.test", "app.test", "x@tapes"] {
            assert!(!check(host, None), "{host}");
        }
        for origin in
            ["http://app.test", "https://app.test.evil.test", "https://app.test:1", "null"]
        {
            assert!(!check("tapes", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn whatever_tells_a_host_or_an_origin_is_looked_at() {
        let guard = OriginCheck::new("127.0.0.1:8080".parse().unwrap(), None);
        let check = |target: &'static str, lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for &(name, value) in lines {
                headers.append(name, HeaderValue::from_static(value));
            }
            guard.check(&Uri::from_static(target), &headers).is_ok()
        };
        let (ours, other) = (("host", "localhost"), ("host", "evil.test"));
        let (page, strange) = (("origin", "http://localhost"), ("origin", "http://evil.test"));
        assert!(check("/mcp", &[ours]) && check("http://localhost:8080/mcp", &[ours, page]));
        assert!(!check("http://evil.test/mcp", &[ours]));
        assert!(!check("http://localhost/mcp", &[]));
        assert!(!check("/mcp", &[ours, other]));
        assert!(!check("/mcp", &[ours, page, strange]));
        let site = |site: &'static str| ("sec-fetch-site", site);
        assert!(
            check("/mcp", &[ours, site("none")]) && check("/mcp", &[ours, site("same-origin")])
        );
        // Images and links on another page send no Origin.
        for other in ["cross-site", "same-site", "Cross-Site", "", "none, cross-site"] {
            assert!(!check("/sse", &[ours, site(other)]), "{other}");
            assert!(!check("/sse", &[ours, site("none"), site(other)]), "{other}");
            assert!(check("/mcp", &[ours, page, site(other)]), "{other}");
            assert!(!check("/mcp", &[ours, strange, site(other)]), "{other}");
        }
    }
}
