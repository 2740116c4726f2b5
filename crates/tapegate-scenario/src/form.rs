//! JSON with holes that are filled when it is sent.
//!
//! A form is read once. What has no holes is kept as it is sent, so that an answer without
//! variables costs one copy. Only values have holes; keys are as they were written.

mod context;
mod functions;
mod parse;
mod steps;
mod template;

use std::rc::Rc;

use tapegate_core::json;

pub(crate) use context::Found;
pub use context::{Context, Named};
pub(crate) use parse::{Variable, path};
pub(crate) use steps::{Step, as_text as text_of, elements};
pub use template::Template;

use crate::finding::Findings;
use crate::generate::Generator;
use crate::node::{Node, Value};

/// The key of a map that stands for what a generator makes.
const GENERATE: &str = "$generate";

/// JSON with holes.
#[derive(Debug, Clone, Default)]
pub struct Form {
    /// What it is made of, in order.
    pub pieces: Vec<Piece>,
}

/// A piece of a form.
#[derive(Debug, Clone)]
pub enum Piece {
    /// JSON as it is sent.
    Json(Box<[u8]>),
    /// A string, quotes and all, of which the text is made when it is sent.
    Text(Template),
    /// A string, quotes and all, that a generator makes.
    Generated(Rc<Generator>),
    /// JSON that a generator makes, where any value may stand.
    Tree(Rc<Generator>),
}

/// Whether `${…}` means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interpolate {
    /// It does.
    All,
    /// It is text like any other.
    None,
}

/// Makes a generator of what stands under `$generate`.
pub type Generate<'a> = &'a mut dyn FnMut(&Node, &mut Findings) -> Option<Rc<Generator>>;

impl Form {
    /// The form of a node; with variables where `interpolate` says so. It knows no generators.
    pub fn read(node: &Node, interpolate: Interpolate, findings: &mut Findings) -> Self {
        Self::read_with(node, interpolate, &mut |_, _| None, findings)
    }

    /// The same, where `{$generate: …}` stands for what `generate` makes of it.
    pub fn read_with(
        node: &Node,
        interpolate: Interpolate,
        generate: Generate<'_>,
        findings: &mut Findings,
    ) -> Self {
        let mut reading =
            Reading { interpolate, generate, findings, form: Self::default(), json: Vec::new() };
        reading.value(node, Place::Value);
        reading.flush();
        reading.form
    }

    /// A form without holes.
    pub fn plain(json: impl Into<Box<[u8]>>) -> Self {
        Self { pieces: vec![Piece::Json(json.into())] }
    }

    /// What is sent, if it has no holes.
    pub fn as_plain(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [Piece::Json(json)] => Some(json),
            _ => None,
        }
    }

    /// Appends what is sent.
    pub fn write(&self, context: &Context<'_>, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Json(json) => out.extend_from_slice(json),
                Piece::Text(template) => template.write_json(context, out),
                Piece::Generated(generator) => generator.write_json_string(out),
                Piece::Tree(generator) => generator.write(out),
            }
        }
    }

    /// Whether one of its variables is an answer of the client.
    pub fn needs_replies(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if text.needs_replies()))
    }
}

/// A form that is being read.
struct Reading<'a> {
    interpolate: Interpolate,
    generate: Generate<'a>,
    findings: &'a mut Findings,
    form: Form,
    /// What is not yet a piece.
    json: Vec<u8>,
}

impl Reading<'_> {
    fn flush(&mut self) {
        if !self.json.is_empty() {
            let json = std::mem::take(&mut self.json).into();
            self.form.pieces.push(Piece::Json(json));
        }
    }

    fn value(&mut self, node: &Node, place: Place) {
        match &node.value {
            Value::Text(_) => self.text(node),
            Value::List(elements) => {
                self.json.push(b'[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        self.json.push(b',');
                    }
                    self.value(element, Place::Value);
                }
                self.json.push(b']');
            }
            Value::Map(entries) => {
                if self.generated(node, place) {
                    return;
                }
                self.json.push(b'{');
                for (index, (key, inner)) in entries.iter().enumerate() {
                    if index > 0 {
                        self.json.push(b',');
                    }
                    json::write_str(&mut self.json, &key.name);
                    self.json.push(b':');
                    self.value(inner, Place::of(node, &key.name));
                }
                self.json.push(b'}');
            }
            _ => node.write_json(&mut self.json),
        }
    }

    /// Takes `{$generate: …}` as a piece, as its place wants it; false if it is none.
    fn generated(&mut self, node: &Node, place: Place) -> bool {
        let Some([(key, inner)]) = node.as_map() else { return false };
        let made = if key.name == GENERATE { (self.generate)(inner, self.findings) } else { None };
        let Some(mut generator) = made else { return false };
        if place == Place::Bytes
            && let Some(generator) = Rc::get_mut(&mut generator)
        {
            generator.encode();
        }
        self.flush();
        self.form.pieces.push(match place {
            Place::Value if generator.is_json() => Piece::Tree(generator),
            _ => Piece::Generated(generator),
        });
        true
    }

    fn text(&mut self, node: &Node) {
        let template = Template::read(node, self.interpolate, self.findings);
        match template.as_plain() {
            Some(plain) => json::write_str(&mut self.json, plain),
            None => {
                self.flush();
                self.form.pieces.push(Piece::Text(template));
            }
        }
    }
}

/// What is wanted at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Text, whatever it says.
    Text,
    /// Bytes in base64: of a resource, an image or a sound.
    Bytes,
    /// Any value.
    Value,
}

impl Place {
    /// The place in `map` under `key`.
    fn of(map: &Node, key: &str) -> Self {
        let sort = map.get("type").and_then(Node::as_text);
        match key {
            "text" => Self::Text,
            "blob" => Self::Bytes,
            "data" if matches!(sort, Some("image" | "audio")) => Self::Bytes,
            _ => Self::Value,
        }
    }
}

#[cfg(test)]
mod tests;
