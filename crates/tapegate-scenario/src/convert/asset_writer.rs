//! Moves texts that are too large for YAML to files of their own.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io;

use tapegate_core::tape::{base64_decode, base64_encode};

use super::{AssetSink, ConversionOptions};
use crate::load::assembly::FILE_BYTES_MAX;
use crate::node::{Node, NodeValue};

/// Moves large texts to files.
pub(super) struct AssetWriter<'a> {
    assets: &'a mut dyn AssetSink,
    inline_bytes_max: usize,
    /// How large a file may be that a scenario names.
    file_bytes_max: usize,
    strict: bool,
    /// The paths of files already written, by hash and length.
    known: HashMap<(u64, usize), String>,
    names: HashSet<String>,
    /// The last number used for each base name.
    numbers: HashMap<String, u32>,
    hasher: RandomState,
    files: usize,
    bytes: u64,
    /// Texts that are longer than any file of a scenario, and how long they are together.
    left_out: (usize, u64),
}

impl<'a> AssetWriter<'a> {
    pub(super) fn new(assets: &'a mut dyn AssetSink, options: &ConversionOptions<'_>) -> Self {
        Self::with_limits(assets, options.strict, (options.inline_bytes_max, FILE_BYTES_MAX))
    }

    fn with_limits(
        assets: &'a mut dyn AssetSink,
        strict: bool,
        (inline_bytes_max, file_bytes_max): (usize, usize),
    ) -> Self {
        Self {
            assets,
            inline_bytes_max,
            file_bytes_max,
            strict,
            known: HashMap::new(),
            names: HashSet::new(),
            numbers: HashMap::new(),
            hasher: RandomState::new(),
            files: 0,
            bytes: 0,
            left_out: (0, 0),
        }
    }

    /// How many files were written, and their total size in bytes.
    pub(super) fn totals(&self) -> (usize, u64) {
        (self.files, self.bytes)
    }

    /// A warning about texts that no scenario can hold, if there are any.
    pub(super) fn warning(&self) -> Option<String> {
        let (count, bytes) = self.left_out;
        let texts = if count == 1 { "text is" } else { "texts are" };
        (count > 0).then(|| {
            format!(
                "{count} {texts} left out ({bytes} bytes): a scenario file may have {} bytes",
                self.file_bytes_max
            )
        })
    }

    /// Replaces large texts in a tree by references. `name` is the item they belong to.
    pub(super) fn replace_large(&mut self, node: &mut Node, name: &str) -> io::Result<()> {
        self.walk(node, "", None, name)
    }

    /// Writes a JSON list to a file, and returns the reference to it.
    pub(super) fn list(&mut self, text: &[u8], name: &str) -> io::Result<Node> {
        let file = self.name(&format!("{name}-answers"), "json");
        let path = self.assets.put(&file, text)?;
        self.bytes += text.len() as u64;
        self.files += 1;
        Ok(Node::map(vec![Node::entry("$file", Node::text(path))]))
    }

