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
use tapegate_core::relay::{CODE_GONE, OwnMessage};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::super::body::{BrokenBody, PieceStream};
use super::super::request_headers::RequestHeaders;
use super::super::shared_session::{HoldUpdate, HoldWaiter};
use super::super::{OutboundBytes, ReplyBody, headers};
use super::ProxyExchange;
use super::exchange::PendingMessage;

/// How long a decision may take before a client that accepts events gets a stream.
const PROMPT: Duration = Duration::from_millis(500);
/// How often an idle stream sends a keep-alive comment.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How many pieces may be queued for a client that does not read.
const PIECES_MAX: usize = 8;

/// Receives the updates about a held call. Dropping it cancels the call.
struct HoldSubscription {
    updates: mpsc::UnboundedReceiver<HoldUpdate>,
    _waiting: HoldWaiter,
}

impl HoldSubscription {
    /// The next update. After the last one, the hold is always over.
    async fn next(&mut self) -> HoldUpdate {
        self.updates.recv().await.unwrap_or(HoldUpdate::Over)
    }

    /// Waits for the final update, skipping progress.
    async fn last(&mut self) -> HoldUpdate {
        loop {
            match self.next().await {
                HoldUpdate::Tell(_) => {}
                word => return word,
            }
        }
    }
}

/// A held request, with the exchange in which it will continue.
struct HeldExchange {
    hold: HoldSubscription,
    going_on: Option<(ProxyExchange, Parts)>,
}

impl HeldExchange {
    /// Acts on the decision. A released call is sent by a task of its own from the start.
    async fn settle(&mut self, word: HoldUpdate) -> Option<Response<ReplyBody>> {
        // Taken, so that `drop` does not send the call a second time.
        let (exchange, parts) = self.going_on.take()?;
        Some(exchange.apply_hold_outcome(parts, word).await)
    }
}

impl Drop for HeldExchange {
    fn drop(&mut self) {
        // A client that disconnects just as the decision arrives has not cancelled the call: the
        // call was released, and is recorded as sent.
        // Closed first: no update may arrive after the last one that is read here.
        self.hold.updates.close();
        while let Ok(word) = self.hold.updates.try_recv() {
            if let (HoldUpdate::Send(_), Some((exchange, parts))) = (&word, self.going_on.take()) {
                tokio::task::spawn_local(exchange.apply_hold_outcome(parts, word));
            }
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
    pub(super) async fn hold(self, parts: Parts, hold_id: HoldId) -> Response<ReplyBody> {
        let (sender, updates) = mpsc::unbounded_channel();
        let waiting = self.proxy.shared_session.wait(hold_id, move |word| drop(sender.send(word)));
        let held = HoldSubscription { updates, _waiting: waiting };
        // The transport answers a POST at once, whatever becomes of the message.
        if self.older {
            tokio::task::spawn_local(self.hold_in_background(parts, held));
            return headers::accepted();
        }
        let streams = RequestHeaders::read(&parts.headers).streams;
        let mut hold = HeldExchange { hold: held, going_on: Some((self, parts)) };
        let word = match streams {
            false => hold.hold.last().await,
            // A quick decision is sent as an ordinary reply, with a status of its own.
            true => match tokio::time::timeout(PROMPT, hold.hold.last()).await {
                Ok(word) => word,
                Err(_) => {
                    let (sender, pieces) = mpsc::channel(PIECES_MAX);
                    let task =
                        tokio::task::spawn_local(hold_with_keepalive(hold, sender)).abort_handle();
                    return headers::events(ReplyBody::stream(LateStream { pieces, task }));
                }
            },
        };
        hold.settle(word).await.unwrap_or_else(headers::accepted)
    }

    /// Acts on the decision.
    async fn apply_hold_outcome(mut self, parts: Parts, word: HoldUpdate) -> Response<ReplyBody> {
        match word {
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
    async fn hold_in_background(mut self, parts: Parts, mut hold: HoldSubscription) {
        let word = loop {
            match hold.next().await {
                HoldUpdate::Tell(message) => {
                    self.send_on_legacy_stream(OutboundBytes::event(&message, None));
                }
                word => break word,
            }
        };
        let (proxy, lane) = (Rc::clone(&self.proxy), self.lane());
        let response = self.apply_hold_outcome(parts, word).await;
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

/// Waits while the client reads a stream, and sends the result on it.
async fn hold_with_keepalive(mut hold: HeldExchange, to: mpsc::Sender<OutboundBytes>) {
    let word = loop {
        match tokio::time::timeout(KEEP_ALIVE, hold.hold.next()).await {
            Ok(HoldUpdate::Tell(message)) => {
                drop(to.send(OutboundBytes::event(&message, None)).await)
            }
            Ok(word) => break word,
            Err(_) => drop(to.send(OutboundBytes::comment("waiting for approval")).await),
        }
    };
    // Read before `settle`, which takes the exchange.
    let client_message =
        hold.going_on.as_ref().and_then(|(exchange, _)| exchange.client_message.clone());
    let Some(response) = hold.settle(word).await else { return };
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
