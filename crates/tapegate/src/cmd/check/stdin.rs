//! Standard input in place of a file. It can be read only once, so its beginning is kept.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use anyhow::Context;
use tapegate_store::input;

use super::HEAD_BYTES;
use crate::local_files::LocalFiles;

/// What to check: a file by its name, or standard input.
pub(super) struct CheckInput(Option<OpenedInput>);

struct OpenedInput {
    head: Vec<u8>,
    rest: Option<File>,
}

impl CheckInput {
    /// Reads the beginning of standard input if `path` is `-`.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        if path != Path::new("-") {
            return Ok(Self(None));
        }
        let read = || -> io::Result<OpenedInput> {
            let mut rest = input::stdin()?;
            let mut head = Vec::new();
            rest.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
            Ok(OpenedInput { head, rest: Some(rest) })
        };
        Ok(Self(Some(read().context("cannot read standard input")?)))
    }

    /// The beginning of standard input.
    pub(super) fn head(&self) -> Option<&[u8]> {
        self.0.as_ref().map(|opened| opened.head.as_slice())
    }

    /// All of standard input; can be taken only once.
    pub(super) fn stream(&mut self) -> Option<Box<dyn Read>> {
        let opened = self.0.as_mut()?;
        let (head, rest) = (std::mem::take(&mut opened.head), opened.rest.take()?);
        Some(Box::new(Cursor::new(head).chain(rest)))
    }

    /// A file system of regular files in which `-` is standard input.
    pub(super) fn local_files(&mut self, bytes_max: usize) -> anyhow::Result<LocalFiles> {
        // Reading a named pipe that a policy includes could block the check.
        let Some(stream) = self.stream() else { return Ok(LocalFiles::regular_only()) };
        let text = input::read_up_to(stream, bytes_max as u64);
        let text = text.context("cannot read standard input")?;
        Ok(LocalFiles::regular_only().and_file("-", text))
    }
}

/// Whether a text is YAML, as opposed to JSON or compressed data.
pub(super) fn looks_like_yaml(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    // Tapes and logs are JSON or gzip.
    !start.starts_with(b"{") && !start.starts_with(b"\x1f\x8b") && head.contains(&b':')
}
