//! Reads the value of `$generate`.

use super::json::{Batch, Nested, RepeatedKeys, Structure};
use super::odd::{Ansi, Category, Charset, Garbage, Sequence, Spam};
use super::{Generator, GeneratorLimits, Kind};
use crate::field::{Fields, choose, expected, to_usize};
use crate::finding::Findings;
use crate::node::Node;

const TYPES: [&str; 6] = [
    "nested_json",
    "batch_notifications",
    "garbage",
    "repeated_keys",
    "unicode_spam",
    "ansi_escape",
];

const STRUCTURES: [(&str, Structure); 3] =
    [("object", Structure::Object), ("array", Structure::Array), ("mixed", Structure::Mixed)];

const CHARSETS: [(&str, Charset); 5] = [
    ("ascii", Charset::Ascii),
    ("utf8", Charset::Utf8),
    ("binary", Charset::Binary),
    ("numeric", Charset::Numeric),
    ("alphanumeric", Charset::Alphanumeric),
];

const CATEGORIES: [(&str, Category); 5] = [
    ("zero_width", Category::ZeroWidth),
    ("rtl", Category::Rtl),
    ("homoglyph", Category::Homoglyph),
    ("combining", Category::Combining),
    ("emoji", Category::Emoji),
];

const SEQUENCES: [(&str, Sequence); 5] = [
    ("cursor_move", Sequence::CursorMove),
    ("color", Sequence::Color),
    ("title", Sequence::Title),
    ("hyperlink", Sequence::Hyperlink),
    ("clear", Sequence::Clear),
];

impl Generator {
    /// Reads the value of `$generate`. The payload must be within `limits`.
    pub fn read(node: &Node, limits: &GeneratorLimits, findings: &mut Findings) -> Option<Self> {
        let fields = Fields::of(node);
        let name = fields.need("type", findings)?;
        let mut reader = Reader { node, fields, limits, findings };
        let kind = match name.as_text() {
            Some("nested_json") => reader.nested(),
            Some("batch_notifications") => reader.batch(),
            Some("garbage") => reader.garbage(),
            Some("repeated_keys") => reader.repeated_keys(),
            Some("unicode_spam") => reader.spam(),
            Some("ansi_escape") => reader.ansi(),
            _ => {
                let types = TYPES.map(|name| (name, ()));
                reader.findings.within("type", |findings| choose(name, &types, findings));
                None
            }
        }?;
        let generator = Self { kind, in_base64: false };
        let (bytes, bytes_max) = (generator.bytes_max(), limits.payload_bytes);
        if bytes > bytes_max {
            let words = format!("the payload would have {bytes} bytes; the limit is {bytes_max}");
            reader.findings.error(node.spot, words);
            return None;
        }
        Some(generator)
    }
}

/// Reads the fields of one generator.
struct Reader<'a, 'f> {
    node: &'a Node,
    fields: Fields<'a>,
    limits: &'f GeneratorLimits,
    findings: &'f mut Findings,
}

impl Reader<'_, '_> {
    fn nested(&mut self) -> Option<Kind> {
        let depth = self.count_up_to("depth", self.limits.depth)?;
        let structure = self.fields.choice("structure", &STRUCTURES, self.findings);
        let mut key = Vec::new();
        let name = self.fields.text("key", self.findings).unwrap_or("a");
        tapegate_core::json::write_str(&mut key, name);
        let inner = self.json("inner").unwrap_or_else(|| b"null".to_vec());
        let structure = structure.unwrap_or(Structure::Object);
        Some(Kind::Nested(Nested { depth, structure, key, inner }))
    }

    fn batch(&mut self) -> Option<Kind> {
        let count = self.some("count")?;
        let method = self.fields.text("method", self.findings).unwrap_or("notifications/message");
        Some(Kind::Batch(Batch::new(count, method, self.fields.get("params").map(Node::to_json))))
    }

    fn garbage(&mut self) -> Option<Kind> {
        let bytes = self.bytes()?;
        let charset = self.fields.choice("charset", &CHARSETS, self.findings);
        let charset = charset.unwrap_or(Charset::Ascii);
        Some(Kind::Garbage(Garbage { bytes, charset, seed: self.seed() }))
    }

    fn repeated_keys(&mut self) -> Option<Kind> {
        let count = self.some("count")?;
        let key_length = self.fields.whole("key_length", self.findings).map_or(8, to_usize);
        let value = self.json("value").unwrap_or_else(|| b"\"x\"".to_vec());
        Some(Kind::RepeatedKeys(RepeatedKeys { count, key_length, value }))
    }

    fn spam(&mut self) -> Option<Kind> {
        let bytes = self.bytes()?;
        self.fields.need("category", self.findings)?;
        let category = self.fields.choice("category", &CATEGORIES, self.findings)?;
        let carrier = self.fields.text("carrier", self.findings).unwrap_or_default().to_owned();
        if bytes > 0 && carrier.len() > bytes {
            let words = format!("the carrier alone has more than {bytes} bytes");
            self.findings.error(self.node.spot, words);
            return None;
        }
        Some(Kind::Spam(Spam { bytes, category, carrier, seed: self.seed() }))
    }

    fn ansi(&mut self) -> Option<Kind> {
        let list = self.fields.need("sequences", self.findings)?;
        let Some(elements) = list.as_list().filter(|elements| !elements.is_empty()) else {
            self.findings.within("sequences", |findings| {
                expected(list, "a list with at least one sequence", findings);
            });
            return None;
        };
        let sequences: Option<Vec<Sequence>> = self.findings.within("sequences", |findings| {
            let read = elements.iter().enumerate().map(|(index, element)| {
                findings
                    .within(&format!("[{index}]"), |findings| choose(element, &SEQUENCES, findings))
            });
            // Collect first, so that every error is reported, not only the first.
            read.collect::<Vec<_>>().into_iter().collect()
        });
        let count = if self.fields.get("count").is_some() { self.some("count")? } else { 100 };
        let payload = self.fields.text("payload", self.findings).unwrap_or_default().to_owned();
        let seed = self.seed();
        Some(Kind::Ansi(Ansi { sequences: sequences?, count, payload, seed }))
    }

    fn bytes(&mut self) -> Option<usize> {
        self.fields.need("bytes", self.findings)?;
        self.fields.bytes("bytes", self.findings)
    }

    fn seed(&mut self) -> u64 {
        self.fields.whole("seed", self.findings).unwrap_or(0)
    }

    /// Reads a count of at least one.
    fn some(&mut self, name: &str) -> Option<usize> {
        let count = self.count_up_to(name, self.limits.count)?;
        if count == 0 {
            let spot = self.fields.get(name).map_or(self.node.spot, |node| node.spot);
            self.findings.within(name, |findings| findings.error(spot, "must be at least 1"));
            return None;
        }
        Some(count)
    }

    fn count_up_to(&mut self, name: &str, max: usize) -> Option<usize> {
        let node = self.fields.need(name, self.findings)?;
        let count = self.fields.whole(name, self.findings).map(to_usize)?;
        if count > max {
            let words = format!("{count} is over the limit of {max}");
            self.findings.within(name, |findings| findings.error(node.spot, words));
            return None;
        }
        Some(count)
    }

    /// A value as JSON; an explicit `null` is a value too.
    fn json(&self, name: &str) -> Option<Vec<u8>> {
        self.node.get(name).map(Node::to_json)
    }
}
