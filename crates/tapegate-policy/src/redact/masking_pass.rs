//! Applies one set of rules to one text. `None` means that nothing was masked.

use memchr::memmem;
use tapegate_core::frame::{Frame, MessageKind};
use tapegate_core::json::{self, quoted};

use super::field_names;
use super::message_walk::{RedactWalk, RedactedText};
use super::placeholder::{RedactionKey, is_placeholder};
use super::protocol_zone::ProtocolZone;
use super::rules::RedactionRules;
use super::text;

/// A set of rules and the key for their placeholders.
#[derive(Clone, Copy)]
pub(super) struct MaskingPass<'r> {
    pub(super) rules: &'r RedactionRules,
    pub(super) key: &'r RedactionKey,
}

impl MaskingPass<'_> {
    /// Masks plain text.
    pub(super) fn text(self, text: &str) -> Option<String> {
        text::mask(&self.rules.patterns, self.key, text)
    }

    /// Masks a JSON value that is not a message, so that no path applies to it.
    pub(super) fn mask_data(self, json: &[u8]) -> Option<Vec<u8>> {
        let look = self.rules.patterns.may_match_json(json);
        self.walk(json, ProtocolZone::Data, look, std::iter::empty()).map(|found| found.text)
    }

    /// Masks a message or a batch.
    pub(super) fn message(self, msg: &[u8]) -> Option<RedactedText> {
        self.json(msg, ProtocolZone::Message)
    }

    /// Masks JSON that is in `zone` as a whole.
    fn json(self, msg: &[u8], zone: ProtocolZone) -> Option<RedactedText> {
        let look = self.rules.patterns.may_match_json(msg);
        let found = |needle: &String| memmem::find(msg, needle.as_bytes()).is_some();
        let paths = self.rules.paths.iter().enumerate().filter(|(_, path)| {
            // A path leads nowhere if its longest key is not in the text. This skips the walk for
            // most messages.
            path.needle.as_ref().is_none_or(|needle| found(needle) || may_hide(msg))
        });
        self.walk(msg, zone, look, paths.map(|(index, _)| index))
    }

    /// Masks arbitrary bytes. Paths cannot be followed in unstructured text, so rules with paths
    /// withhold it; every rule withholds bytes that look compressed.
    pub(super) fn mask_bytes(self, raw: &[u8]) -> Option<Vec<u8>> {
        if self.rules.is_empty() {
            return None;
        }
        // A batch, or a message without its line end, can be masked like any other.
        if json::check(raw).is_ok() {
            return self.message(raw).map(|found| found.text);
        }
        let text = String::from_utf8_lossy(raw);
        // Withheld before: masking it again would hash the placeholder and change it.
        if is_placeholder(&text) {
            return None;
        }
        if !self.rules.paths.is_empty() || is_packed(&text) {
            return Some(self.key.withheld_placeholder(raw).into_bytes());
        }
        self.mask_truncated_text(&text)
    }

    /// Masks output of a server that is not a message: any JSON, or text.
    pub(super) fn mask_non_message(self, raw: &[u8]) -> Option<Vec<u8>> {
        if json::check(raw).is_ok() {
            let is_error = Frame::read(raw)
                .envelope()
                .is_some_and(|envelope| envelope.kind() == MessageKind::Error);
            // Only an error is read as a message, so that its code survives. In any other body, a
            // member called `id` or `name` may be a secret.
            let zone = if is_error { ProtocolZone::Message } else { ProtocolZone::Data };
            return self.json(raw, zone).map(|found| found.text);
        }
        let text = String::from_utf8_lossy(raw);
        if is_placeholder(&text) {
            return None;
        }
        if is_packed(&text) || field_names::may_hold(&self.rules.paths, &text) {
            return Some(self.key.withheld_placeholder(raw).into_bytes());
        }
        self.mask_truncated_text(&text)
    }

    /// Masks text that may end in the middle of a secret.
    fn mask_truncated_text(self, text: &str) -> Option<Vec<u8>> {
        let masked = self.text(text);
        let left = masked.as_deref().unwrap_or(text);
        // A buffer may end within a secret, whose beginning then matches no whole pattern.
        let cut_off = self.rules.patterns.truncated_hit(left);
        let masked = cut_off.map(|hit| text::replace(self.key, left, &[hit])).or(masked);
        masked.map(String::into_bytes)
    }

    fn walk(
        self,
        json: &[u8],
        zone: ProtocolZone,
        patterns: bool,
        paths: impl Iterator<Item = usize>,
    ) -> Option<RedactedText> {
        let mut paths = paths.peekable();
        if !patterns && paths.peek().is_none() {
            return None;
        }
        let walked = RedactWalk::new(self, json, patterns, paths).and_then(|walk| walk.run(zone));
        // The walk may fail half-way. Keeping the text would keep the secrets that it has not
        // reached.
        walked.unwrap_or_else(|_| Some(self.withhold(json)))
    }

    /// The replacement for a message that turns out not to be one: an object, as tapes require.
    fn withhold(self, bytes: &[u8]) -> RedactedText {
        let place = quoted(&self.key.withheld_placeholder(bytes));
        let text = [b"{\"redacted\":", place.as_slice(), b"}"].concat();
        RedactedText { text, pointers: vec![String::new()] }
    }
}

/// Whether JSON text has an escape that could hide a word: `\u0073k-` is `sk-`.
pub(super) fn may_hide(json: &[u8]) -> bool {
    memmem::find(json, b"\\u").is_some() || memmem::find(json, b"\\/").is_some()
}

/// Whether text is mostly binary, like compressed bytes, in which secrets cannot be recognised.
fn is_packed(text: &str) -> bool {
    const SHORTEST: usize = 24;
    let no_text =
        |c: &char| *c == char::REPLACEMENT_CHARACTER || (c.is_control() && !c.is_whitespace());
    let count = text.chars().count();
    // Text that was masked before is not withheld the second time.
    !text.contains("[REDACTED:")
        && count >= SHORTEST
        && text.chars().filter(no_text).count() * 8 >= count
}
