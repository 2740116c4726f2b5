//! The older HTTP+SSE transport: one stream carries all answers and names the endpoint to post to.

use std::rc::Rc;
use std::time::Duration;

use http::Method;
use http::uri::PathAndQuery;
use http_body_util::BodyExt;

use super::super::OutboundBytes;
use super::super::upstream::{EventBody, EventRead};
use super::event_reader::{OpenedStream, StreamPosition};
use super::pending_calls::{BridgeCall, CallStep};
use super::problem::ExchangeProblem;
use super::{OutboundBridge, UpstreamTransport};

/// How long a server may take to name its endpoint.
const ENDPOINT_PATIENCE: Duration = Duration::from_secs(5);

impl OutboundBridge {
    /// The endpoint to post to, if the server speaks the older transport.
    pub(super) async fn find_older(self: &Rc<Self>) -> Option<PathAndQuery> {
        // Another message may be probing at the same time.
        let _finding = self.finding.lock().await;
        let known = self.transport.borrow().clone();
        if known != UpstreamTransport::Unknown {
            return known.endpoint();
        }
        let opened = self.open_endpoint();
        let (stream, endpoint) = tokio::time::timeout(ENDPOINT_PATIENCE, opened).await.ok()??;
        *self.transport.borrow_mut() = UpstreamTransport::Older(endpoint.clone());
        self.spawn(Rc::clone(self).read_legacy_stream(stream));
        Some(endpoint)
    }

    async fn open_endpoint(&self) -> Option<(EventBody, PathAndQuery)> {
        let OpenedStream::Stream(mut stream) = self.open_stream(&StreamPosition::default()).await
        else {
            return None;
        };
        loop {
            let EventRead::Piece(piece) = stream.next().await else { return None };
            let Some(data) = piece.data else { continue };
            if piece.event.as_deref() != Some(b"endpoint") {
                return None;
            }
            let target = String::from_utf8(data).ok()?;
            let base = self.path.borrow().clone();
            let endpoint = self.upstream.resolve(&base, &target);
            if endpoint.is_none() {
                self.notify("the MCP server names a POST endpoint on another origin");
            }
            return endpoint.map(|endpoint| (*stream, endpoint));
        }
    }

    /// Posts a message; its answer arrives on the stream.
    pub(super) async fn post_legacy(
        &self,
        call: &Rc<BridgeCall>,
        message: OutboundBytes,
        endpoint: PathAndQuery,
    ) -> Result<(), ExchangeProblem> {
        let headers =
            call.head.headers(&self.session.borrow(), &self.params.borrow(), message.bytes());
        let reply = self.upstream.send(Method::POST, endpoint, headers, message).await;
        let (parts, body) = reply.map_err(ExchangeProblem::new)?.into_parts();
        call.advance_to(CallStep::Accepted);
        if !parts.status.is_success() {
            let bytes_max = self.shared_session.message_bytes_max();
            return Err(ExchangeProblem::from_reply(&parts, body, true, bytes_max).await);
        }
        let mut body = body;
        // Read to its end, so that the connection can be used again.
        while let Some(Ok(_)) = body.frame().await {}
        Ok(())
    }

    /// Reads the stream until it ends. Requests still unanswered then get an error.
    async fn read_legacy_stream(self: Rc<Self>, stream: EventBody) {
        let Ok(reason) = self.forward_stream(stream, &mut StreamPosition::default(), None).await
        else {
            return;
        };
        // The next message probes again: the server may have been replaced.
        *self.transport.borrow_mut() = UpstreamTransport::Unknown;
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let reason = format!("the MCP server closed its stream before it answered{reason}");
        let turn = self.client_writer.acquire().await;
        if let Ok(answers) = self.shared_session.answer_for_server(self.lane, &reason, None) {
            self.send_own_to_client(&turn, None, answers);
        }
        self.calls.clear();
        self.notify("the MCP server closed its stream");
    }
}
