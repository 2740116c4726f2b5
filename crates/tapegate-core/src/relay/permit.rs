//! The proof that bytes may be sent.
//!
//! A [`PermittedMessage`] is created only here and only by the relay: from a message that the gate has just
//! let through, from a held call that it has released, or from an [`OwnMessage`]. Everything in the
//! wire that writes to a peer takes a `PermittedMessage`, or bytes derived from one. Bridges change how a
//! message is written (ids, white space, batches) through methods that keep the proof; raw bytes
//! cannot be turned into a `PermittedMessage`.

use std::borrow::Cow;

use super::own_message::{OwnMessage, as_id};
use crate::frame::{self, Envelope, Frame, FrameBody, envelopes};
use crate::gate::HoldId;
use crate::json::{self, JsonEdits};

/// A message that may be sent to a peer.
///
/// Raw bytes are not a message that may be sent:
///
/// ```compile_fail,E0308
/// use tapegate_core::relay::PermittedMessage;
/// fn send(message: PermittedMessage<'_>) {}
/// send(b"{}".to_vec());
/// ```
///
/// and no code outside the relay can turn them into one:
///
/// ```compile_fail,E0451
/// use tapegate_core::relay::{MessagePayload, PermittedMessage};
/// let payload = MessagePayload::AsReceived(b"{}");
/// let forged = PermittedMessage { payload, frame: None, hold_id: None, own: false };
/// ```
///
/// ```compile_fail,E0624
/// use tapegate_core::relay::PermittedMessage;
/// let forged = PermittedMessage::replacement(b"{}".to_vec());
/// ```
///
/// ```compile_fail,E0277
/// use tapegate_core::relay::PermittedMessage;
/// let forged = PermittedMessage::from(b"{}".to_vec());
/// ```
///
/// A message of our own has one of a few fixed forms:
///
/// ```
/// use tapegate_core::relay::{OwnMessage, PermittedMessage};
/// fn send(message: PermittedMessage<'_>) {}
/// send(OwnMessage::error(b"1", -32000, "the server is gone").into());
/// ```
#[derive(Debug)]
pub struct PermittedMessage<'a> {
    payload: MessagePayload<'a>,
    /// The scan of the payload, if it is the received text.
    frame: Option<&'a Frame<'a>>,
    hold_id: Option<HoldId>,
    own: bool,
}

/// The text of a message that may be sent.
#[derive(Debug)]
pub enum MessagePayload<'a> {
    /// The received bytes, borrowed from the read buffer.
    AsReceived(&'a [u8]),
    /// Other bytes: rewritten by the gate or by a bridge, kept while the call was held, or our own.
    Replaced(Vec<u8>),
}

impl<'a> PermittedMessage<'a> {
    /// A message that is sent on as it was received.
    pub(super) fn as_received(frame: &'a Frame<'a>) -> Self {
        let payload = MessagePayload::AsReceived(frame.bytes());
        Self { payload, frame: Some(frame), hold_id: None, own: false }
    }

    /// A message that is sent in place of the received one.
    pub(super) fn replacement(text: Vec<u8>) -> Self {
        Self::other_text(text, None, false)
    }

    /// A call that was held under `hold_id`.
    pub(super) fn release_held(hold_id: HoldId, text: Vec<u8>) -> Self {
        Self::other_text(text, Some(hold_id), false)
    }

    /// A message of our own, with the held call that it answers or refers to.
    pub(super) fn own_message(message: OwnMessage, hold_id: Option<HoldId>) -> Self {
        Self::other_text(message.into_bytes(), hold_id, true)
    }

    fn other_text(text: Vec<u8>, hold_id: Option<HoldId>, own: bool) -> Self {
        Self { payload: MessagePayload::Replaced(text), frame: None, hold_id, own }
    }

    /// The bytes, line ending not included.
    pub fn bytes(&self) -> &[u8] {
        match &self.payload {
            MessagePayload::AsReceived(bytes) => bytes,
            MessagePayload::Replaced(text) => text,
        }
    }

