//! A request that waits for an approval decision within its exchange.
//!
//! A client that accepts events gets keep-alives; any other simply waits. If its connection breaks,
//! the call is cancelled. A legacy client's POST is accepted at once, since its answer is sent on
//! its stream anyway.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::request::Parts;
use http::{Response, StatusCode};
use tapegate_core::gate::HoldId;
use tapegate_core::relay::{CODE_GONE, OwnMessage, PermittedMessage};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::super::body::{BrokenBody, KEEP_ALIVE, PieceStream};
use super::super::pending_message::PendingMessage;
use super::super::request_headers::RequestHeaders;
use super::super::shared_session::{HoldUpdate, HoldUpdates};
use super::super::{OutboundBytes, ReplyBody, headers};
use super::ProxyExchange;

/// How long a decision may take before a client that accepts events gets a stream.
const PROMPT: Duration = Duration::from_millis(500);
/// How many pieces may be queued for a client that does not read.
const PIECES_MAX: usize = 8;

/// A held request, with the exchange in which it will continue.
struct HeldExchange {
    updates: HoldUpdates,
    going_on: Option<(ProxyExchange, Parts)>,
}

impl HeldExchange {
    /// Acts on the decision. A released call is sent by a task of its own from the start.
    async fn settle(&mut self, update: HoldUpdate) -> Option<Response<ReplyBody>> {
        // Taken, so that `drop` does not send the call a second time.
        let (exchange, parts) = self.going_on.take()?;
        Some(exchange.apply_hold_outcome(parts, update).await)
    }
}

impl Drop for HeldExchange {
    fn drop(&mut self) {
        // A client that disconnects just as the decision arrives has not cancelled the call: the
        // call was released, and is recorded as sent.
        if let Some(message) = self.updates.close()
            && let Some((exchange, parts)) = self.going_on.take()
        {
            let update = HoldUpdate::Send(message);
            tokio::task::spawn_local(exchange.apply_hold_outcome(parts, update));
        }
    }
}

/// An event stream that is opened before its first event is known.
struct LateStream {
    pieces: mpsc::Receiver<OutboundBytes>,
    task: AbortHandle,
}

impl Drop for LateStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PieceStream for LateStream {
    fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<OutboundBytes, BrokenBody>>> {
        self.pieces.poll_recv(cx).map(|piece| piece.map(Ok))
    }
}

impl ProxyExchange {
    /// Waits for the decision about a request, and returns the resulting reply.
    pub(super) async fn hold(mut self, parts: Parts, hold_id: HoldId) -> Response<ReplyBody> {
        let lane = self.lane();
        let updates = self.proxy.shared_session.hold_updates(lane, hold_id);
        // The transport answers a POST at once, whatever becomes of the message.
        if self.older {
            tokio::task::spawn_local(self.hold_in_background(parts, updates));
            return headers::accepted();
        }
        let streams = RequestHeaders::read(&parts.headers).streams;
        let mut hold = HeldExchange { updates, going_on: Some((self, parts)) };
        let update = match streams {
            false => hold.updates.last().await,
            // A quick decision is sent as an ordinary reply, with a status of its own.
            true => match tokio::time::timeout(PROMPT, hold.updates.next()).await {
                Ok(HoldUpdate::Tell(message)) => return stream_hold(hold, Some(message)),
                Ok(update) => update,
                Err(_) => return stream_hold(hold, None),
            },
        };
        hold.settle(update).await.unwrap_or_else(headers::accepted)
    }

    /// Acts on the decision.
    async fn apply_hold_outcome(mut self, parts: Parts, update: HoldUpdate) -> Response<ReplyBody> {
        match update {
            HoldUpdate::Send(message) => {
                // The gate may have rewritten the call while it was held.
                self.client_message = Some(PendingMessage::of(&message.frame()));
                self.send_to_completion(parts, OutboundBytes::message(message)).await
            }
            HoldUpdate::Answer(message) => {
                // The relay has ended this request, so the exchange must not dismiss it again.
                self.client_message = None;
                self.own_answer_reply(&RequestHeaders::read(&parts.headers), vec![message])
            }
            HoldUpdate::Tell(_) | HoldUpdate::Over => {
                self.client_message = None;
                headers::accepted()
            }
        }
    }

    /// Waits after the POST has been accepted; the result is sent on the client's stream.
    async fn hold_in_background(mut self, parts: Parts, mut updates: HoldUpdates) {
        let update = loop {
            match updates.next().await {
                HoldUpdate::Tell(message) => {
                    self.send_on_legacy_stream(OutboundBytes::event(&message, None));
                }
                update => break update,
            }
        };
        let (proxy, lane) = (Rc::clone(&self.proxy), self.lane());
        let response = self.apply_hold_outcome(parts, update).await;
        if !response.status().is_success() {
            // The client already has its reply, so the error is sent on its stream.
            let inbox = proxy.inboxes.borrow().get(&lane).cloned();
            let event = response.into_body().collect().await.into_event();
            if let (Some(inbox), Some(event)) = (inbox, event) {
                inbox.try_send(event).ok();
            }
        }
    }
}

/// Opens a stream for a held request, which begins with `first`.
fn stream_hold(
    hold: HeldExchange,
    first: Option<PermittedMessage<'static>>,
) -> Response<ReplyBody> {
    let (sender, pieces) = mpsc::channel(PIECES_MAX);
    let task = tokio::task::spawn_local(hold_with_keepalive(hold, first, sender)).abort_handle();
    headers::events(ReplyBody::stream(LateStream { pieces, task }))
}

/// Waits while the client reads a stream, and sends the result on it.
async fn hold_with_keepalive(
    mut hold: HeldExchange,
    first: Option<PermittedMessage<'static>>,
    to: mpsc::Sender<OutboundBytes>,
) {
    if let Some(message) = first {
        to.send(OutboundBytes::event(&message, None)).await.ok();
    }
    let update = loop {
        match tokio::time::timeout(KEEP_ALIVE, hold.updates.next()).await {
            Ok(HoldUpdate::Tell(message)) => {
                drop(to.send(OutboundBytes::event(&message, None)).await)
            }
            Ok(update) => break update,
            Err(_) => drop(to.send(OutboundBytes::comment("waiting for approval")).await),
        }
    };
    // Read before `settle`, which takes the exchange.
    let client_message =
        hold.going_on.as_ref().and_then(|(exchange, _)| exchange.client_message.clone());
    let Some(response) = hold.settle(update).await else { return };
    let (parts, mut body) = response.into_parts();
    if headers::is_type(&parts.headers, "text/event-stream") {
        while let Some(Ok(piece)) = body.next_piece().await {
            to.send(piece).await.ok();
        }
        return;
    }
    // The head of the stream is sent, so the reply's status can no longer be passed on.
    if let Some(event) = body.collect().await.into_event() {
        to.send(event).await.ok();
    } else if parts.status != StatusCode::ACCEPTED {
        let message_text = format!("the MCP server's reply ({}) has no answer", parts.status);
        for id in client_message.unwrap_or_default().ids {
            let message = OwnMessage::error(&id, CODE_GONE, &message_text).into();
            to.send(OutboundBytes::event(&message, None)).await.ok();
        }
    }
}
