//! One line of a tape, in any dialect: reading and writing.
//!
//! The same types are read and written: what the hot path writes for a live frame is what a reader
//! gets back, so a round trip needs no third model. Unknown keys are kept in `extra`.

mod anomaly_order;
mod line_parts;

use std::borrow::Cow;

use line_parts::{put_base64, put_lossy, put_number, put_stamp, put_string};

use super::base64;
use super::entry_writer::ByteSink;
use super::line_keys::LineKeys;
use crate::json::JsonFault;
use crate::side::Side;
use crate::time::SubSecond;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TapeLine<'a> {
    /// The start of a thoughtjack recording, or of a part of a merged one.
    Header(TapeHeader<'a>),
    Message(MessageLine<'a>),
    /// A frame that is not a message, or a marker.
    Bad(BadFrame<'a>),
    /// The end of a thoughtjack recording.
    Footer(TapeFooter<'a>),
    /// A thoughtjack line of a type this build does not know.
    Unknown(String),
}

/// Why a line is not a tape entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    #[error("not JSON: {0}")]
    NotJson(#[from] JsonFault),
    /// Longer than the limit.
    #[error("longer than {0} bytes, the limit for an entry (--max-entry-bytes)")]
    TooLong(usize),
    /// JSON, but not a tape entry.
    #[error("not a tape entry: {0}")]
    NotAnEntry(String),
    /// A key is missing or has a value of the wrong type.
    #[error("`{key}` {fault}")]
    Key {
        key: &'static str,
        /// What is wrong with it.
        fault: &'static str,
    },
}

/// When an entry was recorded: a time to write, or the text that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryTime<'a> {
    /// Microseconds since 1970.
    At(i64),
    /// The text in the file.
    Text(&'a str),
}

/// A message line, with the keys of both dialects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageLine<'a> {
    /// `seq`; overwatch lines have none.
    pub seq: Option<u64>,
    /// `ts`.
    pub ts: EntryTime<'a>,
    /// `dir` or `direction`.
    pub from: Side,
    /// The raw text of `msg` or `parsed`.
    pub msg: Cow<'a, [u8]>,
    /// `raw` of an overwatch line: the exact bytes of the frame.
    pub raw: Option<Cow<'a, str>>,
    /// `latency_ms`.
    pub latency_ms: Option<u64>,
    /// `session` or `session_id`, raw text.
    pub session: Option<Cow<'a, [u8]>>,
    /// `req`: the `seq` of the request that it answers.
    pub req: Option<u64>,
    /// `batch`: the number of the batch it arrived in.
    pub batch: Option<u64>,
    /// `by`: present when the message is the recorder's own.
    pub ours: bool,
    /// `unterminated`: its line ending never arrived.
    pub unterminated: bool,
    /// `resumed`: it arrived on a stream that had broken off and was resumed.
    pub resumed: bool,
    /// `redacted`: where values were masked.
    pub redacted: Vec<String>,
    /// Every other key, as `,"key":value` text.
    pub extra: Vec<u8>,
}

impl<'a> MessageLine<'a> {
    /// A message line with only the keys that every line has.
    pub(super) fn minimal(ts: EntryTime<'a>, from: Side, msg: Cow<'a, [u8]>) -> Self {
        Self {
            seq: None,
            ts,
            from,
            msg,
            raw: None,
            latency_ms: None,
            session: None,
            req: None,
            batch: None,
            ours: false,
            unterminated: false,
            resumed: false,
            redacted: Vec::new(),
            extra: Vec::new(),
        }
    }
}

/// A frame that is not a message: `raw` and `parse_error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFrame<'a> {
    /// `ts`.
    pub ts: EntryTime<'a>,
    /// `direction`.
    pub from: Side,
    /// The bytes, exact where the file has them.
    pub raw: Cow<'a, [u8]>,
    /// `parse_error`.
    pub reason: Cow<'a, str>,
    /// `bytes`: the length of the frame, if `raw` is only its start.
    pub bytes_total: Option<u64>,
    /// `session_id`, raw text.
    pub session: Option<Cow<'a, [u8]>>,
    /// Every other key, as `,"key":value` text.
    pub extra: Vec<u8>,
}

/// The first line of a thoughtjack tape. Texts are decoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TapeHeader<'a> {
    /// `version` of the format.
    pub version: Cow<'a, str>,
    /// `name`.
    pub name: Option<Cow<'a, str>>,
    /// `tags`.
    pub tags: Vec<Cow<'a, str>>,
    /// `recorded_at`.
    pub recorded_at: Cow<'a, str>,
    /// `upstream`.
    pub upstream: Cow<'a, str>,
    /// `thoughtjack_version`.
    pub tool_version: Cow<'a, str>,
    /// Every other key, as `,"key":value` text.
    pub extra: Vec<u8>,
}

