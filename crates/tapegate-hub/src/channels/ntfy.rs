//! Pushes to phones through an ntfy server, with buttons that send the one-time links.

use http::Method;
use serde_json::json;
use tapegate_policy::model::ChannelSettings;

use super::channel_server::{ChannelServer, OutboundRequest};
use super::{
    ChannelError, ChannelFuture, ChannelOutcome, ChannelRequest, DecisionChannel, RetryAdvice,
};

/// A server turns longer messages (4096 bytes) into attachments.
const MESSAGE_BYTES_MAX: usize = 3000;
/// Longer titles are cut.
const TITLE_CHARS_MAX: usize = 200;
/// The highest and the lowest priority that we use.
const PRIORITY_ASKED: u8 = 4;
const PRIORITY_SETTLED: u8 = 1;

/// A topic of an ntfy server.
pub(super) struct NtfyChannel {
    server: ChannelServer,
    /// The path of the server itself, where messages are published as JSON.
    base: String,
    topic: String,
}

impl NtfyChannel {
    pub(super) fn new(settings: &ChannelSettings, secret: Option<String>) -> Result<Self, String> {
        let headers = secret.map(|secret| format!("Authorization: Bearer {secret}"));
        let server = ChannelServer::new(&settings.url, &headers.into_iter().collect::<Vec<_>>())?;
        let (base, topic) = server.path().rsplit_once('/').unwrap_or_default();
        if topic.is_empty() {
            return Err("the `url` of an ntfy channel must end with its topic".to_owned());
        }
        let (base, topic) = (format!("{base}/"), topic.to_owned());
        Ok(Self { server, base, topic })
    }

    async fn publish(&self, message: serde_json::Value) -> Result<String, ChannelError> {
        let headers = vec![("content-type", "application/json".to_owned())];
        let body = message.to_string().into_bytes();
        let (method, path) = (Method::POST, self.base.clone());
        let answer = self.server.send(OutboundRequest { method, path, headers, body }).await?;
        let answer: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        // A page that answers everything with success is not an ntfy server.
        let id = answer["id"].as_str().ok_or_else(|| ChannelError {
            message: "the answer is not that of an ntfy server".to_owned(),
            retry: RetryAdvice::Later,
        })?;
        Ok(id.to_owned())
    }

    /// What is pushed when a request has ended.
    fn ended(&self, request: &ChannelRequest, outcome: &ChannelOutcome) -> serde_json::Value {
        json!({
            "topic": self.topic,
            "title": format!("{} {}", request.title(), outcome.word),
            "message": format!("{} {}", request.id, outcome.text()),
            // The lowest, so that the end of a request does not ring again.
            "priority": PRIORITY_SETTLED,
        })
    }

    /// The title, the text and the buttons for a request.
    fn message(&self, request: &ChannelRequest) -> serde_json::Value {
        // One piece: ntfy has a single text.
        let (mut pieces, is_whole) = request.pieces(MESSAGE_BYTES_MAX, 1);
        let title = format!("Approve {}?", request.title());
        let is_whole = is_whole && title.chars().count() <= TITLE_CHARS_MAX;
        let mut text = format!("{}\n\n{}", request.reason, pieces.remove(0));
        if !is_whole {
            text.push_str(
                "…\nThis is not all of the call: see it with `tapegate approvals show`.\n",
            );
        }
        if request.masked_parts() > 0 {
            text.push_str("Some values are masked.\n");
        }
        let mut actions = Vec::new();
        if let Some(links) = &request.links {
            let button = |label: &str, url: &str| json!({"action": "http", "label": label, "url": url, "method": "POST", "clear": true});
            // A person must not approve what was cut off.
            actions.extend(is_whole.then(|| button("Approve", &links.approve)));
            actions.push(button("Deny", &links.deny));
        }
        let title: String = title.chars().take(TITLE_CHARS_MAX).collect();
        json!({
            "topic": self.topic,
            "title": title,
            "message": text,
            "priority": PRIORITY_ASKED,
            "tags": ["lock"],
            "actions": actions,
        })
    }
}

impl DecisionChannel for NtfyChannel {
    fn announce<'a>(&'a self, request: &'a ChannelRequest) -> ChannelFuture<'a, String> {
        Box::pin(self.publish(self.message(request)))
    }

