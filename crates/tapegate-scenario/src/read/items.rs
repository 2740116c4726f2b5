//! Reads tools, resources, resource templates and prompts.

use std::rc::Rc;

use tapegate_core::json;

use super::body::ResultKind;
use super::response::{self, ResponseTables};
use super::{ScenarioReader, server};
use crate::expect::Expectation;
use crate::generate::Generator;
use crate::model::{
    ItemKind, ItemResponse, LogSettings, PhaseState, Scenario, ScenarioItem, ScenarioMetadata,
    UnknownMethods,
};
use crate::node::{Node, NodeValue, Spot};
use crate::shape::{Table, TableFields, language};

/// The properties of a kind of item.
pub(super) struct ItemKindInfo {
    pub(super) kind: ItemKind,
    /// The noun with its article.
    pub(super) word: &'static str,
    /// The key of their lists.
    pub(super) list: &'static str,
    pub(super) remove: &'static str,
    pub(super) replace: &'static str,
    pub(super) add: &'static str,
    /// The environment variable that sets the limit.
    pub(super) limit: &'static str,
    item: &'static Table,
    /// The key of the definition, its table, and the key that identifies the item.
    definition: (&'static str, &'static Table, &'static str),
    tables: &'static ResponseTables,
}

pub(super) static KINDS: [ItemKindInfo; 4] = [
    ItemKindInfo {
        kind: ItemKind::Tool,
        word: "a tool",
        list: "tools",
        remove: "remove_tools",
        replace: "replace_tools",
        add: "add_tools",
        limit: "TAPEGATE_MAX_TOOLS",
        item: &language::TOOL_ITEM,
        definition: ("tool", &language::TOOL, "name"),
        tables: &response::TOOL,
    },
    ItemKindInfo {
        kind: ItemKind::Resource,
        word: "a resource",
        list: "resources",
        remove: "remove_resources",
        replace: "replace_resources",
        add: "add_resources",
        limit: "TAPEGATE_MAX_RESOURCES",
        item: &language::RESOURCE_ITEM,
        definition: ("resource", &language::RESOURCE, "uri"),
        tables: &response::RESOURCE,
    },
    ItemKindInfo {
        kind: ItemKind::Template,
        word: "a resource template",
        list: "resource_templates",
        remove: "remove_resource_templates",
        replace: "replace_resource_templates",
        add: "add_resource_templates",
        limit: "TAPEGATE_MAX_RESOURCES",
        item: &language::TEMPLATE_ITEM,
        definition: ("template", &language::TEMPLATE, "uriTemplate"),
        tables: &response::RESOURCE,
    },
    ItemKindInfo {
        kind: ItemKind::Prompt,
        word: "a prompt",
        list: "prompts",
        remove: "remove_prompts",
        replace: "replace_prompts",
        add: "add_prompts",
        limit: "TAPEGATE_MAX_PROMPTS",
        item: &language::PROMPT_ITEM,
        definition: ("prompt", &language::PROMPT, "name"),
        tables: &response::PROMPT,
    },
];

impl ItemKindInfo {
    /// The items of this kind in a state.
    pub(super) fn items_in<'s>(&self, state: &'s mut PhaseState) -> &'s mut Vec<Rc<ScenarioItem>> {
        match self.kind {
            ItemKind::Tool => &mut state.tools,
            ItemKind::Resource => &mut state.resources,
            ItemKind::Template => &mut state.templates,
            ItemKind::Prompt => &mut state.prompts,
        }
    }

    /// How many there may be.
    pub(super) fn limit(&self, limits: &crate::load::ScenarioLimits) -> usize {
        match self.kind {
            ItemKind::Tool => limits.tools,
            ItemKind::Resource | ItemKind::Template => limits.resources,
            ItemKind::Prompt => limits.prompts,
        }
    }
}

impl ScenarioReader<'_> {
    /// Reads an item; `None` if it has no name, which the tables have reported.
    pub(super) fn item(&mut self, kind: &ItemKindInfo, node: &Node) -> Option<Rc<ScenarioItem>> {
        let at = TableFields::new(node, kind.item);
        let (key, table, known_by) = kind.definition;
        let written = TableFields::new(at.get(key)?, table);
        let name = match &written.node.value {
            NodeValue::Raw(text) => self.name_in_json(text, known_by, written.node.spot)?,
            _ => written.text(known_by)?.to_owned(),
        };
        if name.is_empty() {
            return None;
        }
        let definition = self.with_step(key, |reader| {
            if kind.kind == ItemKind::Tool {
                reader.check_input_schema(&written);
            }
            reader.expand_generators(written.node.clone())
        });
        let body = match kind.kind {
            ItemKind::Tool => ResultKind::Tool,
            ItemKind::Prompt => ResultKind::Prompt,
            ItemKind::Resource => ResultKind::Resource {
                // The name is the one that is listed, so templates in it are not expanded.
                uri: Node::new(NodeValue::Raw(
                    String::from_utf8_lossy(&Node::text(&name).to_json()).into(),
                )),
                mime_type: written.get("mimeType").filter(|it| it.as_text().is_some()).cloned(),
            },
            ItemKind::Template => ResultKind::Resource {
                uri: Node::text("${resource.uri}"),
                mime_type: written.get("mimeType").filter(|it| it.as_text().is_some()).cloned(),
            },
        };
        let response = match at.get("response") {
            Some(node) => {
                self.with_step("response", |reader| reader.response(node, &body, kind.tables))
            }
            None => {
                ItemResponse { branches: Vec::new(), otherwise: self.default_answer(&body, node) }
            }
        };
        let behavior = self.behavior(&at);
        let listed = at.flag("listed").unwrap_or(true);
        Some(Rc::new(ScenarioItem {
            kind: kind.kind,
            name,
            definition,
            listed,
            response,
            behavior,
        }))
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
                let response = reader.with_step(&key.name, |reader| {
                    reader.response(node, &ResultKind::Method, &response::METHOD)
                });
                (key.name.clone(), response)
            };
            methods.iter().map(read).collect()
        })
    }

    /// Reads a single tool, and wraps it in a minimal server.
    pub(super) fn wrap_single_tool(&mut self, node: &Node) -> Scenario {
        let tool = self.item(&KINDS[0], node);
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
