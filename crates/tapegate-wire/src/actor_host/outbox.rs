//! A queue of lines to be written.
//!
//! Many clients process answers immediately and notifications a little later, or the other way
//! round. If they read both together, the order is lost, and a request ends before its progress is
//! seen. So lines after a notification are held until the notification has been read, and a
//! notification until the lines before it have been.

use std::collections::VecDeque;

use crate::port::OriginatedBytes;

/// The capacity an empty queue may keep, so that a series of large messages need not reallocate.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// Lines to be written, of which a prefix is released.
#[derive(Default)]
pub(super) struct LineOutbox {
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

impl LineOutbox {
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
    pub(super) fn mark_notification(&mut self, notifies: bool) {
        // The first line has nothing before it to wait for.
        if self.last_notifies.replace(notifies).is_some_and(|before| before != notifies) {
            self.held.push_back(self.last);
        }
    }

    /// Adds raw bytes, and a line end if `ends`.
    pub(super) fn add_raw(&mut self, bytes: &[u8], ends: bool) {
        self.last = self.bytes.len();
        // Raw bytes cannot be told apart, so they count as an answer.
        self.mark_notification(false);
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
    pub(super) fn take_held_back(&mut self) -> Vec<u8> {
        // Positions beyond the cut refer to lines that no longer exist.
        self.held.retain(|start| *start < self.sure);
        self.bytes.split_off(self.sure)
    }

    /// Whether the next line to write is held.
    pub(super) fn is_held(&self) -> bool {
        self.held.front() == Some(&self.written)
    }

    /// Releases the next held line.
    pub(super) fn release_held(&mut self) {
        self.held.pop_front();
    }

    /// Releases all held lines, because the client does not read.
    pub(super) fn release_all(&mut self) {
        self.held.clear();
    }

    /// How many bytes are still to be written, now or later.
    pub(super) fn unwritten_bytes(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// The bytes that may be written now.
    pub(super) fn writable(&self) -> OriginatedBytes<'_> {
        OriginatedBytes::from_endpoint(self.writable_bytes())
    }

    pub(super) fn writable_bytes(&self) -> &[u8] {
        let end = self.held.front().map_or(self.sure, |start| self.sure.min(*start));
        &self.bytes[self.written..end]
    }

    /// Discards everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes that `count` more bytes were written.
    pub(super) fn mark_written(&mut self, count: usize) {
        self.written += count;
        if self.unwritten_bytes() == 0 {
            self.bytes.clear();
            // One large message must not occupy memory for the rest of the session.
            if self.bytes.capacity() > KEPT_BYTES_MAX {
                self.bytes = Vec::new();
            }
            (self.written, self.sure, self.last) = (0, 0, 0);
            self.held.clear();
        } else if self.written > KEPT_BYTES_MAX && self.written > self.unwritten_bytes() {
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
        let mut outbox = LineOutbox::default();
        assert_eq!(outbox.add(&[b"a", b"b"]), b"ab");
        assert_eq!((outbox.writable_bytes(), outbox.unwritten_bytes()), (&b""[..], 3));
        outbox.release();
        outbox.add(&[b"c"]);
        assert_eq!((outbox.writable_bytes(), outbox.unwritten_bytes()), (&b"ab\n"[..], 5));
        outbox.mark_written(1);
        assert_eq!(outbox.take_held_back(), b"c\n");
        assert_eq!(outbox.writable_bytes(), b"b\n");
    }

    #[test]
    fn what_follows_a_notification_is_held_and_so_is_a_notification_that_follows() {
        let mut outbox = LineOutbox::default();
        for (line, notification) in [("a", false), ("n", true), ("m", true), ("b", false)] {
            outbox.add(&[line.as_bytes()]);
            outbox.mark_notification(notification);
        }
        outbox.release();
        assert_eq!(outbox.writable_bytes(), b"a\n");
        assert!(!outbox.is_held());
        outbox.mark_written(2);
        assert!(outbox.is_held() && outbox.writable_bytes().is_empty());
        outbox.release_held();
        assert_eq!(outbox.writable_bytes(), b"n\nm\n");
        outbox.mark_written(4);
        assert!(outbox.is_held() && outbox.writable_bytes().is_empty());
        outbox.release_held();
        assert_eq!(outbox.writable_bytes(), b"b\n");
        outbox.mark_written(2);
        // It does not matter how long ago the notification was written.
        outbox.add(&[b"n"]);
        outbox.mark_notification(true);
        outbox.release();
        outbox.release_held();
        outbox.mark_written(2);
        outbox.add_raw(b"raw", true);
        outbox.add(&[b"c"]);
        outbox.mark_notification(false);
        outbox.release();
        assert!(outbox.is_held());
        outbox.release_all();
        assert_eq!(outbox.writable_bytes(), b"raw\nc\n");
    }

    #[test]
    fn what_was_written_takes_no_room_for_long() {
        let mut outbox = LineOutbox::default();
        let line = [b'x'; 1000];
        for _ in 0..100_000 {
            outbox.add(&[&line]);
            outbox.release();
            if outbox.unwritten_bytes() > 10_000 {
                assert_eq!(&outbox.writable_bytes()[..4], b"xxxx");
                outbox.mark_written(1001);
            }
        }
        assert!(outbox.unwritten_bytes() > 9000);
        assert!(outbox.bytes.capacity() < 8 * KEPT_BYTES_MAX, "{}", outbox.bytes.capacity());
        outbox.mark_written(outbox.unwritten_bytes());
        assert_eq!(outbox.bytes.capacity(), 0);
    }
}
