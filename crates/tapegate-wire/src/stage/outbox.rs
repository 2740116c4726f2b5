//! Lines that wait to be written.
//!
//! Many clients handle an answer at once and a notification a little later, or the other way round.
//! If they read both together, the order is lost, and a request has ended before its progress is
//! heard. So what follows a notification is held until the notification was read, and a
//! notification until what comes before it was.

use std::collections::VecDeque;

use crate::port::Originated;

/// What an empty outbox may keep, so that a run of large messages does not allocate each time.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// Lines that wait to be written, the first of which may be.
#[derive(Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Bytes before this have been written.
    written: usize,
    /// Bytes before this may be written.
    sure: usize,
    /// Where the line begins that was added last.
    last: usize,
    /// Whether that line is a notification, even if it was written long ago.
    last_notifies: Option<bool>,
    /// Where lines begin that are held until everything before them was read.
    held: VecDeque<usize>,
}

impl Outbox {
    /// Adds a line that may not be written yet, and returns it without its end.
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

    /// Says whether the line that was added last is a notification. Between lines of one sort
    /// nothing is held.
    pub(super) fn mark(&mut self, notifies: bool) {
        if self.last_notifies.replace(notifies).is_some_and(|before| before != notifies) {
            self.held.push_back(self.last);
        }
    }

    /// Adds bytes as they are, and the end of their line if it `ends`.
    pub(super) fn add_raw(&mut self, bytes: &[u8], ends: bool) {
        self.last = self.bytes.len();
        self.mark(false);
        self.bytes.extend_from_slice(bytes);
        if ends {
            self.bytes.push(b'\n');
        }
    }

    /// Lets everything be written.
    pub(super) fn release(&mut self) {
        self.sure = self.bytes.len();
    }

    /// Takes out what may not be written yet.
    pub(super) fn take_unsure(&mut self) -> Vec<u8> {
        self.held.retain(|start| *start < self.sure);
        self.bytes.split_off(self.sure)
    }

    /// Whether everything was written that comes before a line that is held.
    pub(super) fn is_held(&self) -> bool {
        self.held.front() == Some(&self.written)
    }

    /// Lets the line be written that is held.
    pub(super) fn pass(&mut self) {
        self.held.pop_front();
    }

    /// Lets all lines be written: the client does not read.
    pub(super) fn pass_all(&mut self) {
        self.held.clear();
    }

    /// How much is to be written, now or later.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// What may be written now.
    pub(super) fn due(&self) -> Originated<'_> {
        Originated::by_endpoint(self.sure())
    }

    pub(super) fn sure(&self) -> &[u8] {
        let end = self.held.front().map_or(self.sure, |start| self.sure.min(*start));
        &self.bytes[self.written..end]
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Says how much of it was written.
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
            // Each byte is moved once at most for every byte that was written before it.
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
