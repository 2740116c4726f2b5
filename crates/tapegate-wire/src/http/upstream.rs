//! The HTTP client for a server.
//!
//! A request is sent in two steps: [`HttpUpstream::start_request`] hands it to a connection, after which the
//! next request of an ordered sequence may follow; the reply is awaited separately.

mod connection;
mod credentials;
mod event_body;

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, HOST, HeaderName};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use tapegate_core::lenient::spelling::percent_decode;

use super::{OutboundBytes, headers, redirect};
use connection::ConnectionPool;

pub(super) use credentials::Credentials;
pub(super) use event_body::{EventBody, EventRead};

/// A server at a URL.
pub struct HttpUpstream {
    pool: ConnectionPool,
    scheme: Scheme,
    authority: Authority,
    path: PathAndQuery,
    extra: HeaderMap,
}

/// The pending reply to a request that has been handed to a connection.
pub type PendingReply = Pin<Box<dyn Future<Output = Result<Response<Incoming>, UpstreamError>>>>;

/// Why a server cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The URL is not valid.
    #[error("`{url}` is not a valid HTTP URL: {reason}")]
    Url {
        /// The URL, without its secrets.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A header is not valid.
    #[error("`{0}` is not a valid header; expected `Name: value`")]
    Header(String),
    /// The system has no root certificates.
    #[error("cannot load the system's root certificates: {0}")]
    Roots(std::io::Error),
    /// The exchange failed.
    #[error("cannot reach {authority}: {reason}")]
    Exchange {
        /// The server.
        authority: String,
        /// The cause.
        reason: String,
    },
}

impl HttpUpstream {
    /// A server at `url`. The headers `extra`, each as `Name: value`, are added to every request.
    pub fn new(url: &str, extra: &[String]) -> Result<Self, UpstreamError> {
        let fault = |reason: &str| UpstreamError::Url {
            url: without_secrets(url),
            reason: reason.to_owned(),
        };
        if !url.contains("://") {
            return Err(fault("it has no scheme such as https://"));
        }
        let uri: Uri =
            url.parse().map_err(|error: http::uri::InvalidUri| fault(&error.to_string()))?;
        let parts = uri.into_parts();
        let scheme = parts.scheme.ok_or_else(|| fault("it has no scheme such as https://"))?;
        let authority = parts.authority.ok_or_else(|| fault("it has no host"))?;
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(fault("only http and https are supported"));
        }
        let mut extra = extra.iter().map(|line| header(line)).collect::<Result<HeaderMap, _>>()?;
        let authority = match authority.as_str().rsplit_once('@') {
            Some((login, host)) => {
                let login = percent_decode(login).unwrap_or_else(|| login.to_owned());
                let basic = tapegate_core::tape::base64_encode(login.as_bytes());
                let value = HeaderValue::try_from(format!("Basic {basic}"))
                    .map_err(|_| fault("its login is invalid"))?;
                extra.entry(http::header::AUTHORIZATION).or_insert(value);
                host.parse().map_err(|_| fault("it has no host"))?
            }
            None => authority,
        };
        let pool = ConnectionPool::new(&scheme, &authority)?;
        let path = parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { pool, scheme, authority, path, extra })
    }

    /// The path of the URL.
    pub fn path(&self) -> &PathAndQuery {
        &self.path
    }

    /// Finds a header that some servers confuse with one of ours, since gateways such as WSGI treat
    /// underscores as hyphens. A header of exactly the same name is replaced and harmless.
    pub(super) fn ambiguous_header<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderName> {
        let folded = |name: &HeaderName| name.as_str().replace('_', "-");
        headers.keys().find(|name| {
            let like = |own: &HeaderName| own != *name && folded(own) == folded(name);
            self.extra.keys().any(like)
        })
    }

    /// The server's `scheme://host:port`.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// The path at the server that it calls `target` in a reply to a request to `base`, or `None`
    /// for another origin.
    pub(super) fn resolve(&self, base: &PathAndQuery, target: &str) -> Option<PathAndQuery> {
        redirect::resolve(&self.origin(), base, target)
    }

    /// Sends a request to `path` and waits for its reply.
    ///
    /// ```compile_fail,E0308
    /// use tapegate_wire::http::upstream::HttpUpstream;
    /// async fn send(server: &HttpUpstream, body: bytes::Bytes) {
    ///     let (path, headers) = (server.path().clone(), http::HeaderMap::new());
    ///     server.send(http::Method::POST, path, headers, body).await.ok();
    /// }
    /// ```
    ///
    /// ```
    /// use tapegate_wire::http::{OutboundBytes, upstream::HttpUpstream};
    /// async fn send(server: &HttpUpstream, body: OutboundBytes) {
    ///     let (path, headers) = (server.path().clone(), http::HeaderMap::new());
    ///     server.send(http::Method::POST, path, headers, body).await.ok();
    /// }
    /// ```
    pub async fn send(
        &self,
        method: Method,
        path: PathAndQuery,
        headers: HeaderMap,
        body: OutboundBytes,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let mut request = Request::new(body);
        (*request.method_mut(), *request.headers_mut()) = (method, headers);
        self.start_request(path, request).await?.await
    }

    /// Hands a request to a connection. Hop-by-hop headers are removed, `Host` is set to the
    /// server's, and compression is not requested because compressed bodies could not be inspected.
    /// All other headers are sent unchanged, including their spelling.
    pub async fn start_request(
        &self,
        path: PathAndQuery,
        request: Request<OutboundBytes>,
    ) -> Result<PendingReply, UpstreamError> {
        self.start_raw_request(path, request.map(Bytes::from), Credentials::Added).await
    }

    /// The same, with or without the configured credentials for the server.
    pub(super) async fn begin_with(
        &self,
        path: PathAndQuery,
        request: Request<OutboundBytes>,
        credentials: Credentials,
    ) -> Result<PendingReply, UpstreamError> {
        self.start_raw_request(path, request.map(Bytes::from), credentials).await
    }

    async fn start_raw_request(
        &self,
        path: PathAndQuery,
        request: Request<Bytes>,
        credentials: Credentials,
    ) -> Result<PendingReply, UpstreamError> {
        let mut request = request.map(Full::new);
        *request.version_mut() = Version::HTTP_11;
        *request.uri_mut() = Uri::from(path);
        let headers = request.headers_mut();
        headers::strip_hop_by_hop(headers);
        headers.remove(http::header::CONTENT_LENGTH);
        // The body has been received already, so the expectation was met.
        headers.remove(http::header::EXPECT);
        let host = HeaderValue::try_from(self.authority.as_str());
        headers.insert(HOST, host.map_err(|error| self.pool.error_with_causes(&error))?);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        // Our headers replace the client's of the same name; several of one name are all sent.
        headers.extend(credentials.headers_to_send(&self.extra));
        self.pool.start_request(request).await
    }
}

