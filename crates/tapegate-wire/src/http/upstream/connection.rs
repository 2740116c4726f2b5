//! A pool of reusable connections to one server.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::uri::{Authority, Scheme};
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tracing::debug;

use super::{PendingReply, UpstreamError};
use crate::http::exchange_trace::ExchangeTrace;

/// Servers commonly close a connection after five idle seconds; we must stop using it earlier, or a
/// request could be lost on a connection that is being closed.
const IDLE_MAX: Duration = Duration::from_secs(3);
/// How many idle connections are kept.
const IDLE_COUNT_MAX: usize = 64;
/// How long a connection attempt may take.
const CONNECT_MAX: Duration = Duration::from_secs(30);

type HttpSender = SendRequest<Full<Bytes>>;
type IdleConnections = RefCell<VecDeque<(HttpSender, Instant)>>;

/// The connections to one server.
#[derive(Clone)]
pub(super) struct ConnectionPool {
    authority: Authority,
    tls: Option<TlsConnector>,
    idle: Rc<IdleConnections>,
}

trait ByteStream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> ByteStream for T {}

impl ConnectionPool {
    pub(super) fn new(scheme: &Scheme, authority: &Authority) -> Result<Self, UpstreamError> {
        // Root certificates take time and memory to load, so load them only for HTTPS.
        let tls = if *scheme == Scheme::HTTPS { Some(connector()?) } else { None };
        Ok(Self { authority: authority.clone(), tls, idle: Rc::default() })
    }

    /// Hands a request to a connection, whose task writes it before that of any connection that is
    /// given a request later.
    pub(super) async fn start_request(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<PendingReply, UpstreamError> {
        let mut sender = match self.take_idle() {
            Some(sender) => sender,
            None => self.connect().await?,
        };
        let trace = ExchangeTrace::start("server", request.method(), request.uri().path());
        let sent = sender.try_send_request(request);
        let pool = self.clone();
        Ok(Box::pin(async move {
            let mut error = match sent.await {
                Ok(response) => {
                    trace.into_iter().for_each(|trace| trace.answered(response.status()));
                    pool.put_back(sender);
                    return Ok(response);
                }
                Err(error) => error,
            };
            trace.into_iter().for_each(|trace| trace.failed(error.error()));
            // A connection that was closed meanwhile returns the request if nothing of it was
            // written; otherwise it may have been processed, and is never sent twice.
            let Some(request) = error.take_message() else {
                return Err(pool.error_with_causes(error.error()));
            };
            debug!(authority = %pool.authority, "sending the request again on a new connection");
            let mut sender = pool.connect().await?;
            let response = sender
                .send_request(request)
                .await
                .map_err(|error| pool.error_with_causes(&error))?;
            pool.put_back(sender);
            Ok(response)
        }))
    }

    /// The error, with all its causes.
    pub(super) fn error_with_causes(&self, error: &dyn Error) -> UpstreamError {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            reason = format!("{reason}: {error}");
            cause = error.source();
        }
        UpstreamError::Exchange { authority: self.authority.to_string(), reason }
    }

    fn take_idle(&self) -> Option<HttpSender> {
        let mut idle = self.idle.borrow_mut();
        while let Some((sender, since)) = idle.pop_back() {
            if since.elapsed() < IDLE_MAX && sender.is_ready() && !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    /// Returns a connection to the pool once its reply has been read to the end.
    fn put_back(&self, mut sender: HttpSender) {
        let idle = Rc::clone(&self.idle);
        tokio::task::spawn_local(async move {
            if sender.ready().await.is_err() {
                return;
            }
            let mut idle = idle.borrow_mut();
            if idle.len() >= IDLE_COUNT_MAX {
                idle.pop_front();
            }
            idle.push_back((sender, Instant::now()));
        });
    }

    async fn connect(&self) -> Result<HttpSender, UpstreamError> {
        let connecting = async {
            let stream = self.open().await?;
            let mut builder = http1::Builder::new();
            builder.preserve_header_case(true);
            builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no connection within 30 seconds");
        let opened = tokio::time::timeout(CONNECT_MAX, connecting).await.map_err(late).flatten();
        let authority = &self.authority;
        let (sender, connection) = opened.map_err(|error| {
            debug!(%authority, %error, "cannot connect");
            self.error_with_causes(&error)
        })?;
        debug!(%authority, tls = self.tls.is_some(), "connected");
        tokio::task::spawn_local(async move {
            // The pending reply, if there is one, gets the error too.
            connection.await.ok();
        });
        Ok(sender)
    }

    async fn open(&self) -> io::Result<Box<dyn ByteStream>> {
        let host = self.authority.host();
        let port = self.authority.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let tcp = TcpStream::connect((bare, port)).await?;
        tcp.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(tcp)) };
        let name = ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(tls.connect(name, tcp).await?))
    }
}

/// A TLS connector that trusts the system's root certificates.
fn connector() -> Result<TlsConnector, UpstreamError> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = rustls::RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(loaded.certs);
    if added == 0 {
        let reason = loaded.errors.first().map_or("none found".to_owned(), ToString::to_string);
        return Err(UpstreamError::Roots(io::Error::other(reason)));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| UpstreamError::Roots(io::Error::other(error)))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
