//! Regular expressions that permit more than they seem to.

use regex::Regex;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Spot;

use crate::model::{PolicyRule, RuleAction};
use crate::predicate::{ArgumentTest, ValueTest};

/// Suffixes that lead out of a folder.
const WAYS_OUT: [&str; 2] = ["../../x", "a/../../../x"];

/// Warns about expressions in a forwarding rule, with a text that passes but should not.
pub(super) fn check(spot: Spot, rule: &PolicyRule, findings: &mut Findings) {
    if rule.act != RuleAction::Forward {
        return;
    }
    for test in &rule.arguments {
        let ArgumentTest::Value(predicate) = test else { continue };
        let (ValueTest::Regex(regex), false) = predicate.test() else { continue };
        let Some(message) = regex_message(regex) else { continue };
        let message = format!("`{}`: {message}", predicate.path().1);
        findings.with_step("arguments", |findings| findings.warning(spot, message));
    }
}

fn regex_message(regex: &Regex) -> Option<String> {
    let text = regex.as_str();
    let start = literal_start(text);
    if let Some(folder) = folder_of(&start) {
        let leaves = WAYS_OUT.iter().flat_map(|way| {
            [format!("{folder}{way}"), format!("{}/{way}", start.trim_end_matches('/'))]
        });
        let passing = leaves.into_iter().find(|path| regex.is_match(path))?;
        let folder = start.trim_end_matches('/');
        return Some(format!(
            "`{text}` compares text, and also matches `{passing}`, which only the gate's own test for `..` keeps out; write `{{ under: {folder} }}`"
        ));
    }
    // Groups and flags may contain an anchor; only report expressions that certainly have none.
    let is_open = !text.contains('^') && !text.contains("\\A") && !regex.is_match("");
    is_open.then(|| {
        format!("`{text}` matches anywhere in the text; begin it with `^` and end it with `$`")
    })
}

/// The literal prefix of everything that an expression matches.
fn literal_start(regex: &str) -> String {
    let regex = regex.strip_prefix("\\A").unwrap_or(regex);
    let regex = regex.strip_prefix('^').unwrap_or(regex);
    let (mut start, mut letters) = (String::new(), regex.chars().peekable());
    while let Some(letter) = letters.next() {
        let letter = match letter {
            '\\' => match letters.next() {
                Some(escaped) if escaped.is_ascii_punctuation() => escaped,
                _ => break,
            },
            '.' | '[' | '(' | ')' | '|' | '$' | '^' | '*' | '+' | '?' | '{' => break,
            letter => letter,
        };
        // A repeated or optional character may be absent.
        if matches!(letters.peek(), Some('*' | '+' | '?' | '{')) {
            break;
        }
        start.push(letter);
    }
    start
}

/// The folder that a text begins with, if it is a path.
fn folder_of(start: &str) -> Option<&str> {
    let path = start.strip_prefix("file://").unwrap_or(start);
    let is_path = path.starts_with('/') || path.starts_with("~/");
    let end = start.rfind('/').filter(|_| is_path)?;
    Some(&start[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(regex: &str) -> String {
        regex_message(&Regex::new(regex).unwrap()).unwrap_or_default()
    }

    #[test]
    fn an_expression_that_a_detour_passes_is_told_with_the_detour() {
        for (regex, passing, folder) in [
            ("^/srv/data/", "/srv/data/../../x", "/srv/data"),
            ("/srv/data/", "/srv/data/../../x", "/srv/data"),
            (r"^\/srv\/data\/.*$", "/srv/data/../../x", "/srv/data"),
            (r"^/srv/my\.data/[a-z./]+$", "/srv/my.data/../../x", "/srv/my.data"),
            ("^/srv/data", "/srv/data/../../x", "/srv/data"),
        ] {
            let told = told(regex);
            assert!(told.contains(&format!("also matches `{passing}`")), "{regex}: {told}");
            assert!(told.ends_with(&format!("write `{{ under: {folder} }}`")), "{regex}: {told}");
        }
    }

    #[test]
    fn an_expression_without_an_anchor_is_told_and_a_closed_one_is_not() {
        for open in ["main", "[a-z]+", "main$", "a|b"] {
            assert!(told(open).contains("anywhere in the text"), "{open}: {}", told(open));
        }
        for closed in [
            "^main$",
            r"\Amain\z",
            "(?i)^main$",
            "^(main|dev)$",
            r"^/srv/data/[a-z]+\.txt$",
            r"^https://x\.example/",
            "^feature/",
            ".*",
        ] {
            assert_eq!(told(closed), "", "{closed}");
        }
    }
}
