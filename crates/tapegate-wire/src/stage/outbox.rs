//! A queue of lines to be written.
//!
//! Many clients process answers immediately and notifications a little later, or the other way
//! round. If they read both together, the order is lost, and a request ends before its progress is
//! seen. So lines after a notification are held until the notification has been read, and a
//! notification until the lines before it have been.

use std::collections::VecDeque;

use crate::port::Originated;

/// The capacity an empty queue may keep, so that a series of large messages need not reallocate.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// Lines to be written, of which a prefix is released.
#[derive(Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// The end of the bytes already written.
    written: usize,
    /// The end of the bytes that may be written.
    sure: usize,
    /// The start of the last added line.
    last: usize,
    /// Whether that line is a notification, even if it was written long ago.
    last_notifies: Option<bool>,
    /// The starts of lines that are held until everything before them has been read.
    held: VecDeque<usize>,
}

impl Outbox {
    /// Adds a line that may not be written yet, and returns it without its line end.
    pub(super) fn add(&mut self, parts: &[&[u8]]) -> &[u8] {
        let start = self.bytes.len();
        self.last = start;
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        let end = self.bytes.len();
        self.bytes.push(b'\n');
        &self.bytes[start..end]
    }

    /// Sets whether the last added line is a notification. Nothing is held between lines of the
    /// same kind.
    pub(super) fn mark(&mut self, notifies: bool) {
        if self.last_notifies.replace(notifies).is_some_and(|before| before != notifies) {
            self.held.push_back(self.last);
        }
    }

    /// Adds raw bytes, and a line end if `ends`.
    pub(super) fn add_raw(&mut self, bytes: &[u8], ends: bool) {
        self.last = self.bytes.len();
        self.mark(false);
        self.bytes.extend_from_slice(bytes);
        if ends {
            self.bytes.push(b'\n');
        }
    }

    /// Allows everything to be written.
    pub(super) fn release(&mut self) {
        self.sure = self.bytes.len();
    }

    /// Removes the bytes that may not be written yet.
    pub(super) fn take_unsure(&mut self) -> Vec<u8> {
        self.held.retain(|start| *start < self.sure);
        self.bytes.split_off(self.sure)
    }

    /// Whether the next line to write is held.
    pub(super) fn is_held(&self) -> bool {
        self.held.front() == Some(&self.written)
    }

    /// Releases the next held line.
    pub(super) fn pass(&mut self) {
        self.held.pop_front();
    }

    /// Releases all held lines, because the client does not read.
    pub(super) fn pass_all(&mut self) {
        self.held.clear();
    }

    /// How many bytes are still to be written, now or later.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// The bytes that may be written now.
    pub(super) fn due(&self) -> Originated<'_> {
        Originated::by_endpoint(self.sure())
    }

    pub(super) fn sure(&self) -> &[u8] {
        let end = self.held.front().map_or(self.sure, |start| self.sure.min(*start));
        &self.bytes[self.written..end]
    }

    /// Discards everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes that `count` more bytes were written.
    pub(super) fn wrote(&mut self, count: usize) {
        self.written += count;
        if self.left() == 0 {
            self.bytes.clear();
            if self.bytes.capacity() > KEPT_BYTES_MAX {
                self.bytes = Vec::new();
            }
            (self.written, self.sure, self.last) = (0, 0, 0);
            self.held.clear();
        } else if self.written > KEPT_BYTES_MAX && self.written > self.left() {
            // Amortized, each byte is moved at most once per byte written before it.
            self.bytes.drain(..self.written);
            self.sure -= self.written;
            self.last = self.last.saturating_sub(self.written);
            self.held.iter_mut().for_each(|start| *start -= self.written);
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_released_is_due() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.add(&[b"a", b"b"]), b"ab");
        assert_eq!((outbox.sure(), outbox.left()), (&b""[..], 3));
        outbox.release();
        outbox.add(&[b"c"]);
        assert_eq!((outbox.sure(), outbox.left()), (&b"ab\n"[..], 5));
        outbox.wrote(1);
        assert_eq!(outbox.take_unsure(), b"c\n");
        assert_eq!(outbox.sure(), b"b\n");
    }

    #[test]
    fn what_follows_a_notification_is_held_and_so_is_a_notification_that_follows() {
        let mut outbox = Outbox::default();
        for (line, notification) in [("a", false), ("n", true), ("m", true), ("b", false)] {
            outbox.add(&[line.as_bytes()]);
            outbox.mark(notification);
        }
        outbox.release();
        assert_eq!(outbox.sure(), b"a\n");
        assert!(!outbox.is_held());
        outbox.wrote(2);
        assert!(outbox.is_held() && outbox.sure().is_empty());
        outbox.pass();
        assert_eq!(outbox.sure(), b"n\nm\n");
        outbox.wrote(4);
        assert!(outbox.is_held() && outbox.sure().is_empty());
        outbox.pass();
        assert_eq!(outbox.sure(), b"b\n");
        outbox.wrote(2);
        // It does not matter how long ago the notification was written.
        outbox.add(&[b"n"]);
        outbox.mark(true);
        outbox.release();
        outbox.pass();
        outbox.wrote(2);
        outbox.add_raw(b"raw", true);
        outbox.add(&[b"c"]);
        outbox.mark(false);
        outbox.release();
        assert!(outbox.is_held());
        outbox.pass_all();
        assert_eq!(outbox.sure(), b"raw\nc\n");
    }

    #[test]
    fn what_was_written_takes_no_room_for_long() {
        let mut outbox = Outbox::default();
        let line = [b'x'; 1000];
        for _ in 0..100_000 {
            outbox.add(&[&line]);
            outbox.release();
            if outbox.left() > 10_000 {
                assert_eq!(&outbox.sure()[..4], b"xxxx");
                outbox.wrote(1001);
            }
        }
        assert!(outbox.left() > 9000);
        assert!(outbox.bytes.capacity() < 8 * KEPT_BYTES_MAX, "{}", outbox.bytes.capacity());
        outbox.wrote(outbox.left());
        assert_eq!(outbox.bytes.capacity(), 0);
    }
}
