//! The readings that servers may make of a text they take for a path.
//!
//! One server opens the text as it is, another parses it as a URL and drops `#` and `?`, a third strips
//! `file://`, decodes escapes or converts backslashes. Each transformation is applied to the results of
//! the others, so that the order in which a server applies them does not matter.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::super::spelling::{is_invisible, nfkc, percent_decode, trimmed, unicode_decode};
use super::normal_path;

/// How many readings are tried; a text that has more is crafted to be misread.
const READINGS_MAX: usize = 128;
/// How often escapes are decoded in a chain of readers.
const DECODED_MAX: usize = 4;
/// The minimum limit for the size of all readings together; the limit grows with the text. They are
/// kept until the last one has been tried.
const READINGS_BYTES_MIN: usize = 1 << 20;
const READINGS_BYTES_FACTOR: usize = 4;
/// The same for a document, whose [`canonical`] readings are tried first. The factor is lower than that
/// of a scan budget, so that an ordinary document is decided within it.
const DOCUMENT_BYTES_MIN: usize = 1 << 14;
const DOCUMENT_BYTES_FACTOR: usize = 8;

/// Why not every reading was tried.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadingsEnd {
    /// The callback returned true.
    Stopped,
    /// There are more readings than the limit.
    TooMany,
}

/// Calls `show` with every reading of a text, the text itself first, until it returns true.
pub fn each_reading(text: &str, show: impl FnMut(&str) -> bool) -> ControlFlow<ReadingsEnd> {
    let bytes_max = READINGS_BYTES_MIN + text.len().saturating_mul(READINGS_BYTES_FACTOR);
    readings_within(text, bytes_max, Vec::new(), show)
}

/// The same for a document: the results of whole chains of readers come first, since there may be more
/// readings than the limit.
pub fn each_document_reading(
    text: &str,
    show: impl FnMut(&str) -> bool,
) -> ControlFlow<ReadingsEnd> {
    let bytes_max = DOCUMENT_BYTES_MIN + text.len().saturating_mul(DOCUMENT_BYTES_FACTOR);
    readings_within(text, bytes_max, canonical(text), show)
}

fn readings_within(
    text: &str,
    bytes_max: usize,
    first: Vec<String>,
    mut show: impl FnMut(&str) -> bool,
) -> ControlFlow<ReadingsEnd> {
    if show(text) || first.iter().any(|reading| show(reading)) {
        return ControlFlow::Break(ReadingsEnd::Stopped);
    }
    if is_plain(text) {
        return ControlFlow::Continue(());
    }
    let mut bytes = first.iter().map(String::len).sum::<usize>();
    let mut all = vec![text.to_owned()];
    all.extend(first);
    let mut known: HashSet<u64> = all.iter().map(|reading| hash(reading)).collect();
    let mut at = 0;
    while let Some(reading) = all.get(at) {
        for new in read(reading) {
            if !known.insert(hash(&new)) && all.contains(&new) {
                continue;
            }
            bytes += new.len();
            if all.len() >= READINGS_MAX || bytes > bytes_max {
                return ControlFlow::Break(ReadingsEnd::TooMany);
            }
            if show(&new) {
                return ControlFlow::Break(ReadingsEnd::Stopped);
            }
            all.push(new);
        }
        at += 1;
    }
    ControlFlow::Continue(())
}

/// Most readings of a reading are known already, and are found faster by hash.
fn hash(text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(text, &mut hasher);
    std::hash::Hasher::finish(&hasher)
}

/// The results of whole chains of readers: a URL parser followed by decoding of the path, decoding
/// followed by parsing, and opening the text with or without decoding it.
fn canonical(text: &str) -> Vec<String> {
    let one_line = |text: &str| trimmed(&text.replace(is_ignored, "")).to_owned();
    let wide = nfkc(text);
    let line = one_line(&wide);
    let by_url = path_of(&decoded(path_part(&line)));
    let decoded_first = path_of(path_part(&one_line(&decoded(&wide))));
    let opened = trimmed(&wide).replace('\\', "/");
    let opened_decoded = path_of(&decoded(trimmed(&wide)));
    let ended_first = path_of(&decoded(path_part(trimmed(&wide))));
    let by_path = [opened, opened_decoded, ended_first];
    let mut all: Vec<String> = Vec::new();
    for reading in
        [by_url, decoded_first, path_of(&line), decoded(&line)].into_iter().chain(by_path)
    {
        if reading != text && !all.contains(&reading) {
            all.push(reading);
        }
    }
    all
}

