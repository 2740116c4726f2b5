//! Folders, and which paths lie in them as far as their text tells.
//!
//! Nothing here asks a file system. A path is read as servers read it: `.` and `..` are resolved, a
//! `file:` URI is decoded, a backslash may be a slash, an escape may be a letter. [`Folder::holds`]
//! is true only if the path lies in the folder by every reading, [`Folder::may_hold`] if it does by
//! one. Where symbolic links lead is up to the server.

use std::borrow::Cow;

use crate::spelling::{self, nfkc, spellings};

/// How many folders of one path are listed at most; deeper ones are left out.
const ANCESTORS_MAX: usize = 256;

/// An absolute folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    text: String,
    steps: Vec<String>,
    /// The steps as file systems compare them that ignore case and normal forms.
    folded: Vec<String>,
}

impl Folder {
    /// Reads a folder, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('~') {
            return Err(format!("`{text}` starts with `~`; write `${{HOME}}` instead"));
        }
        if !text.starts_with('/') {
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
        let steps: Vec<String> = resolved(text).into_iter().map(str::to_owned).collect();
        let folded = steps.iter().map(|step| folded(step)).collect();
        Ok(Self { text: text.to_owned(), steps, folded })
    }

    /// The folder as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a text is a path that lies in the folder, whoever reads it.
    pub fn holds(&self, text: &str) -> bool {
        let path = match file_path(text) {
            Some(path) => Cow::Owned(path),
            None => Cow::Borrowed(text),
        };
        every_reading(&path, &mut |path| {
            let inside = resolved(path);
            inside.len() >= self.steps.len() && self.steps.iter().zip(inside).all(|(a, b)| a == b)
        })
    }

    /// Whether some server could take a text for a path that lies in the folder. A relative path
    /// could lie anywhere.
    pub fn may_hold(&self, text: &str) -> bool {
        let mut readings = spellings(text);
        readings.push(text.to_owned());
        let paths: Vec<String> = readings.iter().filter_map(|text| file_path(text)).collect();
        readings.extend(paths);
        readings.iter().any(|text| {
            let path = text.replace('\\', "/");
            if !path.starts_with('/') {
                return !is_other_uri(&path);
            }
            let steps = resolved(&path);
            let inside = steps.iter().take(self.folded.len()).map(|step| folded(step));
            steps.len() >= self.folded.len() && inside.eq(self.folded.iter().cloned())
        })
    }
}

/// The folders that a text lies in if it is a path, whoever reads it: itself and all above it, from
/// `/` down. Nothing if it is not an absolute path, or readers disagree on it.
pub fn ancestors(text: &str) -> Vec<String> {
    let path = match file_path(text) {
        Some(path) => Cow::Owned(path),
        None => Cow::Borrowed(text),
    };
    let steps: Vec<String> = resolved(&path).into_iter().map(str::to_owned).collect();
    let mut common = steps.len();
    let plain = every_reading(&path, &mut |path| {
        let other = resolved(path);
        let alike = other.iter().zip(&steps).take_while(|(one, two)| *one == *two).count();
        common = common.min(alike);
        true
    });
    if !plain {
        return Vec::new();
    }
    let mut folders = vec!["/".to_owned()];
    let mut folder = String::new();
    for step in steps.iter().take(common.min(ANCESTORS_MAX)) {
        folder.push('/');
        folder.push_str(step);
        folders.push(folder.clone());
    }
    folders
}

/// Whether `holds` is true of an absolute path and of all that readers make of it. False for what is
/// not plainly an absolute path.
fn every_reading(path: &str, holds: &mut dyn FnMut(&str) -> bool) -> bool {
    if !path.starts_with('/') || path.contains('\0') {
        return false;
    }
    let plain = |path: &str| !path.split('/').any(is_odd_step);
    if !plain(path) || !holds(path) {
        return false;
    }
    if path.is_ascii() && !path.contains(['%', '\\']) {
        return true;
    }
    let (mut readings, whole) = spelling::percent_decoded(path);
    if !whole {
        return false;
    }
    readings.push(path.to_owned());
    let normal: Vec<String> = readings.iter().map(|reading| nfkc(reading).into_owned()).collect();
    readings.extend(normal);
    let slashed: Vec<String> = readings.iter().map(|reading| reading.replace('\\', "/")).collect();
    readings.extend(slashed);
    readings.iter().all(|path| !path.contains('\0') && plain(path) && holds(path))
}

/// Whether a step of a path could be read as one that leads up, without being `..`: with blanks
/// around it, or made by a brace.
fn is_odd_step(step: &str) -> bool {
    let bare = step.trim_matches(|letter: char| letter.is_whitespace() || letter.is_control());
    bare != step && matches!(bare, "" | "." | "..") || step.contains('{') && step.contains("..")
}

/// The steps of an absolute path that goes up and stays where it is on the way.
fn resolved(path: &str) -> Vec<&str> {
    let mut steps = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps
}

/// A path without `.`, `..`, empty steps and backslashes; `None` if it is like that already.
pub(crate) fn normal_path(path: &str) -> Option<String> {
    if !path.contains(['/', '\\']) {
        return None;
    }
    let slashed = path.replace('\\', "/");
    let absolute = slashed.starts_with('/');
    let mut steps: Vec<&str> = Vec::new();
    for step in slashed.split('/') {
        match step {
            "" | "." => {}
            ".." if steps.last().is_some_and(|last| *last != "..") => drop(steps.pop()),
            ".." if absolute => {}
            step => steps.push(step),
        }
    }
    let open = if slashed.ends_with('/') && !steps.is_empty() { "/" } else { "" };
    let normal = format!("{}{}{open}", if absolute { "/" } else { "" }, steps.join("/"));
    (normal != path).then_some(normal)
}

