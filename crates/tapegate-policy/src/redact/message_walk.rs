//! One pass over a message that finds every place to mask.
//!
//! Values are masked from the inside out: first the secrets in a string, then the value a path
//! leads to, then the values around it. So the placeholder of a whole value is made from its text
//! after the inner values were masked.

use std::borrow::Cow;
use std::ops::Range;

use tapegate_core::json::{Cursor, JsonFault, JsonKind, JsonStr, quoted};

use super::masking_pass::MaskingPass;
use super::placeholder::{is_json_placeholder, placeholder};
use super::protocol_zone::ProtocolZone;
use super::value_hash;
use tapegate_core::json::path::{ChildPosition, PathDescent};

/// A value below this many levels is masked as a whole if anything in it might match.
const DEPTH_MAX: usize = 200;
/// The longest pointer that is reported; for longer ones, that of the deepest value that fits.
const POINTER_BYTES_MAX: usize = 1024;
/// The most pointers that are reported; further ones are summed up as the whole message.
const POINTERS_MAX: usize = 1000;

/// A span of the text and its replacement.
struct TextEdit {
    span: Range<usize>,
    text: Vec<u8>,
    /// `None` inside a value that is masked as a whole.
    pointer: Option<String>,
}

/// The position of a value in its parent, as in the masked text.
enum PathLabel<'a> {
    Key(Cow<'a, str>),
    Index(usize),
}

pub(super) struct RedactWalk<'r, 'a> {
    pass: MaskingPass<'r>,
    text: &'a [u8],
    cursor: Cursor<'a>,
    /// Whether strings are searched for patterns.
    patterns: bool,
    edits: Vec<TextEdit>,
    labels: Vec<PathLabel<'a>>,
    /// The paths that are still active in each open value.
    descent: PathDescent,
    /// The number of open values that are masked as a whole.
    covered: usize,
}

/// The result of a walk that found something.
pub(super) struct RedactedText {
    /// The masked text.
    pub(super) text: Vec<u8>,
    /// The masked places, as JSON pointers.
    pub(super) pointers: Vec<String>,
}

impl<'r, 'a> RedactWalk<'r, 'a> {
    /// A walk over `text` that follows the paths with the indexes in `paths`.
    pub(super) fn new(
        pass: MaskingPass<'r>,
        text: &'a [u8],
        patterns: bool,
        paths: impl Iterator<Item = usize>,
    ) -> Result<Self, JsonFault> {
        Ok(Self {
            pass,
            text,
            cursor: Cursor::new(text)?,
            patterns,
            edits: Vec::new(),
            labels: Vec::new(),
            descent: PathDescent::new(paths),
            covered: 0,
        })
    }

    /// Walks over a value in `zone`; a batch is an array of messages.
    pub(super) fn run(mut self, zone: ProtocolZone) -> Result<Option<RedactedText>, JsonFault> {
        let roots = 0..self.descent.end();
        if zone == ProtocolZone::Message && self.cursor.kind()? == JsonKind::Array {
            self.cursor.open()?;
            let mut index = 0;
            while self.cursor.next_item()? {
                self.labels.push(PathLabel::Index(index));
                self.value(zone, false, roots.clone())?;
                self.labels.pop();
                index += 1;
            }
        } else {
            self.value(zone, false, roots)?;
        }
        self.cursor.expect_end()?;
        if self.edits.is_empty() {
            return Ok(None);
        }
        let text = splice(self.text, 0..self.text.len(), &self.edits);
        Ok(Some(RedactedText { text, pointers: edit_pointers(self.edits) }))
    }

    /// Walks over one value, with the paths that are active in it; `reached` says whether one ends
    /// there.
    fn value(
        &mut self,
        zone: ProtocolZone,
        reached: bool,
        states: Range<usize>,
    ) -> Result<(), JsonFault> {
        if zone == ProtocolZone::Protected {
            self.cursor.value()?;
            return Ok(());
        }
        let kind = self.cursor.kind()?;
        let start = self.cursor.position();
        let container = matches!(kind, JsonKind::Object | JsonKind::Array);
        // A rule for `params` must not mask the names in it that replay needs, so its members are
        // masked one by one.
        let split = container && zone.may_contain_protected();
        let whole = reached && !split;
        let edits_before = self.edits.len();
        let busy = self.patterns || !states.is_empty() || (reached && split);
        // The walk recurses, so depth is bounded; anything deeper cannot be searched and is masked.
        let too_deep = container && busy && self.labels.len() >= DEPTH_MAX;
        self.covered += usize::from(whole);
        match kind {
            JsonKind::String if self.patterns => {
                let string = self.cursor.string()?;
                self.string(string, start..self.cursor.position());
            }
            JsonKind::Object if busy && !too_deep => self.object(zone, reached && split, states)?,
            JsonKind::Array if busy && !too_deep => self.array(zone, reached && split, states)?,
            _ => drop(self.cursor.value()?),
        }
        self.covered -= usize::from(whole);
        if whole || too_deep {
            let kind = if whole { "path" } else { "depth" };
            self.mask_whole(kind, start..self.cursor.position(), edits_before)?;
        }
        Ok(())
    }

