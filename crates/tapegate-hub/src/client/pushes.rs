//! What a hub says without being asked.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tapegate_core::sse::Events;
use tokio::time::timeout;

use super::ClientError;
use super::exchange::Exchange;
use crate::api::Push;

/// The largest push.
const PUSH_BYTES_MAX: usize = 64 * 1024;
/// A hub says something every few seconds; one that is silent for longer is not there any more.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// A stream of pushes.
#[derive(Debug)]
pub struct Pushes {
    body: Option<Incoming>,
    events: Events,
}

impl Pushes {
    pub(super) fn new(answer: Exchange) -> Self {
        let body = match answer {
            Exchange::Stream(body) => Some(body),
            Exchange::Whole(_) => None,
        };
        Self { body, events: Events::new(PUSH_BYTES_MAX) }
    }

    /// Waits for the next one. An error means that the stream is over, and that something may have
    /// been missed: ask for everything anew. May be dropped at any time without losing one.
    pub async fn next(&mut self) -> Result<Push, ClientError> {
        loop {
            while let Some(piece) = self.events.next() {
                let data = piece.ok().and_then(|piece| piece.data);
                // What a newer hub may say is not for us.
                let push = data.and_then(|data| serde_json::from_slice(&data).ok());
                if let Some(push) = push {
                    return Ok(push);
                }
            }
            let over = || ClientError::Broken("the stream is over".to_owned());
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
                Err(_) => {
                    self.body = None;
                    return Err(ClientError::Broken("the hub has fallen silent".to_owned()));
                }
            }
        }
    }
}
