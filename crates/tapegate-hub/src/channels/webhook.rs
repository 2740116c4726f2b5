//! A webhook: a signed POST for each request and for each end of one.
//!
//! ```text
//! Tapegate-Signature: t=UNIX_SECONDS,v1=HEX     HMAC-SHA256 of "t.body", keyed with the secret
//! ```

use std::time::{SystemTime, UNIX_EPOCH};

use http::Method;
use ring::hmac;
use serde::Serialize;
use serde_json::value::RawValue;
use tapegate_core::hex;
use tapegate_policy::model::ChannelSettings;

use super::channel_server::{ChannelServer, OutboundRequest};
use super::{
    ChannelError, ChannelFuture, ChannelOutcome, ChannelRequest, DecisionChannel, RetryAdvice,
};

/// A receiver of signed requests.
pub(super) struct WebhookChannel {
    receiver: ChannelServer,
    key: hmac::Key,
}

impl WebhookChannel {
    pub(super) fn new(settings: &ChannelSettings, secret: Option<String>) -> Result<Self, String> {
        let secret = secret.ok_or("a webhook needs a secret to sign with")?;
        let receiver = ChannelServer::new(&settings.url, &[])?;
        Ok(Self { receiver, key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()) })
    }

    async fn post(&self, event: &impl Serialize) -> Result<(), ChannelError> {
        let body = serde_json::to_vec(event).map_err(|error| ChannelError {
            message: format!("the event cannot be written: {error}"),
            retry: RetryAdvice::Never,
        })?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let headers = vec![
            ("content-type", "application/json".to_owned()),
            ("tapegate-signature", signature(&self.key, now, &body)),
        ];
        let (method, path) = (Method::POST, self.receiver.whole_path());
        self.receiver.send(OutboundRequest { method, path, headers, body }).await.map(drop)
    }
}

/// The event of a call that waits.
#[derive(Serialize)]
struct RequestedEvent<'a> {
    event: &'static str,
    id: &'a str,
    server_id: &'a str,
    tool: &'a str,
    method: &'a str,
    /// As they were masked, with every number as it was written.
    params: Option<Box<RawValue>>,
    principal: &'a str,
    folder: &'a str,
    workflow: &'a str,
    reason: &'a str,
    expires_at: &'a str,
    approve_url: Option<&'a str>,
    deny_url: Option<&'a str>,
}

/// The event of a call that waits no longer.
#[derive(Serialize)]
struct SettledEvent<'a> {
    event: &'static str,
    id: &'a str,
    outcome: &'static str,
    by: Option<&'a str>,
    reason: Option<&'a str>,
}

impl<'a> RequestedEvent<'a> {
    fn new(request: &'a ChannelRequest) -> Self {
        let links = request.links.as_ref();
        Self {
            event: "approval.requested",
            id: &request.id,
            server_id: &request.server,
            tool: &request.tool,
            method: &request.method,
            params: request.params.clone().and_then(|raw| RawValue::from_string(raw).ok()),
            principal: &request.principal,
            folder: &request.folder,
            workflow: &request.workflow,
            reason: &request.reason,
            expires_at: &request.expires_at,
            approve_url: links.map(|links| links.approve.as_str()),
            deny_url: links.map(|links| links.deny.as_str()),
        }
    }
}

impl<'a> SettledEvent<'a> {
    fn new(request: &'a ChannelRequest, outcome: &'a ChannelOutcome) -> Self {
        Self {
            event: "approval.settled",
            id: &request.id,
            outcome: outcome.word,
            by: outcome.by.as_deref(),
            reason: outcome.reason.as_deref(),
        }
    }
}

/// Covers the time, so that a receiver can refuse a copy that is sent again later.
fn signature(key: &hmac::Key, seconds: u64, body: &[u8]) -> String {
    let signed = [format!("{seconds}.").as_bytes(), body].concat();
    let digits = hex::encode(hmac::sign(key, &signed).as_ref());
    format!("t={seconds},v1={digits}")
}

impl DecisionChannel for WebhookChannel {
    fn announce<'a>(&'a self, request: &'a ChannelRequest) -> ChannelFuture<'a, String> {
        Box::pin(async {
            self.post(&RequestedEvent::new(request)).await.map(|()| "sent".to_owned())
        })
    }

    fn conclude<'a>(
        &'a self,
        request: &'a ChannelRequest,
        _: &'a str,
        outcome: &'a ChannelOutcome,
    ) -> ChannelFuture<'a, ()> {
        Box::pin(async { self.post(&SettledEvent::new(request, outcome)).await })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample_requests::{self, golden};
    use super::*;

    #[test]
    fn events_are_as_the_golden_has_them() {
        let mut text = String::new();
        for request in [sample_requests::plain(), sample_requests::hostile()] {
            let event = serde_json::to_string_pretty(&RequestedEvent::new(&request)).unwrap();
            text.push_str(&format!("{event}\n"));
            for outcome in sample_requests::outcomes() {
                let event = serde_json::to_string(&SettledEvent::new(&request, &outcome)).unwrap();
                text.push_str(&format!("{event}\n"));
            }
        }
        golden("webhook-events.txt", &text);
    }

    #[test]
    fn no_argument_of_a_call_becomes_a_member_of_the_event() {
        let request = sample_requests::hostile();
        let body = serde_json::to_vec(&RequestedEvent::new(&request)).unwrap();
        assert!(!body.iter().any(u8::is_ascii_control), "one line, however it is logged");
        let event: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let links = request.links.unwrap();
        assert_eq!(event["approve_url"], links.approve);
        assert_eq!(event["event"], "approval.requested");
        assert_eq!(event["params"]["arguments"]["approve_url"], "https://evil.example/");
        let text = event["tool"].as_str().unwrap();
        assert!(!text.chars().any(char::is_control) && !text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn the_signature_covers_the_time_and_the_body() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        // By `printf '5.{}' | openssl dgst -sha256 -hmac secret`.
        let expected = "t=5,v1=f18d2fcd9a24151471e3e2d71bc7ce901fb7b89b341918a08f95e9ffc497ea26";
        assert_eq!(signature(&key, 5, b"{}"), expected);
        assert_ne!(signature(&key, 6, b"{}"), expected);
        assert_ne!(signature(&key, 5, b"{ }"), expected);
    }
}