/// Whether this build supports the `version` of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormatVersion {
    /// A supported format.
    Known,
    /// A later format with the same major version: it is read, and unknown keys are kept.
    Newer,
    /// An unsupported format, and why.
    Other(String),
}

/// The last line of a thoughtjack tape that was closed in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TapeFooter<'a> {
    /// `total_messages`.
    pub total_messages: u64,
    /// `duration_ms`.
    pub duration_ms: u64,
    /// `client_messages`.
    pub client_messages: u64,
    /// `server_messages`.
    pub server_messages: u64,
    /// Every other key, as `,"key":value` text.
    pub extra: Cow<'a, [u8]>,
}

impl<'a> TapeLine<'a> {
    /// Reads one line. Its keys show the dialect.
    pub fn read(text: &'a [u8]) -> Result<Self, LineFault> {
        let keys = LineKeys::read(text)?;
        match keys.string("type").as_deref() {
            Some("header") => Ok(Self::Header(TapeHeader::read(keys)?)),
            Some("message") => Ok(Self::Message(MessageLine::read(keys, "dir", "msg")?)),
            Some("footer") => Ok(Self::Footer(TapeFooter::read(keys)?)),
            // An overwatch line may have a `type` of its own among its unknown keys.
            Some(other) if !keys.contains("direction") => Ok(Self::Unknown(other.to_owned())),
            _ if keys.contains("direction") && keys.contains("parse_error") => {
                Ok(Self::Bad(BadFrame::read(keys)?))
            }
            _ if keys.contains("direction") => {
                Ok(Self::Message(MessageLine::read(keys, "direction", "parsed")?))
            }
            _ => Err(LineFault::NotAnEntry(keys.names())),
        }
    }
}

impl TapeLine<'_> {
    /// An owned copy of the line, without the bytes of a frame that is not a message.
    pub(super) fn without_frame_bytes(&self) -> TapeLine<'static> {
        match self {
            Self::Header(header) => TapeLine::Header(header.to_static()),
            Self::Footer(footer) => {
                TapeLine::Footer(TapeFooter { extra: Cow::Owned(footer.extra.to_vec()), ..*footer })
            }
            Self::Bad(bad) => TapeLine::Bad(BadFrame {
                // The outline looks only at the reason, and frames may be large.
                ts: EntryTime::At(0),
                from: bad.from,
                raw: Cow::Borrowed(b""),
                reason: Cow::Owned(bad.reason.clone().into_owned()),
                bytes_total: None,
                session: None,
                extra: Vec::new(),
            }),
            Self::Message(_) => TapeLine::Unknown("message".to_owned()),
            Self::Unknown(kind) => TapeLine::Unknown(kind.clone()),
        }
    }
}

impl<'a> MessageLine<'a> {
    fn read(
        mut keys: LineKeys<'a>,
        dir: &'static str,
        msg: &'static str,
    ) -> Result<Self, LineFault> {
        keys.take("type");
        let message = Self {
            ts: keys.stamp()?,
            from: keys.side(dir)?,
            msg: Cow::Borrowed(
                keys.take(msg).ok_or(LineFault::Key { key: msg, fault: "is missing" })?,
            ),
            seq: if dir == "dir" {
                Some(
                    keys.number("seq")?
                        .ok_or(LineFault::Key { key: "seq", fault: "is missing" })?,
                )
            } else {
                None
            },
            raw: if dir == "dir" { None } else { keys.take_string("raw") },
            latency_ms: keys.number("latency_ms")?,
            session: keys
                .take(if dir == "dir" { "session" } else { "session_id" })
                .map(Cow::Borrowed),
            req: keys.number("req")?,
            batch: keys.number("batch")?,
            ours: keys.take_if("by", b"\"tapegate\""),
            unterminated: keys.take_if("unterminated", b"true"),
            resumed: keys.take_if("resumed", b"true"),
            redacted: keys.strings("redacted"),
            extra: keys.rest(),
        };
        // The schema of the dialect demands an object.
        if dir == "dir" && !message.msg.starts_with(b"{") {
            return Err(LineFault::Key { key: "msg", fault: "is not an object" });
        }
        Ok(message)
    }

