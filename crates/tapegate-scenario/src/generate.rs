//! Generated payloads, too large or too odd to be written out.
//!
//! A generator is validated when the scenario is loaded and produces its payload, always the same,
//! when it is sent. The size is known in advance, so that no payload over the limits is ever built.

mod json;
pub(crate) mod random;
mod read;
mod text_payloads;

use tapegate_core::json::write_str;
use tapegate_core::tape::base64_encode;
use tapegate_yaml::word_choices;

pub(crate) use json::NestingStructure;
use json::{NestedValue, NotificationBatch, RepeatedKeys};
pub(crate) use text_payloads::{AnsiSequence, Charset, SpamCategory};
use text_payloads::{AnsiText, GarbageText, UnicodeSpam};

/// Produces a payload, always the same.
#[derive(Debug)]
pub struct Generator {
    kind: GeneratorKind,
    /// Whether it is written as base64.
    in_base64: bool,
}

/// The limits of generated payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratorLimits {
    /// The size of one payload, in bytes.
    pub payload_bytes: usize,
    /// The nesting depth.
    pub depth: usize,
    /// The number of notifications, keys or sequences.
    pub count: usize,
}

word_choices! {
    /// The type of a generator, as scenarios name it.
    pub(crate) enum GeneratorType {
        Nested = "nested_json",
        Batch = "batch_notifications",
        Garbage = "garbage",
        RepeatedKeys = "repeated_keys",
        Spam = "unicode_spam",
        Ansi = "ansi_escape",
    }
}

#[derive(Debug)]
enum GeneratorKind {
    Nested(NestedValue),
    Batch(NotificationBatch),
    Garbage(GarbageText),
    RepeatedKeys(RepeatedKeys),
    Spam(UnicodeSpam),
    Ansi(AnsiText),
}

impl Default for GeneratorLimits {
    fn default() -> Self {
        Self { payload_bytes: 100 * 1024 * 1024, depth: 100_000, count: 100_000 }
    }
}

impl Generator {
    /// Appends the payload. All payloads but binary garbage are UTF-8.
    pub fn write(&self, out: &mut Vec<u8>) {
        match &self.kind {
            GeneratorKind::Nested(nested) => nested.write(out),
            GeneratorKind::Batch(batch) => batch.write(out),
            GeneratorKind::Garbage(garbage) => garbage.write(out),
            GeneratorKind::RepeatedKeys(keys) => keys.write(out),
            GeneratorKind::Spam(spam) => spam.write(out),
            GeneratorKind::Ansi(ansi) => ansi.write(out),
        }
    }

    /// Makes the generator write base64, for fields that hold bytes.
    pub fn encode(&mut self) {
        self.in_base64 = true;
    }

    /// Appends the payload as a JSON string, with its quotes. JSON strings hold characters, not
    /// bytes, so each byte of binary garbage becomes the character U+0000 to U+00FF of its value.
    pub fn write_json_string(&self, out: &mut Vec<u8>) {
        // The bound is exact for most kinds; growing a payload of 100 MB would copy it several
        // times.
        let mut payload = Vec::with_capacity(self.bytes_max());
        self.write(&mut payload);
        if self.in_base64 {
            return write_str(out, &base64_encode(&payload));
        }
        match String::from_utf8(payload) {
            Ok(text) if !self.is_binary() => write_str(out, &text),
            Ok(text) => write_bytes(out, text.as_bytes()),
            Err(error) => write_bytes(out, error.as_bytes()),
        }
    }

    /// Whether the payload is JSON, so that it can be used as a value.
    pub fn is_json(&self) -> bool {
        matches!(
            self.kind,
            GeneratorKind::Nested(_) | GeneratorKind::Batch(_) | GeneratorKind::RepeatedKeys(_)
        )
    }

    /// An upper bound of the payload's size in bytes.
    pub fn bytes_max(&self) -> usize {
        match &self.kind {
            GeneratorKind::Nested(nested) => nested.bytes(),
            GeneratorKind::Batch(batch) => batch.bytes(),
            GeneratorKind::Garbage(garbage) => garbage.bytes,
            GeneratorKind::RepeatedKeys(keys) => keys.bytes(),
            GeneratorKind::Spam(spam) => spam.bytes,
            GeneratorKind::Ansi(ansi) => ansi.bytes_max(),
        }
    }

    fn is_binary(&self) -> bool {
        matches!(&self.kind, GeneratorKind::Garbage(garbage) if garbage.is_binary())
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    write_str(out, &text);
}

#[cfg(test)]
mod tests;
