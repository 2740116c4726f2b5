//! Permitted lines that wait until a port has written them.
//!
//! Only a [`PermittedMessage`] gets into these queues, and only [`PermittedBytes`] come out.

use std::collections::VecDeque;
use std::ops::Range;

use super::permit::{MessagePayload, PermittedMessage};
use crate::json::place_of;
use crate::lines::{LineSplitter, StreamLine};

/// Bytes of permitted messages, with the line endings between them.
///
/// Only the queues of this module create it:
///
/// ```compile_fail,E0423
/// let forged = tapegate_core::relay::PermittedBytes(b"{}");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct PermittedBytes<'a>(&'a [u8]);

impl<'a> PermittedBytes<'a> {
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// Lines of permitted messages in a buffer of their own.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    written: usize,
}

impl LineBuffer {
    /// Adds a message and a line ending.
    pub fn push(&mut self, message: PermittedMessage<'_>) {
        match message.into_payload() {
            // Takes over the allocation, because a message may be megabytes long.
            MessagePayload::Replaced(text) if self.bytes.is_empty() => self.bytes = text,
            MessagePayload::Replaced(text) => self.bytes.extend_from_slice(&text),
            MessagePayload::AsReceived(bytes) => self.bytes.extend_from_slice(bytes),
        }
        self.bytes.push(b'\n');
    }

    /// The bytes still to be written.
    pub fn writable(&self) -> PermittedBytes<'_> {
        PermittedBytes(&self.bytes[self.written..])
    }

    /// How many bytes are still to be written.
    pub fn unwritten_bytes(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Reports that `count` bytes were written.
    pub fn advance(&mut self, count: usize) {
        self.written += count;
        if self.unwritten_bytes() == 0 {
            // Frees the allocation too, or one large message occupies memory for the rest of the
            // session.
            *self = Self::default();
        }
    }

    /// Adds the unwritten bytes of another buffer.
    pub fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(other.writable().bytes());
    }
}

/// One direction of a stream: the lines that were read, and those that may be written. A line that is
/// sent unchanged is written from the buffer it was read into.
#[derive(Debug)]
pub struct LineQueue {
    lines: LineSplitter,
    due: VecDeque<QueuedLine>,
    /// Whether the last queued line has no line ending.
    mid_line: bool,
}

/// Something to write.
#[derive(Debug)]
enum QueuedLine {
    /// A range of the read buffer.
    Read(Range<usize>),
    /// Separate bytes, and how many of them were written.
    Text(Vec<u8>, usize),
}

/// Queues messages for writing while lines of the same queue are borrowed.
#[derive(Debug)]
pub struct DueLines<'a> {
    lines: &'a LineSplitter,
    due: &'a mut VecDeque<QueuedLine>,
    mid_line: &'a mut bool,
}

impl LineQueue {
    /// A queue for lines of at most `line_bytes_max` bytes.
    pub fn new(line_bytes_max: usize) -> Self {
        Self { lines: LineSplitter::new(line_bytes_max), due: VecDeque::new(), mid_line: false }
    }

    /// Space to read into; call [`LineQueue::filled`] with the number of bytes read.
    pub fn read_buffer(&mut self) -> &mut [u8] {
        self.lines.read_buffer()
    }

    /// Reports how many bytes were read.
    pub fn filled(&mut self, count: usize) {
        self.lines.filled(count);
    }

    /// Cuts off the next complete line, if there is one.
    pub fn next_line(&mut self) -> Option<StreamLine> {
        self.lines.next_line()
    }

    /// Cuts off the rest. Call it once the stream has ended and no complete line is left.
    pub fn take_rest(&mut self) -> Option<StreamLine> {
        self.lines.take_rest()
    }

    /// The lines that were read, and the queue for what may be written.
    pub fn split(&mut self) -> (&LineSplitter, DueLines<'_>) {
        let Self { lines, due, mid_line } = self;
        (lines, DueLines { lines, due, mid_line })
    }

    /// Queues a message after everything else.
    pub fn push(&mut self, message: PermittedMessage<'_>) {
        self.split().1.push(message);
    }

    /// How many separate pieces are queued.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// The next bytes to write.
    pub fn next_writable(&self) -> Option<PermittedBytes<'_>> {
        self.due.front().map(|due| PermittedBytes(due.bytes(&self.lines)))
    }

    /// Reports how many of those bytes were written.
    pub fn advance(&mut self, count: usize) {
        if let Some(due) = self.due.front_mut() {
            due.advance(count);
            if due.bytes(&self.lines).is_empty() {
                self.due.pop_front();
            }
        }
        self.release();
    }

    /// Frees the read lines once nothing is queued.
    pub fn release(&mut self) {
        if self.due.is_empty() {
            self.lines.release();
        }
    }

    /// Drops everything that is queued, passing the bytes to `see`.
    pub fn clear(&mut self, mut see: impl FnMut(&[u8])) {
        for due in self.due.drain(..) {
            see(due.bytes(&self.lines));
        }
    }
}