    /// Appends the line in the thoughtjack dialect.
    pub fn write_thoughtjack(&self, out: &mut impl ByteSink) {
        out.put(b"{\"type\":\"message\",\"seq\":");
        put_number(out, self.seq.unwrap_or_default());
        out.put(b",\"ts\":\"");
        put_stamp(out, self.ts, SubSecond::Micros);
        out.put(match self.from {
            Side::Client => b"\",\"dir\":\"c2s\",\"msg\":",
            Side::Server => b"\",\"dir\":\"s2c\",\"msg\":",
        });
        out.put(&self.msg);
        self.write_rest(out, b",\"session\":");
    }

    /// Appends the line in the overwatch dialect.
    pub fn write_overwatch(&self, out: &mut impl ByteSink) {
        put_overwatch_head(out, self.ts, self.from);
        out.put(b",\"parsed\":");
        out.put(&self.msg);
        if let Some(raw) = &self.raw {
            out.put(b",\"raw\":");
            put_string(out, raw);
        }
        self.write_rest(out, b",\"session_id\":");
    }

    fn write_rest(&self, out: &mut impl ByteSink, session_key: &[u8]) {
        let optional = |out: &mut _, key: &[u8], value: Option<u64>| {
            if let Some(value) = value {
                ByteSink::put(out, key);
                put_number(out, value);
            }
        };
        optional(out, b",\"latency_ms\":", self.latency_ms);
        if let Some(session) = &self.session {
            out.put(session_key);
            out.put(session);
        }
        optional(out, b",\"req\":", self.req);
        optional(out, b",\"batch\":", self.batch);
        if self.ours {
            out.put(b",\"by\":\"tapegate\"");
        }
        if self.unterminated {
            out.put(b",\"unterminated\":true");
        }
        if self.resumed {
            out.put(b",\"resumed\":true");
        }
        for (index, path) in self.redacted.iter().enumerate() {
            out.put(if index == 0 { b",\"redacted\":[" } else { b"," });
            put_string(out, path);
        }
        if !self.redacted.is_empty() {
            out.put(b"]");
        }
        out.put(&self.extra);
        out.put(b"}\n");
    }
}

impl<'a> BadFrame<'a> {
    fn read(mut keys: LineKeys<'a>) -> Result<Self, LineFault> {
        let ts = keys.stamp()?;
        let from = keys.side("direction")?;
        let text = keys.take_string("raw");
        let exact = keys.string("raw_b64").and_then(|text| base64::decode(&text));
        if exact.is_some() {
            keys.take("raw_b64");
        }
        // `raw` has replacement characters where the bytes are not UTF-8; `raw_b64` is exact.
        let raw = match (exact, text) {
            (Some(bytes), _) => Cow::Owned(bytes),
            (None, Some(Cow::Borrowed(text))) => Cow::Borrowed(text.as_bytes()),
            (None, Some(Cow::Owned(text))) => Cow::Owned(text.into_bytes()),
            (None, None) => return Err(LineFault::Key { key: "raw", fault: "is missing" }),
        };
        let reason = keys.take_string("parse_error");
        let reason =
            reason.ok_or(LineFault::Key { key: "parse_error", fault: "is not a string" })?;
        let bytes_total = keys.number("bytes")?;
        let session = keys.take("session_id").map(Cow::Borrowed);
        Ok(Self { ts, from, raw, reason, bytes_total, session, extra: keys.rest() })
    }

    /// Appends the line, which has the same form in every dialect.
    pub fn write(&self, out: &mut impl ByteSink) {
        put_overwatch_head(out, self.ts, self.from);
        out.put(b",\"raw\":");
        // Base64 is written only if the text lost something, because it would double the line.
        let is_exact = put_lossy(out, &self.raw);
        out.put(b",\"parse_error\":");
        put_string(out, &self.reason);
        if !is_exact {
            out.put(b",\"raw_b64\":");
            put_base64(out, &self.raw);
        }
        if let Some(bytes) = self.bytes_total {
            out.put(b",\"bytes\":");
            put_number(out, bytes);
        }
        if let Some(session) = &self.session {
            out.put(b",\"session_id\":");
            out.put(session);
        }
        out.put(&self.extra);
        out.put(b"}\n");
    }
}