    /// The message as it was scanned; a text that is not the received one is scanned here.
    pub fn frame(&self) -> Cow<'_, Frame<'_>> {
        match self.frame {
            Some(frame) => Cow::Borrowed(frame),
            None => Cow::Owned(Frame::read(self.bytes())),
        }
    }

    /// The payload, for writers that avoid a copy. By itself it proves nothing.
    pub fn into_payload(self) -> MessagePayload<'a> {
        self.payload
    }

    /// The held call that this message is, answers or refers to, if any.
    pub fn hold_id(&self) -> Option<HoldId> {
        self.hold_id
    }

    /// Whether it is a message of our own.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// Whether the bytes are not borrowed from the read buffer.
    pub fn is_replaced(&self) -> bool {
        matches!(self.payload, MessagePayload::Replaced(_))
    }

    /// The same message, independent of the buffer it was received in.
    pub fn into_owned(self) -> PermittedMessage<'static> {
        let Self { payload, hold_id, own, .. } = self;
        let text = match payload {
            MessagePayload::AsReceived(bytes) => bytes.to_vec(),
            MessagePayload::Replaced(text) => text,
        };
        PermittedMessage::other_text(text, hold_id, own)
    }

    /// The same message without surrounding white space, on one line.
    pub fn into_one_line(self) -> Self {
        let payload = match self.payload {
            MessagePayload::AsReceived(bytes) => match json::compact(bytes.trim_ascii()) {
                Cow::Borrowed(bytes) => MessagePayload::AsReceived(bytes),
                Cow::Owned(text) => MessagePayload::Replaced(text),
            },
            MessagePayload::Replaced(text) => {
                let compact = json::compact(text.trim_ascii());
                match compact.len() == text.len() {
                    true => MessagePayload::Replaced(text),
                    false => MessagePayload::Replaced(compact.into_owned()),
                }
            }
        };
        let one_line = Self { payload, ..self };
        // The scan is of the text with its white space.
        let frame = one_line.frame.filter(|frame| std::ptr::eq(frame.bytes(), one_line.bytes()));
        Self { frame, ..one_line }
    }

    /// The messages of a batch, or the single message, each with its unchanged text.
    pub fn elements(&self) -> Vec<(Frame<'_>, PermittedMessage<'_>)> {
        let frame = self.frame();
        let frames = match frame.body() {
            FrameBody::Batch => frame::elements(self.bytes()),
            _ => vec![frame.into_owned()],
        };
        let mut parts = Vec::with_capacity(frames.len());
        for frame in frames {
            // The batch was permitted as a whole, so each element is. A hold covers only single
            // messages.
            let payload = MessagePayload::AsReceived(frame.bytes());
            let part = PermittedMessage { payload, frame: None, hold_id: None, own: self.own };
            parts.push((frame, part));
        }
        parts
    }

    /// A batch of messages that may be sent.
    pub fn batch(messages: &[PermittedMessage<'_>]) -> PermittedMessage<'static> {
        let texts: Vec<&[u8]> = messages.iter().map(|one| one.bytes().trim_ascii()).collect();
        let text = [b"[", &texts.join(&b","[..])[..], b"]"].concat();
        let own = messages.iter().all(PermittedMessage::is_own);
        PermittedMessage::other_text(text, None, own)
    }

    /// The same message with other ids: `rename` gets each envelope and may replace its ids and
    /// progress tokens. No other byte changes.
    pub fn with_ids(self, mut rename: impl FnMut(&Envelope<'_>, &mut IdEdits<'_>)) -> Self {
        let edited = {
            let frame = self.frame();
            let mut edits = IdEdits { edits: JsonEdits::new(self.bytes()), known: Vec::new() };
            for envelope in envelopes(&frame) {
                // Positions are compared, not texts: an argument may equal the id and must not
                // change.
                edits.known = [
                    envelope.id,
                    envelope.request_id,
                    envelope.progress_token,
                    envelope.subscription_id,
                ]
                .into_iter()
                .flatten()
                .map(<[u8]>::as_ptr_range)
                .collect();
                rename(&envelope, &mut edits);
            }
            match edits.edits.finish() {
                Cow::Borrowed(_) => None,
                Cow::Owned(text) => Some(text),
            }
        };
        match edited {
            Some(text) => Self::other_text(text, self.hold_id, self.own),
            None => self,
        }
    }
}

impl From<OwnMessage> for PermittedMessage<'static> {
    fn from(message: OwnMessage) -> Self {
        Self::own_message(message, None)
    }
}

