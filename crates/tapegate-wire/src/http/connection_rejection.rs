//! Answers connections beyond the limit with an error, using little memory, and closes them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::request_body::{RETRY_AFTER_S, drain_in_background};

/// How many are answered at once. Further ones are closed without a reply.
const ANSWERED_MAX: usize = 32;
/// How long each may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How much of a request is buffered.
const BUFFER_BYTES_MAX: usize = 8192;
const MESSAGE: &str = "too many open connections. Try again later\n";

/// Tells clients that the connection limit is reached.
#[derive(Debug)]
pub(super) struct ConnectionRejector(Arc<Semaphore>);

impl Default for ConnectionRejector {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ANSWERED_MAX)))
    }
}

impl ConnectionRejector {
    /// Answers any request on a connection in the background. Must run inside a `LocalSet`.
    pub(super) fn answer(&self, stream: TcpStream) {
        let Ok(room) = Arc::clone(&self.0).try_acquire_owned() else { return };
        tokio::task::spawn_local(async move {
            let service = service_fn(|request: Request<Incoming>| {
                drain_in_background(request.into_body());
                std::future::ready(Ok::<_, Infallible>(reply()))
            });
            let connection = http1::Builder::new()
                .keep_alive(false)
                .max_buf_size(BUFFER_BYTES_MAX)
                .serve_connection(TokioIo::new(stream), service);
            // A client that sends no request in time, or disconnects, gets no reply.
            tokio::time::timeout(PATIENCE, connection).await.ok();
            drop(room);
        });
    }
}

fn reply() -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from_static(MESSAGE.as_bytes())));
    *reply.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
    reply
}
