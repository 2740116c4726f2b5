//! A line that is sent on a pipe in pieces.

/// A line that is sent on a pipe in pieces, and the part of it to record once it has ended.
#[derive(Debug, Default)]
pub(super) struct RawLine {
    open: bool,
    /// The bytes sent so far, up to the recording limit.
    kept: Vec<u8>,
}

impl RawLine {
    /// Whether a line was begun but not ended.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Notes a sent piece; at most `keep_bytes_max` bytes of the line are kept.
    pub(super) fn add(&mut self, bytes: &[u8], ends: bool, keep_bytes_max: Option<usize>) {
        self.open = !ends;
        let room = keep_bytes_max.unwrap_or(0).saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Notes the end of the line.
    pub(super) fn close(&mut self) {
        self.open = false;
    }

    /// Records and clears the kept bytes, if there are any.
    pub(super) fn take_line(&mut self, record: impl FnOnce(&[u8])) {
        if !self.kept.is_empty() {
            record(&std::mem::take(&mut self.kept));
        }
    }
}