    fn conclude<'a>(
        &'a self,
        request: &'a ChannelRequest,
        _: &'a str,
        outcome: &'a ChannelOutcome,
    ) -> ChannelFuture<'a, ()> {
        let message = self.ended(request, outcome);
        Box::pin(async { self.publish(message).await.map(drop) })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tapegate_policy::model::ChannelKind;

    use super::super::sample_requests::{self, golden};
    use super::*;
    use crate::channels::DecisionLinks;

    fn channel(url: &str) -> Result<NtfyChannel, String> {
        let settings = ChannelSettings {
            kind: ChannelKind::Ntfy,
            url: url.to_owned(),
            secret: None,
            links: None,
            approver: String::new(),
            room: String::new(),
            users: BTreeMap::new(),
            signing_secret: None,
            approve_button: false,
        };
        NtfyChannel::new(&settings, None)
    }

    #[test]
    fn pushes_are_as_the_golden_has_them() {
        let channel = channel("https://ntfy.sh/alerts").unwrap();
        let mut text = String::new();
        for request in
            [sample_requests::plain(), sample_requests::hostile(), sample_requests::long()]
        {
            let asked = serde_json::to_string_pretty(&channel.message(&request)).unwrap();
            text.push_str(&format!("{asked}\n"));
        }
        for outcome in sample_requests::outcomes() {
            let ended = channel.ended(&sample_requests::hostile(), &outcome);
            text.push_str(&format!("{ended}\n"));
        }
        golden("ntfy-pushes.txt", &text);
    }

    #[test]
    fn no_text_of_a_call_is_rendered_or_adds_a_button() {
        let request = sample_requests::hostile();
        let message = channel("https://ntfy.sh/alerts").unwrap().message(&request);
        // A server renders Markdown only if it is asked to; attachments and clicks are links.
        for key in ["markdown", "click", "attach", "icon", "email", "call", "filename"] {
            assert_eq!(message[key], serde_json::Value::Null, "{key}");
        }
        let links = request.links.unwrap();
        let urls: Vec<_> =
            message["actions"].as_array().unwrap().iter().map(|a| &a["url"]).collect();
        assert_eq!(urls, [&links.approve, &links.deny]);
        for text in [&message["title"], &message["message"]] {
            let text = text.as_str().unwrap();
            let is_hidden = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!text.contains(is_hidden), "{text:?}");
        }
        assert_eq!(message["title"].as_str().unwrap().lines().count(), 1);
    }

    #[test]
    fn the_topic_is_the_end_of_the_url() {
        let topic = |url: &str| channel(url).map(|channel| (channel.base, channel.topic)).ok();
        let found = |base: &str, topic: &str| Some((base.to_owned(), topic.to_owned()));
        assert_eq!(topic("https://ntfy.sh/alerts"), found("/", "alerts"));
        assert_eq!(topic("https://a.example/push/alerts/"), found("/push/", "alerts"));
        assert_eq!(topic("https://ntfy.sh"), None);
    }

    #[test]
    fn a_call_that_is_cut_has_no_button_that_approves() {
        let channel = channel("https://ntfy.sh/alerts").unwrap();
        let link = |word: &str| format!("https://gate.example/{word}");
        let links = Some(DecisionLinks { approve: link("approve"), deny: link("deny") });
        let record = tapegate_store::approvals::ApprovalRecord::default();
        let short = ChannelRequest::new(&record, links);
        let long = ChannelRequest { lines: vec!["x".repeat(50_000)], ..short.clone() };
        let labels = |request: &ChannelRequest| {
            let message = channel.message(request);
            assert!(message["message"].as_str().unwrap().len() < 4096);
            let actions = message["actions"].as_array().unwrap().clone();
            actions.iter().map(|one| one["label"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(labels(&short), ["Approve", "Deny"]);
        assert_eq!(labels(&long), ["Deny"]);
        // The end of a name counts, too.
        let named = ChannelRequest { tool: "x".repeat(190), server: "y".repeat(20), ..short };
        assert_eq!(labels(&named), ["Deny"]);
    }
}
