//! Raw server output: answers sent in pieces, events that are not messages, and closed connections.
//!
//! Here bytes are sent before their message is recorded, because the message is only complete when
//! its last byte has been sent.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::frame::{Frame, MessageKind};
use tapegate_core::relay::{CODE_TOO_LARGE, OwnMessage, PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::TOO_LARGE;

use super::exchange::PostExchange;
use super::server_connection::{ConnectionKind, ServerConnection};
use super::stream::ClientStream;
use crate::actor_host::raw_piece::{ActorPiece, IdRename, TapedBytes};
use crate::http::SessionStoppedError;
use crate::http::listener::ConnectionHandle;

/// How many connections are remembered before closed ones are dropped.
const CORDS_MAX: usize = 8;

/// An answer that is being sent in pieces.
pub(super) struct RawAnswer {
    taped_bytes: TapedBytes,
    rename: Option<IdRename>,
}

/// An event that is being sent in pieces, and the stream it goes to, if a client listens.
pub(super) struct RawEvent {
    taped_bytes: TapedBytes,
    stream: Option<Rc<ClientStream>>,
}

impl ServerConnection {
    /// Passes on bytes that need not be a message.
    pub(super) async fn forward_raw(
        &self,
        about: Option<&[u8]>,
        piece: ActorPiece,
        ends: bool,
    ) -> Result<(), SessionStoppedError> {
        if self.is_ended() {
            return Ok(());
        }
        let Some(id) = about.filter(|_| self.kind != ConnectionKind::Old) else {
            return self.forward_event(&piece, ends).await;
        };
        // A request that is answered or forgotten gets nothing.
        let asker = self.id_map.borrow().exchange_for(id);
        match asker {
            Some(exchange) => self.forward_piece(&exchange, id, piece, ends).await,
            None => Ok(()),
        }
    }

    async fn forward_piece(
        &self,
        exchange: &Rc<PostExchange>,
        id: &[u8],
        piece: ActorPiece,
        ends: bool,
    ) -> Result<(), SessionStoppedError> {
        // The borrow ends here: the pieces below wait for the client, and other tasks use the
        // exchange.
        let piece = {
            let mut raw = exchange.raw.borrow_mut();
            let raw = raw.get_or_insert_with(|| RawAnswer {
                taped_bytes: TapedBytes::default(),
                rename: self.rename(id),
            });
            let piece = piece.with_client_id(raw.rename.as_mut(), ends);
            raw.taped_bytes.add(piece.bytes(), self.session.message_bytes_max());
            piece
        };
        if !exchange.accepts_json {
            self.stream_of(exchange);
        }
        let stream = exchange.raw_stream_or_open(|| ClientStream::raw_body(&self.history));
        if let Some(stream) = &stream {
            self.push_piece(stream, Some(exchange), &piece, ends).await;
        }
        if !ends {
            return Ok(());
        }
        let kept = exchange.raw.take().map(|raw| raw.taped_bytes).unwrap_or_default();
        // Read before the request is closed, because closing it forgets the client's id.
        let theirs =
            self.id_map.borrow().client_id_of(id).map(|(_, theirs)| theirs).unwrap_or_default();
        let whole = self.record_raw_answer(exchange, &theirs, &kept)?;
        self.id_map.borrow_mut().close_server_request(id);
        match (stream, whole) {
            (Some(_), _) => exchange.finish_raw_answer(),
            (None, Some(message)) => drop(exchange.answer(message, false)),
            (None, None) => {
                let text = "the answer is over the size limit";
                let error = OwnMessage::error(&theirs, CODE_TOO_LARGE, text);
                exchange.answer(error.into(), true).ok();
            }
        }
        Ok(())
    }

    fn rename(&self, id: &[u8]) -> Option<IdRename> {
        let (_, theirs) = self.id_map.borrow().client_id_of(id)?;
        (theirs != id).then(|| IdRename::new(id, theirs))
    }

    /// Passes on a piece of an event that belongs to no request.
    async fn forward_event(
        &self,
        piece: &ActorPiece,
        ends: bool,
    ) -> Result<(), SessionStoppedError> {
        let stream = {
            let mut raw = self.raw.borrow_mut();
            let raw = raw.get_or_insert_with(|| RawEvent {
                taped_bytes: TapedBytes::default(),
                stream: self.listener(),
            });
            raw.taped_bytes.add(piece.bytes(), self.session.message_bytes_max());
            raw.stream.clone()
        };
        if let Some(stream) = &stream {
            self.push_piece(stream, None, piece, ends).await;
        }
        if !ends {
            return Ok(());
        }
        let kept = self.raw.take().map(|raw| raw.taped_bytes).unwrap_or_default();
        match stream {
            Some(_) => self.record_raw(self.lane, &kept).map(drop),
            None => {
                let reason = "no stream is open for messages outside of a request";
                self.mark_undelivered(self.lane, Side::Server, kept.bytes(), reason);
                Ok(())
            }
        }
    }

    /// The stream for messages that belong to no request.
    fn listener(&self) -> Option<Rc<ClientStream>> {
        if self.kind == ConnectionKind::Shared {
            return None;
        }
        if self.main.has_reader() {
            return Some(Rc::clone(&self.main));
        }
        let exchange = self.id_map.borrow().any_listener()?;
        Some(self.stream_of(&exchange))
    }

    /// Adds a piece, first waiting for a reader that is far behind.
    async fn push_piece(
        &self,
        stream: &Rc<ClientStream>,
        exchange: Option<&PostExchange>,
        piece: &ActorPiece,
        ends: bool,
    ) {
        if !self.wait_for_client(stream).await {
            exchange.into_iter().for_each(|exchange| self.connection_lost(exchange));
        }
        stream.push_piece(piece, ends);
    }

    /// Records an answer sent in pieces. Even bytes that are not a valid answer close the request.
    fn record_raw_answer(
        &self,
        exchange: &PostExchange,
        client_id: &[u8],
        taped_bytes: &TapedBytes,
    ) -> Result<Option<PermittedMessage<'static>>, SessionStoppedError> {
        let whole = self.record_raw(exchange.lane, taped_bytes)?;
        let frame = Frame::read(taped_bytes.bytes());
        let is_answer = |kind| matches!(kind, MessageKind::Response | MessageKind::Error);
        if !taped_bytes.is_over()
            && frame.envelope().is_some_and(|envelope| is_answer(envelope.kind()))
        {
            return Ok(whole);
        }
        let asker = (exchange.lane, Side::Client);
        self.session.forget_requests(asker, Some(&[client_id.to_vec()]))?;
        Ok(whole)
    }

    /// Records what was sent in pieces; returns the whole message unless it is over the limit.
    fn record_raw(
        &self,
        lane: Lane,
        taped_bytes: &TapedBytes,
    ) -> Result<Option<PermittedMessage<'static>>, SessionStoppedError> {
        let (from, bytes) = (Side::Server, taped_bytes.bytes());
        let frame = self.session.read(bytes);
        let outgoing = self.session.feed_and_commit(match taped_bytes.is_over() {
            true => {
                RelayEvent::RecordOnly { lane, from, bytes, reason: TOO_LARGE, delivered: true }
            }
            false => RelayEvent::Received { lane, from, frame: &frame, terminated: true },
        })?;
        let sent = outgoing.into_iter().find(|one| one.to == Side::Client);
        Ok(sent.map(|one| one.message.into_owned()))
    }

    /// Remembers the connection that a client uses.
    pub(super) fn hold(&self, client_connection: &Rc<ConnectionHandle>) {
        if self.kind == ConnectionKind::Shared {
            return;
        }
        let mut client_connections = self.client_connections.borrow_mut();
        if client_connections.iter().any(|held| Rc::ptr_eq(held, client_connection)) {
            return;
        }
        if client_connections.len() >= CORDS_MAX {
            // A handle that only this list holds belongs to a connection that is closed.
            client_connections.retain(|held| Rc::strong_count(held) > 1);
        }
        client_connections.push(Rc::clone(client_connection));
    }

    /// Closes the client's connections on behalf of the server, and with them the session. Of
    /// clients that share a server, only the one that made the request is disconnected.
    pub(super) fn disconnect_clients(&self, about: Option<&[u8]>, abrupt: bool) {
        if self.kind == ConnectionKind::Shared {
            let client_connection = about.and_then(|id| self.id_map.borrow().connection_of(id));
            return client_connection
                .into_iter()
                .for_each(|client_connection| client_connection.shutdown(abrupt));
        }
        self.request_end("the server has closed the connection", Duration::ZERO);
        for client_connection in self.client_connections.take() {
            client_connection.shutdown(abrupt);
        }
    }
}
