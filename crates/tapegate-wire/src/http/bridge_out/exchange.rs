//! Sends one message to the server and handles the reply.

use std::rc::Rc;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION};
use http::response::Parts;
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use tapegate_core::frame::{Frame, FrameBody, MessageKind, same_id};
use tapegate_core::side::Side;
use tokio::sync::OwnedSemaphorePermit;

use super::super::body::{CollectedBody, collect};
use super::super::request_headers::SESSION;
use super::super::upstream::EventBody;
use super::super::{OutboundBytes, headers, redirect};
use super::event_reader::StreamPosition;
use super::pending_calls::{BridgeCall, CallKind, CallStep};
use super::problem::ExchangeProblem;
use super::{OutboundBridge, UpstreamTransport};

/// Where the answer to a message is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerRoute {
    /// In its reply, which has ended.
    Here,
    /// On another stream, later.
    Elsewhere,
}

impl OutboundBridge {
    /// Sends a message to the server, and passes the reply on to the client.
    pub(super) async fn run_exchange(
        self: Rc<Self>,
        call: Rc<BridgeCall>,
        message: OutboundBytes,
        queue_permit: Option<OwnedSemaphorePermit>,
    ) {
        // Only requests take a slot: a request may wait for a client's answer, which must not wait
        // for a slot in turn.
        let slot = match call.asks {
            true => self.flights.clone().acquire_owned().await.ok(),
            false => None,
        };
        // Given back only now: until it has a slot, the message still occupies memory.
        drop(queue_permit);
        call.advance_to(CallStep::Sent);
        let outcome = tokio::select! {
            outcome = self.post(&call, message) => outcome,
            () = call.no_longer_wanted() => Ok(AnswerRoute::Here),
        };
        match outcome {
            Ok(AnswerRoute::Elsewhere) => {
                // Other messages wait for the session id, which arrives with the answer.
                if call.kind != CallKind::Initialize {
                    call.release();
                }
                call.wait_on_other_stream(slot);
                // The stream may have been lost in the meantime.
                if *self.transport.borrow() == UpstreamTransport::Streamable && !self.is_listening()
                {
                    self.fail_calls_on_lost_stream().await;
                }
            }
            Ok(AnswerRoute::Here) => {
                self.fail_call(&call, &ExchangeProblem::no_answer()).await;
            }
            Err(problem) => self.report_failure(&call, &problem).await,
        }
    }

    /// Posts a message and passes on the reply.
    async fn post(
        self: &Rc<Self>,
        call: &Rc<BridgeCall>,
        message: OutboundBytes,
    ) -> Result<AnswerRoute, ExchangeProblem> {
        let transport = self.transport.borrow().clone();
        if let UpstreamTransport::Older(endpoint) = transport {
            self.mark_server_seen();
            return self
                .post_legacy(call, message, endpoint)
                .await
                .map(|()| AnswerRoute::Elsewhere);
        }
        let (reply, in_session) = self.post_with_redirects(call, &message).await?;
        call.advance_to(CallStep::Accepted);
        let (parts, body) = reply.into_parts();
        if parts.status.is_success() {
            // From now on, a rejected message is not tried with the older transport.
            *self.transport.borrow_mut() = UpstreamTransport::Streamable;
            self.reopen_server_stream();
            let asked = call.unanswered().len();
            let passed = self.forward_reply(call, &parts, body).await;
            match &passed {
                // Anything that answers every POST with a success accepts notifications, too.
                Ok(_) if !call.asks => {}
                Ok(AnswerRoute::Here) if call.unanswered().len() == asked => {
                    self.note_failure(&ExchangeProblem::no_answer());
                }
                Ok(_) => self.mark_server_seen(),
                // The reply may come from something else, such as a login page.
                Err(problem) => self.note_failure(problem),
            }
            return passed;
        }
        let bytes_max = self.shared_session.message_bytes_max();
        let problem = ExchangeProblem::from_reply(&parts, body, in_session, bytes_max).await;
        match problem.message() {
            Some(_) => self.mark_server_seen(),
            None => self.note_failure(&problem),
        }
        // The server rejected the message unprocessed, so it may be sent once more, elsewhere.
        if transport == UpstreamTransport::Unknown
            && problem.suggests_legacy_transport()
            && let Some(endpoint) = self.find_older().await
        {
            self.mark_server_seen();
            return self
                .post_legacy(call, message, endpoint)
                .await
                .map(|()| AnswerRoute::Elsewhere);
        }
        Err(problem)
    }

    /// Posts a message, following redirects. The flag tells whether the message named a session.
    async fn post_with_redirects(
        &self,
        call: &BridgeCall,
        message: &OutboundBytes,
    ) -> Result<(Response<Incoming>, bool), ExchangeProblem> {
        let mut redirects = 0;
        loop {
            let headers =
                call.head.headers(&self.session.borrow(), &self.params.borrow(), message.bytes());
            let in_session = headers.contains_key(SESSION);
            let path = self.path.borrow().clone();
            let sent =
                self.upstream.send(Method::POST, path.clone(), headers, message.clone()).await;
            let reply = sent.map_err(|error| {
                self.report_unreachable(&error.to_string());
                ExchangeProblem::new(error)
            })?;
            let target = reply.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            let target = target.and_then(|target| self.upstream.resolve(&path, target));
            let follows = redirect::keeps_request(reply.status());
            match target.filter(|_| follows && redirects < redirect::REDIRECTS_MAX) {
                Some(target) => {
                    tracing::debug!(
                        path = crate::http::exchange_trace::visible_path(target.path()),
                        "redirected"
                    );
                    // Later messages go there directly.
                    *self.path.borrow_mut() = target;
                    redirects += 1;
                }
                None => return Ok((reply, in_session)),
            }
        }
    }