/// A server that receives no session messages, such as a telemetry collector.
pub struct ApiServer(HttpUpstream);

impl ApiServer {
    /// A server at `url`. The headers `extra`, each as `Name: value`, are added to every request.
    pub fn new(url: &str, extra: &[String]) -> Result<Self, UpstreamError> {
        HttpUpstream::new(url, extra).map(Self)
    }

    /// The path of the URL.
    pub fn path(&self) -> &PathAndQuery {
        self.0.path()
    }

    /// Sends a request to `path` and waits for its reply.
    pub async fn send(
        &self,
        method: Method,
        path: PathAndQuery,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let mut request = Request::new(body);
        (*request.method_mut(), *request.headers_mut()) = (method, headers);
        self.0.start_raw_request(path, request, Credentials::Added).await?.await
    }
}

fn header(line: &str) -> Result<(HeaderName, HeaderValue), UpstreamError> {
    // The text after the name may be a secret, even if the colon is missing.
    let name = line.split([':', '=', ' ', '\t']).next().unwrap_or_default();
    let fault = || UpstreamError::Header(name.to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_name_are_all_sent_and_replace_the_clients() {
        let lines = ["X-Key: 1".to_owned(), "X-Key: 2".to_owned()];
        let upstream = HttpUpstream::new("http://host/", &lines).unwrap();
        let mut headers = HeaderMap::from_iter([header("x-key: theirs").unwrap()]);
        headers.extend(upstream.extra.clone());
        let sent: Vec<_> = headers.get_all("x-key").iter().collect();
        assert_eq!(sent, ["1", "2"]);
    }

    #[test]
    fn a_header_that_some_servers_take_for_ours_is_found() {
        let upstream = HttpUpstream::new("http://host/", &["X-Read-Only: 1".to_owned()]).unwrap();
        for (line, is_like) in [
            ("X_Read_Only: 0", true),
            ("x-read_only: 0", true),
            ("x-read-only: 0", false),
            ("x-readonly: 0", false),
        ] {
            let headers = HeaderMap::from_iter([header(line).unwrap()]);
            assert_eq!(upstream.ambiguous_header(&headers).is_some(), is_like, "{line}");
        }
    }

    #[test]
    fn a_header_that_is_none_does_not_give_its_secret_away() {
        for line in ["Authorization Bearer s3cret", "X-Key=s3cret", "X-Key:s3c\nret", " : s3cret"] {
            let message = header(line).unwrap_err().to_string();
            assert!(
                message.contains("is not a valid header") && !message.contains("s3c"),
                "{message}"
            );
        }
    }
}