    fn object(
        &mut self,
        zone: ProtocolZone,
        all: bool,
        states: Range<usize>,
    ) -> Result<(), JsonFault> {
        self.cursor.open()?;
        while let Some(key) = self.cursor.next_key()? {
            let name = key.decode();
            let zone = zone.member(&name);
            let before = self.descent.end();
            let reached = self.descend(states.clone(), ChildPosition::Key(&name)) || all;
            // After `descend`, which compares the original key, not the masked one.
            self.key(key, name, zone);
            self.value(zone, reached, before..self.descent.end())?;
            self.labels.pop();
            self.descent.truncate(before);
        }
        Ok(())
    }

    fn array(
        &mut self,
        zone: ProtocolZone,
        all: bool,
        states: Range<usize>,
    ) -> Result<(), JsonFault> {
        self.cursor.open()?;
        let mut index = 0;
        while self.cursor.next_item()? {
            let before = self.descent.end();
            let reached = self.descend(states.clone(), ChildPosition::Index(index)) || all;
            self.labels.push(PathLabel::Index(index));
            self.value(zone.element(), reached, before..self.descent.end())?;
            self.labels.pop();
            self.descent.truncate(before);
            index += 1;
        }
        Ok(())
    }

    /// Advances every path of a parent to `child`; returns whether one of them ends there.
    fn descend(&mut self, parent: Range<usize>, child: ChildPosition<'_>) -> bool {
        self.descent.descend(&self.pass.rules.paths, parent, child)
    }

    /// Masks the key that was just read, if necessary, and makes it the label of its value.
    fn key(&mut self, key: JsonStr<'a>, name: Cow<'a, str>, zone: ProtocolZone) {
        let look = self.patterns && zone != ProtocolZone::Protected;
        let masked = look.then(|| self.pass.text(&name)).flatten();
        let Some(masked) = masked else { return self.labels.push(PathLabel::Key(name)) };
        // The cursor stands behind the colon. The raw key is needed, since its escaped form is
        // longer.
        let colon = self.cursor.position() - 1;
        let end = self.text[..colon].trim_ascii_end().len();
        let start = end - key.raw.len() - 2;
        self.labels.push(PathLabel::Key(Cow::Owned(masked.clone())));
        self.push(start..end, &masked);
    }

    fn string(&mut self, string: JsonStr<'a>, span: Range<usize>) {
        if let Some(masked) = self.pass.text(&string.decode()) {
            self.push(span, &masked);
        }
    }

    /// Masks a value as a whole, after the masked places in it.
    fn mask_whole(
        &mut self,
        kind: &str,
        span: Range<usize>,
        before: usize,
    ) -> Result<(), JsonFault> {
        let left = splice(self.text, span.clone(), &self.edits[before..]);
        // Masking twice changes nothing: the value is already one placeholder.
        if is_json_placeholder(&left) {
            if self.edits.len() > before && self.covered == 0 {
                self.edits[before].pointer = Some(self.pointer());
            }
            return Ok(());
        }
        let hash = value_hash::digest(self.pass.key, &left)?;
        // The edits inside are part of the text that was hashed, so they must not be applied again.
        self.edits.truncate(before);
        self.push(span, &placeholder(kind, &hash));
        Ok(())
    }

    fn push(&mut self, span: Range<usize>, text: &str) {
        let pointer = (self.covered == 0).then(|| self.pointer());
        self.edits.push(TextEdit { span, text: quoted(text), pointer });
    }

    /// The current position as an RFC 6901 pointer.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for label in &self.labels {
            let token = match label {
                PathLabel::Key(key) => key.replace('~', "~0").replace('/', "~1"),
                PathLabel::Index(index) => index.to_string(),
            };
            if pointer.len() + 1 + token.len() > POINTER_BYTES_MAX {
                break;
            }
            pointer.push('/');
            pointer.push_str(&token);
        }
        pointer
    }
}

/// The part `span` of `text` with the `edits` in it applied.
fn splice(text: &[u8], span: Range<usize>, edits: &[TextEdit]) -> Vec<u8> {
    let mut out = Vec::with_capacity(span.len());
    let mut at = span.start;
    for edit in edits {
        out.extend_from_slice(&text[at..edit.span.start]);
        out.extend_from_slice(&edit.text);
        at = edit.span.end;
    }
    out.extend_from_slice(&text[at..span.end]);
    out
}

/// The pointers of `edits`, without duplicates.
fn edit_pointers(edits: Vec<TextEdit>) -> Vec<String> {
    let mut pointers: Vec<String> = Vec::new();
    for pointer in edits.into_iter().filter_map(|edit| edit.pointer) {
        if pointers.last() == Some(&pointer) {
            continue;
        }
        if pointers.len() == POINTERS_MAX {
            pointers.push(String::new());
            break;
        }
        pointers.push(pointer);
    }
    pointers
}
