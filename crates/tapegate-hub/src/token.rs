//! The secrets that authenticate callers to a hub. Each run has its own.

use std::fmt;
use std::hint::black_box;
use std::io;

/// The number of random bytes in a token.
const BYTES: usize = 32;

/// A secret. Its `Debug` output hides it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Creates a random token.
    pub fn fresh() -> io::Result<Self> {
        Ok(Self(random_hex(BYTES)?))
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
    pub fn is(&self, other: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differing = own.iter().zip(other).fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
        own.len() == other.len() && black_box(differing) == 0
    }
}

/// The two secrets of a run.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// The token that shims present.
    pub shims: Token,
    /// The token for approving, denying and shutting down; it allows everything else, too.
    pub approvers: Token,
}

/// Whose token a caller presents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A shim, or any other program with the shims' token.
    Shim,
    /// A caller that may approve, deny and shut down the hub.
    Approver,
}

impl Tokens {
    /// Creates two random tokens.
    pub fn fresh() -> io::Result<Self> {
        Ok(Self { shims: Token::fresh()?, approvers: Token::fresh()? })
    }

    /// Whose token `shown` is, if it is either.
    pub fn caller(&self, shown: &[u8]) -> Option<Caller> {
        let (is_approver, is_shim) = (self.approvers.is(shown), self.shims.is(shown));
        is_approver.then_some(Caller::Approver).or(is_shim.then_some(Caller::Shim))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A random name of 16 hexadecimal digits.
pub fn fresh_name() -> io::Result<String> {
    random_hex(8)
}

pub(crate) fn random_hex(count: usize) -> io::Result<String> {
    let mut bytes = vec![0; count];
    let mut filled = 0;
    while filled < count {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut bytes[filled..], flags)?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_and_nothing_else() {
        let (token, other) = (Token::fresh().unwrap(), Token::fresh().unwrap());
        let text = token.reveal();
        assert_eq!(text.len(), 64);
        assert!(token.is(text.as_bytes()) && !token.is(other.reveal().as_bytes()));
        assert!(!token.is(b"") && !token.is(&text.as_bytes()[..63]));
        assert!(!token.is(format!("{text}0").as_bytes()));
        assert!(!format!("{token:?}").contains(text));
        assert!(Token::read(&format!("{text}\n")).unwrap().is(text.as_bytes()));
        assert!(Token::read(" \n").is_none() && Token::read("a b").is_none());
    }

    #[test]
    fn each_token_tells_who_shows_it() {
        let tokens = Tokens::fresh().unwrap();
        let caller = |token: &Token| tokens.caller(token.reveal().as_bytes());
        assert_eq!(caller(&tokens.shims), Some(Caller::Shim));
        assert_eq!(caller(&tokens.approvers), Some(Caller::Approver));
        assert_eq!(caller(&Token::fresh().unwrap()), None);
        assert_eq!(tokens.caller(b""), None);
    }
}
