//! Texts that are too large to be read in YAML, in files of their own.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::io;

use tapegate_core::tape::{base64_decode, base64_encode};

use super::{Assets, Options, tree};
use crate::load::assemble::FILE_BYTES_MAX;
use crate::node::{Node, Value};

/// Puts large texts into files.
pub(super) struct Spiller<'a> {
    assets: &'a mut dyn Assets,
    inline_bytes_max: usize,
    strict: bool,
    /// What was written already, by hash and length.
    known: HashMap<(u64, usize), String>,
    names: HashSet<String>,
    /// The last number of names that are the same but for it.
    numbers: HashMap<String, u32>,
    hasher: RandomState,
    files: usize,
    bytes: u64,
}

impl<'a> Spiller<'a> {
    pub(super) fn new(assets: &'a mut dyn Assets, options: &Options<'_>) -> Self {
        Self {
            assets,
            inline_bytes_max: options.inline_bytes_max,
            strict: options.strict,
            known: HashMap::new(),
            names: HashSet::new(),
            numbers: HashMap::new(),
            hasher: RandomState::new(),
            files: 0,
            bytes: 0,
        }
    }

    /// How many files were written, and how many bytes.
    pub(super) fn done(&self) -> (usize, u64) {
        (self.files, self.bytes)
    }

    /// Replaces what is too large in a tree by where it stands. `name` is what it belongs to.
    pub(super) fn spill(&mut self, node: &mut Node, name: &str) -> io::Result<()> {
        self.walk(node, "", None, name)
    }

    /// Puts a list in JSON into a file, and returns what stands for it.
    pub(super) fn list(&mut self, text: &[u8], name: &str) -> io::Result<Node> {
        let file = self.name(&format!("{name}-answers"), "json");
        let path = self.assets.put(&file, text)?;
        self.bytes += text.len() as u64;
        self.files += 1;
        Ok(tree::map(vec![tree::entry("$file", Node::text(path))]))
    }

    fn walk(
        &mut self,
        node: &mut Node,
        key: &str,
        mime: Option<&str>,
        name: &str,
    ) -> io::Result<()> {
        match &mut node.value {
            Value::Text(text) if text.len() > self.inline_bytes_max => {
                if let Some(path) = self.put(text, key, mime, name)? {
                    *node = tree::map(vec![tree::entry("$file", Node::text(path))]);
                }
                Ok(())
            }
            Value::List(elements) => {
                elements.iter_mut().try_for_each(|node| self.walk(node, "", None, name))
            }
            Value::Map(entries) => {
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

    /// Writes a text to a file; `None` if a file would not give it back exactly.
    fn put(
        &mut self,
        text: &str,
        key: &str,
        mime: Option<&str>,
        name: &str,
    ) -> io::Result<Option<String>> {
        // Where a blob is wanted, the bytes of the file are it.
        let binary = matches!(key, "data" | "blob");
        let bytes = match binary {
            true => match base64_decode(text).filter(|bytes| base64_encode(bytes) == text) {
                Some(bytes) => Cow::Owned(bytes),
                None => return Ok(None),
            },
            false => Cow::Borrowed(text.as_bytes()),
        };
        if bytes.len() > FILE_BYTES_MAX || text.starts_with('\u{feff}') || self.strict && binary {
            return Ok(None);
        }
        let seal = (self.hasher.hash_one((&bytes, binary)), bytes.len());
        if let Some(path) = self.known.get(&seal) {
            return Ok(Some(path.clone()));
        }
        let file = self.name(name, if binary { ending(mime) } else { "txt" });
        let path = self.assets.put(&file, &bytes)?;
        self.bytes += bytes.len() as u64;
        self.files += 1;
        self.known.insert(seal, path.clone());
        Ok(Some(path))
    }

    /// A name that no other file has: letters, digits and dashes.
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
            if self.names.insert(name.to_ascii_lowercase()) {
                return name;
            }
        }
    }
}

/// What the name of a file of this type ends in.
fn ending(mime: Option<&str>) -> &'static str {
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
