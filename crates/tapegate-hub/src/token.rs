//! The secrets that authenticate callers to a hub. Each run has its own.

use std::fmt;
use std::hint::black_box;
use std::io;

use tapegate_core::hex;
use tapegate_store::random;

/// The number of random bytes in a token.
const BYTES: usize = 32;

/// A secret. Its `Debug` output hides it.
#[derive(Clone)]
pub struct HubToken(String);

impl HubToken {
    /// Creates a random token.
    pub fn generate() -> io::Result<Self> {
        Ok(Self(hex::encode(&random::bytes::<BYTES>()?)))
    }

    /// Reads a token from the text of a file; `None` if it is malformed.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
    }

    /// The secret text, for the file and for a header.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `other` is the same token. The time it takes reveals only the length.
    pub fn matches(&self, other: &[u8]) -> bool {
        let own = self.0.as_bytes();
        // `black_box` keeps the compiler from stopping at the first difference.
        let differing = own.iter().zip(other).fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
        own.len() == other.len() && black_box(differing) == 0
    }
}

/// The two secrets of a run.
#[derive(Debug, Clone)]
pub struct HubTokens {
    /// The token that shims present.
    pub shims: HubToken,
    /// The token for approving, denying and shutting down; it allows everything else, too.
    pub approvers: HubToken,
}

/// Whose token a caller presents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRole {
    /// A shim, or any other program with the shims' token.
    Shim,
    /// A caller that may approve, deny and shut down the hub.
    Approver,
}

impl HubTokens {
    /// Creates two random tokens.
    pub fn generate() -> io::Result<Self> {
        Ok(Self { shims: HubToken::generate()?, approvers: HubToken::generate()? })
    }

    /// Whose token `shown` is, if it is either.
    pub fn caller(&self, shown: &[u8]) -> Option<TokenRole> {
        // Both are always compared, so the time does not tell which one was close.
        let (is_approver, is_shim) = (self.approvers.matches(shown), self.shims.matches(shown));
        is_approver.then_some(TokenRole::Approver).or(is_shim.then_some(TokenRole::Shim))
    }
}

impl fmt::Debug for HubToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_and_nothing_else() {
        let (token, other) = (HubToken::generate().unwrap(), HubToken::generate().unwrap());
        let text = token.reveal();
        assert_eq!(text.len(), 64);
        assert!(token.matches(text.as_bytes()) && !token.matches(other.reveal().as_bytes()));
        assert!(!token.matches(b"") && !token.matches(&text.as_bytes()[..63]));
        assert!(!token.matches(format!("{text}0").as_bytes()));
        assert!(!format!("{token:?}").contains(text));
        assert!(HubToken::read(&format!("{text}\n")).unwrap().matches(text.as_bytes()));
        assert!(HubToken::read(" \n").is_none() && HubToken::read("a b").is_none());
    }

    #[test]
    fn each_token_tells_who_shows_it() {
        let tokens = HubTokens::generate().unwrap();
        let caller = |token: &HubToken| tokens.caller(token.reveal().as_bytes());
        assert_eq!(caller(&tokens.shims), Some(TokenRole::Shim));
        assert_eq!(caller(&tokens.approvers), Some(TokenRole::Approver));
        assert_eq!(caller(&HubToken::generate().unwrap()), None);
        assert_eq!(tokens.caller(b""), None);
    }
}
