//! Masks secrets in what is written to a tape and, if the policy says so, in results on the wire.
//!
//! Rules define what is a secret: paths into messages, patterns of well-known tokens, or anything
//! that looks random. A placeholder replaces each secret. It is the same for the same secret and
//! key, so that a tape can still be replayed. Guarantees:
//!
//! - Only masked values change; every other byte of a message stays, and it remains valid JSON.
//! - What the protocol needs is never masked, whatever the rules say; see the list in
//!   `protocol_zone`.
//! - Masking is idempotent.
//! - When in doubt, it masks: text that cannot be parsed is withheld, not kept.
//!
//! A message in which nothing can match costs one pass over its bytes and no allocation.

mod entropy;
mod field_names;
mod header;
mod masking_pass;
mod message_walk;
mod ordered_members;
mod pattern_search;
mod placeholder;
mod protocol_zone;
mod rules;
mod secret_names;
mod secret_patterns;
mod tape;
mod text;
mod upstream;
mod value_hash;

use std::borrow::Cow;

use tapegate_core::tape::{Mask, MaskedMessage};

pub use header::HeaderError;
pub use placeholder::RedactionKey;
pub use rules::{RedactionRules, RuleError};
pub use tape::{RedactionReport, SkippedLine, TapeError, redact_tape};
pub use upstream::mask_upstream;

use masking_pass::MaskingPass;

/// Masks messages by rules and a key.
///
/// A tape that was redacted more than once has several passes, applied in order: the placeholders
/// of a later pass were made from what the earlier ones had left.
#[derive(Debug, Clone)]
pub struct Redactor {
    passes: Vec<RedactionRules>,
    key: RedactionKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedText {
    /// The text, with placeholders in it.
    pub text: Vec<u8>,
    /// The number of masked places.
    pub count: usize,
}

impl Redactor {
    /// A redactor with one pass. Nothing is compiled until a message needs it.
    pub fn new(rules: RedactionRules, key: RedactionKey) -> Self {
        Self { passes: vec![rules], key }
    }

    /// `text`, which is not a message, with the secrets that patterns find masked.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.fold(Cow::Borrowed(text), |pass, text| pass.text(text))
    }

    /// Masks output of the server that is not a message, such as the body of an HTTP error; `None`
    /// if it has no secrets. JSON is masked by the same rules as messages. In other text the
    /// patterns are masked, and all of it is withheld if it may contain a secret field by name.
    pub fn mask_non_message(&self, raw: &[u8]) -> Option<MaskedText> {
        match self.fold(Cow::Borrowed(raw), |pass, raw| pass.mask_non_message(raw)) {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => {
                let count = placeholder::count(&text).saturating_sub(placeholder::count(raw));
                // Withheld text may have fewer placeholders than before, but something was masked.
                Some(MaskedText { text, count: count.max(1) })
            }
        }
    }

    /// A JSON value that is not a message, with the secrets that patterns find masked.
    fn mask_data<'a>(&self, json: &'a [u8]) -> Cow<'a, [u8]> {
        self.fold(Cow::Borrowed(json), |pass, json| pass.mask_data(json))
    }

    fn fold<'a, T: ToOwned + ?Sized>(
        &self,
        start: Cow<'a, T>,
        mask: impl Fn(MaskingPass<'_>, &T) -> Option<T::Owned>,
    ) -> Cow<'a, T> {
        self.passes.iter().fold(start, |so_far, rules| {
            let masked = mask(MaskingPass { rules, key: &self.key }, &so_far);
            masked.map_or(so_far, Cow::Owned)
        })
    }
}

impl Mask for Redactor {
    fn message<'a>(&self, msg: &'a [u8]) -> MaskedMessage<'a> {
        let mut masked = MaskedMessage { text: Cow::Borrowed(msg), paths: Vec::new() };
        for rules in &self.passes {
            if let Some(found) = (MaskingPass { rules, key: &self.key }).message(&masked.text) {
                let known = std::mem::take(&mut masked.paths);
                let new = found.pointers.into_iter().filter(|path| !known.contains(path));
                masked.paths = new.collect();
                masked.paths.splice(..0, known);
                masked.text = Cow::Owned(found.text);
            }
        }
        masked
    }

    fn non_message<'a>(&self, raw: &'a [u8]) -> Cow<'a, [u8]> {
        self.fold(Cow::Borrowed(raw), |pass, raw| pass.mask_bytes(raw))
    }

    fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        Self::text(self, text)
    }

    fn header_extra(&self) -> Vec<u8> {
        Self::header_extra(self)
    }
}

#[cfg(test)]
mod tests;
