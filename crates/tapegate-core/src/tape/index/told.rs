//! What a line of a tape says about a message, before the message is paired and grouped.

use std::num::NonZeroU32;

use super::NONE;
use super::packed::Asked;
use crate::frame::{Envelope, Frame, Kind};
use crate::side::Side;
use crate::signature::{Key, Signature, Signer};
use crate::tape::line::{Message, Stamp};
use crate::time::read_rfc3339;

/// A message as described by its line. Positions are relative to the start of its chunk of the
/// tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// Its line, from 1.
    pub(super) line: u32,
    /// Whether it is the first or only message of its line.
    pub(super) first: bool,
    pub(super) text: Span,
    pub(super) seq: Option<u64>,
    /// When it was recorded, by the wall clock, if the time is valid.
    pub(super) wall_us: Option<i64>,
    pub(super) from: Side,
    pub(super) kind: Kind,
    pub(super) spread: bool,
    pub(super) ours: bool,
    /// Whether it arrived on a resumed stream.
    pub(super) resumed: bool,
    /// Whether a significant member is repeated in it.
    pub(super) repeated: bool,
    pub(super) gated: bool,
    pub(super) session: Option<Key>,
    pub(super) req: Option<u64>,
    /// Capped at the maximum.
    pub(super) latency_ms: Option<u32>,
    pub(super) id: Option<Key>,
    /// The progress token of a request, or the one that a progress notification refers to.
    pub(super) token: Option<Key>,
    /// For a cancellation: the request it cancels.
    pub(super) cancels: Option<Key>,
    /// For a client's request: its ask, with no slot yet.
    pub(super) asked: Option<Asked>,
    /// Whether it is a ping, which is answered without the tape.
    pub(super) ping: bool,
    /// Whether it is a client's `initialize`, which begins a session.
    pub(super) initialize: bool,
}

/// A non-empty part of a chunk. Chunks are far smaller than 4 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    length: NonZeroU32,
}

impl Span {
    /// The position of `part` in `stretch`, if it is a part of it.
    pub(super) fn of(part: &[u8], stretch: &[u8]) -> Option<Self> {
        let start = (part.as_ptr() as usize).checked_sub(stretch.as_ptr() as usize)?;
        if start.checked_add(part.len())? > stretch.len() {
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

impl Told {
    /// A message of which only the position and the sender are known.
    pub(super) fn new(line: u32, text: Span, from: Side) -> Self {
        Self {
            line,
            first: true,
            text,
            seq: None,
            wall_us: None,
            from,
            kind: Kind::Other,
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
            asked: None,
            ping: false,
            initialize: false,
        }
    }

    /// Combines `message` with `frame`, which is its text or a part of it. `None` if that is not an
    /// object, or not part of `stretch`.
    pub(super) fn read(
        line: u32,
        message: &Message<'_>,
        frame: &Frame<'_>,
        stretch: &[u8],
        signer: &Signer,
    ) -> Option<Self> {
        let said = frame.envelope()?;
        let text = frame.bytes();
        let mut told = Self {
            seq: message.seq,
            wall_us: match message.ts {
                Stamp::At(wall_us) => Some(wall_us),
                Stamp::Text(text) => read_rfc3339(text),
            },
            spread: memchr::memchr2(b'\n', b'\r', text).is_some(),
            ours: message.ours,
            resumed: message.resumed,
            gated: is_gated(&message.extra),
            session: message.session.as_deref().map(|session| signer.key(session)),
            req: message.req,
            latency_ms: message.latency_ms.map(latency),
            ..Self::new(line, Span::of(text, stretch)?, message.from)
        };
        told.hear(said, signer, || signer.sign(text, said));
        Some(told)
    }

    /// Adds what the message itself says.
    pub(super) fn hear(
        &mut self,
        said: &Envelope<'_>,
        signer: &Signer,
        sign: impl FnOnce() -> Signature,
    ) {
        let key = |raw: Option<&[u8]>| raw.map(|raw| signer.key(raw));
        self.kind = said.kind();
        self.repeated = said.repeated;
        self.id = key(said.id);
        match self.kind {
            Kind::Request => {
                self.token = key(said.progress_token);
                self.ping = said.is_method("ping");
                if self.from == Side::Client {
                    self.initialize = said.is_method("initialize");
                    self.asked = Some(Asked::new(sign(), NONE));
                }
            }
            Kind::Notification => {
                if said.is_method("notifications/progress") {
                    self.token = key(said.progress_token);
                } else if said.is_method("notifications/cancelled") {
                    self.cancels = key(said.request_id);
                }
            }
            Kind::Response | Kind::Error | Kind::Other => {}
        }
    }
}

/// Whether the extra keys of a line say that a gate refused or held its message.
fn is_gated(extra: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b",\"refused\":", b",\"held\":true", b",\"held\":\"list\""];
    starts.iter().any(|start| extra.starts_with(start))
}
