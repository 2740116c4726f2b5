//! Sends one message to the server and handles the reply.

use std::rc::Rc;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, LOCATION};
use http::response::Parts;
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use tapegate_core::frame::{Body, Frame, Kind, same_id};
use tapegate_core::relay::Event;
use tapegate_core::side::Side;
use tokio::sync::OwnedSemaphorePermit;

use super::super::body::{Collected, collect};
use super::super::{Outbound, headers, redirect};
use super::calls::{Call, Sort, Step};
use super::events::{EventBody, Place};
use super::problem::Problem;
use super::{Bridge, Transport, mirror};

/// How many redirects are followed for one message.
const REDIRECTS_MAX: usize = 3;

/// Where the answer to a message is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// In its reply, which has ended.
    Here,
    /// On another stream, later.
    Elsewhere,
}

impl Bridge {
    /// Sends a message to the server, and passes the reply on to the client.
    pub(super) async fn carry(
        self: Rc<Self>,
        call: Rc<Call>,
        message: Outbound,
        place: Option<OwnedSemaphorePermit>,
    ) {
        // Only requests take a slot: a request may wait for a client's answer, which must not wait
        // for a slot in turn.
        let slot = match call.asks {
            true => self.flights.clone().acquire_owned().await.ok(),
            false => None,
        };
        drop(place);
        call.reach(Step::Sent);
        let outcome = tokio::select! {
            outcome = self.post(&call, message) => outcome,
            () = call.lapsed() => Ok(Answer::Here),
        };
        match outcome {
            Ok(Answer::Elsewhere) => {
                if call.sort != Sort::Initialize {
                    call.release();
                }
                call.wait_elsewhere(slot);
                // The stream may have been lost in the meantime.
                if *self.transport.borrow() == Transport::Streamable && !self.is_listening() {
                    self.give_up_elsewhere().await;
                }
            }
            Ok(Answer::Here) => {
                let problem = Problem::new("the MCP server's reply has no answer");
                self.give_up(&call, &problem).await;
            }
            Err(problem) => self.fail(&call, &problem).await,
        }
    }

    /// Posts a message and passes on the reply.
    async fn post(self: &Rc<Self>, call: &Rc<Call>, message: Outbound) -> Result<Answer, Problem> {
        let transport = self.transport.borrow().clone();
        if let Transport::Older(endpoint) = transport {
            self.heard();
            return self.post_older(call, message, endpoint).await.map(|()| Answer::Elsewhere);
        }
        let (reply, in_session) = self.post_following(&message).await?;
        call.reach(Step::Accepted);
        let (parts, body) = reply.into_parts();
        if parts.status.is_success() {
            *self.transport.borrow_mut() = Transport::Streamable;
            self.listen_again();
            let passed = self.pass_reply(call, &parts, body).await;
            match &passed {
                Ok(_) => self.heard(),
                // The reply may come from something else, such as a login page.
                Err(problem) => self.note_failure(problem),
            }
            return passed;
        }
        let bytes_max = self.station.message_bytes_max();
        let problem = Problem::of_reply(&parts, body, in_session, bytes_max).await;
        match problem.message() {
            Some(_) => self.heard(),
            None => self.note_failure(&problem),
        }
        // The server rejected the message unprocessed, so it may be sent once more, elsewhere.
        if transport == Transport::Unknown
            && problem.hints_at_older_transport()
            && let Some(endpoint) = self.find_older().await
        {
            self.heard();
            return self.post_older(call, message, endpoint).await.map(|()| Answer::Elsewhere);
        }
        Err(problem)
    }

    /// Posts a message, following redirects. The flag tells whether the message named a session.
    async fn post_following(
        &self,
        message: &Outbound,
    ) -> Result<(Response<Incoming>, bool), Problem> {
        let mut redirects = 0;
        loop {
            let headers = mirror::headers(
                &Frame::read(message.bytes()),
                &self.session.borrow(),
                &self.params.borrow(),
            );
            let in_session = headers.contains_key(mirror::SESSION);
            let path = self.path.borrow().clone();
            let sent =
                self.upstream.send(Method::POST, path.clone(), headers, message.clone()).await;
            let reply = sent.map_err(|error| {
                self.unheard(&error.to_string());
                Problem::new(error)
            })?;
            let moved = [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT];
            let target = reply.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            let target =
                target.and_then(|target| redirect::resolve(&self.upstream.origin(), &path, target));
            match target {
                Some(target) if moved.contains(&reply.status()) && redirects < REDIRECTS_MAX => {
                    *self.path.borrow_mut() = target;
                    redirects += 1;
                }
                _ => return Ok((reply, in_session)),
            }
        }
    }

