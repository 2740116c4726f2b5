//! One POST whose requests wait for answers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tapegate_core::frame::Envelope;
use tapegate_core::pending::IdKey;
use tapegate_core::relay::PermittedMessage;
use tapegate_core::side::Lane;
use tokio::sync::Notify;

use super::super::listener::ConnectionHandle;
use super::super::request_headers::RequestHeaders;
use super::super::shared_session::HoldWaiter;
use super::raw_output::RawAnswer;
use super::stream::ClientStream;

/// One POST with requests, from its arrival until all of them are answered.
pub(super) struct PostExchange {
    /// Its sequence number within the server connection.
    pub(super) number: u64,
    /// The lane it is recorded in.
    pub(super) lane: Lane,
    /// The response types its client accepts.
    pub(super) accepts_json: bool,
    pub(super) accepts_events: bool,
    /// Whether its client prefers a stream even where JSON would do.
    pub(super) knows_streams: bool,
    /// Whether its client understands an event that has only an id.
    knows_priming: bool,
    /// Whether it is a subscription, which stays open.
    pub(super) listens: Cell<bool>,
    /// Whether it asks for the list of tools.
    pub(super) lists: Cell<bool>,
    /// Whether its client has disconnected, or has cancelled its requests.
    pub(super) gone: Cell<bool>,
    pub(super) cancelled: Cell<bool>,
    /// Whether its stream was ended early, so that its client has to reconnect.
    pub(super) parted: Cell<bool>,
    /// Whether one of its answers was an error.
    pub(super) failed: Cell<bool>,
    /// Its call that is held, if one is. Dropping it withdraws the call.
    pub(super) hold: RefCell<Option<HoldWaiter>>,
    /// The ids and tokens it uses towards the server.
    pub(super) ids: RefCell<Vec<IdKey>>,
    pub(super) tokens: RefCell<Vec<IdKey>>,
    batch: bool,
    unanswered: Cell<usize>,
    answers: RefCell<Vec<PermittedMessage<'static>>>,
    /// The events of its reply, or its body if that is sent in pieces.
    stream: RefCell<Option<Rc<ClientStream>>>,
    /// The answer that is being sent in pieces.
    pub(super) raw: RefCell<Option<RawAnswer>>,
    /// The handle of its connection, if its client shares the server.
    pub(super) client_connection: RefCell<Option<Rc<ConnectionHandle>>>,
    notify: Notify,
}

impl PostExchange {
    /// An exchange of `requests` requests, from one message or a batch.
    pub(super) fn new(
        number: u64,
        lane: Lane,
        terms: &RequestHeaders,
        envelope: Option<&Envelope<'_>>,
        requests: usize,
    ) -> Self {
        Self {
            number,
            lane,
            accepts_json: terms.json,
            accepts_events: terms.events,
            knows_streams: terms.streams,
            knows_priming: terms.supports_priming(envelope),
            listens: Cell::new(false),
            lists: Cell::new(false),
            gone: Cell::new(false),
            cancelled: Cell::new(false),
            parted: Cell::new(false),
            failed: Cell::new(false),
            hold: RefCell::default(),
            ids: RefCell::default(),
            tokens: RefCell::default(),
            batch: envelope.is_none(),
            unanswered: Cell::new(requests),
            answers: RefCell::default(),
            stream: RefCell::default(),
            raw: RefCell::default(),
            client_connection: RefCell::default(),
            notify: Notify::new(),
        }
    }

    /// Whether its client still waits and is likely to get an answer.
    pub(super) fn is_live(&self) -> bool {
        !self.gone.get() && !self.cancelled.get() && !self.is_answered()
    }

    /// Whether messages other than answers can be sent here.
    pub(super) fn accepts_notifications(&self) -> bool {
        let has_body = self.stream().is_some_and(|stream| stream.is_body());
        self.accepts_events && !has_body && !self.gone.get() && !self.is_answered()
    }

    pub(super) fn is_answered(&self) -> bool {
        self.unanswered.get() == 0
    }

    /// The stream or the body sent in pieces, if one was opened.
    pub(super) fn stream(&self) -> Option<Rc<ClientStream>> {
        self.stream.borrow().clone()
    }

