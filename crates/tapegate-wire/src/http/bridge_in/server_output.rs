//! Reads a server's output, records it, and routes it to the right clients.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::frame::{Envelope, Frame, FrameBody, MessageKind, envelopes, same_id};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::{CODE_GONE, OwnMessage, PermittedMessage, RelayEvent};
use tapegate_core::side::Side;
use tapegate_core::tape::Provenance;
use tokio::time::Instant;

use super::exchange::PostExchange;
use super::id_map::MessageRoute;
use super::server_connection::{ConnectionKind, ServerConnection};
use super::servers::{BridgeServer, OutputReader, ServerOutput};
use super::shutdown::ConnectionEnd;
use super::stream::ClientStream;
use crate::actor_host::ActorOutput;
use crate::http::SessionStoppedError;
use crate::http::shared_session::GateResult;
use crate::port::ReceivedLine;
use crate::recorded_session::Disposition;
use crate::stdio::{LINGER, SERVER_ENDED, ShutdownTimeouts, answered_id};
use tapegate_core::json::JsonEdits;

/// How long a session's only reader may stall before its connection is dropped.
const STALL: Duration = Duration::from_secs(10);
/// How long a client that shares its server may lag while the other clients wait.
const LAG: Duration = Duration::from_millis(500);

/// Reads from a server until it ends or is asked to end, then shuts it down and cleans up.
pub(super) async fn run(
    connection: Rc<ServerConnection>,
    mut server: BridgeServer,
    mut output: OutputReader,
    patience: ShutdownTimeouts,
) {
    let read = tokio::select! {
        read = read(&connection, &mut server, &mut output) => read.map_err(|stopped| ConnectionEnd {
            reason: stopped.to_string(),
            grace: patience.grace_on_signal,
        }),
        end = connection.end_requested(Duration::MAX) => Err(end),
    };
    let (ConnectionEnd { reason, mut grace }, error_type) = match read {
        Err(end) => (end, None),
        Ok(()) => (
            ConnectionEnd { reason: server.end_reason().await, grace: patience.grace },
            Some(SERVER_ENDED),
        ),
    };
    // Counted first, because closing answers them.
    let unanswered = connection.unanswered_count();
    connection.close(&reason, error_type);
    loop {
        tokio::select! {
            _ = server.server.shutdown(grace, patience.after_term) => {
                if error_type.is_some() {
                    server.report_end(unanswered).await;
                }
                return;
            }
            // A second request to end shortens the grace: the first may have been a client's, the
            // next a signal.
            sooner = connection.end_requested(grace) => grace = sooner.grace,
            () = read_rest(&connection, &mut output) => {}
        }
    }
}

/// Reads until the output ends or the tape fails.
async fn read(
    connection: &ServerConnection,
    server: &mut BridgeServer,
    output: &mut OutputReader,
) -> Result<(), SessionStoppedError> {
    let mut deadline: Option<Instant> = None;
    loop {
        let linger = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        // Reads once the server has consumed most of its input, or can do so only when it is read.
        let fill = async {
            tokio::select! {
                biased;
                () = connection.wait_for_write_capacity() => {}
                () = output.full() => {}
            }
            output.fill().await
        };
        let is_more = tokio::select! {
            is_more = fill => is_more,
            () = server.server.exited(), if deadline.is_none() => {
                deadline = Some(Instant::now() + LINGER);
                continue;
            }
            () = linger => false,
        };
        // No output may reach a client before the reaper runs (invariant 8).
        server.server.wait_for_reaper();
        while let Some(next) = output.next(!is_more) {
            connection.process(next).await?;
        }
        if !is_more {
            return Ok(());
        }
    }
}

/// Reads the remaining output of a server that is shutting down; never returns. The output is
/// recorded but not delivered. Left unread, it could block the server's exit.
async fn read_rest(connection: &ServerConnection, output: &mut OutputReader) {
    while output.fill().await {
        while let Some(next) = output.next(false) {
            // The server is ended whether or not the tape accepts this.
            connection.process(next).await.ok();
        }
    }
    std::future::pending().await
}

