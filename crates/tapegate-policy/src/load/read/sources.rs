//! Reads the servers, and which of their items are visible.

use tapegate_yaml::field::Fields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Node;

use super::{globs, twice};
use crate::model::{Expose, Source};

/// The maximum number of servers.
const SOURCES_MAX: usize = 1_000;

/// All servers; a single `*` if none is named.
pub(super) fn read(top: &Node, findings: &mut Findings) -> Vec<Source> {
    let Some(node) = Fields::of(top).get("sources") else { return vec![everything()] };
    findings.enter("sources");
    let list = node.as_list().unwrap_or_default();
    if node.as_list().is_some_and(<[Node]>::is_empty) {
        let words =
            "an empty list of servers exposes nothing; leave `sources` out to expose all servers";
        findings.error(node.spot, words);
    }
    if list.len() > SOURCES_MAX {
        let words = format!("there are {} servers; the maximum is {SOURCES_MAX}", list.len());
        findings.error(node.spot, words);
        findings.leave();
        return Vec::new();
    }
    let mut sources = Vec::new();
    for (index, node) in list.iter().enumerate() {
        let source = findings.within(&format!("[{index}]"), |findings| source(node, findings));
        sources.extend(source);
    }
    twice(list, "id", "the name", findings);
    findings.leave();
    sources
}

fn everything() -> Source {
    Source {
        id: "*".to_owned(),
        enabled: true,
        tools: Expose::All,
        prompts: Expose::All,
        resources: Expose::All,
        url: None,
    }
}

fn source(node: &Node, findings: &mut Findings) -> Option<Source> {
    let fields = Fields::of(node);
    let enabled = fields.flag("enabled", findings).unwrap_or(true);
    let url = fields.get("url").and_then(Node::as_text).map(str::to_owned);
    let exposed = match fields.get("expose") {
        Some(node) => findings.within("expose", |findings| expose(node, findings)),
        None => [Expose::All, Expose::All, Expose::All],
    };
    let id = fields.get("id")?.as_text()?.to_owned();
    let [tools, prompts, resources] = exposed;
    Some(Source { id, enabled, tools, prompts, resources, url })
}

/// Which tools, prompts and resources are visible.
fn expose(node: &Node, findings: &mut Findings) -> [Expose; 3] {
    const KINDS: [&str; 3] = ["tools", "prompts", "resources"];
    let fields = Fields::of(node);
    let mode = fields.get("mode").or(Some(node)).and_then(Node::as_text).unwrap_or_default();
    let given = KINDS.map(|kind| fields.get(kind));
    let make: fn(_) -> _ = match mode {
        "allowlist" => Expose::Only,
        "blocklist" => Expose::Except,
        _ => {
            for (kind, node) in KINDS.iter().zip(given) {
                if let Some(node) = node {
                    let words =
                        format!("`{kind}` does not apply to `mode: all`, which exposes everything");
                    findings.error(node.spot, words);
                }
            }
            return [Expose::All, Expose::All, Expose::All];
        }
    };
    if given.iter().all(Option::is_none) {
        findings.error(node.spot, format!("`tools` is missing: `mode: {mode}` needs a list"));
    }
    if mode == "allowlist" {
        for (kind, node) in KINDS.iter().zip(given).filter_map(|(kind, node)| Some((kind, node?))) {
            findings.within(kind, |findings| super::odd_tests::open_hosts(node, findings));
        }
    }
    // A list of tools alone applies to all kinds, as it did before each kind had its own list.
    let [tools, prompts, resources] = given;
    let alone = prompts.is_none() && resources.is_none();
    let mut read = |kind: &str, list: Option<&Node>| {
        make(findings.within(kind, |findings| globs(list, findings)))
    };
    match alone {
        true => [read("tools", tools), copy(make, tools), copy(make, tools)],
        false => [read("tools", tools), read("prompts", prompts), read("resources", resources)],
    }
}

/// The same list again, without repeating its findings.
fn copy(make: fn(Vec<crate::glob::Glob>) -> Expose, list: Option<&Node>) -> Expose {
    make(globs(list, &mut Findings::default()))
}
