//! Sends HTTP requests of channels, with limits on time and size.

use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, RETRY_AFTER};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use tapegate_wire::http::upstream::ApiServer;

use super::{ChannelError, RetryAdvice};

/// How long an exchange may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longer answers are refused.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// A server cannot silence a channel for longer.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);

/// A server that a channel sends to.
pub(super) struct ChannelServer(ApiServer);

/// What a server has answered with success.
pub(super) struct ServerAnswer {
    pub(super) body: Vec<u8>,
}

/// One request to a server.
pub(super) struct OutboundRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
}

impl ChannelServer {
    /// A server at this URL; `headers` are added to each request.
    pub(super) fn new(url: &str, headers: &[String]) -> Result<Self, String> {
        ApiServer::new(url, headers).map(Self).map_err(|error| error.to_string())
    }

    /// The path of the URL without a slash at its end.
    pub(super) fn path(&self) -> &str {
        self.0.path().path().trim_end_matches('/')
    }

    /// The path and the query of the URL.
    pub(super) fn whole_path(&self) -> String {
        self.0.path().as_str().to_owned()
    }

    /// Sends a request; anything but success is an error.
    pub(super) async fn send(
        &self,
        message: OutboundRequest,
    ) -> Result<ServerAnswer, ChannelError> {
        let later = |message: String| ChannelError { message, retry: RetryAdvice::Later };
        let path = PathAndQuery::try_from(message.path.as_str())
            .map_err(|error| later(format!("the path is not valid: {error}")))?;
        let mut headers = HeaderMap::new();
        for (name, value) in message.headers {
            let value = HeaderValue::try_from(value);
            // A value that cannot be a header is left out; these are constants and signatures.
            headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
        }
        let exchange = async {
            let sent = self.0.send(message.method, path, headers, Bytes::from(message.body));
            let (head, body) = sent.await.map_err(|error| later(error.to_string()))?.into_parts();
            // Bounded, because the server is not ours.
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|error| later(format!("the answer broke off: {error}")))?;
            Ok::<_, ChannelError>((head, body.to_bytes().to_vec()))
        };
        let Ok(answered) = tokio::time::timeout(PATIENCE, exchange).await else {
            return Err(later("the server did not answer within 10 s".to_owned()));
        };
        let (head, body) = answered?;
        match head.status.is_success() {
            true => Ok(ServerAnswer { body }),
            false => Err(refusal(head.status, &head.headers)),
        }
    }
}

/// The error for an answer that is not a success. The body is left out: it may repeat a secret.
fn refusal(status: StatusCode, headers: &HeaderMap) -> ChannelError {
    let named = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let named = named.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    let may_pass =
        status.is_server_error() || matches!(status.as_u16(), 401 | 403 | 404 | 408 | 425 | 429);
    let retry = match named {
        Some(pause) if may_pass => RetryAdvice::After(pause.min(RETRY_AFTER_MAX)),
        // Also for a wrong token or address: a person may correct them while the call waits.
        None if may_pass => RetryAdvice::Later,
        _ => RetryAdvice::Never,
    };
    ChannelError { message: format!("the server answered {status}"), retry }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_names_a_time_is_left_alone_for_that_long() {
        let refused = |status: u16, pause: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            pause.map(|pause| headers.insert(RETRY_AFTER, HeaderValue::from_static(pause)));
            refusal(StatusCode::from_u16(status).unwrap(), &headers).retry
        };
        assert_eq!(refused(429, Some("7")), RetryAdvice::After(Duration::from_secs(7)));
        assert_eq!(refused(503, Some("99999")), RetryAdvice::After(RETRY_AFTER_MAX));
        assert_eq!(refused(503, Some("Wed, 21 Oct 2026")), RetryAdvice::Later);
        assert_eq!(
            (refused(500, None), refused(403, None)),
            (RetryAdvice::Later, RetryAdvice::Later)
        );
        assert_eq!(
            (refused(400, Some("1")), refused(302, None)),
            (RetryAdvice::Never, RetryAdvice::Never)
        );
    }
}