/// A message from a server.
struct ReceivedMessage<'a> {
    /// The request that the server has named for it.
    about: Option<&'a [u8]>,
    bytes: &'a [u8],
    terminated: bool,
    provenance: Provenance,
}

impl ServerConnection {
    async fn process(&self, output: ServerOutput<'_>) -> Result<(), SessionStoppedError> {
        let output = match output {
            ServerOutput::Process(ReceivedLine::Line(bytes, terminated)) => {
                let (about, provenance) = (None, Provenance::default());
                let message = ReceivedMessage { about, bytes, terminated, provenance };
                return self.receive(message).await;
            }
            ServerOutput::Process(ReceivedLine::Oversize(message)) => return self.refuse(message),
            ServerOutput::Actor(output) => output,
        };
        match output {
            ActorOutput::Message { about, bytes, provenance } => {
                let (about, bytes, terminated) = (about.as_deref(), &bytes[..], true);
                self.receive(ReceivedMessage { about, bytes, terminated, provenance }).await
            }
            ActorOutput::Piece { about, piece, ends } => {
                self.forward_raw(about.as_deref(), piece, ends).await
            }
            ActorOutput::StreamEnd { about } => {
                self.close_stream_for_resumption(&about);
                Ok(())
            }
            ActorOutput::Disconnect { about, abrupt } => {
                self.disconnect_clients(about.as_deref(), abrupt);
                Ok(())
            }
        }
    }

    /// Records a message and delivers it.
    async fn receive(&self, message: ReceivedMessage<'_>) -> Result<(), SessionStoppedError> {
        let ReceivedMessage { about, bytes: line, terminated, provenance } = message;
        let frame = self.session.read(line);
        let from = Side::Server;
        if let FrameBody::Garbage(garbage) = frame.body() {
            return self.mark_undeliverable(line, &garbage.reason());
        }
        // Ids are restored before the message is judged, so the gate and the tape see the client's
        // ids.
        let mut edits = JsonEdits::new(line);
        let places: Vec<MessageRoute> = {
            let mut id_map = self.id_map.borrow_mut();
            envelopes(&frame)
                .iter()
                .map(|envelope| id_map.route(envelope, about, &mut edits))
                .collect()
        };
        let text = edits.finish();
        // For clients that share a server, the exchange is the lane
        // (docs/decisions/session-numbers.md).
        let lane = places.iter().find_map(MessageRoute::lane).unwrap_or(self.lane);
        let renamed = matches!(text, Cow::Owned(_)).then(|| self.session.read(&text));
        let frame = renamed.as_ref().unwrap_or(&frame);
        let resumed = places.iter().any(MessageRoute::is_resumption);
        let received = match resumed {
            _ if provenance != Provenance::default() => {
                RelayEvent::Played { lane, from, frame, resumed, provenance }
            }
            true => RelayEvent::Resumed { lane, frame, terminated },
            false => RelayEvent::Received { lane, from, frame, terminated },
        };
        let GateResult { disposition, outgoing } = match self.session.judge(received, from) {
            Ok(judged) => judged,
            Err(stopped) => {
                // Routing has removed these requests from the id map, so closing would not answer
                // them.
                let reason = stopped.to_string();
                let envelopes = envelopes(frame);
                let ids = envelopes.iter().filter_map(answered_id);
                let errors = ids.map(|id| OwnMessage::error(id, CODE_GONE, &reason).into());
                self.answer_instead(frame, places, errors.collect(), &reason);
                return Err(stopped);
            }
        };
        let parts = match &disposition {
            Disposition::Forward(message) => {
                let mut parts = message.elements();
                // Only envelopes were routed, so other elements have no place in the list.
                parts.retain(|(frame, _)| frame.envelope().is_some());
                // If some were taken out, the rest can no longer be matched to its recipients.
                Some(parts).filter(|parts| parts.len() == places.len())
            }
            Disposition::Refuse(()) | Disposition::Hold(_) | Disposition::Consume => None,
        };
        let Some(parts) = parts else {
            let to_client = self.send_server_part(outgoing);
            let reason = "the server's answer was refused";
            self.answer_instead(frame, places, to_client, reason);
            return Ok(());
        };
        for ((frame, part), route) in parts.into_iter().zip(places) {
            if let Some(envelope) = frame.envelope() {
                self.deliver(envelope, part.into_one_line().into_owned(), route).await;
            }
        }
        Ok(())
    }