/// Whether a path goes up somewhere, by any reading.
pub(crate) fn climbs(path: &str) -> bool {
    let up = |path: &str| {
        path.contains("..")
            && path.split(['/', '\\']).any(|step| step.trim_matches(char::is_whitespace) == "..")
    };
    if up(path) {
        return true;
    }
    if path.is_ascii() && !path.contains('%') {
        return false;
    }
    spellings(path).iter().any(|reading| up(reading))
}

/// The path of a `file:` URI on this machine.
pub(crate) fn file_path(text: &str) -> Option<String> {
    let scheme = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("file:"))?;
    let rest = &text[scheme.len()..];
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let path = match rest.strip_prefix("//") {
        Some(after) => {
            let (host, path) = after.split_at(after.find('/')?);
            (host.is_empty() || host.eq_ignore_ascii_case("localhost")).then_some(path)?
        }
        None => Some(rest).filter(|path| path.starts_with('/'))?,
    };
    spelling::percent_decode(path).map_or_else(|| Some(path.to_owned()), Some)
}

/// Whether a text is a URI of another scheme than `file`, and leads nowhere else if taken for a path.
fn is_other_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(":/") else { return false };
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let known = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(letter);
    known && !scheme.eq_ignore_ascii_case("file") && !rest.split('/').any(|step| step == "..")
}

fn folded(step: &str) -> String {
    nfkc(step).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Folder {
        Folder::parse("/data").unwrap()
    }

    #[test]
    fn a_path_in_the_folder_is_held_however_it_gets_there() {
        for path in [
            "/data",
            "/data/",
            "/data/a",
            "/data/a/b.txt",
            "//data//a",
            "/data/./a",
            "/data/a/../b",
            "/x/../data/a",
            "/../data/a",
            "/data/..a/b..",
            "/data/100%",
            "/data/é",
            "/data/e\u{301}",
            "/data/a b",
            "file:///data/a",
            "file:///data/a%20b",
            "file://localhost/data/a",
            "file:/data/a",
        ] {
            assert!(data().holds(path), "{path}");
            assert!(data().may_hold(path), "{path}");
            assert!(ancestors(path).contains(&"/data".to_owned()), "{path}");
        }
    }

    #[test]
    fn a_path_that_some_reader_takes_elsewhere_is_not_held() {
        for path in [
            "",
            "/",
            "/dat",
            "/database",
            "/data-old/a",
            "/data/../etc/passwd",
            "/data/..",
            "/data/a/../../etc",
            "/data/%2e%2e/etc",
            "/data/%252e%252e/etc",
            "/data/..%2fetc",
            "/data/..%5c..%5cetc",
            "/data\\..\\..\\etc",
            "/data/..\\etc",
            "/data/.. /etc",
            "/data/\u{2024}\u{2024}/etc",
            "/data/．．/etc",
            "/data/{..,a}/etc",
            "/data/a\0",
            "/data%00/a",
            "/Data/a",
            " /data/a",
            "data/a",
            "./data/a",
            "~/data",
            "~",
            "C:\\data\\a",
            "https://data/a",
            "file://host/data/a",
            "file:///etc/data",
            "file:///data/%2e%2e/etc",
            "FILE:data/a",
        ] {
            assert!(!data().holds(path), "{path}");
            assert!(!ancestors(path).contains(&"/data".to_owned()), "{path}");
        }
    }

    #[test]
    fn a_path_that_some_reader_takes_into_the_folder_may_be_held() {
        let etc = Folder::parse("/etc").unwrap();
        for path in [
            "/etc/passwd",
            "/ETC/passwd",
            "/tmp/../etc/passwd",
            "/%65tc/passwd",
            "/%2565tc/passwd",
            "%2Fetc%2Fpasswd",
            " /etc/passwd",
            "/etc/passwd\0.txt",
            "\\etc\\passwd",
            "/ｅｔｃ/passwd",
            "file:///etc/passwd",
            "file:/etc/passwd",
            "FILE://localhost/%65tc/passwd",
            "etc/passwd",
            "../../etc/passwd",
            "~/x",
            "x://../../etc/passwd",
        ] {
            assert!(etc.may_hold(path), "{path}");
        }
        for path in ["/data/a", "/data/etc/passwd", "/etcetera", "https://etc/passwd", "/"] {
            assert!(!etc.may_hold(path), "{path}");
        }
        let accent = Folder::parse("/data/é").unwrap();
        assert!(accent.may_hold("/data/e\u{301}/a") && !accent.holds("/data/e\u{301}/a"));
    }

    #[test]
    fn what_is_not_a_folder_is_refused_with_the_way_out() {
        for (text, hint) in [
            ("data", "absolute"),
            ("", "absolute"),
            ("./data", "${PWD}"),
            ("~/data", "${HOME}"),
            ("/data/*", "covers everything below it: `/data`"),
            ("/*", "covers everything below it: `/`"),
        ] {
            let error = Folder::parse(text).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
        let root = Folder::parse("/").unwrap();
        assert!(root.holds("/etc") && root.holds("/") && !root.holds("etc"));
        assert!(Folder::parse("/data/../srv/").unwrap().holds("/srv/a"));
    }

    #[test]
    fn the_folders_of_a_path_are_listed_from_the_top() {
        assert_eq!(ancestors("/data/./a//b/.."), ["/", "/data", "/data/a"]);
        assert_eq!(ancestors("/"), ["/"]);
        assert_eq!(ancestors("a/b"), [""; 0]);
        assert_eq!(ancestors("/data/%2e%2e/a"), ["/"]);
    }
}
