//! Pieces of an actor's output on their way to the client.

/// A piece of an actor's output. It need not be a message; only actor sessions create pieces.
#[derive(Debug)]
pub(crate) struct ActorPiece(Vec<u8>);

/// Restores the client's id of a request in output that may be split anywhere.
pub(crate) struct IdRename {
    own_id: Vec<u8>,
    client_id: Vec<u8>,
    /// How many bytes of our id have been matched so far.
    matched: usize,
}

impl ActorPiece {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Replaces our id with the one the client knows.
    pub(crate) fn with_client_id(self, rename: Option<&mut IdRename>, ends: bool) -> Self {
        match rename {
            Some(rename) => Self(rename.rewrite(&self.0, ends)),
            None => self,
        }
    }
}

/// The bytes sent so far of something that is sent in pieces, up to the size limit of the tape.
#[derive(Debug, Default)]
pub(crate) struct TapedBytes {
    bytes: Vec<u8>,
    is_over: bool,
}

impl TapedBytes {
    pub(crate) fn add(&mut self, bytes: &[u8], bytes_max: usize) {
        let room = bytes_max.saturating_sub(self.bytes.len());
        self.is_over |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether more was sent than the limit allows to keep.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl IdRename {
    /// Replaces the id `ours` with `theirs`.
    pub(crate) fn new(ours: &[u8], client_id: Vec<u8>) -> Self {
        Self { own_id: ours.to_vec(), client_id, matched: 0 }
    }

    /// The bytes to send for a piece. A partial match is held back until it is decided.
    fn rewrite(&mut self, bytes: &[u8], ends: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + self.matched);
        for byte in bytes {
            if self.own_id.get(self.matched) != Some(byte) {
                // Our ids begin and end with a quote and contain no other, so after a failed match
                // only the current byte can begin another.
                out.extend_from_slice(&self.own_id[..self.matched]);
                self.matched = 0;
            }
            if self.own_id.get(self.matched) != Some(byte) {
                out.push(*byte);
                continue;
            }
            self.matched += 1;
            if self.matched == self.own_id.len() {
                out.extend_from_slice(&self.client_id);
                self.matched = 0;
            }
        }
        // Nothing follows that could complete the match.
        if ends {
            out.extend_from_slice(&self.own_id[..self.matched]);
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
            let mut rename = IdRename { own_id: ours, client_id: theirs, matched: 0 };
            let mut out = Vec::new();
            let count = text.chunks(size).count();
            for (index, piece) in text.chunks(size).enumerate() {
                out.extend(rename.rewrite(piece, index + 1 == count));
            }
            assert_eq!(out, expected, "{size}");
        }
    }

    #[test]
    fn a_name_that_does_not_come_to_its_end_stays() {
        let (ours, theirs) = (b"\"ab\"".to_vec(), b"7".to_vec());
        let mut rename = IdRename { own_id: ours, client_id: theirs, matched: 0 };
        assert_eq!(rename.rewrite(b"x\"a", true), b"x\"a");
    }
}
