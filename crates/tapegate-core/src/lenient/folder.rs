//! Folders, and which paths are inside them as far as their text shows.
//!
//! Nothing here accesses a file system. [`FolderPath::holds`] is true only if a text leads into the
//! folder by every reading that a server could make of it, [`FolderPath::may_hold`] if it does by at
//! least one. A folder is written as a path or as a `file:` URI, and the texts it accepts have the
//! same form: a server that expects paths takes `file:///data/a` for a relative one. Where symbolic
//! links lead is up to the server.

mod expansion;
mod path_text;
mod readings;

use super::spelling::{form_decode, percent_decode};
use expansion::{may_lead_elsewhere, may_lead_into};
use path_text::{is_unambiguous, resolved, stays_in};
use readings::after_scheme;

pub use path_text::{has_parent_step, normal_path};
pub use readings::{ReadingsEnd, each_document_reading, each_reading};

/// The prefix of a folder that is written as a URI.
const URI_START: &str = "file://";

/// An absolute folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderPath {
    text: String,
    /// Whether it was written as a `file:` URI.
    is_uri: bool,
    steps: Vec<String>,
    /// The steps as compared by file systems that ignore case and Unicode normal forms.
    folded: Vec<String>,
}

impl FolderPath {
    /// Parses a folder; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('~') {
            return Err(format!("`{text}` starts with `~`; write `${{HOME}}` instead"));
        }
        let is_uri = after_scheme(text).is_some();
        let path = text.strip_prefix(URI_START).unwrap_or(text);
        if is_uri && (!path.starts_with('/') || path.contains(['%', '?', '#'])) {
            return Err(format!(
                "`{text}` is not a folder; a URI is written as `file:///data`, without host, escapes, `?` and `#`"
            ));
        }
        if !path.starts_with('/') {
            return Err(format!(
                "`{text}` is not an absolute folder; it must start with `/`, or with a variable such as `${{PWD}}`"
            ));
        }
        if text.contains('*') {
            let folder = text.split('*').next().unwrap_or_default().trim_end_matches('/');
            return Err(format!(
                "`{text}` is a glob; `under` takes a folder and covers everything below it: `{}`",
                if folder.is_empty() { "/" } else { folder }
            ));
        }
        if text.contains('\0') {
            return Err("a folder must not contain a NUL".to_owned());
        }
        let steps: Vec<String> = resolved(path).into_iter().map(str::to_owned).collect();
        let folded = steps.iter().map(|step| folded(step)).collect();
        Ok(Self { text: text.to_owned(), is_uri, steps, folded })
    }

    /// The folder as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is the root, which contains every path.
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether every reader takes the text for a path inside the folder; for a folder that is written
    /// as a URI, for such a URI.
    pub fn holds(&self, text: &str) -> bool {
        let path = match self.is_uri {
            true => uri_path(text),
            false => Some(text),
        };
        let strays = |path: &str| !(is_unambiguous(path) && stays_in(&self.steps, path));
        path.is_some_and(|path| each_reading(path, strays).is_continue())
    }

    /// Whether some server could take a text for a path inside the folder. A relative path could be
    /// anywhere, and so could a `file:` URI, unless the folder is itself written as a URI.
    pub fn may_hold(&self, text: &str) -> bool {
        let inside = |path: &str| {
            let path = after_empty_host(path).unwrap_or(path);
            if !path.starts_with('/') {
                let resolved_later = self.is_uri && after_scheme(path).is_some();
                return !is_other_uri(path) && !resolved_later;
            }
            let steps = resolved(path);
            let steps: Vec<String> =
                steps.iter().take(self.folded.len()).map(|step| folded(step)).collect();
            may_lead_elsewhere(path) || may_lead_into(&self.folded, &steps)
        };
        // Form decoders turn `+` into a space, before or after other decoding.
        let either =
            |path: &str| inside(path) || form_decode(path).is_some_and(|path| inside(&path));
        // A text with too many readings may be anywhere.
        each_reading(text, either).is_break()
            || form_decode(text).is_some_and(|text| each_reading(&text, either).is_break())
    }
}

/// The still encoded path of a `file:` URI, if every URI parser resolves it to the same place: no
/// host, nothing that ends the path, no step up, and no escaped character with a special meaning.
fn uri_path(text: &str) -> Option<&str> {
    let path = text.strip_prefix(URI_START)?;
    let special = |letter: char| "/\\.%?#;:".contains(letter) || letter.is_control();
    let decodes_to_special = |(at, _): (usize, &str)| {
        let escape = path.get(at..at + 3).and_then(percent_decode);
        escape.is_none_or(|letter| letter.contains(special))
    };
    let climbs = path.split('/').any(|step| step == "..");
    let ends = path.contains(['?', '#', '\\']);
    let odd_escape = path.match_indices('%').any(decodes_to_special);
    (!climbs && !ends && !odd_escape).then_some(path)
}

/// Whether a text is a URI with a scheme other than `file`, and does not climb if taken for a path.
fn is_other_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(":/") else { return false };
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let known = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(letter);
    known && !scheme.eq_ignore_ascii_case("file") && !rest.split('/').any(|step| step == "..")
}

/// The path of a URI with an empty host, or with a scheme that refers to files: `local:///etc`,
/// `git+file:/etc`.
fn after_empty_host(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if scheme.len() < 2 || !scheme.bytes().all(is_scheme) {
        return None;
    }
    let of_files = scheme.to_ascii_lowercase().split('+').any(|part| part == "file");
    let path = rest.strip_prefix("//").unwrap_or(if of_files { rest } else { "" });
    let is_path = path.starts_with('/') && !scheme.eq_ignore_ascii_case("file");
    is_path.then_some(path)
}

fn folded(step: &str) -> String {
    super::spelling::nfkc(step).to_lowercase()
}

#[cfg(test)]
mod tests;