impl<'a> TapeHeader<'a> {
    fn read(mut keys: LineKeys<'a>) -> Result<Self, LineFault> {
        keys.take("type");
        let mut text = |key: &'static str| {
            keys.take_string(key).ok_or(LineFault::Key { key, fault: "is missing" })
        };
        Ok(Self {
            version: text("version")?,
            recorded_at: text("recorded_at")?,
            upstream: text("upstream")?,
            tool_version: text("thoughtjack_version")?,
            name: keys.take_string("name"),
            tags: keys.strings("tags").into_iter().map(Cow::Owned).collect(),
            extra: keys.rest(),
        })
    }

    /// Whether this build supports the tape's format.
    pub fn format_version(&self) -> FormatVersion {
        let number =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let version = &self.version;
        match version.split_once('.') {
            Some(("1", "0")) => FormatVersion::Known,
            Some(("1", minor)) if number(minor) => FormatVersion::Newer,
            Some((major, minor)) if number(major) && number(minor) => FormatVersion::Other(
                format!("the tape has format {version}, but this build reads formats 1.x"),
            ),
            _ => FormatVersion::Other(format!("`version` is `{version}`, not a number like 1.0")),
        }
    }

    /// An owned copy of the header.
    pub fn to_static(&self) -> TapeHeader<'static> {
        fn owned(text: &str) -> Cow<'static, str> {
            Cow::Owned(text.to_owned())
        }
        TapeHeader {
            version: owned(&self.version),
            name: self.name.as_deref().map(owned),
            tags: self.tags.iter().map(|tag| owned(tag)).collect(),
            recorded_at: owned(&self.recorded_at),
            upstream: owned(&self.upstream),
            tool_version: owned(&self.tool_version),
            extra: self.extra.clone(),
        }
    }

    /// Appends the line.
    pub fn write(&self, out: &mut impl ByteSink) {
        out.put(b"{\"type\":\"header\",\"version\":");
        put_string(out, &self.version);
        if let Some(name) = &self.name {
            out.put(b",\"name\":");
            put_string(out, name);
        }
        for (index, tag) in self.tags.iter().enumerate() {
            out.put(if index == 0 { b",\"tags\":[" } else { b"," });
            put_string(out, tag);
        }
        if !self.tags.is_empty() {
            out.put(b"]");
        }
        out.put(b",\"recorded_at\":");
        put_string(out, &self.recorded_at);
        out.put(b",\"upstream\":");
        put_string(out, &self.upstream);
        out.put(b",\"thoughtjack_version\":");
        put_string(out, &self.tool_version);
        out.put(&self.extra);
        out.put(b"}\n");
    }
}

impl<'a> TapeFooter<'a> {
    fn read(mut keys: LineKeys<'a>) -> Result<Self, LineFault> {
        keys.take("type");
        let mut count = |key: &'static str| {
            keys.number(key)?.ok_or(LineFault::Key { key, fault: "is missing" })
        };
        Ok(Self {
            total_messages: count("total_messages")?,
            duration_ms: count("duration_ms")?,
            client_messages: count("client_messages")?,
            server_messages: count("server_messages")?,
            extra: Cow::Owned(keys.rest()),
        })
    }

    /// Appends the line.
    pub fn write(&self, out: &mut impl ByteSink) {
        out.put(b"{\"type\":\"footer\",\"total_messages\":");
        put_number(out, self.total_messages);
        out.put(b",\"duration_ms\":");
        put_number(out, self.duration_ms);
        out.put(b",\"client_messages\":");
        put_number(out, self.client_messages);
        out.put(b",\"server_messages\":");
        put_number(out, self.server_messages);
        out.put(&self.extra);
        out.put(b"}\n");
    }
}

fn put_overwatch_head(out: &mut impl ByteSink, ts: EntryTime<'_>, from: Side) {
    out.put(b"{\"ts\":\"");
    put_stamp(out, ts, SubSecond::Millis);
    out.put(match from {
        Side::Client => b"\",\"direction\":\"client_to_server\"",
        Side::Server => b"\",\"direction\":\"server_to_client\"",
    });
}
