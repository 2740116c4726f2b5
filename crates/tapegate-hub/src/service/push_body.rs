//! The stream of pushes, as server-sent events.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use tapegate_wire::http::{BrokenBody, PieceStream};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

use super::Hub;
use super::response::ApiBody;
use crate::api::HubPush;

/// How often a comment is sent when there is nothing to push, so that each side notices when the
/// other is gone.
const QUIET_MAX: Duration = Duration::from_secs(5);

type NextPush = Pin<Box<dyn Future<Output = (Option<Bytes>, PushReceiver)>>>;

/// The sources of a stream: the pushes, and the signal to close.
struct PushReceiver {
    pushes: Receiver<HubPush>,
    closing: watch::Receiver<bool>,
}

/// The stream of one client.
struct PushBody {
    hub: Rc<Hub>,
    /// The connection or server id of the client, if it sent one.
    key: String,
    next: Option<NextPush>,
}

impl Hub {
    /// Opens a stream that begins with the policy in force.
    pub(super) fn stream(self: &Rc<Self>, query: &str) -> Response<ApiBody> {
        let key = parameter(query, "connection_id").or_else(|| parameter(query, "server_id"));
        let key = key.unwrap_or_default().to_owned();
        // Subscribe before the current state is read, so that no change falls in between.
        let receiver =
            PushReceiver { pushes: self.pushes.subscribe(), closing: self.closing.subscribe() };
        let mut first =
            vec![HubPush::Policy { version: self.active_policy().version().to_owned() }];
        // A shim that connects during the shutdown has missed the push.
        if self.is_stopping() {
            first.push(HubPush::Shutdown);
        }
        let first: Vec<u8> = first.iter().flat_map(|push| event(push).to_vec()).collect();
        self.shims.borrow_mut().set_listening(self.clock.now(), &key, (true, false));
        let next: NextPush = Box::pin(async move { (Some(Bytes::from(first)), receiver) });
        let stream = PushBody { hub: Rc::clone(self), key, next: Some(next) };
        let mut response = Response::new(ApiBody::stream(stream));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl PieceStream<Bytes> for PushBody {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenBody>>> {
        let Some(next) = self.next.as_mut() else { return Poll::Ready(None) };
        let Poll::Ready((piece, receiver)) = next.as_mut().poll(cx) else { return Poll::Pending };
        self.next = piece.is_some().then(|| -> NextPush { Box::pin(next_push(receiver)) });
        Poll::Ready(piece.map(Ok))
    }
}

impl Drop for PushBody {
    fn drop(&mut self) {
        // hyper drops the body when the connection ends, however it ends.
        let change = (false, self.hub.is_stopping());
        self.hub.shims.borrow_mut().set_listening(self.hub.clock.now(), &self.key, change);
    }
}

/// The next piece. `None` ends the stream: the client missed a push, or the hub closes.
async fn next_push(mut receiver: PushReceiver) -> (Option<Bytes>, PushReceiver) {
    let piece = tokio::select! {
        // A pending push is delivered even if the hub closes at the same time.
        biased;
        push = receiver.pushes.recv() => match push {
            Ok(push) => Some(event(&push)),
            // A client that missed a push must fetch the state again, which it does when it
            // reconnects.
            Err(RecvError::Lagged(_) | RecvError::Closed) => None,
        },
        _ = receiver.closing.wait_for(|closing| *closing) => None,
        () = tokio::time::sleep(QUIET_MAX) => Some(Bytes::from_static(b":\n\n")),
    };
    (piece, receiver)
}

fn event(push: &HubPush) -> Bytes {
    // A push consists of strings alone, so it always serializes.
    let data = serde_json::to_string(push).unwrap_or_default();
    Bytes::from(format!("event: {}\ndata: {data}\n\n", push.name()))
}

/// The value of a query parameter, without decoding.
pub(super) fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}
