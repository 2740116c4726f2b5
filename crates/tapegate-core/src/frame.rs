//! One message on the wire: its exact bytes, and an envelope that is scanned, not parsed.
//!
//! Reading a frame cannot fail. Bytes that are not a JSON-RPC message become a frame with a reason, so
//! they can be forwarded and recorded like any other. The scan validates the whole text in one pass,
//! borrows what it finds and allocates nothing for ordinary messages.

mod duplicate_keys;
mod envelope;
mod key_folding;
mod own_error;
mod own_text;
mod partial_envelope;

use crate::json::{self, Cursor, JsonFault, JsonKind};

use duplicate_keys::DuplicateKeyCheck;
use envelope::NoObserver;
pub(crate) use envelope::ScanObserver;
pub use envelope::{Envelope, MessageKind};
pub use key_folding::{fold, lenient_key_match};
pub use own_error::{
    OWN_DATA, error_object, error_reply, oversize_error, own_data, own_error, own_error_data,
    unsupported_version_data,
};
pub(crate) use own_text::error_text;
pub use own_text::{notification_text, request_text, result_text};
pub use partial_envelope::{EnvelopeSkimmer, PartialEnvelope, scan_messages};

/// The maximum number of elements in a batch under a policy. Real clients batch only a few.
pub const BATCH_ELEMENTS_MAX: usize = 1000;

/// One message: the bytes that arrived and the envelope read from them.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    body: FrameBody<'a>,
    has_gate_details: bool,
}

/// What the bytes of a frame turned out to be.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly every frame is a message")]
pub enum FrameBody<'a> {
    /// One JSON object, JSON-RPC or nearly so.
    Message(Envelope<'a>),
    /// A JSON array: a batch, whose elements are read by [`elements`].
    Batch,
    /// Anything else, with the reason why it is not a message.
    Garbage(FrameError),
}

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// Empty, or only white space.
    Empty,
    /// Not JSON text.
    NotJson(JsonFault),
    /// JSON, but neither an object nor an array.
    NotAnObject,
}

impl<'a> Frame<'a> {
    /// Reads the bytes of one message, line ending not included. Never fails.
    pub fn read(bytes: &'a [u8]) -> Self {
        let mut closely = DuplicateKeyCheck::default();
        let mut frame = Self::empty(bytes, true);
        frame.fill(&mut closely);
        if let FrameBody::Message(envelope) = &mut frame.body {
            envelope.plain = closely.is_unambiguous();
        }
        frame
    }

    /// Reads the bytes of one message without the checks that only a gate needs.
    pub fn read_without_gate_details(bytes: &'a [u8]) -> Self {
        Self::read_with_observer(bytes, &mut NoObserver)
    }

    /// Reads the bytes of one message while `along` observes its params.
    pub(crate) fn read_with_observer(bytes: &'a [u8], along: &mut impl ScanObserver<'a>) -> Self {
        let mut frame = Self::empty(bytes, false);
        frame.fill(along);
        frame
    }

    fn empty(bytes: &'a [u8], has_gate_details: bool) -> Self {
        Self { bytes, body: FrameBody::Garbage(FrameError::Empty), has_gate_details }
    }

    /// Reads the bytes in place: a frame is too large to move around.
    #[inline(always)]
    fn fill(&mut self, along: &mut impl ScanObserver<'a>) {
        #[cfg(debug_assertions)]
        SCANS.set(SCANS.get() + 1);
        let empty = self.bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
        if !empty && let Err(fault) = scan(self.bytes, &mut self.body, along) {
            self.body = FrameBody::Garbage(FrameError::NotJson(fault));
        }
    }

    /// The exact bytes that arrived.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether it was read with the checks that a gate needs.
    pub fn has_gate_details(&self) -> bool {
        self.has_gate_details
    }

