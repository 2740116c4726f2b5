//! Pieces of what an actor says through a bridge.

use std::borrow::Cow;

/// A piece of what an actor says. It need not be a message, and only what an actor has written to its
/// bridge is read as one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ActorPiece<'a>(Cow<'a, [u8]>);

/// Gives a request the name back that its client knows it by, wherever pieces begin and end.
pub(crate) struct Rename {
    ours: Vec<u8>,
    theirs: Vec<u8>,
    /// How much of our name has come.
    matched: usize,
}

impl<'a> ActorPiece<'a> {
    pub(super) fn new(bytes: Cow<'a, [u8]>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same with the name that the client knows its request by.
    pub(crate) fn renamed(self, rename: Option<&mut Rename>, ends: bool) -> Self {
        match rename {
            Some(rename) => Self(Cow::Owned(rename.pass(&self.0, ends))),
            None => self,
        }
    }
}

impl Rename {
    /// Gives the name `theirs` to what we have named `ours`.
    pub(crate) fn new(ours: &[u8], theirs: Vec<u8>) -> Self {
        Self { ours: ours.to_vec(), theirs, matched: 0 }
    }

    /// What is sent for a piece. A name that might have begun is held back until it is known.
    fn pass(&mut self, bytes: &[u8], ends: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + self.matched);
        for byte in bytes {
            if self.ours.get(self.matched) != Some(byte) {
                // A name begins and ends with a quote and holds no other, so only the last byte of
                // what did not become one can begin another.
                out.extend_from_slice(&self.ours[..self.matched]);
                self.matched = 0;
            }
            if self.ours.get(self.matched) != Some(byte) {
                out.push(*byte);
                continue;
            }
            self.matched += 1;
            if self.matched == self.ours.len() {
                out.extend_from_slice(&self.theirs);
                self.matched = 0;
            }
        }
        if ends {
            out.extend_from_slice(&self.ours[..self.matched]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_back_wherever_pieces_begin_and_end() {
        let text =
            br#"{"jsonrpc":"2.0","id":"tapegate-12","result":{"a":"tapegate-1","b":"tapegate"}}"#;
        let expected = br#"{"jsonrpc":"2.0","id":7,"result":{"a":"tapegate-1","b":"tapegate"}}"#;
        for size in 1..text.len() {
            let (ours, theirs) = (b"\"tapegate-12\"".to_vec(), b"7".to_vec());
            let mut rename = Rename { ours, theirs, matched: 0 };
            let mut out = Vec::new();
            let count = text.chunks(size).count();
            for (index, piece) in text.chunks(size).enumerate() {
                out.extend(rename.pass(piece, index + 1 == count));
            }
            assert_eq!(out, expected, "{size}");
        }
    }

    #[test]
    fn a_name_that_does_not_come_to_its_end_stays() {
        let (ours, theirs) = (b"\"ab\"".to_vec(), b"7".to_vec());
        let mut rename = Rename { ours, theirs, matched: 0 };
        assert_eq!(rename.pass(b"x\"a", true), b"x\"a");
    }
}
