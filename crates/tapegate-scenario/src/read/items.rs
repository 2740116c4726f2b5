//! Reads tools, resources, resource templates and prompts.

use std::rc::Rc;

use tapegate_core::json;

use super::body::ResultKind;
use super::{ScenarioReader, server};
use crate::expect::Expectation;
use crate::generate::Generator;
use crate::model::{
    ItemKind, ItemResponse, LogSettings, PhaseState, Scenario, ScenarioItem, ScenarioMetadata,
    UnknownMethods,
};
use crate::node::{Node, NodeValue, Spot};
use crate::shape::TableFields;

impl ScenarioReader<'_> {
    /// Reads an item; `None` if it has no name, which the tables have reported.
    pub(super) fn item(&mut self, kind: ItemKind, node: &Node) -> Option<Rc<ScenarioItem>> {
        let info = kind.info();
        let at = TableFields::new(node, info.item);
        let written = TableFields::new(at.get(info.key)?, info.definition);
        let name = match &written.node.value {
            NodeValue::Raw(text) => self.name_in_json(text, info.name_key, written.node.spot)?,
            _ => written.text(info.name_key)?.to_owned(),
        };
        if name.is_empty() {
            return None;
        }
        let definition = self.with_step(info.key, |reader| {
            if kind == ItemKind::Tool {
                reader.check_input_schema(&written);
            }
            reader.expand_generators(written.node.clone())
        });
        let mime_type = || written.get("mimeType").filter(|it| it.as_text().is_some()).cloned();
        let body = match kind {
            ItemKind::Tool => ResultKind::Tool,
            ItemKind::Prompt => ResultKind::Prompt,
            ItemKind::Resource => {
                // The name is the one that is listed, so templates in it are not expanded.
                let uri = String::from_utf8_lossy(&Node::text(&name).to_json()).into();
                ResultKind::Resource { uri: Node::new(NodeValue::Raw(uri)), mime_type: mime_type() }
            }
            ItemKind::Template => {
                let uri = Node::text("${resource.uri}");
                ResultKind::Resource { uri, mime_type: mime_type() }
            }
        };
        let response = match at.get("response") {
            Some(node) => self.with_step("response", |reader| reader.response(node, &body)),
            None => {
                ItemResponse { branches: Vec::new(), otherwise: self.default_answer(&body, node) }
            }
        };
        let behavior = self.behavior(&at);
        let listed = at.flag("listed").unwrap_or(true);
        Some(Rc::new(ScenarioItem { kind, name, definition, listed, response, behavior }))
    }

    /// The identifier of an item given as raw JSON, which the tables do not check.
    fn name_in_json(&mut self, text: &str, known_by: &str, spot: Spot) -> Option<String> {
        let name = json::member(text.as_bytes(), known_by).and_then(json::string);
        let name = name.filter(|name| !name.is_empty()).map(|name| name.to_string());
        if name.is_none() {
            self.findings.error(spot, format!("this JSON has no `{known_by}`"));
        }
        name
    }

    fn check_input_schema(&mut self, tool: &TableFields<'_>) {
        let Some(schema) = tool.get("inputSchema") else { return };
        if schema.as_map().is_some() && schema.get("type").is_none() {
            let message = "the schema has no `type`; MCP requires `type: object`";
            self.with_step("inputSchema", |reader| reader.findings.warning(schema.spot, message));
        }
    }

    /// Expands the generators of a definition, once, because it is listed many times.
    fn expand_generators(&mut self, mut node: Node) -> Node {
        match &mut node.value {
            NodeValue::Map(entries) => {
                if let [(key, inner)] = &entries[..]
                    && key.name == "$generate"
                {
                    node.value = NodeValue::Raw(self.payload(inner));
                    return node;
                }
                for (_, inner) in entries.iter_mut() {
                    let written = std::mem::replace(inner, Node::new(NodeValue::Null));
                    *inner = self.expand_generators(written);
                }
            }
            NodeValue::List(elements) => {
                for element in elements.iter_mut() {
                    let written = std::mem::replace(element, Node::new(NodeValue::Null));
                    *element = self.expand_generators(written);
                }
            }
            _ => {}
        }
        node
    }

    /// Generates a payload for a definition, as a JSON string. All definitions together may have as
    /// much as one answer.
    fn payload(&mut self, node: &Node) -> String {
        let limits = self.limits.generator;
        let mut json = Vec::new();
        if let Some(generator) = Generator::read(node, &limits, self.findings) {
            match self.payload_bytes_left.checked_sub(generator.bytes_max()) {
                Some(left) => {
                    self.payload_bytes_left = left;
                    generator.write_json_string(&mut json);
                }
                None => {
                    let most = limits.payload_bytes;
                    let message =
                        format!("generated text in definitions is over the limit of {most} bytes");
                    self.findings.error(node.spot, message);
                }
            }
        }
        let json = String::from_utf8(json).unwrap_or_default();
        if json.is_empty() { "\"\"".to_owned() } else { json }
    }

    /// Responses by method name.
    pub(super) fn methods(&mut self, at: &TableFields<'_>) -> Vec<(String, ItemResponse)> {
        let methods = at.get("methods").and_then(Node::as_map).unwrap_or_default();
        self.with_step("methods", |reader| {
            let read = |(key, node): &(crate::node::NodeKey, Node)| {
                let response = reader
                    .with_step(&key.name, |reader| reader.response(node, &ResultKind::Method));
                (key.name.clone(), response)
            };
            methods.iter().map(read).collect()
        })
    }

    /// Reads a single tool, and wraps it in a minimal server.
    pub(super) fn wrap_single_tool(&mut self, node: &Node) -> Scenario {
        let tool = self.item(ItemKind::Tool, node);
        let name = tool.as_ref().map_or("", |tool| tool.name.as_str());
        Scenario {
            about: ScenarioMetadata::default(),
            server: server::minimal_server(name, Vec::new()),
            baseline: PhaseState { tools: tool.into_iter().collect(), ..PhaseState::default() },
            phases: Vec::new(),
            unknown_methods: UnknownMethods::default(),
            methods: Vec::new(),
            logging: LogSettings::default(),
            expect: Vec::<Expectation>::new(),
        }
    }
}
