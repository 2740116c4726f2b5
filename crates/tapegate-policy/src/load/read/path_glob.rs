//! Globs that were meant to say where a path lies.

use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, Value};

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

/// Warns of a glob on a path, and names the test that was meant.
pub(super) fn check(key: &str, node: &Node, findings: &mut Findings) {
    match &node.value {
        Value::Text(text) => {
            if let Some(words) = words(key, text) {
                findings.warning(node.spot, words);
            }
        }
        Value::Map(entries) => {
            for (name, node) in entries {
                if matches!(name.name.as_str(), "glob" | "not") {
                    findings.within(&name.name, |findings| check(key, node, findings));
                }
            }
        }
        _ => {}
    }
}

/// What is wrong with a glob, if it is about a path.
fn words(key: &str, glob: &str) -> Option<String> {
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
    let meant = match folder.strip_prefix("~") {
        Some(rest) => format!("${{HOME}}{rest}"),
        None if absolute => folder.to_owned(),
        None => format!("${{PWD}}/{folder}"),
    };
    let up = format!("{}/../etc/passwd", folder.trim_end_matches('/'));
    Some(format!(
        "`{glob}` compares text, and a path has other spellings (`{up}`, `../x`); write `{{ under: {meant} }}`"
    ))
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
    fn globs_on_paths_are_told_with_the_test_that_was_meant() {
        for (key, glob, meant) in [
            ("path", "/data/*", "{ under: /data }"),
            ("anything", "/data/*", "{ under: /data }"),
            ("paths[*]", "/data/sub/**", "{ under: /data/sub }"),
            ("p", "/data*", "{ under: / }"),
            ("file", "~/work/*", "{ under: ${HOME}/work }"),
            ("opts.targetDir", "src/*", "{ under: ${PWD}/src }"),
            ("uri", "file:///data/*", "{ under: /data }"),
        ] {
            let words = words(key, glob).unwrap_or_default();
            assert!(words.ends_with(&format!("write `{meant}`")), "{key} {glob}: {words}");
        }
        for (key, glob) in [
            ("path", "/data/a.txt"),
            ("path", "*.md"),
            ("path", "*"),
            ("uri", "https://example.com/*"),
            ("title", "docs/*"),
            ("branch", "feature/*"),
        ] {
            assert_eq!(words(key, glob), None, "{key} {glob}");
        }
    }
}
