//! The line on a pipe that is sent in pieces.

/// The line on a pipe that is sent in pieces, and what of it goes on the tape once it has ended.
#[derive(Debug, Default)]
pub(super) struct RawLine {
    open: bool,
    /// What was sent of it, as far as it is kept.
    kept: Vec<u8>,
}

impl RawLine {
    /// Whether some of a line was sent, and not its end.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// A piece was sent; up to so many bytes are kept.
    pub(super) fn add(&mut self, bytes: &[u8], ends: bool, keep_bytes_max: Option<usize>) {
        self.open = !ends;
        let room = keep_bytes_max.unwrap_or(0).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The line has its end.
    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// Takes out what was kept, if there is anything.
    pub(super) fn cut(&mut self, record: impl FnOnce(&[u8])) {
        if !self.kept.is_empty() {
            record(&std::mem::take(&mut self.kept));
        }
    }
}
