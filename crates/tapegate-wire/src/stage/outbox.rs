//! Lines that wait to be written.

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
}

impl Outbox {
    /// Adds a line that may not be written yet, and returns it without its end.
    pub(super) fn add(&mut self, parts: &[&[u8]]) -> &[u8] {
        let start = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        let end = self.bytes.len();
        self.bytes.push(b'\n');
        &self.bytes[start..end]
    }

    /// Adds bytes as they are, and the end of their line if it `ends`.
    pub(super) fn add_raw(&mut self, bytes: &[u8], ends: bool) {
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
        self.bytes.split_off(self.sure)
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
        &self.bytes[self.written..self.sure]
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
            (self.written, self.sure) = (0, 0);
        } else if self.written > KEPT_BYTES_MAX && self.written > self.left() {
            // Each byte is moved once at most for every byte that was written before it.
            self.bytes.drain(..self.written);
            self.sure -= self.written;
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
