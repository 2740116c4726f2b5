//! Payloads that are too large or too odd to be written down.
//!
//! A generator is checked when the scenario is read, and makes its payload when it is sent, always
//! the same. How large a payload gets is known before it is made, so nothing over the limits is.

mod json;
mod odd;
mod random;
mod read;

use tapegate_core::json::write_str;
use tapegate_core::tape::base64_encode;

use json::{Batch, Nested, RepeatedKeys};
use odd::{Ansi, Garbage, Spam};

/// Makes a payload, always the same.
#[derive(Debug)]
pub struct Generator {
    kind: Kind,
    /// Whether its text is the payload in base64.
    in_base64: bool,
}

/// How much a generator may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratorLimits {
    /// Bytes of one payload.
    pub payload_bytes: usize,
    /// Levels of nesting.
    pub depth: usize,
    /// Notifications, keys or sequences.
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
    /// Appends the payload as it is. All but binary garbage is UTF-8.
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

    /// Has its text be the payload in base64, for places that hold bytes.
    pub fn encode(&mut self) {
        self.in_base64 = true;
    }

    /// Appends the payload as a JSON string, quotes and all. JSON holds characters and no bytes, so
    /// each byte of binary garbage becomes the character with its number, U+0000 to U+00FF.
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

    /// Whether the payload is JSON, so that it may stand where a value stands.
    pub fn is_json(&self) -> bool {
        matches!(self.kind, Kind::Nested(_) | Kind::Batch(_) | Kind::RepeatedKeys(_))
    }

    /// How many bytes the payload has at most.
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
