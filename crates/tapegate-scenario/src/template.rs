//! JSON templates that are filled when they are sent.
//!
//! A template is parsed once. Parts without variables are stored as they are sent, so that an
//! answer without variables costs one copy. Only values may contain variables, keys may not.

mod access_path;
mod context;
mod functions;
mod parse;
mod text_template;

use std::rc::Rc;

use tapegate_core::json;

pub(crate) use access_path::{AccessStep, as_text as text_of, elements};
pub(crate) use context::VariableValue;
pub use context::{NamedValue, TemplateContext};
pub(crate) use parse::{ROOTS, TemplateVariable, path};
pub use text_template::Template;

use crate::finding::Findings;
use crate::generate::{Generator, GeneratorLimits};
use crate::node::{Node, NodeValue};

/// The key of a map that is replaced by a generated payload.
const GENERATE: &str = "$generate";

#[derive(Debug, Clone, Default)]
pub struct JsonTemplate {
    /// Its pieces, in order.
    pub pieces: Vec<TemplatePiece>,
}

/// A piece of a JSON template.
#[derive(Debug, Clone)]
pub enum TemplatePiece {
    /// JSON as it is sent.
    Json(Box<[u8]>),
    /// A string, with its quotes, filled when it is sent.
    Text(Template),
    /// A generated string, with its quotes.
    Generated(Rc<Generator>),
    /// Generated JSON, where any value may be.
    Tree(Rc<Generator>),
}

/// Whether `${…}` is a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterpolationMode {
    /// It is.
    All,
    /// It is plain text.
    None,
}

impl JsonTemplate {
    /// Parses a node. `interpolate` tells whether `${…}` is a variable in a text; `{$generate: …}`
    /// becomes a generator within `limits`.
    pub fn read(
        node: &Node,
        interpolate: &dyn Fn(&Node) -> InterpolationMode,
        limits: &GeneratorLimits,
        findings: &mut Findings,
    ) -> Self {
        let (form, json) = (Self::default(), Vec::new());
        let mut reading = TemplateParser { interpolate, limits, findings, form, json };
        reading.value(node, WantedForm::Value);
        reading.flush();
        reading.form
    }

    /// The JSON to send, if it has no variables.
    pub fn as_plain(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [TemplatePiece::Json(json)] => Some(json),
            _ => None,
        }
    }

    /// Appends the filled JSON.
    pub fn write(&self, context: &TemplateContext<'_>, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Json(json) => out.extend_from_slice(json),
                TemplatePiece::Text(template) => template.write_json(context, out),
                TemplatePiece::Generated(generator) => generator.write_json_string(out),
                TemplatePiece::Tree(generator) => generator.write(out),
            }
        }
    }

    /// Whether one of its variables is a reply from the client.
    pub fn needs_replies(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, TemplatePiece::Text(text) if text.needs_replies()))
    }
}

/// A template being parsed.
struct TemplateParser<'a> {
    interpolate: &'a dyn Fn(&Node) -> InterpolationMode,
    limits: &'a GeneratorLimits,
    findings: &'a mut Findings,
    form: JsonTemplate,
    /// JSON that is not yet a piece.
    json: Vec<u8>,
}

impl TemplateParser<'_> {
    fn flush(&mut self) {
        if !self.json.is_empty() {
            let json = std::mem::take(&mut self.json).into();
            self.form.pieces.push(TemplatePiece::Json(json));
        }
    }

    fn value(&mut self, node: &Node, wanted_form: WantedForm) {
        match &node.value {
            NodeValue::Text(_) => self.text(node),
            NodeValue::List(elements) => {
                self.json.push(b'[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        self.json.push(b',');
                    }
                    self.value(element, WantedForm::Value);
                }
                self.json.push(b']');
            }
            NodeValue::Map(entries) => {
                if self.add_generated(node, wanted_form) {
                    return;
                }
                self.json.push(b'{');
                for (index, (key, inner)) in entries.iter().enumerate() {
                    if index > 0 {
                        self.json.push(b',');
                    }
                    json::write_str(&mut self.json, &key.name);
                    self.json.push(b':');
                    self.value(inner, WantedForm::of(node, &key.name));
                }
                self.json.push(b'}');
            }
            _ => node.write_json(&mut self.json),
        }
    }

    /// Adds `{$generate: …}` as a piece of the kind its place needs; false if it is something else.
    fn add_generated(&mut self, node: &Node, wanted_form: WantedForm) -> bool {
        let Some([(key, inner)]) = node.as_map() else { return false };
        if key.name != GENERATE {
            return false;
        }
        let made = Generator::read(inner, self.limits, self.findings);
        // The fault is reported, and the scenario will not run.
        let Some(mut generator) = made else { return false };
        if wanted_form == WantedForm::Bytes {
            generator.encode();
        }
        self.flush();
        let generator = Rc::new(generator);
        self.form.pieces.push(match wanted_form {
            WantedForm::Value if generator.is_json() => TemplatePiece::Tree(generator),
            _ => TemplatePiece::Generated(generator),
        });
        true
    }

    fn text(&mut self, node: &Node) {
        let template = Template::read(node, (self.interpolate)(node), self.findings);
        match template.as_plain() {
            Some(plain) => json::write_str(&mut self.json, plain),
            None => {
                // The JSON so far must come before the piece.
                self.flush();
                self.form.pieces.push(TemplatePiece::Text(template));
            }
        }
    }
}

/// The kind of value that a place needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WantedForm {
    Text,
    /// Base64 data: of a resource, an image or a sound.
    Bytes,
    /// Any value.
    Value,
}

impl WantedForm {
    /// The place under `key` in `map`.
    fn of(map: &Node, key: &str) -> Self {
        // Looked up for the one key that depends on it: a map may have a million others.
        let sort = || map.get("type").and_then(Node::as_text);
        match key {
            "text" => Self::Text,
            "blob" => Self::Bytes,
            "data" if matches!(sort(), Some("image" | "audio")) => Self::Bytes,
            _ => Self::Value,
        }
    }
}

#[cfg(test)]
mod tests;
