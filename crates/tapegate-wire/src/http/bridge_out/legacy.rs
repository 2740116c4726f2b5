//! The older HTTP+SSE transport: one stream carries all answers and names the endpoint to post to.

use std::rc::Rc;
use std::time::Duration;

use http::Method;
use http::uri::PathAndQuery;
use http_body_util::BodyExt;
use tapegate_core::frame::Frame;
use tapegate_core::relay::Event;
use tapegate_core::side::Side;

use super::super::{Outbound, redirect};
use super::calls::{Call, Step};
use super::events::{EventBody, Got, Opened, Place};
use super::problem::Problem;
use super::{Bridge, Transport, apart, mirror};

/// How long a server may take to name its endpoint.
const ENDPOINT_PATIENCE: Duration = Duration::from_secs(5);

impl Bridge {
    /// The endpoint to post to, if the server speaks the older transport.
    pub(super) async fn find_older(self: &Rc<Self>) -> Option<PathAndQuery> {
        // Another message may be probing at the same time.
        let _finding = self.finding.lock().await;
        let known = self.transport.borrow().clone();
        if known != Transport::Unknown {
            return known.endpoint();
        }
        let opened = self.open_endpoint();
        let (stream, endpoint) = tokio::time::timeout(ENDPOINT_PATIENCE, opened).await.ok()??;
        *self.transport.borrow_mut() = Transport::Older(endpoint.clone());
        self.spawn(Rc::clone(self).read_older(stream));
        Some(endpoint)
    }

    async fn open_endpoint(&self) -> Option<(EventBody, PathAndQuery)> {
        let Opened::Stream(mut stream) = self.open_stream(&Place::default()).await else {
            return None;
        };
        loop {
            let Got::Piece(piece) = stream.next().await else { return None };
            let Some(data) = piece.data else { continue };
            if piece.event.as_deref() != Some(b"endpoint") {
                return None;
            }
            let target = String::from_utf8(data).ok()?;
            let base = self.path.borrow().clone();
            let endpoint = redirect::resolve(&self.upstream.origin(), &base, &target);
            if endpoint.is_none() {
                self.notify("the MCP server names a POST endpoint on another origin");
            }
            return endpoint.map(|endpoint| (*stream, endpoint));
        }
    }

    /// Posts a message; its answer arrives on the stream.
    pub(super) async fn post_older(
        &self,
        call: &Rc<Call>,
        message: Outbound,
        endpoint: PathAndQuery,
    ) -> Result<(), Problem> {
        let headers = mirror::headers(
            &Frame::read(message.bytes()),
            &self.session.borrow(),
            &self.params.borrow(),
        );
        let reply = self.upstream.send(Method::POST, endpoint, headers, message).await;
        let (parts, body) = reply.map_err(Problem::new)?.into_parts();
        call.reach(Step::Accepted);
        if !parts.status.is_success() {
            let bytes_max = self.station.message_bytes_max();
            return Err(Problem::of_reply(&parts, body, true, bytes_max).await);
        }
        let mut body = body;
        while let Some(Ok(_)) = body.frame().await {}
        Ok(())
    }

    /// Reads the stream until it ends. Requests still unanswered then get an error.
    async fn read_older(self: Rc<Self>, stream: EventBody) {
        let Ok(why) = self.follow(stream, &mut Place::default(), None).await else { return };
        *self.transport.borrow_mut() = Transport::Unknown;
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let why = format!("the MCP server closed its stream before it answered{why}");
        let turn = self.outlet.turn().await;
        let event =
            Event::Gone { lane: Some(self.lane), side: Side::Server, why: &why, error_type: None };
        if let Ok(outgoing) = self.station.pass(event) {
            self.say(&turn, None, apart(outgoing).0);
        }
        self.calls.clear();
        self.notify("the MCP server closed its stream");
    }
}
