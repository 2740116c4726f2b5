//! What a server sends as it is: answers in pieces, events that are no message, and its leaving.
//!
//! Here a byte is on the wire before its message is on the tape, because the message is whole only
//! when its last byte has gone.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tapegate_core::frame::{Frame, Kind as MessageKind};
use tapegate_core::relay::Event;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::TOO_LARGE;

use super::board::{Board, Kind};
use super::down::{LAG, STALL};
use super::exchange::Exchange;
use super::stream::Stream;
use crate::http::Stopped;
use crate::http::listen::Cord;

/// How many connections are remembered before it is looked which of them are gone.
const CORDS_MAX: usize = 8;

/// An answer that comes in pieces.
pub(super) struct RawAnswer {
    kept: Kept,
    rename: Option<Rename>,
}

/// An event that comes in pieces, and the stream it goes to, if anybody listens.
pub(super) struct RawEvent {
    kept: Kept,
    stream: Option<Rc<Stream>>,
}

/// What was sent, as far as the tape takes it.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    over: bool,
}

/// Gives a request the name back that its client knows it by, wherever pieces begin and end.
struct Rename {
    ours: Vec<u8>,
    theirs: Vec<u8>,
    /// How much of our name has come.
    matched: usize,
}

impl Kept {
    fn add(&mut self, bytes: &[u8], bytes_max: usize) {
        let room = bytes_max - self.bytes.len().min(bytes_max);
        self.over |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl Rename {
    /// What is sent for a piece. A name that might have begun is held back until it is known.
    fn pass(&mut self, bytes: &[u8], ends: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + self.matched);
        for byte in bytes {
            if self.ours.get(self.matched) != Some(byte) {
                // A name begins and ends with a quote and holds no other, so only the last byte of
                // what did not become one can begin another.
                out.extend_from_slice(&self.ours[..self.matched]);
                self.matched = 0;
            }
            if self.ours.get(self.matched) != Some(byte) {
                out.push(*byte);
                continue;
            }
            self.matched += 1;
            if self.matched == self.ours.len() {
                out.extend_from_slice(&self.theirs);
                self.matched = 0;
            }
        }
        if ends {
            out.extend_from_slice(&self.ours[..self.matched]);
        }
        out
    }
}

impl Board {
    /// Hands on bytes that need not be a message.
    pub(super) async fn pass_raw(
        &self,
        about: Option<&[u8]>,
        bytes: &[u8],
        ends: bool,
    ) -> Result<(), Stopped> {
        if self.is_ended() {
            return Ok(());
        }
        let Some(id) = about.filter(|_| self.kind != Kind::Old) else {
            return self.pass_event(bytes, ends).await;
        };
        // Whoever was answered already, or is forgotten, gets nothing.
        let asker = self.book.borrow().asker(id);
        match asker {
            Some(exchange) => self.pass_piece(&exchange, id, bytes, ends).await,
            None => Ok(()),
        }
    }

    async fn pass_piece(
        &self,
        exchange: &Rc<Exchange>,
        id: &[u8],
        bytes: &[u8],
        ends: bool,
    ) -> Result<(), Stopped> {
        let piece = {
            let mut raw = exchange.raw.borrow_mut();
            let raw = raw.get_or_insert_with(|| RawAnswer {
                kept: Kept::default(),
                rename: self.rename(id),
            });
            let piece = match &mut raw.rename {
                Some(rename) => rename.pass(bytes, ends).into(),
                None => std::borrow::Cow::Borrowed(bytes),
            };
            raw.kept.add(&piece, self.station.message_bytes_max());
            piece
        };
        if !exchange.accepts_json {
            self.stream_of(exchange);
        }
        let stream = exchange.pieces_or(|| Stream::plain(&self.history));
        if let Some(stream) = &stream {
            self.push_piece(stream, Some(exchange), &piece, ends).await;
        }
        if !ends {
            return Ok(());
        }
        let kept = exchange.raw.take().map(|raw| raw.kept).unwrap_or_default();
        self.dismiss(exchange, id, &kept)?;
        self.book.borrow_mut().close_asked(id);
        match stream {
            Some(_) => exchange.answered_in_pieces(),
            None => drop(exchange.answer(Bytes::from(kept.bytes), false)),
        }
        Ok(())
    }

    fn rename(&self, id: &[u8]) -> Option<Rename> {
        let (_, theirs) = self.book.borrow().theirs(id)?;
        (theirs != id).then(|| Rename { ours: id.to_vec(), theirs, matched: 0 })
    }

