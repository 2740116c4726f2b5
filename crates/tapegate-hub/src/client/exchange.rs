//! One request to a hub, on a connection of its own.
//!
//! Requests are rare, and connecting on loopback costs less than finding out that an idle
//! connection was closed. The port may have changed hands since the last request, so a token is
//! sent only after the peer has proved that it holds the same token.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use super::ClientError;
use crate::api::ErrorAnswer;
use crate::proof::{CHALLENGE, Challenge, PROOF};
use crate::token::HubToken;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_millis(500);
/// The largest answer: a policy with all its files.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A connection on which requests can be sent.
type HubSender = SendRequest<Full<Bytes>>;

#[derive(Clone)]
pub(super) struct HubRequest {
    method: Method,
    path: String,
    body: Option<Bytes>,
    token: Option<HubToken>,
    patience: Duration,
    stream: bool,
}

/// A successful answer.
pub(super) enum HubReply {
    /// The complete body.
    Whole(Bytes),
    /// A body that is streamed.
    Stream(Incoming),
}

impl HubRequest {
    pub(super) fn new(method: Method, path: &str, patience: Duration) -> Self {
        Self { method, path: path.to_owned(), body: None, token: None, patience, stream: false }
    }

    pub(super) fn body(self, text: Vec<u8>) -> Self {
        Self { body: Some(Bytes::from(text)), ..self }
    }

    pub(super) fn token(self, token: &HubToken) -> Self {
        Self { token: Some(token.clone()), ..self }
    }

    /// Has the answer streamed instead of collected.
    pub(super) fn stream(self) -> Self {
        Self { stream: true, ..self }
    }

    fn request(self, address: SocketAddr) -> Result<Request<Full<Bytes>>, http::Error> {
        let media_type = if self.stream { "text/event-stream" } else { "application/json" };
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.path)
            .header(HOST, address.to_string())
            .header(ACCEPT, media_type)
            .header(CONNECTION, "close");
        if self.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.reveal()));
        }
        request.body(Full::new(self.body.unwrap_or_default()))
    }
}

impl HubReply {
    /// Parses the answer.
    pub(super) fn json<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let Self::Whole(bytes) = self else {
            return Err(ClientError::Answer("unexpected stream".to_owned()));
        };
        serde_json::from_slice(&bytes).map_err(|error| ClientError::Answer(error.to_string()))
    }
}

/// Sends a request and waits for the answer until the request's deadline.
pub(super) async fn send_request(
    authority: &Authority,
    hub_request: HubRequest,
) -> Result<HubReply, ClientError> {
    let until = Instant::now() + hub_request.patience;
    let late = |_| ClientError::TimedOut(authority.to_string());
    let stream = hub_request.stream;
    let answer = timeout_at(until, send(authority, hub_request)).await.map_err(late)??;
    let status = answer.status();
    tracing::debug!(%authority, status = status.as_u16(), "the hub answered");
    if status == StatusCode::OK && stream {
        return Ok(HubReply::Stream(answer.into_body()));
    }
    let body = timeout_at(until, collect(answer.into_body())).await.map_err(late)??;
    match status {
        StatusCode::OK => Ok(HubReply::Whole(body)),
        StatusCode::UNAUTHORIZED => Err(ClientError::Unauthorised),
        status => {
            let error_answer = serde_json::from_slice::<ErrorAnswer>(&body);
            let message = error_answer.map_or_else(
                |_| "no reason given".to_owned(),
                |error_answer| error_answer.error.message,
            );
            Err(ClientError::Status { status: status.as_u16(), message })
        }
    }
}

async fn send(
    authority: &Authority,
    hub_request: HubRequest,
) -> Result<Response<Incoming>, ClientError> {
    let (mut sender, address) = connect(authority).await?;
    if let Some(token) = &hub_request.token {
        // On each connection: the program behind the port may have changed since the last one.
        prove(&mut sender, address, token).await?;
    }
    let request = hub_request.request(address).map_err(invalid_request)?;
    sender.send_request(request).await.map_err(broken_connection)
}

/// Connects, and returns the peer's address too.
async fn connect(authority: &Authority) -> Result<(HubSender, SocketAddr), ClientError> {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let target = (host, authority.port_u16().unwrap_or_default());
    let connecting = timeout(CONNECT, TcpStream::connect(target)).await;
    let tcp = match connecting {
        Ok(Ok(tcp)) => tcp,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(ClientError::Refused(authority.to_string()));
        }
        Ok(Err(error)) => return Err(ClientError::Broken(error.to_string())),
        Err(_) => return Err(ClientError::TimedOut(authority.to_string())),
    };
    // Requests are small, and a held call waits for each of them.
    tcp.set_nodelay(true).ok();
    // The address that was reached, not the name in the URL: the proof is bound to it.
    let address = tcp.peer_addr().map_err(|error| ClientError::Broken(error.to_string()))?;
    let (sender, connection) =
        http1::handshake(TokioIo::new(tcp)).await.map_err(broken_connection)?;
    tokio::spawn(async move {
        // A broken connection is reported where the answer is awaited.
        connection.await.ok();
    });
    Ok((sender, address))
}

/// Verifies that the peer holds the token, before the token is sent.
async fn prove(
    sender: &mut HubSender,
    address: SocketAddr,
    token: &HubToken,
) -> Result<(), ClientError> {
    let challenge =
        Challenge::generate().map_err(|error| ClientError::Broken(error.to_string()))?;
    let request = Request::builder()
        .uri("/healthz")
        .header(HOST, address.to_string())
        .header(CHALLENGE, challenge.text())
        .body(Full::default())
        .map_err(invalid_request)?;
    let answer = sender.send_request(request).await.map_err(broken_connection)?;
    // The hub answers for both of its tokens, since it cannot know which one this client has.
    let mut proofs = answer.headers().get_all(PROOF).iter();
    if !proofs.any(|proof| challenge.is_proven_by(proof.as_bytes(), token, address)) {
        return Err(ClientError::Unproven(address.to_string()));
    }
    // The connection can be reused only after this answer has been read.
    collect(answer.into_body()).await?;
    sender.ready().await.map_err(broken_connection)
}

fn broken_connection(error: hyper::Error) -> ClientError {
    ClientError::Broken(error.to_string())
}

fn invalid_request(error: http::Error) -> ClientError {
    ClientError::Answer(error.to_string())
}

async fn collect(mut body: Incoming) -> Result<Bytes, ClientError> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ClientError::Broken(error.to_string()))?;
        if let Ok(piece) = frame.into_data() {
            whole.extend_from_slice(&piece);
        }
        // The peer may not be the hub: `/healthz` is read before it has proven itself.
        if whole.len() > ANSWER_BYTES_MAX {
            return Err(ClientError::Answer("too large".to_owned()));
        }
    }
    Ok(whole.freeze())
}
