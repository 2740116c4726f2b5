//! A server that speaks as much of Slack's Web API as is used, with its limits.

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http_peers::{ReceivedRequest, WebServer, json as reply};
use crate::support::wait_for;

/// The workspace: one channel.
pub(super) struct FakeSlack {
    server: WebServer,
    room: Arc<Mutex<SlackRoom>>,
}

#[derive(Default)]
struct SlackRoom {
    messages: Vec<SlackMessage>,
    /// What the next requests are answered with, in place of the API.
    failures: VecDeque<String>,
    token: String,
    token_was_elsewhere: bool,
    /// When the last calls of each method were answered.
    calls: Vec<(String, Instant)>,
    /// How many calls were over a limit.
    refused: usize,
}

/// How far apart the real API wants calls of a method: a message a second in a channel, and 50 calls
/// a minute, here evenly spread.
fn pause_after(method: &str) -> Duration {
    match method {
        "chat.postMessage" => Duration::from_secs(1),
        _ => Duration::from_millis(1200),
    }
}

/// A message in the channel.
#[derive(Debug, Clone)]
pub(super) struct SlackMessage {
    pub(super) ts: String,
    /// As it was posted, and as it is now.
    first: Value,
    message: Value,
    reactions: Vec<(String, Vec<String>)>,
}

impl SlackMessage {
    pub(super) fn text(&self) -> &str {
        self.message["text"].as_str().unwrap()
    }

    /// What Slack sends when this user presses the button with this label.
    pub(super) fn press(&self, label: &str, user: &str) -> Option<Value> {
        let blocks = self.first["blocks"].as_array().unwrap();
        let actions = blocks.iter().find(|block| block["type"] == "actions")?;
        let elements = actions["elements"].as_array().unwrap();
        let button = elements.iter().find(|button| button["text"]["text"] == label)?;
        let action = json!({
            "type": "button", "action_id": button["action_id"], "value": button["value"],
            "block_id": "x", "text": button["text"], "style": button["style"], "action_ts": "1774016532.1"
        });
        Some(json!({
            "type": "block_actions", "user": {"id": user, "username": "u", "team_id": "T1"},
            "api_app_id": "A1", "token": "x", "team": {"id": "T1", "domain": "d"},
            "container": {"type": "message", "message_ts": self.ts, "channel_id": "C1", "is_ephemeral": false},
            "channel": {"id": "C1", "name": "ops"}, "message": self.first,
            "response_url": "http://127.0.0.1:1/actions", "actions": [action]
        }))
    }

    pub(super) fn blocks(&self) -> String {
        self.message["blocks"].to_string()
    }
}

impl FakeSlack {
    pub(super) fn start(token: &str) -> Self {
        let room = SlackRoom { token: token.to_owned(), ..SlackRoom::default() };
        let room = Arc::new(Mutex::new(room));
        let shared = Arc::clone(&room);
        let server =
            WebServer::start(move |seen, stream| shared.lock().unwrap().answer(seen, stream));
        Self { server, room }
    }

    pub(super) fn url(&self) -> String {
        self.server.url("/api")
    }

    /// Answers the next requests with these status lines.
    pub(super) fn fail_next(&self, heads: &[&str]) {
        self.room.lock().unwrap().failures.extend(heads.iter().map(|head| (*head).to_owned()));
    }

    /// Waits until so many messages were posted.
    pub(super) fn posted(&self, count: usize) -> Vec<SlackMessage> {
        wait_for("messages in Slack", || {
            let messages = self.room.lock().unwrap().messages.clone();
            (messages.len() >= count).then_some(messages)
        })
    }

    /// A user reacts to a message.
    pub(super) fn react(&self, ts: &str, name: &str, user: &str) {
        let mut room = self.room.lock().unwrap();
        let message = room.messages.iter_mut().find(|message| message.ts == ts).unwrap();
        message.reactions.push((name.to_owned(), vec![user.to_owned()]));
    }

    /// The message about a call, once it was posted.
    pub(super) fn about(&self, tool: &str) -> SlackMessage {
        let title = format!("Approval needed: s {tool}");
        wait_for(&title, || {
            let messages = self.room.lock().unwrap().messages.clone();
            messages.into_iter().find(|message| message.first["text"] == title)
        })
    }

    /// Waits until a message has become this text.
    pub(super) fn updated(&self, ts: &str, text: &str) {
        wait_for(text, || {
            let room = self.room.lock().unwrap();
            let message = room.messages.iter().find(|message| message.ts == ts).unwrap();
            (message.text() == text).then_some(())
        });
    }

    /// Other people write so many messages.
    pub(super) fn chatter(&self, count: usize) {
        let mut room = self.room.lock().unwrap();
        for _ in 0..count {
            room.add(&json!({"channel": "C1", "text": "what is for lunch?", "blocks": []}));
        }
    }

    /// How many calls were refused because they came too fast.
    pub(super) fn refused(&self) -> usize {
        self.room.lock().unwrap().refused
    }

    pub(super) fn token_was_elsewhere(&self) -> bool {
        self.room.lock().unwrap().token_was_elsewhere
    }
}

