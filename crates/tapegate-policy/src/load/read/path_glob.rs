//! Globs that were meant to test the location of a path.

use tapegate_core::lenient::path_glob::{GlobFolder, meant_folder};
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, NodeValue};

/// Warns about a glob on a path, and names the test to use instead.
pub(super) fn check(key: &str, node: &Node, findings: &mut Findings) {
    match &node.value {
        NodeValue::Text(text) => {
            if let Some(message) = path_glob_message(key, text) {
                findings.warning(node.spot, message);
            }
        }
        NodeValue::Map(entries) => {
            for (name, node) in entries {
                if matches!(name.name.as_str(), "glob" | "not") {
                    findings.with_step(&name.name, |findings| check(key, node, findings));
                }
            }
        }
        _ => {}
    }
}

/// What is wrong with a glob, if it is about a path.
fn path_glob_message(key: &str, glob: &str) -> Option<String> {
    let (folder, up) = meant_folder(key, glob)?;
    let meant = match folder {
        GlobFolder::Absolute(folder) => folder,
        GlobFolder::Home(rest) => format!("${{HOME}}{rest}"),
        GlobFolder::Relative(folder) => format!("${{PWD}}/{folder}"),
    };
    if key.ends_with('*') {
        return Some(format!(
            "`{glob}` compares text, and a path has other spellings (`{up}`, `../x`); name the arguments that are paths, and write `{{ under: {meant} }}` for each"
        ));
    }
    Some(format!(
        "`{glob}` compares text, and a path has other spellings (`{up}`, `../x`); write `{{ under: {meant} }}`"
    ))
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
            ("file", "~/code/*", "{ under: ${HOME}/code }"),
            ("opts.targetDir", "src/*", "{ under: ${PWD}/src }"),
            ("uri", "file:///data/*", "{ under: file:///data }"),
        ] {
            let message = path_glob_message(key, glob).unwrap_or_default();
            assert!(message.ends_with(&format!("write `{meant}`")), "{key} {glob}: {message}");
        }
        for (key, glob) in [
            ("path", "/data/a.txt"),
            ("path", "*.md"),
            ("path", "*"),
            ("uri", "https://example.com/*"),
            ("title", "docs/*"),
            ("branch", "feature/*"),
        ] {
            assert_eq!(path_glob_message(key, glob), None, "{key} {glob}");
        }
    }
}
