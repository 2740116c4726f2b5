//! Reading event streams: to their end, or across reconnects to the awaited answer.

use std::rc::Rc;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode};
use hyper::body::Incoming;
use tapegate_core::side::Side;
use tapegate_core::sse::SsePiece;
use tokio::time::Instant;

use super::super::request_headers::LAST_EVENT_ID;
use super::super::shared_session::SessionStoppedError;
use super::super::upstream::{EventBody, EventRead};
use super::super::{OutboundBytes, headers};
use super::OutboundBridge;
use super::pending_calls::BridgeCall;
use super::problem::ExchangeProblem;

/// How many consecutive attempts to resume a stream may fail.
pub(super) const VAIN_MAX: u32 = 5;
/// The pause before the first attempt; it doubles with each failure.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// The shortest pause, whatever the server asks for.
const PAUSE_ASKED_MIN: Duration = Duration::from_millis(20);
/// The longest pause a server may ask for.
const PAUSE_ASKED_MAX: Duration = Duration::from_secs(60);
/// A stream that stayed open this long counts as a success, even without events.
const WORTHWHILE: Duration = Duration::from_secs(1);

/// The position in a stream, across all its reconnects.
#[derive(Debug, Default)]
pub(super) struct StreamPosition {
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
    events: u64,
    vain: u32,
}

/// The result of an attempt to open a stream.
pub(super) enum OpenedStream {
    /// It is open.
    Stream(Box<EventBody>),
    /// The server does not offer it.
    Refused(StatusCode),
    /// The server is unreachable or busy; a later attempt may succeed.
    NotNow(String),
}

impl StreamPosition {
    /// Whether the stream can be resumed where it broke.
    fn can_resume(&self) -> bool {
        self.last_id.is_some() && self.vain < VAIN_MAX
    }

    /// Whether too many attempts have failed.
    pub(super) fn has_too_many_retries(&self) -> bool {
        self.vain >= VAIN_MAX
    }

    /// Waits before the next attempt, as long as the server asked for.
    pub(super) async fn pause(&self) {
        let ours = PAUSE_FIRST.saturating_mul(1 << self.vain.min(16)).min(PAUSE_MAX);
        tokio::time::sleep(
            self.retry.map_or(ours, |retry| retry.clamp(PAUSE_ASKED_MIN, PAUSE_ASKED_MAX)),
        )
        .await;
    }

    /// Counts a failed attempt.
    pub(super) fn count_failed_retry(&mut self) {
        self.vain += 1;
    }

    fn note_event(&mut self, piece: &SsePiece) {
        if let Some(ms) = piece.retry_ms {
            self.retry = Some(Duration::from_millis(ms));
        }
        if let Some(id) = &piece.id {
            // By the SSE standard, an empty id clears the last one.
            let id = HeaderValue::from_bytes(id).ok();
            self.last_id = id.filter(|id| !id.is_empty());
        }
        self.events += u64::from(piece.data.is_some() || piece.id.is_some());
    }
}

impl OutboundBridge {
    /// Passes on the messages of a stream until it ends; returns the error if it broke.
    pub(super) async fn forward_stream(
        self: &Rc<Self>,
        mut stream: EventBody,
        position: &mut StreamPosition,
        own: Option<&Rc<BridgeCall>>,
    ) -> Result<Option<String>, SessionStoppedError> {
        let (began, before) = (Instant::now(), position.events);
        let resumed = position.last_id.is_some();
        tracing::debug!(resumed, "event stream of the server opened");
        loop {
            match stream.next().await {
                EventRead::Piece(piece) => {
                    self.forward_event(&piece, own, resumed).await?;
                    position.note_event(&piece);
                }
                EventRead::TooLarge(message) => self.refuse(own, Side::Server, message).await?,
                EventRead::End(cause_text) => {
                    tracing::debug!(cause = cause_text, "event stream of the server ended");
                    let worthwhile = position.events > before || began.elapsed() > WORTHWHILE;
                    position.vain = if worthwhile { 0 } else { position.vain + 1 };
                    return Ok(cause_text);
                }
            }
        }
    }

    /// Passes on the message of an event.
    async fn forward_event(
        self: &Rc<Self>,
        piece: &SsePiece,
        own: Option<&Rc<BridgeCall>>,
        resumed: bool,
    ) -> Result<(), SessionStoppedError> {
        let is_message = piece.event.as_deref().is_none_or(|event| event == b"message");
        match &piece.data {
            Some(data) if is_message && !data.trim_ascii().is_empty() => {
                self.deliver(own, &self.shared_session.read(data), resumed).await
            }
            _ => Ok(()),
        }
    }

    /// Reads a reply that is a stream until it has delivered the answer. A broken stream is resumed
    /// if the server gave its events ids.
    pub(super) async fn forward_stream_until_answer(
        self: &Rc<Self>,
        body: Incoming,
        call: &Rc<BridgeCall>,
    ) -> Result<(), ExchangeProblem> {
        let mut position = StreamPosition::default();
        let stream = EventBody::new(body, self.shared_session.message_bytes_max());
        let mut cause_text = self.forward_stream(stream, &mut position, Some(call)).await?;
        // Since 2026-07-28 a broken stream cannot be resumed; the client may repeat its request.
        while !call.is_finished() && !call.head.modern && position.can_resume() {
            position.pause().await;
            match self.open_stream(&position).await {
                OpenedStream::Stream(stream) => {
                    cause_text = self.forward_stream(*stream, &mut position, Some(call)).await?;
                }
                OpenedStream::NotNow(reason) => {
                    position.count_failed_retry();
                    cause_text = Some(reason);
                }
                OpenedStream::Refused(status) => {
                    cause_text = Some(format!("it cannot be resumed: {status}"));
                    break;
                }
            }
        }
        if call.is_finished() {
            return Ok(());
        }
        let cause_text =
            cause_text.map(|cause_text| format!(" ({cause_text})")).unwrap_or_default();
        Err(ExchangeProblem::new(format!(
            "the MCP server's reply ended before the answer came{cause_text}"
        )))
    }

    /// Opens the server's own stream, resuming from `position`.
    pub(super) async fn open_stream(&self, position: &StreamPosition) -> OpenedStream {
        let mut headers = self.session.borrow().headers("text/event-stream");
        headers.extend(position.last_id.clone().map(|id| (LAST_EVENT_ID, id)));
        let path = self.path.borrow().clone();
        let reply =
            match self.upstream.send(Method::GET, path, headers, OutboundBytes::empty()).await {
                Ok(reply) => reply,
                Err(error) => return OpenedStream::NotNow(error.to_string()),
            };
        let status = reply.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return OpenedStream::NotNow(status.to_string());
        }
        if !status.is_success() || !headers::is_type(reply.headers(), "text/event-stream") {
            return OpenedStream::Refused(status);
        }
        let stream = EventBody::new(reply.into_body(), self.shared_session.message_bytes_max());
        OpenedStream::Stream(Box::new(stream))
    }
}