    /// Records a line that is not JSON and so cannot be delivered over HTTP.
    fn mark_undeliverable(&self, bytes: &[u8], fault: &str) -> Result<(), SessionStoppedError> {
        let reason = format!("{fault}; only JSON can be sent over HTTP");
        self.session.mark((self.lane, Side::Server), (bytes, false), &reason)
    }

    /// Sends the replacements for a message that the gate has refused, or that could not be
    /// recorded. An exchange that waits for an answer without one gets an error with `reason`.
    fn answer_instead(
        &self,
        frame: &Frame<'_>,
        places: Vec<MessageRoute>,
        mut to_client: Vec<PermittedMessage<'_>>,
        reason: &str,
    ) {
        for (envelope, route) in envelopes(frame).iter().zip(places) {
            let Some(id) = answered_id(envelope) else { continue };
            let is_it = |message: &PermittedMessage<'_>| {
                message
                    .frame()
                    .envelope()
                    .and_then(|envelope| envelope.id)
                    .is_some_and(|of| same_id(of, id))
            };
            let answer = to_client.iter().position(is_it).map(|at| to_client.remove(at));
            match (route, answer) {
                (MessageRoute::Answer(exchange), answer) => {
                    let own = || OwnMessage::error(id, CODE_GONE, reason).into();
                    exchange
                        .answer(answer.map_or_else(own, PermittedMessage::into_owned), true)
                        .ok();
                }
                (_, Some(message)) if self.kind == ConnectionKind::Old => {
                    self.main.push(message.into_owned());
                }
                _ => {}
            }
        }
    }

    async fn deliver(
        &self,
        envelope: &Envelope<'_>,
        message: PermittedMessage<'static>,
        route: MessageRoute,
    ) {
        // Every exchange has its final answer by now, so output during the shutdown is only
        // recorded.
        if self.is_ended() {
            return;
        }
        if self.kind == ConnectionKind::Old {
            return self.push(&self.main, message).await;
        }
        match route {
            MessageRoute::Answer(exchange) => {
                if let (ConnectionKind::Shared, true, Some(result)) =
                    (self.kind, exchange.lists.get(), envelope.result)
                {
                    // Later calls are checked against what the client has just been shown.
                    self.params.borrow_mut().learn_tools(result);
                }
                let error = envelope.kind() == MessageKind::Error;
                if let Err(message) = exchange.answer(message, error) {
                    self.mark_undelivered(
                        exchange.lane,
                        Side::Server,
                        message.bytes(),
                        "its client is gone",
                    );
                }
            }
            MessageRoute::With(exchange) if exchange.accepts_notifications() => {
                self.send_on_stream(&exchange, message).await
            }
            MessageRoute::With(exchange) if self.kind == ConnectionKind::Shared => {
                self.mark_undelivered(
                    exchange.lane,
                    Side::Server,
                    message.bytes(),
                    "its client is gone",
                );
            }
            MessageRoute::With(exchange) => match exchange.event_stream() {
                // Its connection broke; the client may resume the stream.
                Some(stream) => stream.push(message),
                None => self.deliver_to_any(envelope, message).await,
            },
            MessageRoute::Anywhere => self.deliver_to_any(envelope, message).await,
            MessageRoute::Unasked => {
                let reason = "it does not answer any pending request";
                self.mark_undelivered(self.lane, Side::Server, message.bytes(), reason);
            }
        }
    }

    /// Delivers a message that belongs to no exchange, or to one that cannot take it.
    async fn deliver_to_any(&self, envelope: &Envelope<'_>, message: PermittedMessage<'static>) {
        if self.kind == ConnectionKind::Shared {
            let reason = "it cannot be matched to a client";
            self.mark_undelivered(self.lane, Side::Server, message.bytes(), reason);
            return self.refuse_server_request(envelope, reason);
        }
        // The GET stream comes first: the protocol keeps it for messages that belong to no request.
        if self.main.has_reader() {
            return self.push(&self.main, message).await;
        }
        let listener = self.id_map.borrow().any_listener();
        if let Some(exchange) = listener {
            return self.send_on_stream(&exchange, message).await;
        }
        while !self.main.has_room() {
            let Some(oldest) = self.main.take_oldest() else { break };
            let reason = "the client has no open stream, and too many messages are queued for it";
            self.mark_undelivered(self.lane, Side::Server, oldest.bytes(), reason);
            // The server waits for an answer to its request, which no client will give.
            if let Some(envelope) = Frame::read(oldest.bytes()).envelope() {
                self.refuse_server_request(envelope, reason);
            }
        }
        self.main.push(message);
    }

    /// Answers a server's request that no client will receive.
    fn refuse_server_request(&self, envelope: &Envelope<'_>, reason: &str) {
        if let (MessageKind::Request, Some(id)) = (envelope.kind(), envelope.id) {
            let message = OwnMessage::error(id, -32601, reason);
            let (lane, to) = (self.lane, Side::Server);
            let own = self.session.feed_and_commit(RelayEvent::SendOwn { lane, to, message });
            self.send_server_part(own.unwrap_or_default());
        }
    }

    /// Sends a message other than an answer on the stream of an exchange.
    async fn send_on_stream(&self, exchange: &PostExchange, message: PermittedMessage<'static>) {
        let stream = self.stream_of(exchange);
        let in_time = self.wait_for_client(&stream).await;
        if in_time || self.kind != ConnectionKind::Shared {
            return stream.push(message);
        }
        let (reason, from) = ("its client reads too slowly", Side::Server);
        self.mark_undelivered(exchange.lane, from, message.bytes(), reason);
        self.connection_lost(exchange);
    }

    /// Adds to a stream, first waiting for a reader that is far behind.
    pub(super) async fn push(&self, stream: &Rc<ClientStream>, message: PermittedMessage<'static>) {
        self.wait_for_client(stream).await;
        stream.push(message);
    }

    /// Waits for a reader that is far behind; if that takes too long, drops its connection and
    /// returns false.
    pub(super) async fn wait_for_client(&self, stream: &ClientStream) -> bool {
        let in_time = match self.kind {
            // A slow client may not hold up the others that share the server.
            ConnectionKind::Shared => stream.has_room() || stream.wait_for_reader(LAG).await,
            ConnectionKind::Session | ConnectionKind::Old => stream.wait_for_room(STALL).await,
        };
        if !in_time {
            stream.disconnect();
            if self.kind == ConnectionKind::Old {
                // It is the session's only stream, and this transport cannot resume it.
                self.request_end("the client does not read its stream", Duration::ZERO);
            }
        }
        in_time
    }

    /// Refuses an oversized message, and sends an error to the side that waits for it.
    fn refuse(&self, mut message: OversizeMessage) -> Result<(), SessionStoppedError> {
        let mut lane = self.lane;
        // The server uses the id it knows, but the pending request has the client's id.
        if let (Some(id), None) = (&message.envelope.id, &message.envelope.method)
            && let Some((of, theirs)) = self.id_map.borrow().client_id_of(id)
        {
            lane = of;
            message.envelope.id = Some(theirs);
        }
        let refused = self.session.refuse_oversize(lane, Side::Server, message)?;
        for answer in self.send_server_part(refused) {
            self.send_final_answer(lane, answer);
        }
        Ok(())
    }
}
