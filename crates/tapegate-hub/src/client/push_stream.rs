//! Messages that a hub pushes to its shims.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tapegate_core::sse::SseParser;
use tokio::time::timeout;

use super::ClientError;
use super::exchange::HubReply;
use crate::api::HubPush;

/// The largest push.
const PUSH_BYTES_MAX: usize = 64 * 1024;
/// A hub sends something every few seconds; one that stays silent for longer is considered gone.
const SILENCE_MAX: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub struct PushStream {
    body: Option<Incoming>,
    events: SseParser,
}

impl PushStream {
    pub(super) fn new(answer: HubReply) -> Self {
        let body = match answer {
            HubReply::Stream(body) => Some(body),
            HubReply::Whole(_) => None,
        };
        Self { body, events: SseParser::new(PUSH_BYTES_MAX) }
    }

    /// Waits for the next push. An error means that the stream has ended and pushes may have been
    /// missed: the caller must fetch the current state again. Cancel safe.
    pub async fn next(&mut self) -> Result<HubPush, ClientError> {
        loop {
            while let Some(piece) = self.events.next() {
                let data = piece.ok().and_then(|piece| piece.data);
                // Unknown pushes come from a newer hub and are ignored.
                let push = data.and_then(|data| serde_json::from_slice(&data).ok());
                if let Some(push) = push {
                    return Ok(push);
                }
            }
            let over = || ClientError::Broken("the stream has ended".to_owned());
            let body = self.body.as_mut().ok_or_else(over)?;
            let frame = timeout(SILENCE_MAX, body.frame()).await;
            match frame {
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.events.feed(&bytes);
                    }
                }
                Ok(Some(Err(error))) => {
                    self.body = None;
                    return Err(ClientError::Broken(error.to_string()));
                }
                Ok(None) => {
                    self.body = None;
                    return Err(over());
                }
                // A frozen process keeps its connections open, so silence is the only sign.
                Err(_) => {
                    self.body = None;
                    return Err(ClientError::Broken("the hub stopped sending".to_owned()));
                }
            }
        }
    }
}
