//! Writes the tables as a JSON Schema, for editors and other programs.
//!
//! A schema sees the text before variables are substituted and files are assembled, so it also
//! accepts `${VAR}` in place of a number, and `$include` or `$file` in place of most values.

use super::{Shape, Table, UnknownKeys};
use crate::node::{Node, NodeValue};

/// The settings of a published schema.
#[derive(Debug)]
pub struct SchemaInfo {
    pub title: &'static str,
    /// Its description.
    pub about: &'static str,
    /// The root table.
    pub top: &'static Table,
    /// Whether `$include` and similar directives may replace values.
    pub elsewhere: bool,
}

impl SchemaInfo {
    /// The schema as text.
    pub fn write(&self) -> String {
        let mut defs = Vec::new();
        collect_tables(self.top, &mut defs);
        let mut entries = Vec::new();
        if self.elsewhere {
            entries.push(Node::entry("elsewhere", reference_schema()));
        }
        let variable = map([("type", text("string")), ("pattern", text("\\$\\{"))]);
        entries.push(Node::entry("variable", variable));
        let how = SchemaStyle { elsewhere: self.elsewhere };
        entries.extend(defs.into_iter().map(|table| Node::entry(table.name, how.table(table))));
        let schema = map([
            ("$schema", text("https://json-schema.org/draft/2020-12/schema")),
            ("title", text(self.title)),
            ("description", text(self.about)),
            ("$ref", text(&format!("#/$defs/{}", self.top.name))),
            ("$defs", Node::map(entries)),
        ]);
        let mut out = String::new();
        pretty(&schema, 0, &mut out);
        out.push('\n');
        out
    }
}

/// Settings common to all parts of a schema.
#[derive(Clone, Copy)]
struct SchemaStyle {
    elsewhere: bool,
}

/// Collects all tables reachable from a table, each once.
pub fn collect_tables(table: &'static Table, found: &mut Vec<&'static Table>) {
    if found.iter().any(|known| known.name == table.name) {
        return;
    }
    found.push(table);
    for entry in table.entries() {
        tables_of(&entry.shape, found);
    }
}

/// Checks all tables reachable from a table: duplicate keys, and descriptions that are not
/// sentences. Returns the number of tables and the faults.
pub fn check_tables(table: &'static Table) -> (usize, Vec<String>) {
    let (mut tables, mut faults) = (Vec::new(), Vec::new());
    collect_tables(table, &mut tables);
    for table in &tables {
        let mut names: Vec<&str> = Vec::new();
        for entry in table.entries() {
            for name in std::iter::once(entry.name).chain(entry.aliases.iter().copied()) {
                if names.contains(&name) {
                    faults.push(format!("{}.{name} is listed twice", table.name));
                }
                names.push(name);
            }
            if !entry.about.ends_with('.') {
                faults.push(format!("{}.{}: {}", table.name, entry.name, entry.about));
            }
        }
    }
    (tables.len(), faults)
}

fn tables_of(shape: &Shape, found: &mut Vec<&'static Table>) {
    match shape {
        Shape::Table(table) => collect_tables(table, found),
        Shape::List(inner) | Shape::MapOf(inner) | Shape::Elsewhere(inner) => {
            tables_of(inner, found);
        }
        Shape::Either(shapes) => shapes.iter().for_each(|shape| tables_of(shape, found)),
        _ => {}
    }
}

impl SchemaStyle {
    /// The schema of a table.
    fn table(self, table: &Table) -> Node {
        let mut properties = Vec::new();
        for entry in table.entries() {
            let mut schema =
                self.value(&entry.shape, table.rest == UnknownKeys::Pass && !entry.required);
            if let NodeValue::Map(entries) = &mut schema.value {
                let about = match entry.only {
                    [] => entry.about.to_owned(),
                    only => format!("{}: {}", only.join(", "), entry.about),
                };
                entries.insert(0, Node::entry("description", text(&about)));
            }
            for name in std::iter::once(entry.name).chain(entry.aliases.iter().copied()) {
                properties.push(Node::entry(name, schema.clone()));
            }
        }
        let required: Vec<Node> =
            table.entries().filter(|entry| entry.required).map(|entry| text(entry.name)).collect();
        let mut entries = vec![
            Node::entry("description", text(table.about)),
            Node::entry("type", text("object")),
            Node::entry("properties", Node::map(properties)),
        ];
        if !required.is_empty() {
            entries.push(Node::entry("required", Node::list(required)));
        }
        if table.rest == UnknownKeys::Refuse {
            entries.push(Node::entry("additionalProperties", Node::flag(false)));
        }
        Node::map(entries)
    }

