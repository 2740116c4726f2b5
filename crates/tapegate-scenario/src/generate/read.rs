//! Reads the value of `$generate`.

use tapegate_yaml::choice::WordChoice;

use super::json::{NestedValue, NotificationBatch, RepeatedKeys};
use super::text_payloads::{AnsiText, GarbageText, UnicodeSpam};
use super::{AnsiSequence, Charset, NestingStructure, SpamCategory};
use super::{Generator, GeneratorKind, GeneratorLimits, GeneratorType};
use crate::field::{MapFields, choose, report_expected, to_usize};
use crate::finding::Findings;
use crate::node::Node;

impl Generator {
    /// Reads the value of `$generate`. The payload must be within `limits`.
    pub fn read(node: &Node, limits: &GeneratorLimits, findings: &mut Findings) -> Option<Self> {
        let fields = MapFields::of(node);
        let name = fields.required("type", findings)?;
        let kind = findings
            .with_step("type", |findings| choose(name, GeneratorType::CHOICES, findings))?;
        let mut reader = GeneratorReader { node, fields, limits, findings };
        let kind = match kind {
            GeneratorType::Nested => reader.nested(),
            GeneratorType::Batch => reader.batch(),
            GeneratorType::Garbage => reader.garbage(),
            GeneratorType::RepeatedKeys => reader.repeated_keys(),
            GeneratorType::Spam => reader.spam(),
            GeneratorType::Ansi => reader.ansi(),
        }?;
        let generator = Self { kind, in_base64: false };
        let (bytes, bytes_max) = (generator.bytes_max(), limits.payload_bytes);
        // Checked before it is ever built.
        if bytes > bytes_max {
            let message = format!("the payload would have {bytes} bytes; the limit is {bytes_max}");
            reader.findings.error(node.spot, message);
            return None;
        }
        Some(generator)
    }
}

/// Reads the fields of one generator.
struct GeneratorReader<'a, 'f> {
    node: &'a Node,
    fields: MapFields<'a>,
    limits: &'f GeneratorLimits,
    findings: &'f mut Findings,
}

impl GeneratorReader<'_, '_> {
    fn nested(&mut self) -> Option<GeneratorKind> {
        let depth = self.count_up_to("depth", self.limits.depth)?;
        let structure = self.fields.choice("structure", NestingStructure::CHOICES, self.findings);
        let mut key = Vec::new();
        let name = self.fields.text("key", self.findings).unwrap_or("a");
        tapegate_core::json::write_str(&mut key, name);
        let inner = self.json("inner").unwrap_or_else(|| b"null".to_vec());
        let structure = structure.unwrap_or(NestingStructure::Object);
        Some(GeneratorKind::Nested(NestedValue { depth, structure, key, inner }))
    }

    fn batch(&mut self) -> Option<GeneratorKind> {
        let count = self.read_positive("count")?;
        let method = self.fields.text("method", self.findings).unwrap_or("notifications/message");
        Some(GeneratorKind::Batch(NotificationBatch::new(
            count,
            method,
            self.fields.get("params").map(Node::to_json),
        )))
    }

    fn garbage(&mut self) -> Option<GeneratorKind> {
        let bytes = self.bytes()?;
        let charset = self.fields.choice("charset", Charset::CHOICES, self.findings);
        let charset = charset.unwrap_or(Charset::Ascii);
        Some(GeneratorKind::Garbage(GarbageText { bytes, charset, seed: self.seed() }))
    }

    fn repeated_keys(&mut self) -> Option<GeneratorKind> {
        let count = self.read_positive("count")?;
        // Not limited by itself: the size of the whole payload is.
        let key_length = self.fields.whole_number("key_length", self.findings).map_or(8, to_usize);
        let value = self.json("value").unwrap_or_else(|| b"\"x\"".to_vec());
        Some(GeneratorKind::RepeatedKeys(RepeatedKeys { count, key_length, value }))
    }

    fn spam(&mut self) -> Option<GeneratorKind> {
        let bytes = self.bytes()?;
        self.fields.required("category", self.findings)?;
        let category = self.fields.choice("category", SpamCategory::CHOICES, self.findings)?;
        let carrier = self.fields.text("carrier", self.findings).unwrap_or_default().to_owned();
        if bytes > 0 && carrier.len() > bytes {
            let message = format!("the carrier alone has more than {bytes} bytes");
            self.findings.error(self.node.spot, message);
            return None;
        }
        Some(GeneratorKind::Spam(UnicodeSpam { bytes, category, carrier, seed: self.seed() }))
    }

    fn ansi(&mut self) -> Option<GeneratorKind> {
        let list = self.fields.required("sequences", self.findings)?;
        let Some(elements) = list.as_list().filter(|elements| !elements.is_empty()) else {
            self.findings.with_step("sequences", |findings| {
                report_expected(list, "a list with at least one sequence", findings);
            });
            return None;
        };
        let sequences: Option<Vec<AnsiSequence>> =
            self.findings.with_step("sequences", |findings| {
                let read = elements.iter().enumerate().map(|(index, element)| {
                    findings.with_step(&format!("[{index}]"), |findings| {
                        choose(element, AnsiSequence::CHOICES, findings)
                    })
                });
                // Collect first, so that every error is reported, not only the first.
                read.collect::<Vec<_>>().into_iter().collect()
            });
        let count =
            if self.fields.get("count").is_some() { self.read_positive("count")? } else { 100 };
        let payload = self.fields.text("payload", self.findings).unwrap_or_default().to_owned();
        let seed = self.seed();
        Some(GeneratorKind::Ansi(AnsiText { sequences: sequences?, count, payload, seed }))
    }

    fn bytes(&mut self) -> Option<usize> {
        self.fields.required("bytes", self.findings)?;
        self.fields.bytes("bytes", self.findings)
    }

    fn seed(&mut self) -> u64 {
        self.fields.whole_number("seed", self.findings).unwrap_or(0)
    }

    /// Reads a count of at least one.
    fn read_positive(&mut self, name: &str) -> Option<usize> {
        let count = self.count_up_to(name, self.limits.count)?;
        if count == 0 {
            let spot = self.fields.get(name).map_or(self.node.spot, |node| node.spot);
            self.findings.with_step(name, |findings| findings.error(spot, "must be at least 1"));
            return None;
        }
        Some(count)
    }

    fn count_up_to(&mut self, name: &str, max: usize) -> Option<usize> {
        let node = self.fields.required(name, self.findings)?;
        let count = self.fields.whole_number(name, self.findings).map(to_usize)?;
        if count > max {
            let message = format!("{count} is over the limit of {max}");
            self.findings.with_step(name, |findings| findings.error(node.spot, message));
            return None;
        }
        Some(count)
    }

    /// A value as JSON; an explicit `null` is a value too.
    fn json(&self, name: &str) -> Option<Vec<u8>> {
        self.node.get(name).map(Node::to_json)
    }
}
