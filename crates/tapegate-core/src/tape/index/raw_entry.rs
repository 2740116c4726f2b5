//! What a line of a tape says about a message, before the message is paired and grouped.

use std::num::NonZeroU32;

use super::NONE;
use super::packed_entry::ChainedRequest;
use crate::frame::{Envelope, Frame, MessageKind};
use crate::side::Side;
use crate::signature::{HashedKey, Signature, Signer};
use crate::tape::line::MessageLine;

/// A message as described by its line. Positions are relative to the start of its chunk of the
/// tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RawEntry {
    /// Its line, from 1.
    pub(super) line: u32,
    /// Whether it is the first or only message of its line.
    pub(super) first: bool,
    pub(super) text: ChunkSpan,
    pub(super) seq: Option<u64>,
    /// When it was recorded, by the wall clock, if the time is valid.
    pub(super) wall_us: Option<i64>,
    pub(super) from: Side,
    pub(super) kind: MessageKind,
    pub(super) spread: bool,
    pub(super) ours: bool,
    /// Whether it arrived on a resumed stream.
    pub(super) resumed: bool,
    /// Whether a significant member is repeated in it.
    pub(super) repeated: bool,
    pub(super) gated: bool,
    pub(super) session: Option<HashedKey>,
    pub(super) req: Option<u64>,
    /// Capped at the maximum.
    pub(super) latency_ms: Option<u32>,
    pub(super) id: Option<HashedKey>,
    /// The progress token of a request, or the one that a progress notification refers to.
    pub(super) token: Option<HashedKey>,
    /// For a cancellation: the request it cancels.
    pub(super) cancels: Option<HashedKey>,
    /// For a client's request: its request entry, with no entry number yet.
    pub(super) chained_request: Option<ChainedRequest>,
    /// Whether it is a ping, which is answered without the tape.
    pub(super) ping: bool,
    /// Whether it is a client's `initialize`, which begins a session.
    pub(super) initialize: bool,
}

/// A non-empty part of a chunk. Chunks are far smaller than 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkSpan {
    pub(super) start: u32,
    length: NonZeroU32,
}

impl ChunkSpan {
    /// The position of `part` in `chunk`, if it is a part of it.
    pub(super) fn of(part: &[u8], chunk: &[u8]) -> Option<Self> {
        let start = (part.as_ptr() as usize).checked_sub(chunk.as_ptr() as usize)?;
        if start.checked_add(part.len())? > chunk.len() {
            return None;
        }
        let length = NonZeroU32::new(u32::try_from(part.len()).ok()?)?;
        Some(Self { start: u32::try_from(start).ok()?, length })
    }

    pub(super) fn length(self) -> u32 {
        self.length.get()
    }
}

/// A latency, capped at the maximum.
pub(super) fn latency(latency_ms: u64) -> u32 {
    u32::try_from(latency_ms).unwrap_or(u32::MAX)
}

impl RawEntry {
    /// A message of which only the position and the sender are known.
    pub(super) fn new(line: u32, text: ChunkSpan, from: Side) -> Self {
        Self {
            line,
            first: true,
            text,
            seq: None,
            wall_us: None,
            from,
            kind: MessageKind::Other,
            spread: false,
            ours: false,
            resumed: false,
            repeated: false,
            gated: false,
            session: None,
            req: None,
            latency_ms: None,
            id: None,
            token: None,
            cancels: None,
            chained_request: None,
            ping: false,
            initialize: false,
        }
    }

    /// Combines `message` with `frame`, which is its text or a part of it. `None` if that is not an
    /// object, or not part of `stretch`.
    pub(super) fn read(
        line: u32,
        message: &MessageLine<'_>,
        frame: &Frame<'_>,
        stretch: &[u8],
        signer: &Signer,
    ) -> Option<Self> {
        let envelope = frame.envelope()?;
        let text = frame.bytes();
        let mut raw_entry = Self {
            seq: message.seq,
            wall_us: message.ts.micros(),
            // The client gets one line, so such a text is compacted when it is played.
            spread: memchr::memchr2(b'\n', b'\r', text).is_some(),
            ours: message.ours,
            resumed: message.resumed,
            gated: is_gated(&message.extra),
            session: message.session.as_deref().map(|session| signer.key(session)),
            req: message.req,
            latency_ms: message.latency_ms.map(latency),
            ..Self::new(line, ChunkSpan::of(text, stretch)?, message.from)
        };
        raw_entry.read_envelope(envelope, signer, || signer.sign(text, envelope));
        Some(raw_entry)
    }

    /// Adds what the message itself says.
    pub(super) fn read_envelope(
        &mut self,
        envelope: &Envelope<'_>,
        signer: &Signer,
        sign: impl FnOnce() -> Signature,
    ) {
        let key = |raw: Option<&[u8]>| raw.map(|raw| signer.key(raw));
        self.kind = envelope.kind();
        self.repeated = envelope.repeated;
        self.id = key(envelope.id);
        match self.kind {
            MessageKind::Request => {
                self.token = key(envelope.progress_token);
                self.ping = envelope.is_method("ping");
                if self.from == Side::Client {
                    self.initialize = envelope.is_method("initialize");
                    // The server's requests are never looked up by what they ask.
                    self.chained_request = Some(ChainedRequest::new(sign(), NONE));
                }
            }
            MessageKind::Notification => {
                if envelope.is_method("notifications/progress") {
                    self.token = key(envelope.progress_token);
                } else if envelope.is_method("notifications/cancelled") {
                    self.cancels = key(envelope.request_id);
                }
            }
            MessageKind::Response | MessageKind::Error | MessageKind::Other => {}
        }
    }
}

/// Whether the extra keys of a line say that a gate refused or held its message.
fn is_gated(extra: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b",\"refused\":", b",\"held\":true", b",\"held\":\"list\""];
    starts.iter().any(|start| extra.starts_with(start))
}
