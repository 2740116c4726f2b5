//! What a line of a tape tells of a message, before it is known what the message belongs to.

use crate::frame::{Envelope, Frame, Kind};
use crate::side::Side;
use crate::signature::{Signature, Signer};
use crate::tape::line::{Message, Stamp};
use crate::time::read_rfc3339;

/// A message as its line tells of it.
#[derive(Debug, Clone)]
pub(super) struct Told<'a> {
    pub(super) line: u64,
    /// Where the text starts in the file.
    pub(super) offset: u64,
    pub(super) length: usize,
    pub(super) seq: Option<u64>,
    /// When it was recorded, by the wall clock, if that is a time.
    pub(super) wall_us: Option<i64>,
    pub(super) from: Side,
    pub(super) kind: Kind,
    pub(super) spread: bool,
    pub(super) ours: bool,
    pub(super) session: Option<&'a [u8]>,
    pub(super) req: Option<u64>,
    pub(super) latency_ms: Option<u64>,
    pub(super) id: Option<&'a [u8]>,
    /// Of a request its progress token, of a progress notification the one it is for.
    pub(super) token: Option<&'a [u8]>,
    /// Of a cancellation: what it cancels.
    pub(super) cancels: Option<&'a [u8]>,
    /// Of a client's request: what it asks for.
    pub(super) signature: Option<Signature>,
    /// Whether it is a ping, which is answered without the tape.
    pub(super) ping: bool,
}

impl<'a> Told<'a> {
    /// What `message` tells of `frame`, which is its text or a part of it and starts at `offset`.
    /// `None` if that is no object.
    pub(super) fn read(
        line: u64,
        offset: u64,
        message: &'a Message<'a>,
        frame: &Frame<'a>,
        signer: &Signer,
    ) -> Option<Self> {
        let said = frame.envelope()?;
        let text = frame.bytes();
        let mut told = Self {
            line,
            offset,
            length: text.len(),
            seq: message.seq,
            wall_us: match message.ts {
                Stamp::At(wall_us) => Some(wall_us),
                Stamp::Text(text) => read_rfc3339(text),
            },
            from: message.from,
            kind: Kind::Other,
            spread: memchr::memchr2(b'\n', b'\r', text).is_some(),
            ours: message.ours,
            session: message.session.as_deref(),
            req: message.req,
            latency_ms: message.latency_ms,
            id: said.id,
            token: None,
            cancels: None,
            signature: None,
            ping: false,
        };
        told.hear(text, said, signer);
        Some(told)
    }

    /// Takes what the message says about itself.
    fn hear(&mut self, text: &[u8], said: &Envelope<'a>, signer: &Signer) {
        self.kind = said.kind();
        match self.kind {
            Kind::Request => {
                self.token = said.progress_token;
                self.signature = (self.from == Side::Client).then(|| signer.sign(text, said));
                self.ping = said.is_method("ping");
            }
            Kind::Notification => {
                let progress = said.is_method("notifications/progress");
                self.token = said.progress_token.filter(|_| progress);
                let cancels = said.is_method("notifications/cancelled");
                self.cancels = said.request_id.filter(|_| cancels);
            }
            Kind::Response | Kind::Error | Kind::Other => {}
        }
    }
}