    /// Passes on a reply with a success status.
    async fn forward_reply(
        self: &Rc<Self>,
        call: &Rc<BridgeCall>,
        parts: &Parts,
        mut body: Incoming,
    ) -> Result<AnswerRoute, ExchangeProblem> {
        if !call.asks {
            if call.kind == CallKind::Initialized {
                // Before other messages are released: the server may send its own at once.
                self.listen().await;
            }
            call.release();
            self.forward_unsolicited_reply(parts, body).await?;
            return Ok(AnswerRoute::Here);
        }
        if call.kind == CallKind::Initialize {
            // A second `initialize` opens a new session, and the old stream belongs to the old one.
            self.stop_listening();
            // The id counts only if the answer is a result that the gate lets through.
            *call.opens.borrow_mut() = parts.headers.get(SESSION).cloned();
        } else {
            call.release();
        }
        if headers::is_type(&parts.headers, "text/event-stream") {
            if parts.headers.contains_key(CONTENT_ENCODING) {
                let message_text =
                    "the MCP server compresses its events, though it was not asked to";
                return Err(ExchangeProblem::new(message_text));
            }
            return self.forward_stream_until_answer(body, call).await.map(|()| AnswerRoute::Here);
        }
        match collect(&mut body, self.shared_session.message_bytes_max()).await {
            Ok(CollectedBody::Whole(body)) => self.forward_body(call, parts, &body).await,
            Ok(CollectedBody::TooLarge(message)) => {
                self.refuse(Some(call), Side::Server, message).await?;
                Err(ExchangeProblem::new("the MCP server's answer is over the size limit"))
            }
            Err(error) => {
                Err(ExchangeProblem::new(format!("the MCP server's reply ended early: {error}")))
            }
        }
    }

    /// Passes on the reply to a message that expects no answer. It should be empty.
    async fn forward_unsolicited_reply(
        self: &Rc<Self>,
        parts: &Parts,
        mut body: Incoming,
    ) -> Result<(), ExchangeProblem> {
        let bytes_max = self.shared_session.message_bytes_max();
        if headers::is_type(&parts.headers, "text/event-stream") {
            let stream = EventBody::new(body, bytes_max);
            self.forward_stream(stream, &mut StreamPosition::default(), None).await?;
            return Ok(());
        }
        let Ok(CollectedBody::Whole(body)) = collect(&mut body, bytes_max).await else {
            return Ok(());
        };
        let text = headers::decompress_for_reading(&parts.headers, &body);
        if self
            .shared_session
            .read(&text)
            .envelope()
            .is_some_and(|msg| msg.kind() != MessageKind::Other)
        {
            let reason = "it came in reply to a message that expects no answer";
            self.shared_session.mark((self.lane, Side::Server), (&text, false), reason)?;
        }
        Ok(())
    }

    async fn forward_body(
        self: &Rc<Self>,
        call: &Rc<BridgeCall>,
        parts: &Parts,
        body: &[u8],
    ) -> Result<AnswerRoute, ExchangeProblem> {
        let text = headers::decompress_for_reading(&parts.headers, body);
        if !text.trim_ascii().is_empty() {
            let frame = self.shared_session.read(&text);
            self.deliver(Some(call), &frame, false).await?;
            return match frame.body() {
                FrameBody::Garbage(_) => {
                    let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
                    let kind = kind.unwrap_or_default();
                    let kind = match self.mask("the header `content-type`", kind) {
                        Some(masked) => String::from_utf8_lossy(&masked).into_owned(),
                        None => String::from_utf8_lossy(kind).into_owned(),
                    };
                    Err(ExchangeProblem::not_a_message(parts.status, &kind))
                }
                _ => Ok(AnswerRoute::Here),
            };
        }
        // A server that answers 202 to a request may send the answer on its own stream.
        match parts.status {
            StatusCode::ACCEPTED if self.is_listening() => Ok(AnswerRoute::Elsewhere),
            status => Err(ExchangeProblem::new(format!(
                "the MCP server answered {status} and nothing else"
            ))),
        }
    }

    /// Reports to the client why a message failed.
    async fn report_failure(self: &Rc<Self>, call: &Rc<BridgeCall>, problem: &ExchangeProblem) {
        let message = problem.message();
        let envelope = message.as_ref().and_then(Frame::envelope);
        let unanswered = call.unanswered();
        let is_answer = |id: &[u8]| unanswered.iter().any(|waiting| same_id(waiting, id));
        if let Some(message) = &message
            && envelope.and_then(|msg| msg.id).is_some_and(is_answer)
        {
            // The body is a proper JSON-RPC answer; the status only matters to intermediaries.
            self.deliver(Some(call), message, false).await.ok();
        } else if !call.asks {
            let message_text = self.masked(problem).reason_text();
            self.notify(&format!("a message was not accepted: {message_text}"));
        }
        self.fail_call(call, problem).await;
    }
}