    /// Hands on a piece of an event for whoever listens.
    async fn pass_event(&self, bytes: &[u8], ends: bool) -> Result<(), Stopped> {
        let stream = {
            let mut raw = self.raw.borrow_mut();
            let raw = raw
                .get_or_insert_with(|| RawEvent { kept: Kept::default(), stream: self.listener() });
            raw.kept.add(bytes, self.station.message_bytes_max());
            raw.stream.clone()
        };
        if let Some(stream) = &stream {
            self.push_piece(stream, None, bytes, ends).await;
        }
        if !ends {
            return Ok(());
        }
        let kept = self.raw.take().map(|raw| raw.kept).unwrap_or_default();
        match stream {
            Some(_) => self.record_raw(self.lane, &kept),
            None => {
                let why = "nobody listens to what belongs to no request";
                self.mark(self.lane, Side::Server, &kept.bytes, why);
                Ok(())
            }
        }
    }

    /// The stream for what belongs to no request.
    fn listener(&self) -> Option<Rc<Stream>> {
        if self.kind == Kind::Shared {
            return None;
        }
        if self.main.is_attended() {
            return Some(Rc::clone(&self.main));
        }
        let exchange = self.book.borrow().any_listener()?;
        Some(self.stream_of(&exchange))
    }

    /// Adds a piece, and waits for its reader if it is far behind.
    async fn push_piece(
        &self,
        stream: &Rc<Stream>,
        exchange: Option<&Exchange>,
        bytes: &[u8],
        ends: bool,
    ) {
        let in_time = match self.kind {
            Kind::Shared => stream.has_room() || stream.caught_up(LAG).await,
            Kind::Session | Kind::Old => stream.room(STALL).await,
        };
        if !in_time {
            stream.break_off();
            exchange.into_iter().for_each(|exchange| self.abandoned(exchange));
            if self.kind == Kind::Old {
                self.end("the client does not read its stream", Duration::ZERO);
            }
        }
        stream.push_piece(bytes, ends);
    }

    /// Records an answer that was sent in pieces. What does not look like one answers all the same.
    fn dismiss(&self, exchange: &Exchange, id: &[u8], kept: &Kept) -> Result<(), Stopped> {
        self.record_raw(exchange.lane, kept)?;
        let frame = Frame::read(&kept.bytes);
        let is_answer = |kind| matches!(kind, MessageKind::Response | MessageKind::Error);
        if !kept.over && frame.envelope().is_some_and(|said| is_answer(said.kind())) {
            return Ok(());
        }
        let theirs = self.book.borrow().theirs(id).map(|(_, theirs)| theirs).unwrap_or_default();
        let bytes = &[&b"{\"method\":\"\",\"id\":"[..], &theirs, b"}"].concat();
        let (lane, asker) = (exchange.lane, Side::Client);
        self.station.pass(Event::Dismissed { lane, asker, bytes: Some(bytes), why: None })?;
        Ok(())
    }

    fn record_raw(&self, lane: Lane, kept: &Kept) -> Result<(), Stopped> {
        let (from, bytes) = (Side::Server, &kept.bytes[..]);
        self.station.pass(match kept.over {
            true => Event::Marked { lane, from, bytes, why: TOO_LARGE, delivered: true },
            false => Event::Received { lane, from, bytes, terminated: true },
        })?;
        Ok(())
    }

    /// Remembers the connection that a client of this board uses.
    pub(super) fn hold(&self, cord: &Rc<Cord>) {
        if !self.addressed || self.kind == Kind::Shared {
            return;
        }
        let mut cords = self.cords.borrow_mut();
        if cords.iter().any(|held| Rc::ptr_eq(held, cord)) {
            return;
        }
        if cords.len() >= CORDS_MAX {
            cords.retain(|held| Rc::strong_count(held) > 1);
        }
        cords.push(Rc::clone(cord));
    }

    /// The server leaves its client: its connections end, and with them the session. Of clients that
    /// share a server, it leaves the one that has made a request.
    pub(super) fn leave(&self, about: Option<&[u8]>, abrupt: bool) {
        if self.kind == Kind::Shared {
            let cord = about.and_then(|id| self.book.borrow().cord(id));
            return cord.into_iter().for_each(|cord| cord.cut(abrupt));
        }
        self.end("the server has closed the connection", Duration::ZERO);
        for cord in self.cords.take() {
            cord.cut(abrupt);
        }
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
            let mut rename = Rename { ours, theirs, matched: 0 };
            let mut out = Vec::new();
            let count = text.chunks(size).count();
            for (index, piece) in text.chunks(size).enumerate() {
                out.extend(rename.pass(piece, index + 1 == count));
            }
            assert_eq!(out, expected, "{size}");
        }
    }

    #[test]
    fn a_name_that_does_not_come_to_its_end_stays() {
        let (ours, theirs) = (b"\"ab\"".to_vec(), b"7".to_vec());
        let mut rename = Rename { ours, theirs, matched: 0 };
        assert_eq!(rename.pass(b"x\"a", true), b"x\"a");
    }
}
