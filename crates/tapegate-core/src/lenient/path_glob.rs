//! Globs that were meant to restrict where a path leads.
//!
//! A glob compares text, so `/data/../etc` matches `/data/*`. The policy check therefore suggests the
//! folder that was meant.

/// Words that occur in the names of arguments that are paths.
const PATH_WORDS: [&str; 13] = [
    "path",
    "file",
    "filename",
    "dir",
    "directory",
    "folder",
    "cwd",
    "root",
    "uri",
    "source",
    "src",
    "destination",
    "dest",
];

/// The folder that a glob was meant to cover.
#[derive(Debug, PartialEq, Eq)]
pub enum GlobFolder {
    /// An absolute path; a URI if the glob is one.
    Absolute(String),
    /// The part after `~`.
    Home(String),
    /// A path relative to an unknown folder.
    Relative(String),
}

/// If a glob on the argument `key` is about a path: the folder that it was meant to cover, and a path that
/// would bypass it.
pub fn meant_folder(key: &str, glob: &str) -> Option<(GlobFolder, String)> {
    let start = glob.split(['*', '?', '[']).next().unwrap_or_default();
    if start.len() == glob.len() || !glob.ends_with('*') {
        return None;
    }
    let path = start.strip_prefix("file://").unwrap_or(start);
    let absolute = path.starts_with('/') || path.starts_with("~/");
    let relative = is_path(key) && path.contains('/') && !path.contains("://");
    if !(absolute || relative) {
        return None;
    }
    let folder = match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => path,
    };
    let meant = match folder.strip_prefix('~') {
        Some(rest) => GlobFolder::Home(rest.to_owned()),
        None if absolute => {
            GlobFolder::Absolute(format!("{}{folder}", &start[..start.len() - path.len()]))
        }
        None => GlobFolder::Relative(folder.to_owned()),
    };
    Some((meant, format!("{}/../etc/passwd", folder.trim_end_matches('/'))))
}

/// Whether the name of an argument suggests that it is a path.
fn is_path(key: &str) -> bool {
    let last = key.rsplit(['.', '\'']).find(|part| part.bytes().any(|b| b.is_ascii_alphabetic()));
    let last = last.unwrap_or(key).trim_end_matches(['[', ']', '*']).to_ascii_lowercase();
    let word = |word: &str| {
        let singular = last.strip_suffix('s').unwrap_or(&last);
        [last.as_str(), singular].iter().any(|name| name.ends_with(word))
    };
    PATH_WORDS.iter().any(|one| word(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_glob_on_a_path_is_found() {
        let absolute = |folder: &str| GlobFolder::Absolute(folder.to_owned());
        for (key, glob, folder) in [
            ("path", "/data/*", absolute("/data")),
            ("x", "/data*", absolute("/")),
            ("uri", "file:///data/*", absolute("file:///data")),
            ("file", "~/code/*", GlobFolder::Home("/code".to_owned())),
            ("targetDir", "src/*", GlobFolder::Relative("src".to_owned())),
        ] {
            assert_eq!(meant_folder(key, glob).map(|(folder, _)| folder), Some(folder), "{glob}");
        }
        assert_eq!(meant_folder("branch", "feature/*"), None);
        assert_eq!(meant_folder("path", "*.md"), None);
    }
}
