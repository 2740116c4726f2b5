//! Applies one set of rules to one text. `None` means that nothing was masked.

use memchr::memmem;
use tapegate_core::frame::{Frame, Kind};
use tapegate_core::json;

use super::field_names;
use super::placeholder::{Key, is_placeholder, json_string};
use super::rules::Rules;
use super::text;
use super::walk::{Found, Walk};
use super::zone::Zone;

/// A set of rules and the key for their placeholders.
#[derive(Clone, Copy)]
pub(super) struct Pass<'r> {
    pub(super) rules: &'r Rules,
    pub(super) key: &'r Key,
}

impl Pass<'_> {
    /// Masks plain text.
    pub(super) fn text(self, text: &str) -> Option<String> {
        text::mask(&self.rules.patterns, self.key, text)
    }

    /// Masks a JSON value that is not a message, so that no path applies to it.
    pub(super) fn data(self, json: &[u8]) -> Option<Vec<u8>> {
        let look = self.rules.patterns.may_match_json(json);
        self.walk(json, Zone::Data, look, std::iter::empty()).map(|found| found.text)
    }

    /// Masks a message or a batch.
    pub(super) fn message(self, msg: &[u8]) -> Option<Found> {
        self.json(msg, Zone::Message)
    }

    /// Masks JSON that is in `zone` as a whole.
    fn json(self, msg: &[u8], zone: Zone) -> Option<Found> {
        let look = self.rules.patterns.may_match_json(msg);
        let found = |needle: &String| memmem::find(msg, needle.as_bytes()).is_some();
        let paths = self.rules.paths.iter().enumerate().filter(|(_, path)| {
            path.needle.as_ref().is_none_or(|needle| found(needle) || may_hide(msg))
        });
        self.walk(msg, zone, look, paths.map(|(index, _)| index))
    }

    /// Masks arbitrary bytes. Paths cannot be followed in unstructured text, so rules with paths
    /// withhold it; every rule withholds bytes that look compressed.
    pub(super) fn garbage(self, raw: &[u8]) -> Option<Vec<u8>> {
        if self.rules.is_empty() {
            return None;
        }
        // A batch, or a message without its line end, can be masked like any other.
        if json::check(raw).is_ok() {
            return self.message(raw).map(|found| found.text);
        }
        let text = String::from_utf8_lossy(raw);
        if is_placeholder(&text) {
            return None;
        }
        if !self.rules.paths.is_empty() || is_packed(&text) {
            return Some(self.key.withheld(raw).into_bytes());
        }
        self.text_with_tail(&text)
    }

    /// Masks output of a server that is not a message: any JSON, or text.
    pub(super) fn not_a_message(self, raw: &[u8]) -> Option<Vec<u8>> {
        if json::check(raw).is_ok() {
            let is_error =
                Frame::read(raw).envelope().is_some_and(|said| said.kind() == Kind::Error);
            let zone = if is_error { Zone::Message } else { Zone::Data };
            return self.json(raw, zone).map(|found| found.text);
        }
        let text = String::from_utf8_lossy(raw);
        if is_placeholder(&text) {
            return None;
        }
        if is_packed(&text) || field_names::may_hold(&self.rules.paths, &text) {
            return Some(self.key.withheld(raw).into_bytes());
        }
        self.text_with_tail(&text)
    }

    /// Masks text that may end in the middle of a secret.
    fn text_with_tail(self, text: &str) -> Option<Vec<u8>> {
        let masked = self.text(text);
        let left = masked.as_deref().unwrap_or(text);
        let cut_off = self.rules.patterns.cut_off(left);
        let masked = cut_off.map(|hit| text::replace(self.key, left, &[hit])).or(masked);
        masked.map(String::into_bytes)
    }

    fn walk(
        self,
        json: &[u8],
        zone: Zone,
        patterns: bool,
        paths: impl Iterator<Item = usize>,
    ) -> Option<Found> {
        let mut paths = paths.peekable();
        if !patterns && paths.peek().is_none() {
            return None;
        }
        let walked = Walk::new(self, json, patterns, paths).and_then(|walk| walk.run(zone));
        walked.unwrap_or_else(|_| Some(self.withheld(json)))
    }

    /// The replacement for a message that turns out not to be one: an object, as tapes require.
    fn withheld(self, bytes: &[u8]) -> Found {
        let place = json_string(&self.key.withheld(bytes));
        let text = [b"{\"redacted\":", place.as_slice(), b"}"].concat();
        Found { text, pointers: vec![String::new()] }
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
