//! Posts to a Slack channel, takes reactions and buttons, and updates the message when a request has
//! ended.
//!
//! All open messages are read with one `conversations.history`, as long as they are close together
//! ([`slack_history`]). A thumbs-down counts before a thumbs-up, and an approval does not count on a
//! message that was cut.

mod slack_history;
mod slack_message;
mod slack_signature;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tapegate_policy::model::ChannelSettings;

use super::channel_server::{ChannelServer, OutboundRequest};
use super::{
    ChannelAnswer, ChannelError, ChannelFuture, ChannelNews, ChannelOutcome, ChannelRequest,
    DecisionChannel, InboundAnswer, InboundPost, InboundRefusal, OpenMessage, RetryAdvice,
};
use slack_history::{OpenMessages, SlackHistory};
use slack_signature::SlackSignatures;

/// Slack allows 50 calls of a method a minute, and one new message a second in a channel.
const POLL_INTERVAL: Duration = Duration::from_millis(1300);
const SEND_INTERVAL: Duration = Duration::from_millis(1300);
const APPROVING: [&str; 3] = ["+1", "white_check_mark", "heavy_check_mark"];
const DENYING: [&str; 3] = ["-1", "x", "no_entry"];

/// A channel of a Slack workspace.
pub(super) struct SlackChannel {
    api: ChannelServer,
    room: String,
    users: BTreeMap<String, String>,
    /// Checks what Slack sends when a button is pressed; without it, messages have no buttons.
    signatures: Option<SlackSignatures>,
    /// What of the history is still to be read.
    history: RefCell<SlackHistory>,
}

impl SlackChannel {
    pub(super) fn new(
        settings: &ChannelSettings,
        secret: Option<String>,
        signing_secret: Option<&str>,
    ) -> Result<Self, String> {
        let token = secret.ok_or("Slack needs the token of a bot")?;
        let api = ChannelServer::new(&settings.url, &[format!("Authorization: Bearer {token}")])?;
        let signatures = signing_secret.map(SlackSignatures::new);
        let (room, users) = (settings.room.clone(), settings.users.clone());
        let history = RefCell::new(SlackHistory::default());
        Ok(Self { api, room, users, signatures, history })
    }

    async fn call(&self, method: &str, body: &Value) -> Result<Value, ChannelError> {
        let headers = vec![("content-type", "application/json; charset=utf-8".to_owned())];
        let path = format!("{}/{method}", self.api.path());
        let body = body.to_string().into_bytes();
        self.answer(OutboundRequest { method: Method::POST, path, headers, body }).await
    }

    async fn answer(&self, message: OutboundRequest) -> Result<Value, ChannelError> {
        let later = |message: String| ChannelError { message, retry: RetryAdvice::Later };
        let answer = self.api.send(message).await?;
        let answer: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| later("the answer is not that of Slack's Web API".to_owned()))?;
        // The API reports errors with status 200.
        if answer["ok"] == true {
            return Ok(answer);
        }
        // Error codes are words of the API, but the server may be another.
        let code = answer["error"].as_str().unwrap_or("no error code").escape_debug().to_string();
        let code: String = code.chars().take(100).collect();
        let is_refused = code.starts_with("invalid_blocks")
            || matches!(
                code.as_str(),
                "msg_too_long"
                    | "msg_blocks_too_long"
                    | "invalid_arguments"
                    | "message_not_found"
                    | "cant_update_message"
            );
        let retry = if is_refused { RetryAdvice::Never } else { RetryAdvice::Later };
        Err(ChannelError { message: format!("Slack refused: {code}"), retry })
    }

    /// One page of a channel's history.
    async fn page(&self, query: &str) -> Result<Value, ChannelError> {
        let path = format!("{}/conversations.history?{query}", self.api.path());
        let (method, headers, body) = (Method::GET, Vec::new(), Vec::new());
        self.answer(OutboundRequest { method, path, headers, body }).await
    }

    /// The answers on one message: denials first, so that one of them outweighs approvals.
    fn answers(&self, message: &Value, open: &OpenMessage) -> Vec<ChannelAnswer> {
        let reactions = message["reactions"].as_array().cloned().unwrap_or_default();
        let by_word = |words: &[&str]| -> Vec<String> {
            let is_meant = |reaction: &&Value| {
                let name = reaction["name"].as_str().unwrap_or_default();
                // Reactions may have a skin tone after two colons.
                words.contains(&name.split("::").next().unwrap_or_default())
            };
            let users = reactions
                .iter()
                .filter(is_meant)
                .flat_map(|reaction| reaction["users"].as_array().cloned().unwrap_or_default());
            users.filter_map(|user| Some(self.name_of(user.as_str()?))).collect()
        };
        let answer = |approve: bool| {
            let id = open.id().to_owned();
            move |by: String| ChannelAnswer { id: id.clone(), approve, by }
        };
        let denied = by_word(&DENYING);
        let approved =
            // One denial is enough, whatever others think.
            if denied.is_empty() && open.is_whole { by_word(&APPROVING) } else { Vec::new() };
        denied
            .into_iter()
            .map(answer(false))
            .chain(approved.into_iter().map(answer(true)))
            .collect()
    }

    /// The name in which a user decides.
    fn name_of(&self, user: &str) -> String {
        self.users.get(user).cloned().unwrap_or_else(|| format!("slack:{}", user.escape_debug()))
    }
}

