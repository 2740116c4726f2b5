//! Reads the server block, the metadata and the log settings.

use super::{Fields, Reader, capabilities};
use crate::model::{About, LogLevel, LogOutput, Logging, Scope, Server};
use crate::node::{Key, Node, Value};
use crate::shape::language;

/// A longer name is probably a mistake.
const NAME_CHARS_MAX: usize = 100;
/// The keys of `serverInfo`.
const INFO: [&str; 6] = ["name", "version", "title", "description", "websiteUrl", "icons"];

impl Reader<'_> {
    /// The server, and its capabilities if it gives any.
    pub(super) fn server(&mut self, at: &Fields<'_>) -> (Server, Option<Node>) {
        let Some(at) = at.map("server", &language::SERVER) else {
            return (named("", Vec::new()), None);
        };
        let name = at.text("name").unwrap_or_default();
        if name.chars().count() > NAME_CHARS_MAX
            && let Some(node) = at.get("name")
        {
            let words = format!("the name has more than {NAME_CHARS_MAX} characters");
            self.within("server", |r| r.within("name", |r| r.findings.warning(node.spot, words)));
        }
        let mut info = Vec::new();
        for (key, node) in at.node.as_map().unwrap_or_default() {
            if INFO.contains(&key.name.as_str()) {
                info.push((key.clone(), node.clone()));
            }
        }
        let versions = at.list("protocol_versions").iter().filter_map(Node::as_text);
        let versions: Vec<String> = versions.map(str::to_owned).collect();
        let mut server = named(name, info);
        server.instructions = at.text("instructions").map(str::to_owned);
        if at.text("state_scope") == Some("global") {
            server.scope = Scope::Global;
        }
        if !versions.is_empty() {
            server.protocol_versions = versions;
        }
        server.page_size = at.whole("page_size").and_then(|size| usize::try_from(size).ok());
        (server, at.get("capabilities").and_then(capabilities::read))
    }
}

/// A server that reports only its name.
pub(super) fn named(name: &str, mut info: Vec<(Key, Node)>) -> Server {
    let has = |info: &[(Key, Node)], name: &str| info.iter().any(|(key, _)| key.name == name);
    for (key, value) in [("name", name), ("version", "0.0.0")] {
        if !has(&info, key) {
            let key = Key { spot: Default::default(), name: key.to_owned() };
            info.push((key, Node::text(value)));
        }
    }
    Server {
        info: Node::new(Value::Map(info)),
        instructions: None,
        scope: Scope::default(),
        protocol_versions: crate::model::PROTOCOL_VERSIONS.map(str::to_owned).to_vec(),
        page_size: None,
    }
}

/// Reads the metadata.
pub(super) fn about(at: &Fields<'_>) -> About {
    let Some(at) = at.map("metadata", &language::METADATA) else { return About::default() };
    let text = |name: &str| at.text(name).map(str::to_owned);
    About {
        id: text("id"),
        name: text("name"),
        description: text("description"),
        safe: text("safe"),
        severity: text("severity"),
        tags: at.list("tags").iter().filter_map(Node::as_text).map(str::to_owned).collect(),
    }
}

/// Reads the log settings.
pub(super) fn logging(at: &Fields<'_>) -> Logging {
    let Some(at) = at.map("logging", &language::LOGGING) else { return Logging::default() };
    Logging {
        level: match at.text("level") {
            Some("debug") => LogLevel::Debug,
            Some("warn") => LogLevel::Warn,
            Some("error") => LogLevel::Error,
            _ => LogLevel::Info,
        },
        on_phase_change: at.flag("on_phase_change").unwrap_or(false),
        on_trigger_match: at.flag("on_trigger_match").unwrap_or(false),
        output: match at.text("output") {
            None | Some("stderr") => LogOutput::Stderr,
            Some("stdout") => LogOutput::Stdout,
            Some(path) => LogOutput::File(path.to_owned()),
        },
    }
}