/// A text up to the end of a path in a URL, or of a string in C.
fn path_part(text: &str) -> &str {
    text.split(['\0', '#', '?']).next().unwrap_or(text)
}

/// A text with its URL escapes decoded, as often as servers do.
fn decoded(text: &str) -> String {
    let mut decoded = text.to_owned();
    for _ in 0..DECODED_MAX {
        let by_unicode = unicode_decode(&decoded);
        match percent_decode(by_unicode.as_deref().unwrap_or(&decoded)).or(by_unicode) {
            Some(next) => decoded = next,
            None => break,
        }
    }
    decoded
}

/// The path in a text, without scheme, host and parameters, and with forward slashes.
fn path_of(text: &str) -> String {
    let slashed = text.replace('\\', "/");
    let path = match after_scheme(&slashed) {
        Some(rest) => format!("/{}", rest.trim_start_matches('/')),
        None => slashed,
    };
    let names = path.split('/').map(|step| step.split(';').next().unwrap_or(step));
    names.collect::<Vec<_>>().join("/")
}

/// Whether a text has only one reading. Fast, since most do.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| {
        (byte.is_ascii_graphic() || byte == b' ')
            && !matches!(byte, b'%' | b'\\' | b'#' | b'?' | b';')
    };
    text.bytes().all(plain)
        && !text.starts_with("//")
        && !text.starts_with(' ')
        && !text.ends_with(' ')
        && after_scheme(text).is_none()
}

/// The readings of a text after one transformation.
fn read(text: &str) -> Vec<String> {
    let mut all: Vec<String> =
        percent_decode(text).into_iter().chain(unicode_decode(text)).collect();
    all.push(nfkc(text).into_owned());
    // A reader that resolves the path first decodes only the rest.
    all.extend(normal_path(text).filter(|_| text.contains('%')));
    // Some trim more than others: a trailing NUL stays if only white space is trimmed.
    all.extend([trimmed(text).to_owned(), text.trim().to_owned()]);
    if text.contains('\\') {
        all.push(text.replace('\\', "/"));
    }
    for end in ['\0', '#', '?'] {
        all.extend(text.find(end).map(|at| text[..at].to_owned()));
    }
    if text.contains(is_ignored) {
        all.extend([text.replace(is_ignored, ""), text.replace(['\t', '\n', '\r'], "")]);
    }
    if text.contains('%') {
        // URL parsers decode an escaped dot but keep other escapes.
        all.push(text.replace("%2e", ".").replace("%2E", "."));
    }
    if text.contains(';') {
        let names = text.split('/').map(|step| step.split(';').next().unwrap_or(step));
        all.push(names.collect::<Vec<_>>().join("/"));
    }
    if let Some(rest) = after_scheme(text) {
        // A URL parser takes the rest for an absolute path, however many slashes it starts with.
        all.push(format!("/{}", rest.trim_start_matches('/')));
        all.push(rest.strip_prefix("//").unwrap_or(rest).to_owned());
    }
    let after_host = after_scheme(text).unwrap_or(text).strip_prefix("//");
    all.extend(after_host.map(|place| place[place.find('/').unwrap_or(place.len())..].to_owned()));
    all
}

/// The part of a `file:` URI after its scheme.
pub(super) fn after_scheme(text: &str) -> Option<&str> {
    let scheme = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:"))?;
    Some(&text[scheme.len()..])
}

/// Whether some reader drops a character wherever it occurs.
pub(super) fn is_ignored(letter: char) -> bool {
    letter.is_control() || is_invisible(letter)
}
