//! The signature of requests from Slack.
//!
//! ```text
//! X-Slack-Signature: v0=HEX     HMAC-SHA256 of "v0:timestamp:body", keyed with the signing secret
//! ```
//!
//! The time must be near ours, and each signature counts once, so a copy decides nothing.

use std::cell::RefCell;
use std::collections::BTreeMap;

use http::HeaderMap;
use ring::hmac;

use super::super::{InboundPost, InboundRefusal};

/// How far Slack's clock may be from ours.
const WINDOW_S: i64 = 300;
/// How many signatures are remembered. Only Slack can make them, so this is never reached.
const REMEMBERED_MAX: usize = 10_000;

/// Checks signatures with the signing secret of an app.
pub(super) struct SlackSignatures {
    key: hmac::Key,
    /// The signatures that counted, with their times, as long as they are not too old to count.
    used: RefCell<BTreeMap<Vec<u8>, i64>>,
}

impl SlackSignatures {
    pub(super) fn new(secret: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        Self { key, used: RefCell::default() }
    }

    /// Accepts a request that Slack has sent now, once.
    pub(super) fn check(&self, post: &InboundPost<'_>) -> Result<(), InboundRefusal> {
        let refused = |reason: &str| InboundRefusal(reason.to_owned());
        let wrong = || refused("its signature is not Slack's");
        let time = single(post.headers, "x-slack-request-timestamp").ok_or_else(wrong)?;
        // Digits only: the text is part of what is signed.
        if time.is_empty() || !time.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let seconds: i64 = time.parse().map_err(|_| wrong())?;
        let digits =
            single(post.headers, "x-slack-signature").and_then(|it| it.strip_prefix("v0="));
        let code = digits.and_then(decoded).ok_or_else(wrong)?;
        let signed = [format!("v0:{time}:").as_bytes(), post.body].concat();
        // In constant time.
        hmac::verify(&self.key, &signed, &code).map_err(|_| wrong())?;
        // After the signature, so that others learn nothing about our clock.
        if post.now_s.abs_diff(seconds) > WINDOW_S as u64 {
            return Err(refused(
                "its time is more than 5 minutes from the hub's; correct the hub's clock if it is off",
            ));
        }
        let mut used = self.used.borrow_mut();
        used.retain(|_, at| post.now_s.abs_diff(*at) <= WINDOW_S as u64);
        if used.len() >= REMEMBERED_MAX {
            return Err(refused("too many requests"));
        }
        match used.insert(code, seconds) {
            None => Ok(()),
            Some(_) => Err(refused("it was sent before")),
        }
    }
}

/// The value of a header that occurs exactly once.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    value.to_str().ok()
}

/// The bytes of hexadecimal digits.
fn decoded(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        // `from_str_radix` would take a sign.
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| u8::from_str_radix(text, 16).ok()).flatten()
    };
    pairs.map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"payload=%7B%7D";
    /// By `printf 'v0:1531420618:payload=%%7B%%7D' | openssl dgst -sha256 -hmac secret`.
    const SIGNATURE: &str = "v0=655bd15c2cb5ee5ca90d2720bdb24fce22750155c38505e93b131b3c5d7c730b";

    fn post<'a>(headers: &'a HeaderMap, body: &'a [u8], now_s: i64) -> InboundPost<'a> {
        InboundPost { headers, body, now_s }
    }

    fn headers(time: &'static str, signature: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("x-slack-request-timestamp", http::HeaderValue::from_static(time));
        headers.insert("x-slack-signature", signature.parse().unwrap());
        headers
    }

    #[test]
    fn a_request_of_slack_counts_once_and_only_now() {
        let now = 1_531_420_618;
        let good = headers("1531420618", SIGNATURE);
        let checked = |headers: &HeaderMap, body: &[u8], now_s: i64| {
            SlackSignatures::new("secret").check(&post(headers, body, now_s)).is_ok()
        };
        assert!(checked(&good, BODY, now) && checked(&good, BODY, now + 300));
        assert!(!checked(&good, BODY, now + 301) && !checked(&good, BODY, now - 301));
        assert!(!checked(&good, b"payload=%7B%7E", now));
        for time in ["1531420619", "+1531420618", "", "99999999999999999999"] {
            assert!(!checked(&headers(time, SIGNATURE), BODY, now), "{time}");
        }
        for signature in ["", "v0=", "v1=00", &SIGNATURE[..60], &format!("{SIGNATURE}00"), "v0=+f"]
        {
            assert!(!checked(&headers("1531420618", signature), BODY, now), "{signature}");
        }
        let mut twice = good.clone();
        twice.append("x-slack-signature", SIGNATURE.parse().unwrap());
        assert!(!checked(&twice, BODY, now), "two signatures");
        let signatures = SlackSignatures::new("secret");
        assert!(signatures.check(&post(&good, BODY, now)).is_ok());
        let again = signatures.check(&post(&good, BODY, now + 1));
        assert_eq!(again, Err(InboundRefusal("it was sent before".to_owned())));
        assert!(SlackSignatures::new("other").check(&post(&good, BODY, now)).is_err());
    }
}
