//! Raw server output: answers sent in pieces, events that are not messages, and closed connections.
//!
//! Here bytes are sent before their message is recorded, because the message is only complete when
//! its last byte has been sent.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::frame::{Frame, Kind as MessageKind};
use tapegate_core::relay::{CODE_TOO_LARGE, Event, OwnMessage, Permitted};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::TOO_LARGE;

use super::board::{Board, Kind};
use super::down::{LAG, STALL};
use super::exchange::Exchange;
use super::stream::Stream;
use crate::http::Stopped;
use crate::http::listen::Cord;
use crate::stage::piece::{ActorPiece, Rename};

/// How many connections are remembered before closed ones are dropped.
const CORDS_MAX: usize = 8;

/// An answer that is being sent in pieces.
pub(super) struct RawAnswer {
    kept: Kept,
    rename: Option<Rename>,
}

/// An event that is being sent in pieces, and the stream it goes to, if a client listens.
pub(super) struct RawEvent {
    kept: Kept,
    stream: Option<Rc<Stream>>,
}

/// The bytes sent so far, up to the size limit of the tape.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    over: bool,
}

impl Kept {
    fn add(&mut self, bytes: &[u8], bytes_max: usize) {
        let room = bytes_max - self.bytes.len().min(bytes_max);
        self.over |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl Board {
    /// Passes on bytes that need not be a message.
    pub(super) async fn pass_raw(
        &self,
        about: Option<&[u8]>,
        piece: ActorPiece<'_>,
        ends: bool,
    ) -> Result<(), Stopped> {
        if self.is_ended() {
            return Ok(());
        }
        let Some(id) = about.filter(|_| self.kind != Kind::Old) else {
            return self.pass_event(&piece, ends).await;
        };
        // A request that is answered or forgotten gets nothing.
        let asker = self.book.borrow().asker(id);
        match asker {
            Some(exchange) => self.pass_piece(&exchange, id, piece, ends).await,
            None => Ok(()),
        }
    }

    async fn pass_piece(
        &self,
        exchange: &Rc<Exchange>,
        id: &[u8],
        piece: ActorPiece<'_>,
        ends: bool,
    ) -> Result<(), Stopped> {
        let piece = {
            let mut raw = exchange.raw.borrow_mut();
            let raw = raw.get_or_insert_with(|| RawAnswer {
                kept: Kept::default(),
                rename: self.rename(id),
            });
            let piece = piece.renamed(raw.rename.as_mut(), ends);
            raw.kept.add(piece.bytes(), self.station.message_bytes_max());
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
        let whole = self.dismiss(exchange, id, &kept)?;
        let theirs = self.book.borrow().theirs(id).map(|(_, theirs)| theirs).unwrap_or_default();
        self.book.borrow_mut().close_asked(id);
        match (stream, whole) {
            (Some(_), _) => exchange.answered_in_pieces(),
            (None, Some(message)) => drop(exchange.answer(message, false)),
            (None, None) => {
                let words = "the answer is over the size limit";
                let error = OwnMessage::error(&theirs, CODE_TOO_LARGE, words);
                exchange.answer(error.into(), true).ok();
            }
        }
        Ok(())
    }

    fn rename(&self, id: &[u8]) -> Option<Rename> {
        let (_, theirs) = self.book.borrow().theirs(id)?;
        (theirs != id).then(|| Rename::new(id, theirs))
    }

    /// Passes on a piece of an event that belongs to no request.
    async fn pass_event(&self, piece: &ActorPiece<'_>, ends: bool) -> Result<(), Stopped> {
        let stream = {
            let mut raw = self.raw.borrow_mut();
            let raw = raw
                .get_or_insert_with(|| RawEvent { kept: Kept::default(), stream: self.listener() });
            raw.kept.add(piece.bytes(), self.station.message_bytes_max());
            raw.stream.clone()
        };
        if let Some(stream) = &stream {
            self.push_piece(stream, None, piece, ends).await;
        }
        if !ends {
            return Ok(());
        }
        let kept = self.raw.take().map(|raw| raw.kept).unwrap_or_default();
        match stream {
            Some(_) => self.record_raw(self.lane, &kept).map(drop),
            None => {
                let why = "no stream is open for messages outside of a request";
                self.mark(self.lane, Side::Server, &kept.bytes, why);
                Ok(())
            }
        }
    }

    /// The stream for messages that belong to no request.
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

    /// Adds a piece, first waiting for a reader that is far behind.
    async fn push_piece(
        &self,
        stream: &Rc<Stream>,
        exchange: Option<&Exchange>,
        piece: &ActorPiece<'_>,
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
        stream.push_piece(piece, ends);
    }

    /// Records an answer sent in pieces. Even bytes that are not a valid answer close the request.
    fn dismiss(
        &self,
        exchange: &Exchange,
        id: &[u8],
        kept: &Kept,
    ) -> Result<Option<Permitted<'static>>, Stopped> {
        let whole = self.record_raw(exchange.lane, kept)?;
        let frame = Frame::read(&kept.bytes);
        let is_answer = |kind| matches!(kind, MessageKind::Response | MessageKind::Error);
        if !kept.over && frame.envelope().is_some_and(|said| is_answer(said.kind())) {
            return Ok(whole);
        }
        let theirs = self.book.borrow().theirs(id).map(|(_, theirs)| theirs).unwrap_or_default();
        let bytes = &[&b"{\"method\":\"\",\"id\":"[..], &theirs, b"}"].concat();
        let (lane, asker) = (exchange.lane, Side::Client);
        self.station.pass(Event::Dismissed { lane, asker, bytes: Some(bytes), why: None })?;
        Ok(whole)
    }

    /// Records what was sent in pieces; returns the whole message unless it is over the limit.
    fn record_raw(&self, lane: Lane, kept: &Kept) -> Result<Option<Permitted<'static>>, Stopped> {
        let (from, bytes) = (Side::Server, &kept.bytes[..]);
        let outgoing = self.station.pass(match kept.over {
            true => Event::Marked { lane, from, bytes, why: TOO_LARGE, delivered: true },
            false => Event::Received { lane, from, bytes, terminated: true },
        })?;
        let sent = outgoing.into_iter().find(|one| one.to == Side::Client);
        Ok(sent.map(|one| one.message.into_owned()))
    }

    /// Remembers the connection that a client uses.
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

    /// Closes the client's connections on behalf of the server, and with them the session. Of
    /// clients that share a server, only the one that made the request is disconnected.
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