/// Replaces ids and progress tokens of one message.
pub struct IdEdits<'a> {
    edits: JsonEdits<'a>,
    /// The positions of the ids in the envelope.
    known: Vec<std::ops::Range<*const u8>>,
}

impl IdEdits<'_> {
    /// Replaces `old`, which must be an id of the envelope, with `new`. Does nothing if `old` is
    /// anything else or `new` is not a valid id.
    pub fn replace(&mut self, old: &[u8], new: &[u8]) {
        if self.known.contains(&old.as_ptr_range()) && as_id(new) == new {
            self.edits.replace(old, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_can_be_renamed() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
        let frame = Frame::read(text.as_bytes());
        let renamed = PermittedMessage::as_received(&frame).with_ids(|envelope, ids| {
            ids.replace(envelope.id.unwrap(), b"\"x\"");
            ids.replace(envelope.params.unwrap(), b"{}");
            ids.replace(b"\"a\"", b"\"b\"");
        });
        assert_eq!(renamed.bytes(), text.replace(":1,", ":\"x\",").as_bytes());
        let kept = PermittedMessage::as_received(&frame).with_ids(|envelope, ids| {
            ids.replace(envelope.id.unwrap(), b"1,\"method\":\"other\"");
            ids.replace(envelope.id.unwrap(), b"{}");
        });
        assert!(!kept.is_replaced());
        assert_eq!(kept.bytes(), text.as_bytes());
    }

    #[test]
    fn a_batch_is_taken_apart_and_put_together_again() {
        let text = r#" [{"id":1,"result":{}} , {"id":2,"result":{}}]"#;
        let frame = Frame::read(text.as_bytes());
        let whole = PermittedMessage::as_received(&frame);
        let parts: Vec<_> = whole.elements().into_iter().map(|(_, part)| part).collect();
        assert_eq!(parts.len(), 2);
        let again = PermittedMessage::batch(&parts);
        assert_eq!(again.bytes(), br#"[{"id":1,"result":{}},{"id":2,"result":{}}]"#);
    }

    #[test]
    fn one_line_is_made_of_many_and_nothing_is_copied_where_there_is_one() {
        let one = Frame::read(br#"{"id": 1}"#);
        assert!(!PermittedMessage::as_received(&one).into_one_line().is_replaced());
        let many = Frame::read(b"{\"id\":\r\n 1}\n");
        let line = PermittedMessage::as_received(&many).into_one_line();
        assert_eq!(line.bytes(), br#"{"id":1}"#);
    }

    #[test]
    fn the_scan_stays_with_a_message_until_its_text_changes() {
        let frame = Frame::read(br#"{"id":1,"result":{}}"#);
        let line = PermittedMessage::as_received(&frame).into_one_line();
        assert!(matches!(line.frame(), Cow::Borrowed(_)));
        let renamed = line.with_ids(|envelope, ids| ids.replace(envelope.id.unwrap(), b"2"));
        assert_eq!(renamed.frame().envelope().unwrap().id, Some(&b"2"[..]));
        let spaced = Frame::read(b" {\"id\":1}");
        let trimmed = PermittedMessage::as_received(&spaced).into_one_line();
        assert_eq!(trimmed.frame().bytes(), br#"{"id":1}"#);
    }
}
