//! Decides which of the configured headers for a server are credentials.
//!
//! Without this, any client of the listener could obtain a login in the user's name: a server that
//! is its own authorization server answers `/authorize` with a code for the user whose credentials
//! it sees.

use http::HeaderMap;
use http::header::HeaderName;

/// Whether the credentials among the configured headers are added to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Credentials {
    Added,
    /// For the steps of a login.
    LeftOut,
}

impl Credentials {
    /// The headers to add to a request.
    pub(super) fn headers_to_send(self, extra: &HeaderMap) -> HeaderMap {
        let mut sent = extra.clone();
        if self == Self::LeftOut {
            for name in extra.keys().filter(|name| is_credential(name)) {
                sent.remove(name);
            }
        }
        sent
    }
}

fn is_credential(name: &HeaderName) -> bool {
    const NAMES: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];
    const PARTS: [&str; 6] = ["token", "secret", "password", "api-key", "apikey", "credential"];
    let name = name.as_str();
    NAMES.contains(&name) || PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_a_login_gets_no_credentials() {
        let names = ["authorization", "cookie", "proxy-authorization", "x-api-key", "x-tenant"];
        let extra: HeaderMap = names
            .iter()
            .map(|name| (HeaderName::from_static(name), http::HeaderValue::from_static("x")))
            .collect();
        assert_eq!(Credentials::Added.headers_to_send(&extra), extra);
        let left = Credentials::LeftOut.headers_to_send(&extra);
        assert_eq!(left.keys().collect::<Vec<_>>(), ["x-tenant"]);
    }
}
