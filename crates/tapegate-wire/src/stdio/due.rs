//! What is recorded and waits to be written.

use std::collections::VecDeque;
use std::ops::Range;

use tapegate_core::lines::Lines;

/// Something that is recorded and waits to be written.
pub(super) enum Due {
    /// Bytes of the read buffer.
    Read(Range<usize>),
    /// Bytes of our own.
    Own(Vec<u8>, usize),
}

impl Due {
    /// A line of our own, behind a line end if the last line has none.
    pub(super) fn own(mut text: Vec<u8>, mid_line: bool) -> Self {
        text.push(b'\n');
        if mid_line {
            text.insert(0, b'\n');
        }
        Self::Own(text, 0)
    }

    pub(super) fn bytes<'a>(&'a self, lines: &'a Lines) -> &'a [u8] {
        match self {
            Self::Read(range) => lines.bytes(range.clone()),
            Self::Own(text, written) => &text[*written..],
        }
    }

    pub(super) fn advance(&mut self, count: usize) {
        match self {
            Self::Read(range) => range.start += count,
            Self::Own(_, written) => *written += count,
        }
    }
}

/// Adds a range, joined to the one before it if they touch: a burst is one write.
pub(super) fn push_range(due: &mut VecDeque<Due>, range: Range<usize>) {
    match due.back_mut() {
        Some(Due::Read(last)) if last.end == range.start => last.end = range.end,
        _ => due.push_back(Due::Read(range)),
    }
}