    /// Passes on a reply with a success status.
    async fn pass_reply(
        self: &Rc<Self>,
        call: &Rc<Call>,
        parts: &Parts,
        mut body: Incoming,
    ) -> Result<Answer, Problem> {
        if !call.asks {
            if call.sort == Sort::Initialized {
                self.listen().await;
            }
            call.release();
            self.pass_unasked(parts, body).await?;
            return Ok(Answer::Here);
        }
        if call.sort == Sort::Initialize {
            self.stop_listening();
            *call.opens.borrow_mut() = parts.headers.get(mirror::SESSION).cloned();
        } else {
            call.release();
        }
        if headers::is_type(&parts.headers, "text/event-stream") {
            if parts.headers.contains_key(CONTENT_ENCODING) {
                let words = "the MCP server compresses its events, though it was not asked to";
                return Err(Problem::new(words));
            }
            return self.follow_to_answer(body, call).await.map(|()| Answer::Here);
        }
        match collect(&mut body, self.station.message_bytes_max()).await {
            Ok(Collected::Whole(body)) => self.pass_body(call, parts, &body).await,
            Ok(Collected::TooLarge(message)) => {
                self.refuse(Some(call), Side::Server, message).await?;
                Err(Problem::new("the MCP server's answer is over the size limit"))
            }
            Err(error) => Err(Problem::new(format!("the MCP server's reply ended early: {error}"))),
        }
    }

    /// Passes on the reply to a message that expects no answer. It should be empty.
    async fn pass_unasked(
        self: &Rc<Self>,
        parts: &Parts,
        mut body: Incoming,
    ) -> Result<(), Problem> {
        let bytes_max = self.station.message_bytes_max();
        if headers::is_type(&parts.headers, "text/event-stream") {
            let stream = EventBody::new(body, bytes_max);
            self.follow(stream, &mut Place::default(), None).await?;
            return Ok(());
        }
        let Ok(Collected::Whole(body)) = collect(&mut body, bytes_max).await else { return Ok(()) };
        let text = headers::readable(&parts.headers, &body);
        if Frame::read(&text).envelope().is_some_and(|said| said.kind() != Kind::Other) {
            let (lane, from) = (self.lane, Side::Server);
            let why = "it came in reply to a message that expects no answer";
            self.station.pass(Event::Marked { lane, from, bytes: &text, why, delivered: false })?;
        }
        Ok(())
    }

    async fn pass_body(
        self: &Rc<Self>,
        call: &Rc<Call>,
        parts: &Parts,
        body: &[u8],
    ) -> Result<Answer, Problem> {
        let text = headers::readable(&parts.headers, body);
        if !text.trim_ascii().is_empty() {
            self.deliver(Some(call), &text, false).await?;
            return match Frame::read(&text).body() {
                Body::Garbage(_) => {
                    let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
                    let kind = kind.unwrap_or_default();
                    let kind = match self.mask("the header `content-type`", kind) {
                        Some(masked) => String::from_utf8_lossy(&masked).into_owned(),
                        None => String::from_utf8_lossy(kind).into_owned(),
                    };
                    Err(Problem::of_no_message(parts.status, &kind))
                }
                _ => Ok(Answer::Here),
            };
        }
        // A server that answers 202 to a request may send the answer on its own stream.
        match parts.status {
            StatusCode::ACCEPTED if self.is_listening() => Ok(Answer::Elsewhere),
            status => {
                Err(Problem::new(format!("the MCP server answered {status} and nothing else")))
            }
        }
    }

    /// Reports to the client why a message failed.
    async fn fail(self: &Rc<Self>, call: &Rc<Call>, problem: &Problem) {
        let message = problem.message();
        let envelope = message.as_ref().and_then(Frame::envelope);
        let unanswered = call.unanswered();
        let is_answer = |id: &[u8]| unanswered.iter().any(|waiting| same_id(waiting, id));
        if let Some(message) = &message
            && envelope.and_then(|said| said.id).is_some_and(is_answer)
        {
            // The body is a proper JSON-RPC answer; the status only matters to intermediaries.
            self.deliver(Some(call), message.bytes(), false).await.ok();
        } else if !call.asks {
            let words = self.masked(problem).words();
            self.notify(&format!("a message was not accepted: {words}"));
        }
        self.give_up(call, problem).await;
    }
}