    /// What the bytes turned out to be.
    pub fn body(&self) -> &FrameBody<'a> {
        &self.body
    }

    /// The envelope, if the frame is a single message.
    pub fn envelope(&self) -> Option<&Envelope<'a>> {
        match &self.body {
            FrameBody::Message(envelope) => Some(envelope),
            _ => None,
        }
    }

    /// The JSON text without white space around it; for garbage, the bytes.
    pub fn text(&self) -> &'a [u8] {
        self.bytes.trim_ascii()
    }
}

fn scan<'a>(
    bytes: &'a [u8],
    body: &mut FrameBody<'a>,
    along: &mut impl ScanObserver<'a>,
) -> Result<(), JsonFault> {
    let mut cursor = Cursor::new(bytes)?;
    match cursor.kind()? {
        JsonKind::Object => {
            *body = FrameBody::Message(Envelope::default());
            if let FrameBody::Message(envelope) = body {
                envelope.scan(&mut cursor, along)?;
            }
        }
        JsonKind::Array => {
            cursor.value()?;
            *body = FrameBody::Batch;
        }
        _ => {
            cursor.value()?;
            *body = FrameBody::Garbage(FrameError::NotAnObject);
        }
    }
    // Bytes after the value could be a second message to another reader.
    cursor.expect_end()
}

#[cfg(debug_assertions)]
thread_local! {
    static SCANS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How many frames this thread has scanned. Only builds with debug assertions count, for tests of
/// how often a message is scanned on its way.
#[cfg(debug_assertions)]
pub fn scan_count() -> u64 {
    SCANS.get()
}

/// The elements of a batch, each as a frame of its own, in order.
pub fn elements(batch: &[u8]) -> Vec<Frame<'_>> {
    each_element(batch).collect()
}

/// The same, read lazily: an envelope is much larger than `{}`, and a batch may have very many
/// elements.
pub fn each_element(batch: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    element_texts(batch).map(Frame::read)
}

/// Whether a batch has more than [`BATCH_ELEMENTS_MAX`] elements.
pub fn is_long_batch(batch: &[u8]) -> bool {
    element_texts(batch).nth(BATCH_ELEMENTS_MAX).is_some()
}

/// The first value that `find` returns for an envelope of the frame.
pub fn find_envelope<T>(
    frame: &Frame<'_>,
    mut find: impl FnMut(&Envelope<'_>) -> Option<T>,
) -> Option<T> {
    match frame.body() {
        FrameBody::Batch => each_element(frame.bytes()).find_map(|one| find(one.envelope()?)),
        _ => find(frame.envelope()?),
    }
}

/// The raw texts of the elements of a batch. A batch was validated when it was read; for other bytes,
/// iteration stops at the first error.
fn element_texts(batch: &[u8]) -> impl Iterator<Item = &[u8]> {
    json::elements(batch).map_while(Result::ok)
}

/// The envelopes in a frame: one for a message, one for each message of a batch, none for garbage.
pub fn envelopes<'a>(frame: &Frame<'a>) -> Vec<Envelope<'a>> {
    match frame.body() {
        FrameBody::Message(msg) => vec![msg.clone()],
        FrameBody::Batch => {
            each_element(frame.bytes()).filter_map(|one| one.envelope().cloned()).collect()
        }
        FrameBody::Garbage(_) => Vec::new(),
    }
}

impl FrameError {
    /// The reason, worded as on tapes.
    pub fn reason(&self) -> String {
        match self {
            Self::Empty => "empty_frame".to_owned(),
            Self::NotJson(fault) => fault.to_string(),
            Self::NotAnObject => {
                "not a JSON-RPC message: neither an object nor an array".to_owned()
            }
        }
    }
}

/// Whether two texts are the same JSON id: `1` and `"1"` differ, `"é"` and `"\u00e9"` do not.
pub fn same_id(one: &[u8], two: &[u8]) -> bool {
    one == two || crate::pending::IdKey::new(one) == crate::pending::IdKey::new(two)
}

/// The raw texts of the items of a JSON array.
pub fn array_items(array: &[u8]) -> Vec<&[u8]> {
    element_texts(array).collect()
}