    fn walk(
        &mut self,
        node: &mut Node,
        key: &str,
        mime: Option<&str>,
        name: &str,
    ) -> io::Result<()> {
        match &mut node.value {
            // In YAML it would be longer still, and no command would read that.
            NodeValue::Text(text) if text.len() > self.text_bytes_max(key) => {
                self.left_out.0 += 1;
                self.left_out.1 += text.len() as u64;
                let message = format!("[a text of {} bytes was left out]", text.len());
                *text = if is_binary(key) { base64_encode(message.as_bytes()) } else { message };
                Ok(())
            }
            NodeValue::Text(text) if text.len() > self.inline_bytes_max => {
                if let Some(path) = self.write_file(text, key, mime, name)? {
                    *node = Node::map(vec![Node::entry("$file", Node::text(path))]);
                }
                Ok(())
            }
            NodeValue::List(elements) => {
                elements.iter_mut().try_for_each(|node| self.walk(node, "", None, name))
            }
            NodeValue::Map(entries) => {
                let find = |key: &str| entries.iter().find(|entry| entry.0.name == key);
                let mime = find("mimeType").and_then(|entry| entry.1.as_text()).map(str::to_owned);
                for (key, node) in entries {
                    self.walk(node, &key.name, mime.as_deref(), name)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Writes a text to a file; `None` if loading the file would not restore it exactly.
    fn write_file(
        &mut self,
        text: &str,
        key: &str,
        mime: Option<&str>,
        name: &str,
    ) -> io::Result<Option<String>> {
        // For base64 fields, the file holds the decoded bytes.
        let binary = is_binary(key);
        let bytes = match binary {
            // Only if encoding restores the recorded spelling, such as its padding.
            true => match base64_decode(text).filter(|bytes| base64_encode(bytes) == text) {
                Some(bytes) => Cow::Owned(bytes),
                None => return Ok(None),
            },
            false => Cow::Borrowed(text.as_bytes()),
        };
        if bytes.len() > self.file_bytes_max
            // The loader drops a byte order mark.
            || text.starts_with('\u{feff}')
            || self.strict && binary
        {
            return Ok(None);
        }
        let seal = (self.hasher.hash_one((&bytes, binary)), bytes.len());
        if let Some(path) = self.known.get(&seal) {
            return Ok(Some(path.clone()));
        }
        let file = self.name(name, if binary { file_extension(mime) } else { "txt" });
        let path = self.assets.put(&file, &bytes)?;
        self.bytes += bytes.len() as u64;
        self.files += 1;
        self.known.insert(seal, path.clone());
        Ok(Some(path))
    }

    /// The longest text that fits into a file. For base64 fields, the file holds the decoded bytes.
    fn text_bytes_max(&self, key: &str) -> usize {
        match is_binary(key) {
            true => self.file_bytes_max.div_ceil(3).saturating_mul(4),
            false => self.file_bytes_max,
        }
    }

    /// A unique file name of letters, digits, underscores and dashes.
    fn name(&mut self, name: &str, ending: &str) -> String {
        let mut clean: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
            .take(40)
            .collect();
        if clean.trim_matches('-').is_empty() {
            clean = "text".to_owned();
        }
        let clean = clean.trim_matches('-');
        let number = self.numbers.entry(format!("{clean}.{ending}")).or_default();
        loop {
            *number += 1;
            let name = format!("{clean}-{number}.{ending}");
            // Some file systems ignore case, and two such names would be one file.
            if self.names.insert(name.to_ascii_lowercase()) {
                return name;
            }
        }
    }
}

/// Whether the text under a key is base64.
fn is_binary(key: &str) -> bool {
    matches!(key, "data" | "blob")
}

/// The file extension for a MIME type.
fn file_extension(mime: Option<&str>) -> &'static str {
    match mime.unwrap_or_default().split(';').next().unwrap_or_default().trim() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/bmp" => "bmp",
        "image/avif" => "avif",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/flac" => "flac",
        "video/mp4" => "mp4",
        "application/pdf" => "pdf",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NullAssetSink;

    impl AssetSink for NullAssetSink {
        fn put(&mut self, name: &str, _bytes: &[u8]) -> io::Result<String> {
            Ok(name.to_owned())
        }
    }

    #[test]
    fn a_text_that_no_file_may_hold_is_left_out_with_a_warning() {
        let mut assets = NullAssetSink;
        let mut spiller = AssetWriter::with_limits(&mut assets, false, (4, 9));
        let long = "x".repeat(10);
        let mut node = Node::map(vec![
            Node::entry("text", Node::text(long)),
            Node::entry("other", Node::text("x".repeat(9))),
            Node::entry("blob", Node::text(base64_encode(&[7; 9]))),
            Node::entry("data", Node::text(base64_encode(&[7; 10]))),
        ]);
        spiller.replace_large(&mut node, "t").unwrap();
        assert_eq!(spiller.totals(), (2, 18));
        let texts = ["text", "data"].map(|key| node.get(key).and_then(Node::as_text));
        let data = base64_encode(b"[a text of 16 bytes was left out]");
        assert_eq!(texts, [Some("[a text of 10 bytes was left out]"), Some(&*data)]);
        let warning = spiller.warning().unwrap();
        assert!(warning.starts_with("2 texts are left out (26 bytes): "), "{warning}");
    }
}