    /// The stream of events, if one was opened.
    pub(super) fn event_stream(&self) -> Option<Rc<ClientStream>> {
        self.stream().filter(|stream| !stream.is_body())
    }

    /// The stream of this exchange, opened with `open` if necessary.
    pub(super) fn stream_or_open(
        &self,
        open: impl FnOnce() -> Rc<ClientStream>,
    ) -> Rc<ClientStream> {
        let stream = Rc::clone(self.stream.borrow_mut().get_or_insert_with(|| {
            let stream = open();
            // Answers that have arrived, or wait for the rest of their batch, go first.
            self.answers.borrow_mut().drain(..).for_each(|text| stream.push(text));
            if self.is_answered() {
                stream.finish();
            }
            stream
        }));
        self.notify.notify_one();
        stream
    }

    /// Where pieces of its answer go: its stream, or a separate body. `None` if the pieces must be
    /// joined first because other answers share the body.
    pub(super) fn raw_stream_or_open(
        &self,
        open: impl FnOnce() -> Rc<ClientStream>,
    ) -> Option<Rc<ClientStream>> {
        match self.stream() {
            None if self.batch || self.gone.get() => None,
            None => Some(self.stream_or_open(open)),
            stream => stream,
        }
    }

    /// Notes that the last piece of an answer has been sent.
    pub(super) fn finish_raw_answer(&self) {
        self.unanswered.set(self.unanswered.get().saturating_sub(1));
        if self.is_answered() {
            self.stream.borrow().iter().for_each(|stream| stream.finish());
        }
        self.notify.notify_one();
    }

    /// Sends an event id to resume from, if the client understands it.
    pub(super) fn send_priming_event(&self, stream: &ClientStream) {
        if self.knows_priming {
            stream.push_priming_event();
        }
    }

    /// Whether its client reconnects for the rest of a stream that ends early.
    pub(super) fn can_resume(&self) -> bool {
        self.knows_priming && self.knows_streams && self.accepts_notifications()
    }

    /// Takes the answer to one of its requests; returns it if it cannot be delivered.
    pub(super) fn answer(
        &self,
        message: PermittedMessage<'static>,
        error: bool,
    ) -> Result<(), PermittedMessage<'static>> {
        self.failed.set(self.failed.get() || error);
        self.unanswered.set(self.unanswered.get().saturating_sub(1));
        match &*self.stream.borrow() {
            Some(body) if body.is_body() => {
                // A body already begun cannot be replaced, so it is broken off.
                body.disconnect();
                return Err(message);
            }
            Some(stream) => {
                stream.push(message);
                if self.is_answered() {
                    stream.finish();
                }
            }
            // Without a stream, the client has no event id to resume from, so the answer cannot be
            // kept for it.
            None if self.gone.get() => return Err(message),
            None => self.answers.borrow_mut().push(message),
        }
        self.notify.notify_one();
        Ok(())
    }

    /// Takes the answers to all of its requests, single or batched.
    pub(super) fn answer_all(&self, message: &PermittedMessage<'_>) {
        for (_, one) in message.elements() {
            self.answer(one.into_one_line().into_owned(), true).ok();
        }
    }

    /// Drops the exchange: its client wants no more answers.
    pub(super) fn abandon(&self) {
        self.cancelled.set(true);
        self.unanswered.set(0);
        self.stream.borrow().iter().for_each(|stream| stream.finish());
        self.notify.notify_one();
    }

    /// Waits until the POST can be answered: with a stream, a body in pieces, or all answers.
    pub(super) async fn ready(&self) {
        while self.stream.borrow().is_none() && !self.is_answered() {
            self.notify.notified().await;
        }
    }

    /// Whether no answer has arrived.
    pub(super) fn is_unanswered(&self) -> bool {
        self.answers.borrow().is_empty()
    }

    /// All answers as one message.
    pub(super) fn take_all_answers(&self) -> Option<PermittedMessage<'static>> {
        let mut answers = self.answers.take();
        match self.batch {
            true => Some(PermittedMessage::batch(&answers)),
            false => (!answers.is_empty()).then(|| answers.swap_remove(0)),
        }
    }
}
