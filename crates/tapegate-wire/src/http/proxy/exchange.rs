//! The lane of an exchange, and its cleanup.

use http::Response;
use tapegate_core::frame::{self, Frame, FrameBody};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::{CODE_TOO_LARGE, PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};

use super::super::headers::{self, EarlyReply};
use super::super::shared_session::SessionStoppedError;
use super::super::{OutboundBytes, ReplyBody};
use super::{ExchangeScope, ProxyExchange, is_message};
use crate::recorded_session::OutgoingMessage;

impl ProxyExchange {
    /// The lane of a message that is about to be recorded, which may open a session.
    pub(super) fn lane_for(&mut self, frame: &Frame<'_>) -> Lane {
        let initialize = frame.envelope().is_some_and(|envelope| envelope.is_method("initialize"));
        let lane = match self.lane {
            Some(lane) => lane,
            // The session has no id yet. If the server assigns none, the lane becomes that of
            // sessionless clients.
            None if initialize => {
                self.scope = ExchangeScope::Opening;
                self.proxy.shared_session.open_session()
            }
            None => self.proxy.shared_session.open_exchange(),
        };
        self.lane = Some(lane);
        lane
    }

    /// Whether the request is sent to an MCP endpoint.
    pub(super) fn is_to_endpoint(&self) -> bool {
        let is_moved = || self.proxy.moved.borrow().as_ref() == Some(&self.path);
        let own = self.proxy.upstream.path().path();
        self.scope == ExchangeScope::Session || self.path.path() == own || is_moved()
    }

    /// Whether a body is a message, or should be one because of where it is sent.
    pub(super) fn carries_messages(&self, frame: &Frame<'_>) -> bool {
        let to_endpoint = self.is_to_endpoint();
        match frame.body() {
            FrameBody::Message(envelope) => to_endpoint || is_message(envelope),
            FrameBody::Batch => {
                let is_message = |one: Frame<'_>| one.envelope().is_some_and(is_message);
                to_endpoint || frame::each_element(frame.bytes()).any(is_message)
            }
            FrameBody::Garbage(_) => to_endpoint,
        }
    }

    /// The lane of the reply, which may be the first part of the exchange to be recorded.
    pub(super) fn lane(&mut self) -> Lane {
        *self.lane.get_or_insert_with(|| self.proxy.shared_session.open_exchange())
    }

    /// Refuses an oversized body. If it was an answer, returns an error to send to the server
    /// instead, which would otherwise wait indefinitely.
    pub(super) fn refuse(&mut self, message: OversizeMessage) -> Result<OutboundBytes, EarlyReply> {
        let (bytes_max, bytes_total) =
            (self.proxy.shared_session.message_bytes_max(), message.bytes_total);
        let lane = self.lane();
        // The relay gives at most one answer to an oversize message.
        let outgoing = self.proxy.shared_session.refuse_oversize(lane, Side::Client, message)?;
        let refused = |reply| Err(Box::new(headers::last(reply)));
        let text = || format!("a message of {bytes_total} bytes is over the limit of {bytes_max}");
        match outgoing.into_iter().next() {
            Some(OutgoingMessage { to: Side::Server, message, .. }) => {
                Ok(OutboundBytes::message(message))
            }
            Some(OutgoingMessage { message, .. }) => refused(headers::json(413, message)),
            None => refused(headers::error(413, b"null", CODE_TOO_LARGE, &text())),
        }
    }

    /// Answers in place of a server that cannot be reached. Several answers make a batch.
    pub(super) fn unreachable_reply(&mut self, reason: &str) -> Response<ReplyBody> {
        match self.dismiss_requests(Some(reason)) {
            Ok(answers) => match headers::single_or_batch(answers) {
                Some(message) => headers::json(502, message),
                None => headers::refusal(502, reason),
            },
            Err(stopped) => *EarlyReply::from(stopped),
        }
    }

    /// Forgets the requests that would be answered here; with a reason, answers them too.
    pub(super) fn dismiss_requests(
        &mut self,
        reason: Option<&str>,
    ) -> Result<Vec<PermittedMessage<'static>>, SessionStoppedError> {
        let message = self.client_message.take();
        // Without a message, nothing waits here. On a legacy stream, everything in the lane does.
        let Some(lane) = self.lane.filter(|_| message.is_some() || self.answers_all) else {
            return Ok(Vec::new());
        };
        let (asker, ids) = (Side::Client, message.as_ref().map(|message| &message.ids[..]));
        let event = RelayEvent::RequestsDropped { lane, asker, ids, reason };
        let outgoing = self.proxy.shared_session.feed_and_commit(event)?;
        Ok(outgoing.into_iter().map(|outgoing| outgoing.message.into_owned()).collect())
    }
}

impl Drop for ProxyExchange {
    fn drop(&mut self) {
        if let (Some(lane), Some(_)) = (self.lane, &self.inbox) {
            self.proxy.inboxes.borrow_mut().remove(&lane);
            if self.proxy.shared_session.is_governed() {
                // It was the session's only stream, so no client waits for the held calls.
                self.proxy.forget_lane(lane);
            }
        }
        // No other exchange can answer in this lane, so whatever is pending is lost.
        if let (Some(lane), ExchangeScope::Alone | ExchangeScope::Opening) = (self.lane, self.scope)
        {
            self.proxy.forget_lane(lane);
        }
    }
}