impl SlackRoom {
    fn answer(&mut self, seen: &ReceivedRequest, stream: &mut TcpStream) -> bool {
        if let Some(head) = self.failures.pop_front() {
            return stream
                .write_all(format!("{head}\r\ncontent-length: 0\r\n\r\n").as_bytes())
                .is_ok();
        }
        let path = seen.head.split(' ').nth(1).unwrap_or_default();
        let body = String::from_utf8_lossy(&seen.body);
        self.token_was_elsewhere |= path.contains(&self.token) || body.contains(&self.token);
        if self.is_too_fast(path) {
            let body = r#"{"ok":false,"error":"ratelimited"}"#;
            let head = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-type: application/json";
            let text = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            return stream.write_all(text.as_bytes()).is_ok();
        }
        let answer = match seen.header("authorization") == Some(&format!("Bearer {}", self.token)) {
            false => json!({"ok": false, "error": "invalid_auth"}),
            true => self.call(path, &serde_json::from_str(&body).unwrap_or_default()),
        };
        stream.write_all(&reply("", &answer.to_string())).is_ok()
    }

    fn is_too_fast(&mut self, path: &str) -> bool {
        let method = path.split('?').next().unwrap_or_default().replace("/api/", "");
        let last = self.calls.iter().position(|(name, _)| *name == method);
        if last.is_some_and(|at| Instant::now() < self.calls[at].1 + pause_after(&method)) {
            self.refused += 1;
            return true;
        }
        last.map(|at| self.calls.swap_remove(at));
        self.calls.push((method, Instant::now()));
        false
    }

    fn call(&mut self, path: &str, body: &Value) -> Value {
        let (method, query) = path.split_once('?').unwrap_or((path, ""));
        match method {
            "/api/chat.postMessage" => self.post(body),
            "/api/chat.update" => {
                let ts = body["ts"].as_str().unwrap_or_default().to_owned();
                match self.messages.iter_mut().find(|message| message.ts == ts) {
                    Some(message) if exceeds_limits(body).is_none() => {
                        message.message = body.clone();
                        json!({"ok": true, "channel": "C1", "ts": ts})
                    }
                    _ => json!({"ok": false, "error": "message_not_found"}),
                }
            }
            "/api/conversations.history" => self.history(query),
            _ => json!({"ok": false, "error": "unknown_method"}),
        }
    }

    fn post(&mut self, body: &Value) -> Value {
        if body["channel"] != "C1" {
            return json!({"ok": false, "error": "channel_not_found"});
        }
        if let Some(error) = exceeds_limits(body) {
            return json!({"ok": false, "error": error});
        }
        json!({"ok": true, "channel": "C1", "ts": self.add(body)})
    }

    fn add(&mut self, body: &Value) -> String {
        let ts = format!("1774016531.{:06}", self.messages.len() + 1);
        let (first, message, reactions) = (body.clone(), body.clone(), Vec::new());
        self.messages.push(SlackMessage { ts: ts.clone(), first, message, reactions });
        ts
    }

    fn history(&self, query: &str) -> Value {
        let parameter = |name: &str| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(&format!("{name}=")))
                .unwrap_or_default()
        };
        let (oldest, latest) = (parameter("oldest").to_owned(), parameter("latest").to_owned());
        let is_meant = |message: &&SlackMessage| {
            message.ts >= oldest && (latest.is_empty() || message.ts <= latest)
        };
        // Newest first, and two on a page, so that the pages are read.
        let from: usize = parameter("cursor").parse().unwrap_or(0);
        let all = self.messages.iter().rev().filter(is_meant);
        let all: Vec<&SlackMessage> = all.collect();
        let shown = all.iter().skip(from).take(2).map(|message| {
            let reactions = message
                .reactions
                .iter()
                .map(|(name, users)| json!({"name": name, "users": users, "count": users.len()}));
            json!({"type": "message", "ts": message.ts, "reactions": reactions.collect::<Vec<_>>()})
        });
        let next = if from + 2 < all.len() { (from + 2).to_string() } else { String::new() };
        json!({"ok": true, "messages": shown.collect::<Vec<_>>(), "response_metadata": {"next_cursor": next}})
    }
}

/// The error for a message that the real API would refuse.
fn exceeds_limits(body: &Value) -> Option<&'static str> {
    let blocks = body["blocks"].as_array().cloned().unwrap_or_default();
    let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
    let is_wrong = |block: &Value| match block["type"].as_str() {
        Some("header") => length(&block["text"]["text"]) > 150,
        Some("section") => {
            let fields = block["fields"].as_array().cloned().unwrap_or_default();
            fields.len() > 10 || fields.iter().any(|field| length(&field["text"]) > 2000)
        }
        Some("context") => block["elements"].as_array().is_none_or(|list| list.len() > 10),
        Some("rich_text") => length(&block["elements"][0]["elements"][0]["text"]) > 3000,
        Some("divider") => false,
        Some("actions") => block["elements"].as_array().is_none_or(|list| {
            let is_long =
                |one: &Value| length(&one["text"]["text"]) > 75 || length(&one["value"]) > 2000;
            list.len() > 25 || list.iter().any(is_long)
        }),
        _ => true,
    };
    if blocks.len() > 50 || blocks.iter().any(is_wrong) {
        return Some("invalid_blocks");
    }
    (body.to_string().len() > 16_000).then_some("msg_too_long")
}
