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

use crate::frame::{Envelope, Frame, Kind};
use crate::json::path::Path;
use crate::json::{self, Cursor, Fault, Number, Str};
use seed::{Lanes, Seed, Tag};
use walk::{Event, Walk};

pub(crate) use digest::Digest;
pub(crate) use seed::Key;

/// A hash of what a request asks for.
///
/// Requests that ask for the same thing have the same signature. The converse is almost certain;
/// [`Signer::same`] checks it exactly.
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
    ignored: Vec<Path>,
    seed: Seed,
}

impl Signer {
    /// A signer that skips the values at the `ignored` paths, which start at the message.
    pub fn new(ignored: Vec<Path>) -> Self {
        Self { ignored, seed: Seed::default() }
    }

    /// The signature of a request. `text` is the whole message.
    pub fn sign(&self, text: &[u8], said: &Envelope<'_>) -> Signature {
        let _ = text;
        // Text that was read as a message is JSON, so none of this fails.
        let params = if !self.ignored.is_empty() {
            self.walk(said).and_then(|walk| digest::of_walk(&self.seed, walk)).unwrap_or_default()
        } else {
            let mut digest = Digest::new(self.seed);
            let mut cursor = Cursor::trusted(said.params.unwrap_or(b"{}"), 0);
            digest.params(&mut cursor).unwrap_or_default();
            digest.finish()
        };
        self.signature(said, params)
    }

    /// An observer that hashes params while a message is scanned; `None` if paths are ignored.
    pub(crate) fn digest(&self) -> Option<Digest> {
        self.ignored.is_empty().then(|| Digest::new(self.seed))
    }

    /// The signature of a request that was scanned with `digest`.
    pub(crate) fn signed(&self, said: &Envelope<'_>, digest: &Digest) -> Signature {
        self.signature(said, digest.finish())
    }

    /// The hash of an id, a progress token or a session name, by meaning.
    pub(crate) fn key(&self, raw: &[u8]) -> Key {
        self.seed.key(raw)
    }

    fn signature(&self, said: &Envelope<'_>, params: Lanes) -> Signature {
        let mut decoded = Vec::new();
        let method = said.method.unwrap_or(Str { raw: b"", escaped: false });
        let named = self.seed.string(Tag::Method, method, &mut decoded);
        let like = match subject(said) {
            Some(subject) => {
                self.seed.mix(named, self.seed.string(Tag::Name, subject, &mut decoded))
            }
            None => named,
        };
        let params = if method.is("initialize") { Lanes::default() } else { params };
        Signature { hash: self.seed.mix(named, params).wide(), like: like.narrow() }
    }

    /// Reads a message, and computes its signature if it is a request.
    pub(crate) fn read<'a>(&self, bytes: &'a [u8]) -> (Frame<'a>, Option<Signature>) {
        let mut digest = self.digest();
        let frame = match &mut digest {
            Some(digest) => Frame::read_along(bytes, digest),
            None => Frame::read(bytes),
        };
        let request = frame.envelope().filter(|said| said.kind() == Kind::Request);
        let signature = request.map(|said| match &digest {
            Some(digest) => self.signed(said, digest),
            None => self.sign(bytes, said),
        });
        (frame, signature)
    }

    /// Whether two requests with the same signature do ask for the same thing, and do not merely
    /// collide.
    pub fn same(&self, one: &[u8], two: &[u8]) -> bool {
        match Frame::read(two).envelope() {
            Some(said) => self.same_as(one, two, said),
            None => one == two,
        }
    }

    /// The same, given the envelope `said` of `two`.
    pub(crate) fn same_as(&self, one: &[u8], two: &[u8], said: &Envelope<'_>) -> bool {
        if same_but_for_id(one, two, said) {
            return true;
        }
        let (frame, two) = (Frame::read(one), said);
        let Some(one) = frame.envelope() else { return false };
        if !same_method(one, two) {
            return false;
        }
        // Most pairs differ in volatile parts at most, so try to compare without sorting keys.
        self.in_step(one, two).unwrap_or(false)
            || matches!((self.written(one), self.written(two)), (Ok(one), Ok(two)) if one == two)
    }

    /// The params without volatile parts, in canonical form, for showing differences to a person.
    /// Text that is not a message is returned unchanged.
    pub fn canonical(&self, text: &[u8]) -> Vec<u8> {
        let frame = Frame::read(text);
        let written = frame.envelope().map(|said| self.written(said));
        written.and_then(Result::ok).unwrap_or_else(|| text.to_vec())
    }

    fn written(&self, said: &Envelope<'_>) -> Result<Vec<u8>, Fault> {
        canonical::write(self.walk(said)?)
    }

    fn walk<'a>(&self, said: &Envelope<'a>) -> Result<Walk<'_, 'a>, Fault> {
        let params = said.params.filter(|_| !said.is_method("initialize"));
        Walk::new(params.unwrap_or(b"{}"), &self.ignored)
    }

    /// Whether two params are equal with their members in the same order.
    fn in_step(&self, one: &Envelope<'_>, two: &Envelope<'_>) -> Result<bool, Fault> {
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
    Walk::new(&text, &[]).and_then(canonical::write).unwrap_or(text)
}

/// The subject of a request: the name of a tool or prompt, or the uri of a resource.
fn subject<'a>(said: &Envelope<'a>) -> Option<Str<'a>> {
    match &*said.method?.bytes() {
        b"tools/call" | b"prompts/get" => said.name,
        b"resources/read" | b"resources/subscribe" | b"resources/unsubscribe" => said.uri,
        _ => None,
    }
}

/// Whether two texts are byte-equal except for a simple id. Most clients repeat a request exactly
/// as they wrote it before.
fn same_but_for_id(one: &[u8], two: &[u8], said: &Envelope<'_>) -> bool {
    let Some(place) = said.id.and_then(|id| json::place_of(id, two)) else { return one == two };
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

fn same_event(one: Event<'_>, two: Event<'_>) -> bool {
    match (one, two) {
        (Event::Open { object }, Event::Open { object: other }) => object == other,
        (Event::Close, Event::Close) | (Event::Hidden, Event::Hidden) => true,
        (Event::Key(one), Event::Key(two)) | (Event::String(one), Event::String(two)) => {
            same_string(one, two)
        }
        (Event::Number(one), Event::Number(two)) => {
            one == two || Number::read(one) == Number::read(two)
        }
        (Event::Text(one), Event::Text(two)) => one == two,
        _ => false,
    }
}

fn same_string(one: Str<'_>, two: Str<'_>) -> bool {
    let exact = |string: Str<'_>| {
        let mut exact = Vec::new();
        string.exact(&mut exact);
        Cow::<[u8]>::Owned(exact)
    };
    one.raw == two.raw || ((one.escaped || two.escaped) && exact(one) == exact(two))
}
