//! Tests and names in a rule that were probably meant differently.

use tapegate_core::json::path::JsonPath;
use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, NodeValue};

use super::rule_checks::known_methods;
use crate::methods::fold;
use crate::model::{PolicyRule, RuleAction};

/// Warns about names that are methods or lists, paths in the syntax of other tools, and words that
/// were meant as booleans.
pub(super) fn check(node: &Node, rule: &PolicyRule, findings: &mut Findings) {
    let fields = MapFields::of(node);
    if let Some(node) = fields.get("match") {
        findings.with_step("match", |findings| check_names(node, rule, findings));
    }
    let Some(arguments) = fields.get("arguments").and_then(Node::as_map) else { return };
    findings.push_step("arguments");
    for (key, node) in arguments {
        findings.push_step(&key.name);
        if let Some(message) =
            foreign_path_message(&key.name).or_else(|| folder_search_message(&key.name, node, rule))
        {
            findings.warning(key.spot, message);
        }
        values(node, rule, findings);
        findings.pop_step();
    }
    findings.pop_step();
}

fn check_names(node: &Node, rule: &PolicyRule, findings: &mut Findings) {
    for node in node.as_list().unwrap_or(std::slice::from_ref(node)) {
        let Some(text) = node.as_text() else { continue };
        if known_methods().any(|method| fold(method) == fold(text)) && text.contains('/') {
            let message = format!(
                "`match` is the name of a tool, a prompt or a resource, and `{text}` is a method; write `method: {text}`"
            );
            findings.warning(node.spot, message);
        } else if text.contains('|') && !text.contains("://") {
            let list = text.split('|').map(str::trim).collect::<Vec<_>>().join(", ");
            let message = format!("a glob does not support `|`; write a list: `match: [{list}]`");
            findings.warning(node.spot, message);
        } else if rule.act == RuleAction::Forward {
            check_open_host(node, text, findings);
        }
    }
}

/// Warns about the values of a test.
fn values(node: &Node, rule: &PolicyRule, findings: &mut Findings) {
    match &node.value {
        NodeValue::Text(text) => {
            let as_bool = match text.to_ascii_lowercase().as_str() {
                "yes" | "on" => Some(true),
                "no" | "off" => Some(false),
                _ => None,
            };
            if let Some(meant) = as_bool {
                let message = format!(
                    "`{text}` is text here, as in YAML 1.2; write `{meant}` if that is what the server expects"
                );
                findings.warning(node.spot, message);
            }
            if rule.act == RuleAction::Forward {
                check_open_host(node, text, findings);
            }
        }
        NodeValue::Map(entries) => {
            for (key, node) in entries {
                if matches!(key.name.as_str(), "equals" | "glob") {
                    findings.with_step(&key.name, |findings| values(node, rule, findings));
                }
            }
        }
        _ => {}
    }
}

/// Warns about globs in an allowlist.
pub(super) fn check_open_hosts(list: &Node, findings: &mut Findings) {
    for node in list.as_list().unwrap_or_default() {
        check_open_host(node, node.as_text().unwrap_or_default(), findings);
    }
}

/// Warns about a glob that permits URLs by a star in their host: a star matches a slash too.
fn check_open_host(node: &Node, glob: &str, findings: &mut Findings) {
    if let Some(message) = open_host_message(glob) {
        findings.warning(node.spot, message);
    }
}

/// What is wrong with a glob that leaves the host of a URL open.
fn open_host_message(glob: &str) -> Option<String> {
    let (scheme, rest) = glob.split_once("://")?;
    let is_web = |scheme: &str| matches!(scheme, "http" | "https" | "http*" | "ws" | "wss" | "ftp");
    let host = rest.split('/').next().filter(|_| is_web(scheme))?;
    let star = host.find(['*', '?'])?;
    if host == "*" {
        return None;
    }
    let other = match star {
        0 => format!("{scheme}://evil.test/?{}/", host.trim_start_matches('*')),
        _ => format!("{scheme}://{}.evil.test/", host[..star].trim_end_matches('.')),
    };
    Some(format!(
        "a `*` matches any characters, including `/`, so that `{glob}` also matches `{other}`; name each host, up to the `/` after it, or write a `regex` such as `^https://([a-z0-9-]+\\.)*example\\.com/`"
    ))
}

/// What is wrong with a path in the syntax of other tools.
fn foreign_path_message(path: &str) -> Option<String> {
    let inner = path.strip_prefix("arguments.").or_else(|| path.strip_prefix("params.arguments."));
    if let Some(inner) = inner.filter(|inner| !inner.is_empty()) {
        return Some(format!(
            "a path starts at the arguments; write `{inner}`, unless there is an argument `{}`",
            path.split('.').next().unwrap_or_default()
        ));
    }
    let pointer = path.strip_prefix('/').filter(|inner| !inner.is_empty())?;
    Some(format!("this is one key with a `/` in it; write `{}`", pointer.replace('/', ".")))
}

/// Warns that a folder test at any depth also stops calls because of relative paths in JSON texts.
fn folder_search_message(path: &str, node: &Node, rule: &PolicyRule) -> Option<String> {
    let anywhere = JsonPath::read(path).ok()?.steps.iter().any(|step| step.anywhere);
    let stops = rule.act != RuleAction::Forward && node.get("under").is_some();
    (anywhere && stops).then(|| {
        format!(
            "`{path}` also searches JSON inside of strings, such as the content of a file, where a relative path could lead anywhere; name the argument to match fewer calls"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_the_host_of_a_url_is_told_with_what_it_lets_through() {
        for (glob, other) in [
            ("https://*.example.com/*", "https://evil.test/?.example.com/"),
            ("https://api.example.com*", "https://api.example.com.evil.test/"),
            ("http://api.*/x", "http://api.evil.test/"),
        ] {
            assert!(
                open_host_message(glob).is_some_and(|message| message.contains(other)),
                "{glob}"
            );
        }
        for glob in ["https://api.example.com/*", "file:///data/*", "https://*", "*", "note://*.x/"]
        {
            assert_eq!(open_host_message(glob), None, "{glob}");
        }
    }

    #[test]
    fn a_path_that_begins_elsewhere_is_told() {
        assert!(
            foreign_path_message("arguments.force")
                .is_some_and(|message| message.contains("write `force`"))
        );
        assert!(
            foreign_path_message("/a/b").is_some_and(|message| message.contains("write `a.b`"))
        );
        for path in ["force", "arguments", "a.arguments.b", "/"] {
            assert_eq!(foreign_path_message(path), None, "{path}");
        }
    }
}
