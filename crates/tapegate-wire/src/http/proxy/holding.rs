//! A request that waits for an approval decision within its exchange.
//!
//! A client that accepts events gets keep-alives; any other simply waits. If its connection breaks,
//! the call is cancelled. A legacy client's POST is accepted at once, since its answer is sent on
//! its stream anyway.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use tapegate_core::frame::{self, Body, Frame};
use tapegate_core::gate::Ticket;
use tapegate_core::relay::{CODE_GONE, OwnMessage};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::super::body::{BrokenBody, Pieces};
use super::super::station::{Waiting, Word};
use super::super::terms::Terms;
use super::super::{Outbound, ReplyBody, headers};
use super::Exchange;
use super::gated::accepted;

/// How long a decision may take before a client that accepts events gets a stream.
const PROMPT: Duration = Duration::from_millis(500);
/// How often an idle stream sends a keep-alive comment.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How many pieces may be queued for a client that does not read.
const PIECES_MAX: usize = 8;

/// Receives the updates about a held call. Dropping it cancels the call.
struct Held {
    words: mpsc::UnboundedReceiver<Word>,
    _waiting: Waiting,
}

impl Held {
    /// The next update. After the last one, the hold is always over.
    async fn next(&mut self) -> Word {
        self.words.recv().await.unwrap_or(Word::Over)
    }

    /// Waits for the final update, skipping progress.
    async fn last(&mut self) -> Word {
        loop {
            match self.next().await {
                Word::Tell(_) => {}
                word => return word,
            }
        }
    }
}

/// A held request, with the exchange in which it will continue.
struct HeldExchange {
    held: Held,
    going_on: Option<(Exchange, Parts)>,
}

impl HeldExchange {
    /// Acts on the decision. A released call is sent by a task of its own from the start.
    async fn settle(&mut self, word: Word) -> Option<Response<ReplyBody>> {
        let (exchange, parts) = self.going_on.take()?;
        Some(exchange.settled(parts, word).await)
    }
}

impl Drop for HeldExchange {
    fn drop(&mut self) {
        // A client that disconnects just as the decision arrives has not cancelled the call: the
        // call was released, and is recorded as sent.
        self.held.words.close();
        while let Ok(word) = self.held.words.try_recv() {
            if let (Word::Send(_), Some((exchange, parts))) = (&word, self.going_on.take()) {
                tokio::task::spawn_local(exchange.settled(parts, word));
            }
        }
    }
}

/// An event stream that is opened before its first event is known.
struct LateStream {
    pieces: mpsc::Receiver<Outbound>,
    task: AbortHandle,
}

impl Drop for LateStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pieces for LateStream {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Outbound, BrokenBody>>> {
        self.pieces.poll_recv(cx).map(|piece| piece.map(Ok))
    }
}

impl Exchange {
    /// Waits for the decision about a request, and returns the resulting reply.
    pub(super) async fn hold(self, parts: Parts, ticket: Ticket) -> Response<ReplyBody> {
        let (sender, words) = mpsc::unbounded_channel();
        let waiting = self.proxy.station.wait(ticket, move |word| drop(sender.send(word)));
        let held = Held { words, _waiting: waiting };
        if self.older {
            tokio::task::spawn_local(self.hold_beside(parts, held));
            return accepted();
        }
        let streams = Terms::read(&parts.headers).streams;
        let mut held = HeldExchange { held, going_on: Some((self, parts)) };
        let word = match streams {
            false => held.held.last().await,
            true => match tokio::time::timeout(PROMPT, held.held.last()).await {
                Ok(word) => word,
                Err(_) => {
                    let (sender, pieces) = mpsc::channel(PIECES_MAX);
                    let task = tokio::task::spawn_local(hold_aloud(held, sender)).abort_handle();
                    return headers::events(ReplyBody::stream(LateStream { pieces, task }));
                }
            },
        };
        held.settle(word).await.unwrap_or_else(accepted)
    }

    /// Acts on the decision.
    async fn settled(mut self, parts: Parts, word: Word) -> Response<ReplyBody> {
        match word {
            Word::Send(message) => {
                self.asked = Some(Bytes::copy_from_slice(message.bytes()));
                self.send_surely(parts, Outbound::message(message)).await
            }
            Word::Answer(message) => {
                self.asked = None;
                self.answered(&Terms::read(&parts.headers), vec![message])
            }
            Word::Tell(_) | Word::Over => {
                self.asked = None;
                accepted()
            }
        }
    }

    /// Waits after the POST has been accepted; the result is sent on the client's stream.
    async fn hold_beside(mut self, parts: Parts, mut held: Held) {
        let word = loop {
            match held.next().await {
                Word::Tell(message) => drop(self.whisper(Outbound::event(&message, None))),
                word => break word,
            }
        };
        match word {
            Word::Answer(message) => drop(self.whisper(Outbound::event(&message, None))),
            Word::Send(message) => {
                self.asked = Some(Bytes::copy_from_slice(message.bytes()));
                let (proxy, lane) = (Rc::clone(&self.proxy), self.lane());
                let response = self.send_surely(parts, Outbound::message(message)).await;
                if !response.status().is_success() {
                    // The client already has its reply, so the error is sent on its stream.
                    let inbox = proxy.inboxes.borrow().get(&lane).cloned();
                    let event = response.into_body().collected().await.into_event();
                    if let (Some(inbox), Some(event)) = (inbox, event) {
                        inbox.try_send(event).ok();
                    }
                }
            }
            Word::Tell(_) | Word::Over => {}
        }
    }
}

/// Waits while the client reads a stream, and sends the result on it.
async fn hold_aloud(mut held: HeldExchange, to: mpsc::Sender<Outbound>) {
    let word = loop {
        match tokio::time::timeout(KEEP_ALIVE, held.held.next()).await {
            Ok(Word::Tell(message)) => drop(to.send(Outbound::event(&message, None)).await),
            Ok(word) => break word,
            Err(_) => drop(to.send(Outbound::comment("waiting for approval")).await),
        }
    };
    let asked = held.going_on.as_ref().and_then(|(exchange, _)| exchange.asked.clone());
    let Some(response) = held.settle(word).await else { return };
    let (parts, mut body) = response.into_parts();
    if headers::is_type(&parts.headers, "text/event-stream") {
        while let Some(Ok(piece)) = body.next_piece().await {
            to.send(piece).await.ok();
        }
        return;
    }
    if let Some(event) = body.collected().await.into_event() {
        to.send(event).await.ok();
    } else if parts.status != StatusCode::ACCEPTED {
        let words = format!("the MCP server's reply ({}) has no answer", parts.status);
        for id in asked_ids(&asked.unwrap_or_default()) {
            let message = OwnMessage::error(&id, CODE_GONE, &words).into();
            to.send(Outbound::event(&message, None)).await.ok();
        }
    }
}

/// The raw ids of the requests.
fn asked_ids(asked: &[u8]) -> Vec<Vec<u8>> {
    let frame = Frame::read(asked);
    let frames = match frame.body() {
        Body::Batch => frame::elements(asked),
        _ => vec![frame],
    };
    frames.iter().filter_map(|one| one.envelope()?.id.map(<[u8]>::to_vec)).collect()
}
