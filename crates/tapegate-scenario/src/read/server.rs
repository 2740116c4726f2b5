//! Reads the server block, the metadata and the log settings.

use super::body::has;
use super::{ScenarioReader, capabilities};
use crate::model::{LogOutput, LogSettings, ScenarioMetadata, ScenarioScope, ScenarioServer};
use crate::node::{Node, NodeKey};
use crate::shape::{TableFields, language};

/// A longer name is probably a mistake.
const NAME_CHARS_MAX: usize = 100;
/// The keys of `serverInfo`.
const INFO: [&str; 6] = ["name", "version", "title", "description", "websiteUrl", "icons"];

impl ScenarioReader<'_> {
    /// The server, and its capabilities if it gives any.
    pub(super) fn server(&mut self, at: &TableFields<'_>) -> (ScenarioServer, Option<Node>) {
        let Some(at) = at.map("server", &language::SERVER) else {
            return (minimal_server("", Vec::new()), None);
        };
        let name = at.text("name").unwrap_or_default();
        if name.chars().count() > NAME_CHARS_MAX
            && let Some(node) = at.get("name")
        {
            let message = format!("the name has more than {NAME_CHARS_MAX} characters");
            self.with_step("server", |r| {
                r.with_step("name", |r| r.findings.warning(node.spot, message))
            });
        }
        let mut info = Vec::new();
        for (key, node) in at.node.as_map().unwrap_or_default() {
            if INFO.contains(&key.name.as_str()) {
                info.push((key.clone(), node.clone()));
            }
        }
        let versions = at.texts("protocol_versions");
        let mut server = minimal_server(name, info);
        server.instructions = at.text("instructions").map(str::to_owned);
        server.scope = at.choice("state_scope").unwrap_or_default();
        if !versions.is_empty() {
            server.protocol_versions = versions;
        }
        server.page_size = at.whole_number("page_size").and_then(|size| usize::try_from(size).ok());
        (server, at.get("capabilities").and_then(capabilities::read))
    }
}

/// A server that reports only its name.
pub(super) fn minimal_server(name: &str, mut info: Vec<(NodeKey, Node)>) -> ScenarioServer {
    for (key, value) in [("name", name), ("version", "0.0.0")] {
        if !has(&info, key) {
            info.push(Node::entry(key, Node::text(value)));
        }
    }
    ScenarioServer {
        info: Node::map(info),
        instructions: None,
        scope: ScenarioScope::default(),
        protocol_versions: crate::model::PROTOCOL_VERSIONS.map(str::to_owned).to_vec(),
        page_size: None,
    }
}

pub(super) fn read_metadata(at: &TableFields<'_>) -> ScenarioMetadata {
    let Some(at) = at.map("metadata", &language::METADATA) else {
        return ScenarioMetadata::default();
    };
    let text = |name: &str| at.text(name).map(str::to_owned);
    ScenarioMetadata {
        id: text("id"),
        name: text("name"),
        description: text("description"),
        safe: text("safe"),
        severity: text("severity"),
        tags: at.texts("tags"),
    }
}

/// Reads the log settings.
pub(super) fn read_logging(at: &TableFields<'_>) -> LogSettings {
    let Some(at) = at.map("logging", &language::LOGGING) else { return LogSettings::default() };
    LogSettings {
        level: at.choice("level").unwrap_or_default(),
        on_phase_change: at.flag("on_phase_change").unwrap_or(false),
        on_trigger_match: at.flag("on_trigger_match").unwrap_or(false),
        output: match at.text("output") {
            None | Some("stderr") => LogOutput::Stderr,
            Some("stdout") => LogOutput::Stdout,
            Some(path) => LogOutput::File(path.to_owned()),
        },
    }
}
