//! Reading event streams: to their end, or across reconnects to the awaited answer.

use std::rc::Rc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tapegate_core::lines::Oversize;
use tapegate_core::side::Side;
use tapegate_core::sse::{Events, Piece};
use tokio::time::Instant;

use super::super::station::Stopped;
use super::super::{Outbound, headers};
use super::Bridge;
use super::calls::Call;
use super::problem::Problem;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
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

/// A body that is a stream of events.
pub(super) struct EventBody {
    body: Incoming,
    events: Events,
}

/// An item read from an event stream.
pub(super) enum Got {
    Piece(Piece),
    TooLarge(Oversize),
    /// The stream has ended, with an error if it broke.
    End(Option<String>),
}

/// The position in a stream, across all its reconnects.
#[derive(Debug, Default)]
pub(super) struct Place {
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
    events: u64,
    vain: u32,
}

/// The result of an attempt to open a stream.
pub(super) enum Opened {
    /// It is open.
    Stream(Box<EventBody>),
    /// The server does not offer it.
    Refused(StatusCode),
    /// The server is unreachable or busy; a later attempt may succeed.
    NotNow(String),
}

impl EventBody {
    pub(super) fn new(body: Incoming, event_bytes_max: usize) -> Self {
        Self { body, events: Events::new(event_bytes_max) }
    }

    /// The next complete item.
    pub(super) async fn next(&mut self) -> Got {
        loop {
            match self.events.next() {
                Some(Ok(piece)) => return Got::Piece(piece),
                Some(Err(message)) => return Got::TooLarge(message),
                None => {}
            }
            match self.body.frame().await {
                // Data after the last blank line is an incomplete event and is discarded.
                None => return Got::End(None),
                Some(Err(error)) => return Got::End(Some(error.to_string())),
                Some(Ok(frame)) => frame.data_ref().iter().for_each(|data| self.events.feed(data)),
            }
        }
    }
}

impl Place {
    /// Whether the stream can be resumed where it broke.
    fn can_resume(&self) -> bool {
        self.last_id.is_some() && self.vain < VAIN_MAX
    }

    /// Whether too many attempts have failed.
    pub(super) fn is_hopeless(&self) -> bool {
        self.vain >= VAIN_MAX
    }

    /// Waits before the next attempt, as long as the server asked for.
    pub(super) async fn pause(&self) {
        let ours = PAUSE_FIRST.saturating_mul(1 << self.vain.min(16)).min(PAUSE_MAX);
        tokio::time::sleep(
            self.retry.map_or(ours, |asked| asked.clamp(PAUSE_ASKED_MIN, PAUSE_ASKED_MAX)),
        )
        .await;
    }

    /// Counts a failed attempt.
    pub(super) fn tried_in_vain(&mut self) {
        self.vain += 1;
    }

    fn note(&mut self, piece: &Piece) {
        if let Some(ms) = piece.retry_ms {
            self.retry = Some(Duration::from_millis(ms));
        }
        if let Some(id) = &piece.id {
            let id = HeaderValue::from_bytes(id).ok();
            self.last_id = id.filter(|id| !id.is_empty());
        }
        self.events += u64::from(piece.data.is_some() || piece.id.is_some());
    }
}

impl Bridge {
    /// Passes on the messages of a stream until it ends; returns the error if it broke.
    pub(super) async fn follow(
        self: &Rc<Self>,
        mut stream: EventBody,
        place: &mut Place,
        own: Option<&Rc<Call>>,
    ) -> Result<Option<String>, Stopped> {
        let (began, before) = (Instant::now(), place.events);
        let resumed = place.last_id.is_some();
        loop {
            match stream.next().await {
                Got::Piece(piece) => {
                    self.pass_event(&piece, own, resumed).await?;
                    place.note(&piece);
                }
                Got::TooLarge(message) => self.refuse(own, Side::Server, message).await?,
                Got::End(why) => {
                    let worthwhile = place.events > before || began.elapsed() > WORTHWHILE;
                    place.vain = if worthwhile { 0 } else { place.vain + 1 };
                    return Ok(why);
                }
            }
        }
    }

    /// Passes on the message of an event.
    async fn pass_event(
        self: &Rc<Self>,
        piece: &Piece,
        own: Option<&Rc<Call>>,
        resumed: bool,
    ) -> Result<(), Stopped> {
        let is_message = piece.event.as_deref().is_none_or(|event| event == b"message");
        match &piece.data {
            Some(data) if is_message && !data.trim_ascii().is_empty() => {
                self.deliver(own, data, resumed).await
            }
            _ => Ok(()),
        }
    }

    /// Reads a reply that is a stream until it has delivered the answer. A broken stream is resumed
    /// if the server gave its events ids.
    pub(super) async fn follow_to_answer(
        self: &Rc<Self>,
        body: Incoming,
        call: &Rc<Call>,
    ) -> Result<(), Problem> {
        let mut place = Place::default();
        let stream = EventBody::new(body, self.station.message_bytes_max());
        let mut why = self.follow(stream, &mut place, Some(call)).await?;
        // Since 2026-07-28 a broken stream cannot be resumed; the client may repeat its request.
        while !call.is_over() && !call.modern && place.can_resume() {
            place.pause().await;
            match self.open_stream(&place).await {
                Opened::Stream(stream) => {
                    why = self.follow(*stream, &mut place, Some(call)).await?;
                }
                Opened::NotNow(reason) => {
                    place.tried_in_vain();
                    why = Some(reason);
                }
                Opened::Refused(status) => {
                    why = Some(format!("it cannot be resumed: {status}"));
                    break;
                }
            }
        }
        if call.is_over() {
            return Ok(());
        }
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        Err(Problem::new(format!("the MCP server's reply ended before the answer came{why}")))
    }

    /// Opens the server's own stream, resuming from `place`.
    pub(super) async fn open_stream(&self, place: &Place) -> Opened {
        let mut headers = self.session.borrow().headers("text/event-stream");
        headers.extend(place.last_id.clone().map(|id| (LAST_EVENT_ID, id)));
        let path = self.path.borrow().clone();
        let reply = match self.upstream.send(Method::GET, path, headers, Outbound::empty()).await {
            Ok(reply) => reply,
            Err(error) => return Opened::NotNow(error.to_string()),
        };
        let status = reply.status();
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Opened::NotNow(status.to_string());
        }
        if !status.is_success() || !headers::is_type(reply.headers(), "text/event-stream") {
            return Opened::Refused(status);
        }
        let stream = EventBody::new(reply.into_body(), self.station.message_bytes_max());
        Opened::Stream(Box::new(stream))
    }
}
