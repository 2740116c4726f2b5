//! A 128-bit hash of what a request asks for.
//!
//! Two requests ask for the same thing if their methods and params are equal as values; key order,
//! white space, escapes and number notation do not matter. Nor do volatile parts: `_meta`, the
//! value of a `cursor`, the content of `inputResponses`, and paths that the user ignores. For
//! `initialize` only the method counts, because every client introduces itself by its own name.
//! Absent params equal empty ones.

mod canonical;
mod digest;
mod seed;
#[cfg(test)]
mod tests;
mod walk;

use std::borrow::Cow;

use crate::frame::{Envelope, Frame, MessageKind};
use crate::json::path::JsonPath;
use crate::json::{self, Cursor, JsonFault, JsonStr, Number};
use seed::{DoubleHash, HashSeed, HashTag};
use walk::{ParamsEvent, ParamsWalk};

pub(crate) use digest::ParamsDigest;
pub(crate) use seed::HashedKey;

/// A hash of what a request asks for.
///
/// Requests that ask for the same thing have the same signature. The converse is almost certain;
/// [`Signer::asks_for_same`] checks it exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Hash of the method and params.
    pub hash: u128,
    /// Hash of the method, and the name or uri.
    pub like: u32,
}

/// Computes signatures. They are only comparable within one process.
#[derive(Debug, Clone, Default)]
pub struct Signer {
    ignored: Vec<JsonPath>,
    seed: HashSeed,
}

impl Signer {
    /// A signer that skips the values at the `ignored` paths, which start at the message.
    pub fn new(ignored: Vec<JsonPath>) -> Self {
        Self { ignored, seed: HashSeed::default() }
    }

    /// The signature of a request. `text` is the whole message.
    pub fn sign(&self, text: &[u8], envelope: &Envelope<'_>) -> Signature {
        let _ = text;
        // Text that was read as a message is JSON, so none of this fails.
        let params = if !self.ignored.is_empty() {
            self.walk(envelope)
                .and_then(|walk| digest::of_walk(&self.seed, walk))
                .unwrap_or_default()
        } else {
            let mut digest = ParamsDigest::new(self.seed);
            let mut cursor = Cursor::from_utf8_at(envelope.params.unwrap_or(b"{}"), 0);
            digest.params(&mut cursor).unwrap_or_default();
            digest.finish()
        };
        self.signature(envelope, params)
    }

    /// An observer that hashes params while a message is scanned; `None` if paths are ignored.
    pub(crate) fn digest(&self) -> Option<ParamsDigest> {
        self.ignored.is_empty().then(|| ParamsDigest::new(self.seed))
    }

    /// The signature of a request that was scanned with `digest`.
    pub(crate) fn signature_from_digest(
        &self,
        envelope: &Envelope<'_>,
        digest: &ParamsDigest,
    ) -> Signature {
        self.signature(envelope, digest.finish())
    }

    /// The hash of an id, a progress token or a session name, by meaning.
    pub(crate) fn key(&self, raw: &[u8]) -> HashedKey {
        self.seed.key(raw)
    }

    fn signature(&self, envelope: &Envelope<'_>, params: DoubleHash) -> Signature {
        let mut decoded = Vec::new();
        let method = envelope.method.unwrap_or(JsonStr { raw: b"", escaped: false });
        let named = self.seed.string(HashTag::Method, method, &mut decoded);
        let like = match subject(envelope) {
            Some(subject) => {
                self.seed.mix(named, self.seed.string(HashTag::Name, subject, &mut decoded))
            }
            None => named,
        };
        let params = if method.is("initialize") { DoubleHash::default() } else { params };
        Signature { hash: self.seed.mix(named, params).as_u128(), like: like.as_u32() }
    }

