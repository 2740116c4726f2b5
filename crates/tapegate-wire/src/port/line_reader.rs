//! The lines of a port.

use tapegate_core::lines::{LineSplitter, OversizeMessage, StreamLine};

use super::StreamPort;

/// Reads lines from a port.
pub(crate) struct LineReader {
    port: StreamPort,
    lines: LineSplitter,
}

/// Something read from a port.
pub(crate) enum ReceivedLine<'a> {
    /// A line without its ending, and whether it had one.
    Line(&'a [u8], bool),
    /// A line over the size limit.
    Oversize(OversizeMessage),
}

impl LineReader {
    /// Reads lines of at most `line_bytes_max` bytes.
    pub(crate) fn new(port: StreamPort, line_bytes_max: usize) -> Self {
        Self { port, lines: LineSplitter::new(line_bytes_max) }
    }

    /// Whether the other end has closed the port, though what it wrote may not be read yet.
    pub(crate) fn has_ended(&self) -> bool {
        self.port.has_ended()
    }

    /// Reads once; false at the end.
    pub(crate) async fn read(&mut self) -> bool {
        // A hung-up terminal or socket reads as an error; treat it as the end.
        let count = self.port.read(self.lines.read_buffer()).await.unwrap_or(0);
        self.lines.filled(count);
        count > 0
    }

    /// Takes the next line that was read; once the output `is_over`, also an incomplete one.
    pub(crate) fn next_line(&mut self, is_over: bool) -> Option<ReceivedLine<'_>> {
        let mut cut = self.lines.next_line();
        if cut.is_none() {
            self.lines.release();
            cut = if is_over { self.lines.take_rest() } else { None };
        }
        Some(match cut? {
            StreamLine::Line(range) => ReceivedLine::Line(self.lines.bytes(range), true),
            StreamLine::Unterminated(range) => ReceivedLine::Line(self.lines.bytes(range), false),
            StreamLine::Oversize(message) => ReceivedLine::Oversize(message),
        })
    }
}
