//! Talking to a server.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HOST, HeaderName};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::headers;

/// Servers commonly close a connection after five idle seconds; we must be the first to stop
/// using it, or a request could be lost on a connection that is being closed.
const IDLE_MAX: Duration = Duration::from_secs(3);

/// A server at an URL.
#[derive(Debug)]
pub struct Upstream {
    client: AnyClient,
    scheme: Scheme,
    authority: Authority,
    path: PathAndQuery,
    extra: HeaderMap,
}

/// TLS needs roots, which take time and memory to load, so it is there only where it is needed.
#[derive(Debug)]
enum AnyClient {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

/// Why a server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The URL makes no sense.
    #[error("`{url}` is no URL of an HTTP server: {why}")]
    Url {
        /// The URL, without its secrets.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A header makes no sense.
    #[error("`{0}` is no header; expected `Name: value`")]
    Header(String),
    /// The system has no certificates.
    #[error("cannot load the system's root certificates: {0}")]
    Roots(std::io::Error),
    /// The exchange failed.
    #[error("cannot reach {authority}: {why}")]
    Exchange {
        /// The server.
        authority: String,
        /// Why.
        why: String,
    },
}

impl Upstream {
    /// A server at `url` that gets the headers `extra`, each as `Name: value`, with every request.
    pub fn new(url: &str, extra: &[String]) -> Result<Self, UpstreamError> {
        let fault =
            |why: &str| UpstreamError::Url { url: without_secrets(url), why: why.to_owned() };
        let uri: Uri =
            url.parse().map_err(|error: http::uri::InvalidUri| fault(&error.to_string()))?;
        let parts = uri.into_parts();
        let scheme = parts.scheme.ok_or_else(|| fault("it has no scheme such as https://"))?;
        let authority = parts.authority.ok_or_else(|| fault("it has no host"))?;
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(fault("only http and https are spoken"));
        }
        let mut extra = extra.iter().map(|line| header(line)).collect::<Result<HeaderMap, _>>()?;
        let authority = match authority.as_str().rsplit_once('@') {
            Some((login, host)) => {
                let basic = tapegate_core::tape::base64_encode(percent_decoded(login).as_bytes());
                let value = HeaderValue::try_from(format!("Basic {basic}"))
                    .map_err(|_| fault("its login is no text"))?;
                extra.entry(http::header::AUTHORIZATION).or_insert(value);
                host.parse().map_err(|_| fault("it has no host"))?
            }
            None => authority,
        };
        let client = AnyClient::new(&scheme)?;
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { client, scheme, authority, path, extra })
    }

    /// The path of the URL.
    pub fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// The server's `scheme://host:port`.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// Sends a request to `path`. Headers that belong to a connection are left out, `Host` is the
    /// server's, and no compression is asked for, because what is compressed cannot be read along.
    pub async fn send(
        &self,
        method: Method,
        path: PathAndQuery,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let mut headers = headers;
        headers::strip_hop_by_hop(&mut headers);
        headers.remove(HOST);
        headers.remove(http::header::CONTENT_LENGTH);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in &self.extra {
            headers.insert(name.clone(), value.clone());
        }
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
            .map_err(|error| self.failed(&error))?;
        let mut request = Request::new(Full::new(body));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) =
            (method, uri, headers);
        match &self.client {
            AnyClient::Plain(client) => client.request(request).await,
            AnyClient::Tls(client) => client.request(request).await,
        }
        .map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &dyn Error) -> UpstreamError {
        let mut why = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            why = format!("{why}: {error}");
            cause = error.source();
        }
        UpstreamError::Exchange { authority: self.authority.to_string(), why }
    }
}

impl AnyClient {
    fn new(scheme: &Scheme) -> Result<Self, UpstreamError> {
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .http1_preserve_header_case(true);
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        if *scheme == Scheme::HTTP {
            return Ok(Self::Plain(builder.build(connector)));
        }
        connector.enforce_http(false);
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| UpstreamError::Roots(std::io::Error::other(error)))?
            .with_native_roots()
            .map_err(UpstreamError::Roots)?
            .with_no_client_auth();
        let tls =
            HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
        Ok(Self::Tls(builder.build(tls.wrap_connector(connector))))
    }
}

fn header(line: &str) -> Result<(HeaderName, HeaderValue), UpstreamError> {
    let fault = || UpstreamError::Header(line.split(':').next().unwrap_or_default().to_owned());
    let (name, value) = line.split_once(':').ok_or_else(fault)?;
    Ok((name.trim().parse().map_err(|_| fault())?, value.trim().parse().map_err(|_| fault())?))
}

fn without_secrets(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    let host = url[start..end].rsplit_once('@').map_or(start, |(login, _)| start + login.len() + 1);
    let rest = url[host..].split('?').next().unwrap_or_default();
    format!("{}{rest}", &url[..start])
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
