//! Which parts of a channel's history are read, one call at a time.
//!
//! A round begins with the newest messages of the channel and goes on page by page while pages have
//! open messages. In a busy room, open messages are far apart: those that are left are then read one
//! by one. So every open message is seen in every round, however much others write.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::OpenMessage;

/// How many messages a page has.
const PAGE_MESSAGES: usize = 100;

/// The open messages by channel and time. Times have the same number of digits, so they are in order.
pub(super) type OpenMessages<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a OpenMessage>>;

/// What is still to be read in this round.
#[derive(Debug, Default)]
pub(super) struct SlackHistory {
    reads: VecDeque<HistoryRead>,
}

/// One call of `conversations.history`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HistoryRead {
    /// A page, from the newest message if it has no cursor.
    Page { channel: String, cursor: String },
    /// One message.
    Message { channel: String, ts: String },
}

impl SlackHistory {
    /// What to read next; `None` if nothing is open.
    pub(super) fn next_read(&mut self, open: &OpenMessages<'_>) -> Option<HistoryRead> {
        self.reads.retain(|read| match read {
            HistoryRead::Page { channel, .. } => open.contains_key(channel.as_str()),
            HistoryRead::Message { channel, ts } => open
                .get(channel.as_str())
                .is_some_and(|messages| messages.contains_key(ts.as_str())),
        });
        if self.reads.is_empty() {
            let newest = |channel: &&str| HistoryRead::Page {
                channel: (*channel).to_owned(),
                cursor: String::new(),
            };
            self.reads.extend(open.keys().map(newest));
        }
        self.reads.pop_front()
    }

    /// Has a call that failed made again.
    pub(super) fn put_back(&mut self, read: HistoryRead) {
        self.reads.push_front(read);
    }

    /// Notes what a page makes necessary; returns whether the round goes on.
    pub(super) fn after(
        &mut self,
        read: &HistoryRead,
        page: &Value,
        open: &OpenMessages<'_>,
    ) -> bool {
        if let (HistoryRead::Page { channel, .. }, Some(messages)) =
            (read, open.get(read.channel()))
        {
            let shown = page["messages"].as_array().into_iter().flatten();
            let shown: Vec<&str> = shown.filter_map(|message| message["ts"].as_str()).collect();
            let older = messages.keys().filter(|ts| shown.iter().all(|shown| *ts < shown));
            let older: Vec<&str> = older.copied().collect();
            let cursor = page["response_metadata"]["next_cursor"].as_str().unwrap_or_default();
            let is_last = cursor.is_empty() || older.is_empty();
            let (channel, cursor) = (channel.clone(), cursor.to_owned());
            match shown.iter().any(|ts| messages.contains_key(ts)) {
                _ if is_last => {}
                true => self.reads.push_back(HistoryRead::Page { channel, cursor }),
                false => self.reads.extend(older.into_iter().map(|ts| HistoryRead::Message {
                    channel: channel.clone(),
                    ts: ts.to_owned(),
                })),
            }
        }
        !self.reads.is_empty()
    }
}

impl HistoryRead {
    pub(super) fn channel(&self) -> &str {
        match self {
            Self::Page { channel, .. } | Self::Message { channel, .. } => channel,
        }
    }

    /// The query of the call.
    pub(super) fn query(&self, open: &OpenMessages<'_>) -> String {
        let channel = percent_encoded(self.channel());
        match self {
            Self::Message { ts, .. } => {
                let ts = percent_encoded(ts);
                format!("channel={channel}&oldest={ts}&latest={ts}&inclusive=true&limit=1")
            }
            Self::Page { cursor, .. } => {
                let messages = open.get(self.channel());
                let oldest = messages.and_then(|messages| messages.keys().next());
                let oldest = percent_encoded(oldest.copied().unwrap_or_default());
                let mut query = format!(
                    "channel={channel}&oldest={oldest}&inclusive=true&limit={PAGE_MESSAGES}"
                );
                if !cursor.is_empty() {
                    query.push_str(&format!("&cursor={}", percent_encoded(cursor)));
                }
                query
            }
        }
    }
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                out.push(char::from(byte))
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use serde_json::json;
    use tapegate_store::approvals::ApprovalRecord;

    use super::super::ChannelRequest;
    use super::*;

    fn page(times: &[&str], cursor: &str) -> Value {
        let messages: Vec<Value> = times.iter().map(|ts| json!({ "ts": ts })).collect();
        json!({ "messages": messages, "response_metadata": { "next_cursor": cursor } })
    }

    #[test]
    fn every_open_message_is_read_in_a_round_however_busy_the_room_is() {
        let message = OpenMessage {
            request: Rc::new(ChannelRequest::new(&ApprovalRecord::default(), None)),
            receipt: String::new(),
            is_whole: true,
        };
        let times = ["1.1", "1.2", "1.7", "1.9"];
        let open = BTreeMap::from([("C1", times.map(|ts| (ts, &message)).into())]);
        let mut history = SlackHistory::default();
        let mut queries = Vec::new();
        let mut round = |history: &mut SlackHistory, answer: Value| {
            let read = history.next_read(&open).unwrap();
            queries.push(read.query(&open));
            history.after(&read, &answer, &open)
        };
        assert!(round(&mut history, page(&["1.9", "1.8"], "a=")));
        assert!(round(&mut history, page(&["1.7", "1.6"], "b")));
        // None of ours: the rest is read one by one.
        assert!(round(&mut history, page(&["1.5", "1.4"], "c")));
        assert!(round(&mut history, page(&["1.1"], "")));
        assert!(!round(&mut history, page(&["1.2"], "")));
        // The next round.
        assert!(!round(&mut history, page(&["1.9", "1.7", "1.2", "1.1"], "")));
        let all = "channel=C1&oldest=1.1&inclusive=true&limit=100";
        let one = |ts: &str| format!("channel=C1&oldest={ts}&latest={ts}&inclusive=true&limit=1");
        let expected = [
            all.to_owned(),
            format!("{all}&cursor=a%3D"),
            format!("{all}&cursor=b"),
            one("1.1"),
            one("1.2"),
            all.to_owned(),
        ];
        assert_eq!(queries, expected);
        assert_eq!(history.next_read(&BTreeMap::new()), None);
    }
}
