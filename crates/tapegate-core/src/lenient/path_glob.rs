//! Globs that were meant to say where a path lies.
//!
//! A glob compares text, and `/data/../etc` is like `/data/*`. So whoever checks a policy names the folder
//! that was meant.

/// Words in the names of arguments that are paths.
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
pub enum MeantFolder {
    /// From the root; a URI if the glob is one.
    Absolute(String),
    /// What follows `~`.
    Home(String),
    /// From a folder that is not known.
    Relative(String),
}

/// The folder that a glob on the argument `key` was meant to cover, if the glob is about a path, and a
/// path that would get around it.
pub fn meant_folder(key: &str, glob: &str) -> Option<(MeantFolder, String)> {
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
        Some(rest) => MeantFolder::Home(rest.to_owned()),
        None if absolute => {
            MeantFolder::Absolute(format!("{}{folder}", &start[..start.len() - path.len()]))
        }
        None => MeantFolder::Relative(folder.to_owned()),
    };
    Some((meant, format!("{}/../etc/passwd", folder.trim_end_matches('/'))))
}

/// Whether an argument goes by a name that paths go by.
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
        let absolute = |folder: &str| MeantFolder::Absolute(folder.to_owned());
        for (key, glob, folder) in [
            ("path", "/data/*", absolute("/data")),
            ("x", "/data*", absolute("/")),
            ("uri", "file:///data/*", absolute("file:///data")),
            ("file", "~/code/*", MeantFolder::Home("/code".to_owned())),
            ("targetDir", "src/*", MeantFolder::Relative("src".to_owned())),
        ] {
            assert_eq!(meant_folder(key, glob).map(|(folder, _)| folder), Some(folder), "{glob}");
        }
        assert_eq!(meant_folder("branch", "feature/*"), None);
        assert_eq!(meant_folder("path", "*.md"), None);
    }
}
