//! How a hub proves that it holds a token without revealing it.
//!
//! After a hub has ended, another program can bind its port, and shims would take it for the hub.
//! So each connection begins with a challenge: a random text that is used once. The answer is a
//! keyed hash of the challenge and the address that was connected to; its key is derived from the
//! token. A hub answers only for its own address, so a program elsewhere cannot pass itself off as
//! the hub by relaying the challenge to it.

use std::io;
use std::net::SocketAddr;

use blake3::Hash;
use http::HeaderName;
use tapegate_core::hex;
use tapegate_store::random;

use crate::token::HubToken;

/// The header of a challenge on `GET /healthz`. `Host` must be a numeric address with its port.
pub const CHALLENGE: HeaderName = HeaderName::from_static("tapegate-challenge");
/// The header of an answer; the hub sends one for each of its tokens.
pub const PROOF: HeaderName = HeaderName::from_static("tapegate-proof");

/// The key derivation context.
const CONTEXT: &str = "tapegate hub 2026-11 proof of the token";
/// The number of random bytes in a challenge.
const BYTES: usize = 32;

/// A random text that is used once, in 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge(String);

impl Challenge {
    /// Creates a random challenge.
    pub fn generate() -> io::Result<Self> {
        Ok(Self(hex::encode(&random::bytes::<BYTES>()?)))
    }

    /// Reads a challenge that was received; `None` if it is malformed.
    pub fn read(text: &[u8]) -> Option<Self> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let fits = text.len() == 2 * BYTES && text.iter().all(is_digit);
        let text = std::str::from_utf8(text).ok().filter(|_| fits)?;
        Some(Self(text.to_owned()))
    }

    /// The text, for a header.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The answer of a hub at `address` that holds `token`, in hexadecimal digits.
    pub fn proof(&self, token: &HubToken, address: SocketAddr) -> String {
        self.hash(token, address).to_hex().to_string()
    }

    /// Whether `proof` is the right answer. Takes constant time.
    pub fn is_proven_by(&self, proof: &[u8], token: &HubToken, address: SocketAddr) -> bool {
        // `blake3::Hash` compares in constant time.
        Hash::from_hex(proof).is_ok_and(|proof| proof == self.hash(token, address))
    }

    fn hash(&self, token: &HubToken, address: SocketAddr) -> Hash {
        // A key of its own, so that a proof can serve for nothing else that the token may key.
        let key = blake3::derive_key(CONTEXT, token.reveal().as_bytes());
        let mut hasher = blake3::Hasher::new_keyed(&key);
        // The challenge has a fixed length, so the boundary between the two parts is unambiguous.
        hasher.update(self.0.as_bytes()).update(address.to_string().as_bytes());
        hasher.finalize()
    }
}

/// Whether a hub bound to `bound` may answer for `named`. A hub that listens on all addresses
/// cannot know through which one it was reached, so it answers for any address with its port.
pub fn is_own(bound: SocketAddr, named: SocketAddr) -> bool {
    // An IPv6 socket on `::` also accepts IPv4 connections; one on `0.0.0.0` takes no IPv6.
    let any = bound.ip().is_unspecified() && (bound.is_ipv6() || named.is_ipv4());
    named.port() == bound.port() && (any || named.ip() == bound.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_proof_holds_for_one_token_one_challenge_and_one_address() {
        let (token, other) = (HubToken::generate().unwrap(), HubToken::generate().unwrap());
        let (challenge, next) = (Challenge::generate().unwrap(), Challenge::generate().unwrap());
        assert_ne!(challenge, next);
        let here = address("127.0.0.1:19090");
        let proof = challenge.proof(&token, here);
        assert!(challenge.is_proven_by(proof.as_bytes(), &token, here));
        assert!(!proof.contains(token.reveal()) && !proof.contains(challenge.text()));
        assert!(!challenge.is_proven_by(proof.as_bytes(), &other, here));
        assert!(!next.is_proven_by(proof.as_bytes(), &token, here));
        for elsewhere in ["127.0.0.1:19091", "127.0.0.2:19090", "[::1]:19090", "0.0.0.0:19090"] {
            assert!(!challenge.is_proven_by(proof.as_bytes(), &token, address(elsewhere)));
        }
        let cut = &proof.as_bytes()[..63];
        let longer = format!("{proof}0");
        for wrong in [b"", cut, longer.as_bytes(), challenge.text().as_bytes(), &[b'0'; 64]] {
            assert!(!challenge.is_proven_by(wrong, &token, here));
        }
    }

    #[test]
    fn a_challenge_has_64_small_digits() {
        let challenge = Challenge::generate().unwrap();
        assert_eq!(Challenge::read(challenge.text().as_bytes()), Some(challenge.clone()));
        let upper = "A".repeat(64);
        let cut = &challenge.text().as_bytes()[1..];
        for wrong in [b"".as_slice(), cut, upper.as_bytes(), &[b'g'; 64], &[0xff; 64]] {
            assert_eq!(Challenge::read(wrong), None);
        }
    }

    #[test]
    fn a_hub_answers_for_its_own_address_alone() {
        let own = |bound: &str, named: &str| is_own(address(bound), address(named));
        assert!(own("127.0.0.1:1", "127.0.0.1:1") && own("[::1]:1", "[::1]:1"));
        assert!(own("0.0.0.0:1", "10.0.0.1:1") && own("[::]:1", "10.0.0.1:1"));
        for (bound, named) in [
            ("127.0.0.1:1", "127.0.0.1:2"),
            ("127.0.0.1:1", "127.0.0.2:1"),
            ("127.0.0.1:1", "[::1]:1"),
            ("0.0.0.0:1", "[::1]:1"),
            ("0.0.0.0:1", "127.0.0.1:2"),
        ] {
            assert!(!own(bound, named), "{bound} {named}");
        }
    }
}