    /// Reads a message, and computes its signature if it is a request.
    pub(crate) fn read<'a>(&self, bytes: &'a [u8]) -> (Frame<'a>, Option<Signature>) {
        let mut digest = self.digest();
        let frame = match &mut digest {
            Some(digest) => Frame::read_with_observer(bytes, digest),
            None => Frame::read(bytes),
        };
        let request = frame.envelope().filter(|envelope| envelope.kind() == MessageKind::Request);
        let signature = request.map(|envelope| match &digest {
            Some(digest) => self.signature_from_digest(envelope, digest),
            None => self.sign(bytes, envelope),
        });
        (frame, signature)
    }

    /// Whether two requests with the same signature do ask for the same thing, and do not merely
    /// collide.
    pub fn asks_for_same(&self, one: &[u8], two: &[u8]) -> bool {
        match Frame::read(two).envelope() {
            Some(envelope) => self.asks_for_same_as(one, two, envelope),
            None => one == two,
        }
    }

    /// The same, given the `envelope` of `two`.
    pub(crate) fn asks_for_same_as(&self, one: &[u8], two: &[u8], envelope: &Envelope<'_>) -> bool {
        if same_but_for_id(one, two, envelope) {
            return true;
        }
        let (frame, two) = (Frame::read(one), envelope);
        let Some(one) = frame.envelope() else { return false };
        if !same_method(one, two) {
            return false;
        }
        // Most pairs differ in volatile parts at most, so try to compare without sorting keys.
        self.has_same_members_in_order(one, two).unwrap_or(false)
            || matches!((self.canonical_params(one), self.canonical_params(two)), (Ok(one), Ok(two)) if one == two)
    }

    /// The params without volatile parts, in canonical form, for showing differences to a person.
    /// Text that is not a message is returned unchanged.
    pub fn canonical(&self, text: &[u8]) -> Vec<u8> {
        let frame = Frame::read(text);
        let written = frame.envelope().map(|envelope| self.canonical_params(envelope));
        written.and_then(Result::ok).unwrap_or_else(|| text.to_vec())
    }

    fn canonical_params(&self, envelope: &Envelope<'_>) -> Result<Vec<u8>, JsonFault> {
        canonical::write(self.walk(envelope)?)
    }

    fn walk<'a>(&self, envelope: &Envelope<'a>) -> Result<ParamsWalk<'_, 'a>, JsonFault> {
        let params = envelope.params.filter(|_| !envelope.is_method("initialize"));
        ParamsWalk::new(params.unwrap_or(b"{}"), &self.ignored)
    }

    /// Whether two params are equal with their members in the same order.
    fn has_same_members_in_order(
        &self,
        one: &Envelope<'_>,
        two: &Envelope<'_>,
    ) -> Result<bool, JsonFault> {
        let (mut one, mut two) = (self.walk(one)?, self.walk(two)?);
        loop {
            match (one.next()?, two.next()?) {
                (None, None) => return Ok(true),
                (Some(one), Some(two)) if same_event(one, two) => {}
                _ => return Ok(false),
            }
        }
    }
}

/// A JSON value in canonical form, in brackets: values are equal, whatever their spelling, if their
/// canonical texts are. For text that is not JSON, the text in brackets.
pub fn canonical(value: &[u8]) -> Vec<u8> {
    // Volatile parts are only recognised at the top level, so wrap the value.
    let text = [b"[", value, b"]"].concat();
    ParamsWalk::new(&text, &[]).and_then(canonical::write).unwrap_or(text)
}

/// The subject of a request: the name of a tool or prompt, or the uri of a resource.
fn subject<'a>(envelope: &Envelope<'a>) -> Option<JsonStr<'a>> {
    match &*envelope.method?.bytes() {
        b"tools/call" | b"prompts/get" => envelope.name,
        b"resources/read" | b"resources/subscribe" | b"resources/unsubscribe" => envelope.uri,
        _ => None,
    }
}

/// Whether two texts are byte-equal except for a simple id. Most clients repeat a request exactly
/// as they wrote it before.
fn same_but_for_id(one: &[u8], two: &[u8], envelope: &Envelope<'_>) -> bool {
    let Some(place) = envelope.id.and_then(|id| json::place_of(id, two)) else { return one == two };
    let (before, after) = (&two[..place.start], &two[place.end..]);
    let id = one.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    id.is_some_and(|id| match id {
        [] => false,
        [b'"', inner @ .., b'"'] => inner.iter().all(plain),
        bare => bare.iter().all(plain),
    })
}

fn same_method(one: &Envelope<'_>, two: &Envelope<'_>) -> bool {
    match (one.method, two.method) {
        (Some(one), Some(two)) => same_string(one, two),
        (one, two) => one.is_none() && two.is_none(),
    }
}

fn same_event(one: ParamsEvent<'_>, two: ParamsEvent<'_>) -> bool {
    match (one, two) {
        (ParamsEvent::Open { object }, ParamsEvent::Open { object: other }) => object == other,
        (ParamsEvent::Close, ParamsEvent::Close) | (ParamsEvent::Hidden, ParamsEvent::Hidden) => {
            true
        }
        (ParamsEvent::Key(one), ParamsEvent::Key(two))
        | (ParamsEvent::String(one), ParamsEvent::String(two)) => same_string(one, two),
        (ParamsEvent::Number(one), ParamsEvent::Number(two)) => {
            one == two || Number::read(one) == Number::read(two)
        }
        (ParamsEvent::Text(one), ParamsEvent::Text(two)) => one == two,
        _ => false,
    }
}

fn same_string(one: JsonStr<'_>, two: JsonStr<'_>) -> bool {
    let exact = |string: JsonStr<'_>| {
        let mut exact = Vec::new();
        string.write_value_bytes(&mut exact);
        Cow::<[u8]>::Owned(exact)
    };
    one.raw == two.raw || ((one.escaped || two.escaped) && exact(one) == exact(two))
}
