//! Reads the servers, and which of their items are visible.

use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Node;

use super::{check_duplicates, globs};
use crate::model::{Exposure, ServerSource};

/// The maximum number of servers.
const SOURCES_MAX: usize = 1_000;

/// All servers; a single `*` if none is named.
pub(super) fn read(top: &Node, findings: &mut Findings) -> Vec<ServerSource> {
    let Some(node) = MapFields::of(top).get("sources") else { return vec![default_source()] };
    findings.push_step("sources");
    let list = node.as_list().unwrap_or_default();
    if node.as_list().is_some_and(<[Node]>::is_empty) {
        let message =
            "an empty list of servers exposes nothing; leave `sources` out to expose all servers";
        findings.error(node.spot, message);
    }
    if list.len() > SOURCES_MAX {
        let message = format!("there are {} servers; the maximum is {SOURCES_MAX}", list.len());
        findings.error(node.spot, message);
        findings.pop_step();
        return Vec::new();
    }
    let mut sources = Vec::new();
    for (index, node) in list.iter().enumerate() {
        let source = findings.with_step(&format!("[{index}]"), |findings| source(node, findings));
        sources.extend(source);
    }
    check_duplicates(list, "id", "the name", findings);
    findings.pop_step();
    sources
}

fn default_source() -> ServerSource {
    ServerSource {
        id: "*".to_owned(),
        enabled: true,
        tools: Exposure::All,
        prompts: Exposure::All,
        resources: Exposure::All,
        url: None,
    }
}

fn source(node: &Node, findings: &mut Findings) -> Option<ServerSource> {
    let fields = MapFields::of(node);
    let enabled = fields.flag("enabled", findings).unwrap_or(true);
    let url = fields.get("url").and_then(Node::as_text).map(str::to_owned);
    let exposed = match fields.get("expose") {
        Some(node) => findings.with_step("expose", |findings| read_expose(node, findings)),
        None => [Exposure::All, Exposure::All, Exposure::All],
    };
    let id = fields.get("id")?.as_text()?.to_owned();
    let [tools, prompts, resources] = exposed;
    Some(ServerSource { id, enabled, tools, prompts, resources, url })
}

/// Which tools, prompts and resources are visible.
fn read_expose(node: &Node, findings: &mut Findings) -> [Exposure; 3] {
    const KINDS: [&str; 3] = ["tools", "prompts", "resources"];
    let fields = MapFields::of(node);
    // `expose: all` is short for `expose: { mode: all }`.
    let mode = fields.get("mode").or(Some(node)).and_then(Node::as_text).unwrap_or_default();
    let given = KINDS.map(|kind| fields.get(kind));
    let make: fn(_) -> _ = match mode {
        "allowlist" => Exposure::Only,
        "blocklist" => Exposure::Except,
        _ => {
            for (kind, node) in KINDS.iter().zip(given) {
                if let Some(node) = node {
                    let message =
                        format!("`{kind}` does not apply to `mode: all`, which exposes everything");
                    findings.error(node.spot, message);
                }
            }
            return [Exposure::All, Exposure::All, Exposure::All];
        }
    };
    if given.iter().all(Option::is_none) {
        findings.error(node.spot, format!("`tools` is missing: `mode: {mode}` needs a list"));
    }
    if mode == "allowlist" {
        for (kind, node) in KINDS.iter().zip(given).filter_map(|(kind, node)| Some((kind, node?))) {
            findings.with_step(kind, |findings| {
                super::suspicious_tests::check_open_hosts(node, findings)
            });
        }
    }
    // A list of tools alone applies to all kinds, as it did before each kind had its own list.
    let [tools, prompts, resources] = given;
    let alone = prompts.is_none() && resources.is_none();
    let mut read = |kind: &str, list: Option<&Node>| {
        make(findings.with_step(kind, |findings| globs(list, findings)))
    };
    match alone {
        true => [read("tools", tools), copy(make, tools), copy(make, tools)],
        false => [read("tools", tools), read("prompts", prompts), read("resources", resources)],
    }
}

/// The same list again, without repeating its findings.
fn copy(make: fn(Vec<crate::glob::Glob>) -> Exposure, list: Option<&Node>) -> Exposure {
    make(globs(list, &mut Findings::default()))
}
