//! Ways to tell people of calls that wait, and to get their answers.
//!
//! Each protocol is one file with a type that implements [`DecisionChannel`]. A worker of its own
//! drives each channel, so a slow or dead one delays neither a call nor another channel. A channel
//! never decides: it reports what a person has answered, and the hub checks whether that counts.

mod channel_request;
mod channel_server;
mod channel_worker;
mod desktop;
mod ntfy;
#[cfg(test)]
pub(crate) mod sample_requests;
mod slack;
mod webhook;

use std::future::Future;
use std::io::Read;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tapegate_policy::model::{ChannelKind, ChannelSecret, ChannelSettings};

pub(crate) use channel_request::{ChannelRequest, DecisionLinks};
pub(crate) use channel_worker::{ChannelEvent, ChannelReport, ChannelWorker};

/// Longer secrets are refused: the file is probably not the one that was meant.
const SECRET_BYTES_MAX: u64 = 4096;

/// A channel that tells people of requests.
pub(crate) trait DecisionChannel {
    /// Tells people of a request. The receipt identifies the message later, also after a restart.
    fn announce<'a>(&'a self, request: &'a ChannelRequest) -> ChannelFuture<'a, String>;

    /// Tells people that a request has ended.
    fn conclude<'a>(
        &'a self,
        request: &'a ChannelRequest,
        receipt: &'a str,
        outcome: &'a ChannelOutcome,
    ) -> ChannelFuture<'a, ()>;

    /// Collects the answers to all open messages at once, for channels where people answer.
    fn poll<'a>(&'a self, open: &'a [OpenMessage]) -> ChannelFuture<'a, ChannelNews> {
        let _ = open;
        Box::pin(async { Ok(ChannelNews::default()) })
    }

    /// Waits until a poll is worthwhile now, for channels that are told of answers.
    fn news<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(std::future::pending())
    }

    /// Whether polls are needed even without an open message, since the channel is not connected.
    fn is_disconnected(&self) -> bool {
        false
    }

    /// Takes a request that the channel's server has sent to the hub. Only a valid signature makes
    /// it an answer.
    fn receive(&self, post: &InboundPost<'_>) -> Result<InboundAnswer, InboundRefusal> {
        let _ = post;
        Err(InboundRefusal("this channel takes no requests".to_owned()))
    }

    /// Whether all of a call is shown. If not, people can only deny it here.
    fn shows_all(&self, request: &ChannelRequest) -> bool {
        let _ = request;
        true
    }

    /// The shortest time between two polls; `None` if answers come by links.
    fn poll_interval(&self) -> Option<Duration> {
        None
    }

    /// The shortest time between two messages.
    fn send_interval(&self) -> Duration {
        Duration::ZERO
    }
}

/// What a channel does, on the hub's own thread.
pub(crate) type ChannelFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ChannelError>> + 'a>>;

/// A message that people can still answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenMessage {
    /// What people are asked about.
    pub(crate) request: Rc<ChannelRequest>,
    /// What `announce` returned.
    pub(crate) receipt: String,
    /// Whether all of the call was shown. If not, people can deny it here but not approve it.
    pub(crate) is_whole: bool,
}

impl OpenMessage {
    /// The id of the request.
    pub(crate) fn id(&self) -> &str {
        &self.request.id
    }
}

/// What a poll has found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChannelNews {
    /// What people have answered.
    pub(crate) answers: Vec<ChannelAnswer>,
    /// New receipts of messages that had to be sent again, by the id of their request.
    pub(crate) receipts: Vec<(String, String)>,
    /// Whether the next poll has to read the rest of the messages.
    pub(crate) is_partial: bool,
}

/// A request that the channel's server has sent to the hub. It is not authenticated.
#[derive(Debug)]
pub(crate) struct InboundPost<'a> {
    pub(crate) headers: &'a http::HeaderMap,
    pub(crate) body: &'a [u8],
    /// The hub's clock, in seconds.
    pub(crate) now_s: i64,
}

/// An answer that the channel's server has sent, with proof.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InboundAnswer {
    pub(crate) answer: ChannelAnswer,
    /// The receipt of the message that was answered.
    pub(crate) receipt: String,
}

/// Why a request of a channel's server is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InboundRefusal(pub(crate) String);

/// What a person has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelAnswer {
    /// The id of the request.
    pub(crate) id: String,
    /// Whether it was approved.
    pub(crate) approve: bool,
    /// The person.
    pub(crate) by: String,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelOutcome {
    /// `approved`, `denied`, `expired` or `cancelled`.
    pub(crate) word: &'static str,
    /// Who decided, if a person did.
    pub(crate) by: Option<String>,
    /// The reason, if one was given.
    pub(crate) reason: Option<String>,
}

impl ChannelOutcome {
    /// The outcome in a few words.
    pub(crate) fn text(&self) -> String {
        let by = self.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{}{by}{reason}", self.word)
    }
}

/// Why a channel failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelError {
    /// What went wrong, without any secret.
    pub(crate) message: String,
    /// Whether the same may succeed later.
    pub(crate) retry: RetryAdvice,
}

/// When to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    /// It will fail again.
    Never,
    /// After a pause that grows.
    Later,
    /// After the time that the server has named.
    After(Duration),
}

/// Makes a channel. Secrets are read now, since they may have been replaced since the last time.
pub(crate) fn open_channel(settings: &ChannelSettings) -> Result<Rc<dyn DecisionChannel>, String> {
    let secret = settings.secret.as_ref().map(read_secret).transpose()?;
    let signing_secret = settings.signing_secret.as_ref().map(read_secret).transpose()?;
    Ok(match settings.kind {
        ChannelKind::Webhook => Rc::new(webhook::WebhookChannel::new(settings, secret)?),
        ChannelKind::Ntfy => Rc::new(ntfy::NtfyChannel::new(settings, secret)?),
        ChannelKind::Slack => {
            Rc::new(slack::SlackChannel::new(settings, secret, signing_secret.as_deref())?)
        }
        ChannelKind::Desktop => Rc::new(desktop::DesktopChannel::new(settings)),
    })
}

fn read_secret(secret: &ChannelSecret) -> Result<String, String> {
    let text = match secret {
        ChannelSecret::Variable(name) => std::env::var(name)
            .map_err(|_| format!("the variable `{name}` is not set in the hub's environment"))?,
        ChannelSecret::File(path) => {
            let mut text = String::new();
            let file = std::fs::File::open(path);
            // Limited, since the path may name a device.
            let read = file.and_then(|file| file.take(SECRET_BYTES_MAX).read_to_string(&mut text));
            read.map_err(|error| format!("cannot read the secret in `{path}`: {error}"))?;
            text
        }
    };
    let text = text.trim();
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        // What it is instead must not be printed.
        false => Err("its secret is empty, or not one word of visible ASCII".to_owned()),
    }
}