    /// The schema of everything that may be written in place of a shape.
    fn value(self, shape: &Shape, or_nothing: bool) -> Node {
        if matches!(shape, Shape::Any) {
            return Node::map(Vec::new());
        }
        let mut all = self.alternatives(shape);
        // Text accepts `${VAR}` anyway. A word or a number is never in a file of its own.
        let is_text = matches!(shape, Shape::Text | Shape::Name);
        let is_word = matches!(
            shape,
            Shape::Bool
                | Shape::Number
                | Shape::Whole(..)
                | Shape::Choice(_)
                | Shape::Word(_)
                | Shape::Duration
                | Shape::Bytes
        );
        if self.elsewhere && !is_word {
            all.push(map([("$ref", text("#/$defs/elsewhere"))]));
        }
        if !is_text {
            all.push(map([("$ref", text("#/$defs/variable"))]));
        }
        // Servers send null for optional members.
        if or_nothing {
            all.push(map([("type", text("null"))]));
        }
        map([("anyOf", Node::list(all))])
    }

    /// The schemas of a shape, of which one must match.
    fn alternatives(self, shape: &Shape) -> Vec<Node> {
        let typed = |name: &str| map([("type", text(name))]);
        let matching = |pattern: &str| map([("type", text("string")), ("pattern", text(pattern))]);
        vec![match shape {
            Shape::Any => Node::map(Vec::new()),
            Shape::Elsewhere(inner) => return self.alternatives(inner),
            Shape::Either(shapes) => {
                return shapes.iter().flat_map(|shape| self.alternatives(shape)).collect();
            }
            Shape::Object => typed("object"),
            Shape::Text => typed("string"),
            Shape::Name => map([("type", text("string")), ("minLength", Node::number(1))]),
            Shape::Bool => typed("boolean"),
            Shape::Number => typed("number"),
            Shape::Whole(least, most) => integer_schema(*least, *most),
            Shape::Duration => matching("^\\s*[0-9]+\\s*(ms|s|m|h)\\s*$"),
            Shape::Bytes => {
                return vec![
                    integer_schema(0, u64::MAX),
                    matching("^\\s*[0-9]+\\s*([kKmM]?[bB])?\\s*$"),
                ];
            }
            Shape::Choice(choices) => {
                let words = choices.iter().map(|word| text(word)).collect();
                map([("enum", Node::list(words))])
            }
            Shape::Word(word) => match (word.pattern)().as_str() {
                "" => typed("string"),
                pattern => matching(pattern),
            },
            Shape::List(inner) => {
                map([("type", text("array")), ("items", self.value(inner, false))])
            }
            Shape::MapOf(inner) => {
                map([("type", text("object")), ("additionalProperties", self.value(inner, false))])
            }
            Shape::Table(table) => map([("$ref", text(&format!("#/$defs/{}", table.name)))]),
        }]
    }
}

fn integer_schema(least: u64, most: u64) -> Node {
    let mut entries =
        vec![Node::entry("type", text("integer")), Node::entry("minimum", Node::number(least))];
    if most < u64::MAX {
        entries.push(Node::entry("maximum", Node::number(most)));
    }
    Node::map(entries)
}

/// The schema of directives that replace a value.
fn reference_schema() -> Node {
    let directive = |name: &str, with_changes: bool| {
        let mut properties = vec![Node::entry(name, map([("type", text("string"))]))];
        if with_changes {
            properties.push(Node::entry("override", Node::map(Vec::new())));
        }
        map([
            ("type", text("object")),
            ("properties", Node::map(properties)),
            ("required", Node::list(vec![text(name)])),
            ("additionalProperties", Node::flag(false)),
        ])
    };
    let all =
        vec![directive("$include", true), directive("$file", false), directive("$json", false)];
    map([
        ("description", text("A value from another file, or JSON that is sent verbatim.")),
        ("anyOf", Node::list(all)),
    ])
}

fn map<const N: usize>(entries: [(&str, Node); N]) -> Node {
    Node::map(entries.into_iter().map(|(name, node)| Node::entry(name, node)).collect())
}

fn text(text: &str) -> Node {
    Node::text(text)
}

/// Appends formatted JSON, with short values on one line.
fn pretty(node: &Node, depth: usize, out: &mut String) {
    let short = String::from_utf8(node.to_json()).unwrap_or_default();
    let (open, close, count) = match &node.value {
        NodeValue::List(elements) => ('[', ']', elements.len()),
        NodeValue::Map(entries) => ('{', '}', entries.len()),
        _ => return out.push_str(&short),
    };
    // Short values on one line keep the file readable, and its diffs small.
    if short.len() + 2 * depth <= 100 || count == 0 {
        return out.push_str(&short);
    }
    let indent = "  ".repeat(depth + 1);
    out.push(open);
    for index in 0..count {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.push_str(&indent);
        match &node.value {
            NodeValue::List(elements) => pretty(&elements[index], depth + 1, out),
            NodeValue::Map(entries) => {
                let (key, inner) = &entries[index];
                pretty(&Node::text(&key.name), depth + 1, out);
                out.push_str(": ");
                pretty(inner, depth + 1, out);
            }
            _ => {}
        }
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(close);
}
