//! Generated payloads, too large or too odd to be written out.
//!
//! A generator is validated when the scenario is loaded and produces its payload, always the same,
//! when it is sent. The size is known in advance, so that no payload over the limits is ever built.

mod json;
mod odd;
mod random;
mod read;

use tapegate_core::json::write_str;
use tapegate_core::tape::base64_encode;

use json::{Batch, Nested, RepeatedKeys};
use odd::{Ansi, Garbage, Spam};

/// Produces a payload, always the same.
#[derive(Debug)]
pub struct Generator {
    kind: Kind,
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

#[derive(Debug)]
enum Kind {
    Nested(Nested),
    Batch(Batch),
    Garbage(Garbage),
    RepeatedKeys(RepeatedKeys),
    Spam(Spam),
    Ansi(Ansi),
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
            Kind::Nested(nested) => nested.write(out),
            Kind::Batch(batch) => batch.write(out),
            Kind::Garbage(garbage) => garbage.write(out),
            Kind::RepeatedKeys(keys) => keys.write(out),
            Kind::Spam(spam) => spam.write(out),
            Kind::Ansi(ansi) => ansi.write(out),
        }
    }

    /// Makes the generator write base64, for fields that hold bytes.
    pub fn encode(&mut self) {
        self.in_base64 = true;
    }

    /// Appends the payload as a JSON string, with its quotes. JSON strings hold characters, not
    /// bytes, so each byte of binary garbage becomes the character U+0000 to U+00FF of its value.
    pub fn write_json_string(&self, out: &mut Vec<u8>) {
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
        matches!(self.kind, Kind::Nested(_) | Kind::Batch(_) | Kind::RepeatedKeys(_))
    }

    /// An upper bound of the payload's size in bytes.
    pub fn bytes_max(&self) -> usize {
        match &self.kind {
            Kind::Nested(nested) => nested.bytes(),
            Kind::Batch(batch) => batch.bytes(),
            Kind::Garbage(garbage) => garbage.bytes,
            Kind::RepeatedKeys(keys) => keys.bytes(),
            Kind::Spam(spam) => spam.bytes,
            Kind::Ansi(ansi) => ansi.bytes_max(),
        }
    }

    fn is_binary(&self) -> bool {
        matches!(&self.kind, Kind::Garbage(garbage) if garbage.is_binary())
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    write_str(out, &text);
}

#[cfg(test)]
mod tests;