impl DueLines<'_> {
    /// Queues a message after everything else.
    pub fn push(&mut self, message: PermittedMessage<'_>) {
        match message.into_payload() {
            // A line that was read here is queued by its position. A message from another buffer is
            // copied.
            MessagePayload::AsReceived(bytes) => match place_of(bytes, self.lines.buffer()) {
                Some(range) => self.push_range(range),
                None => self.push_text(bytes.to_vec()),
            },
            MessagePayload::Replaced(text) => self.push_text(text),
        }
    }

    /// Adds a range of the read buffer, with its line ending if it has one. Adjacent ranges are
    /// merged, so that a burst is one write.
    fn push_range(&mut self, Range { start, end }: Range<usize>) {
        let terminated = self.lines.buffer().get(end) == Some(&b'\n');
        let end = end + usize::from(terminated);
        *self.mid_line = !terminated;
        match self.due.back_mut() {
            Some(QueuedLine::Read(last)) if last.end == start => last.end = end,
            _ => self.due.push_back(QueuedLine::Read(start..end)),
        }
    }

    /// Adds a separate line, preceded by a line ending if the last line has none.
    fn push_text(&mut self, mut text: Vec<u8>) {
        text.push(b'\n');
        // Without this line ending, our message would continue a partial line of the peer, and
        // neither could be read.
        if std::mem::take(self.mid_line) {
            text.insert(0, b'\n');
        }
        self.due.push_back(QueuedLine::Text(text, 0));
    }
}

impl QueuedLine {
    fn bytes<'a>(&'a self, lines: &'a LineSplitter) -> &'a [u8] {
        match self {
            Self::Read(range) => lines.bytes(range.clone()),
            Self::Text(text, written) => &text[*written..],
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Self::Read(range) => range.start += count,
            Self::Text(_, written) => *written += count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::OwnMessage;
    use super::*;
    use crate::frame::Frame;

    fn read(queue: &mut LineQueue, bytes: &[u8]) {
        queue.read_buffer()[..bytes.len()].copy_from_slice(bytes);
        queue.filled(bytes.len());
    }

    /// Queues every line that was read.
    fn pass(queue: &mut LineQueue) {
        while let Some(StreamLine::Line(range)) = queue.next_line() {
            let (lines, mut due) = queue.split();
            due.push(PermittedMessage::as_received(&Frame::read(lines.bytes(range))));
        }
    }

    fn written(queue: &mut LineQueue, step: usize) -> (Vec<u8>, usize) {
        let (mut out, mut writes) = (Vec::new(), 0);
        while let Some(cleared) = queue.next_writable() {
            let count = step.min(cleared.bytes().len());
            out.extend_from_slice(&cleared.bytes()[..count]);
            queue.advance(count);
            writes += 1;
        }
        (out, writes)
    }

    #[test]
    fn a_burst_is_written_at_once_from_where_it_was_read() {
        let mut queue = LineQueue::new(100);
        read(&mut queue, b"{}\n\n{\"a\":1}\n{");
        pass(&mut queue);
        assert_eq!(written(&mut queue, 1000), (b"{}\n\n{\"a\":1}\n".to_vec(), 1));
        read(&mut queue, b"}\n");
        pass(&mut queue);
        assert_eq!(written(&mut queue, 1), (b"{}\n".to_vec(), 3));
    }

    #[test]
    fn a_message_of_our_own_never_continues_a_line() {
        let mut queue = LineQueue::new(100);
        read(&mut queue, b"{}\n\n");
        pass(&mut queue);
        assert_eq!(written(&mut queue, 9).0, b"{}\n\n");
        read(&mut queue, b"half");
        let Some(StreamLine::Unterminated(range)) = queue.take_rest() else { panic!("no rest") };
        let (lines, mut due) = queue.split();
        due.push(PermittedMessage::as_received(&Frame::read(lines.bytes(range))));
        queue.push(OwnMessage::cancelled(b"1", "x").into());
        let (out, writes) = written(&mut queue, 1000);
        assert!(out.starts_with(b"half\n{") && out.ends_with(b"}\n") && writes == 2);
    }
}
