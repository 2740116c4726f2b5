//! Text with holes that are filled when it is sent.

use std::rc::Rc;

use crate::finding::Findings;
use crate::generate::Generator;
use crate::node::Node;

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
}

/// Text with variables.
#[derive(Debug, Clone, Default)]
pub struct Template {
    /// The text, as it was written.
    pub text: String,
}

/// Whether `${…}` means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interpolate {
    /// It does.
    All,
    /// It is text like any other.
    None,
}

impl Form {
    /// The form of a node; with variables where `interpolate` says so.
    pub fn read(node: &Node, _interpolate: Interpolate, _findings: &mut Findings) -> Self {
        Self { pieces: vec![Piece::Json(node.to_json().into())] }
    }
}
