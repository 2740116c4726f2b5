//! Reports HTTP exchanges as `tracing` events: method, path, status and duration. Header values and
//! queries never are, because they may be secrets; nor are parts of a path that may be.

use std::time::Instant;

use http::{Method, StatusCode};
use tracing::debug;

/// The longest part of a path that is shown.
const SEGMENT_BYTES_MAX: usize = 32;
/// Longer parts with digits may be keys or ids.
const SEGMENT_WITH_DIGITS_BYTES_MAX: usize = 4;

/// An exchange in progress, if exchanges are reported.
pub(super) struct ExchangeTrace {
    peer: &'static str,
    method: Method,
    path: String,
    started: Instant,
}

impl ExchangeTrace {
    /// Starts to time an exchange with `peer`; `None` if exchanges are not reported.
    pub(super) fn start(peer: &'static str, method: &Method, path: &str) -> Option<Self> {
        tracing::enabled!(tracing::Level::DEBUG).then(|| Self {
            peer,
            method: method.clone(),
            path: visible_path(path),
            started: Instant::now(),
        })
    }

    /// Reports the head of the reply.
    pub(super) fn answered(self, status: StatusCode) {
        let Self { peer, method, path, started } = self;
        let ms = started.elapsed().as_millis() as u64;
        debug!(peer, %method, path, status = status.as_u16(), ms, "HTTP exchange");
    }

    /// Reports that there is no reply.
    pub(super) fn failed(self, error: &dyn std::fmt::Display) {
        let Self { peer, method, path, started } = self;
        let ms = started.elapsed().as_millis() as u64;
        debug!(peer, %method, path, %error, ms, "HTTP exchange failed");
    }
}

/// A path in which `*` stands for each part that may be a secret.
pub(super) fn visible_path(path: &str) -> String {
    let segment = |segment: &str| match is_word(segment) {
        true => segment.to_owned(),
        false => "*".to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

fn is_word(segment: &str) -> bool {
    let bytes = || segment.bytes();
    let with_digits = bytes().any(|byte| byte.is_ascii_digit());
    let bytes_max = if with_digits { SEGMENT_WITH_DIGITS_BYTES_MAX } else { SEGMENT_BYTES_MAX };
    segment.len() <= bytes_max
        && bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::visible_path;

    #[test]
    fn parts_of_a_path_that_may_be_secrets_are_not_shown() {
        for (path, wanted) in [
            ("/mcp", "/mcp"),
            ("/", "/"),
            ("/v1/mcp/", "/v1/mcp/"),
            ("/s/3f9c2e7a/mcp", "/s/*/mcp"),
            ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource"),
            ("/user%3Apass/mcp", "/*/mcp"),
        ] {
            assert_eq!(visible_path(path), wanted, "{path}");
        }
    }
}