impl DecisionChannel for SlackChannel {
    fn announce<'a>(&'a self, request: &'a ChannelRequest) -> ChannelFuture<'a, String> {
        Box::pin(async {
            let mut message = slack_message::request(request, self.signatures.is_some());
            message["channel"] = json!(self.room);
            let answer = self.call("chat.postMessage", &message).await?;
            // The answer has the id of the room, which later calls need even if a name was given.
            let (channel, ts) = (answer["channel"].as_str(), answer["ts"].as_str());
            match (channel.unwrap_or(&self.room), ts) {
                (channel, Some(ts)) => Ok(format!("{channel} {ts}")),
                (_, None) => Err(ChannelError {
                    message: "Slack's answer names no message".to_owned(),
                    retry: RetryAdvice::Never,
                }),
            }
        })
    }

    fn conclude<'a>(
        &'a self,
        request: &'a ChannelRequest,
        receipt: &'a str,
        outcome: &'a ChannelOutcome,
    ) -> ChannelFuture<'a, ()> {
        Box::pin(async move {
            let Some((channel, ts)) = receipt.split_once(' ') else { return Ok(()) };
            let mut message = slack_message::ended(request, outcome);
            message["channel"] = json!(channel);
            message["ts"] = json!(ts);
            self.call("chat.update", &message).await.map(drop)
        })
    }

    fn poll<'a>(&'a self, open: &'a [OpenMessage]) -> ChannelFuture<'a, ChannelNews> {
        Box::pin(async move {
            let mut messages: OpenMessages<'_> = BTreeMap::new();
            for message in open {
                if let Some((channel, ts)) = message.receipt.split_once(' ') {
                    messages.entry(channel).or_default().insert(ts, message);
                }
            }
            let next = self.history.borrow_mut().next_read(&messages);
            let Some(read) = next else { return Ok(ChannelNews::default()) };
            // One call for each poll: the pauses between polls keep to the limit.
            let page = match self.page(&read.query(&messages)).await {
                Ok(page) => page,
                Err(error) => {
                    self.history.borrow_mut().put_back(read);
                    return Err(error);
                }
            };
            let of_channel = messages.get(read.channel());
            let mut answers = Vec::new();
            for message in page["messages"].as_array().into_iter().flatten() {
                let ts = message["ts"].as_str().unwrap_or_default();
                if let Some(open) = of_channel.and_then(|messages| messages.get(ts)) {
                    answers.extend(self.answers(message, open));
                }
            }
            let is_partial = self.history.borrow_mut().after(&read, &page, &messages);
            Ok(ChannelNews { answers, is_partial, ..ChannelNews::default() })
        })
    }

    fn receive(&self, post: &InboundPost<'_>) -> Result<InboundAnswer, InboundRefusal> {
        let signatures = self.signatures.as_ref();
        let signatures =
            signatures.ok_or_else(|| InboundRefusal("this channel has no buttons".to_owned()))?;
        signatures.check(post)?;
        let pressed = slack_message::pressed_button(post.body)
            .ok_or_else(|| InboundRefusal("it is not a button of our messages".to_owned()))?;
        let answer = ChannelAnswer {
            id: pressed.id,
            approve: pressed.approve,
            by: self.name_of(&pressed.user),
        };
        Ok(InboundAnswer { answer, receipt: pressed.receipt })
    }

    fn shows_all(&self, request: &ChannelRequest) -> bool {
        slack_message::is_whole(request)
    }

    fn poll_interval(&self) -> Option<Duration> {
        Some(POLL_INTERVAL)
    }

    fn send_interval(&self) -> Duration {
        SEND_INTERVAL
    }
}

#[cfg(test)]
mod tests;
