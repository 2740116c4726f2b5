//! Text with variables: `Hello ${args.name}`.
//!
//! It is filled in one pass: the value of a variable is not expanded again.

use tapegate_core::json;

use super::InterpolationMode;
use super::context::{TemplateContext, VariableValue};
use super::parse::{self, TemplateExpression, TemplateVariable};
use crate::finding::Findings;
use crate::node::Node;

/// Text with variables.
#[derive(Debug, Clone, Default)]
pub struct Template {
    /// The text, as it was written.
    pub text: String,
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone)]
enum TemplatePart {
    /// Text, and its escaped form inside a JSON string.
    Text(String, Box<[u8]>),
    /// A variable or function call.
    Hole(TemplateExpression),
}

impl Template {
    /// Parses a text node, and reports invalid expressions.
    pub fn read(node: &Node, interpolate: InterpolationMode, findings: &mut Findings) -> Self {
        let text = node.as_text().unwrap_or_default();
        let (template, faults) = Self::parse(text, interpolate);
        for fault in faults {
            match fault {
                TemplateFault::Wrong(message) => findings.error(node.spot, message),
                TemplateFault::Odd(message) => findings.warning(node.spot, message),
            }
        }
        template
    }

    /// Parses a text; an invalid expression stays text.
    pub fn of(text: &str, interpolate: InterpolationMode) -> Self {
        Self::parse(text, interpolate).0
    }

    fn parse(text: &str, interpolate: InterpolationMode) -> (Self, Vec<TemplateFault>) {
        let mut template = Self { text: text.to_owned(), parts: Vec::new() };
        let (mut plain, mut faults) = (String::new(), Vec::new());
        let mut rest = text;
        while let Some(at) = rest.find("${").filter(|_| interpolate == InterpolationMode::All) {
            let (before, hole) = rest.split_at(at);
            // `$${` is a literal `${`.
            if let Some(before) = before.strip_suffix('$') {
                plain.push_str(before);
                plain.push_str("${");
                rest = &hole[2..];
                continue;
            }
            plain.push_str(before);
            match parse::read(&hole[2..]) {
                Ok((expression, length)) => {
                    template.add_text(&mut plain);
                    note_unknown(&expression, &hole[..length + 2], &mut faults);
                    template.parts.push(TemplatePart::Hole(expression));
                    rest = &hole[length + 2..];
                }
                // The rest is still read, so that every fault of the text is reported.
                Err(reason) => {
                    let message =
                        format!("invalid `${{`: {reason}; write `$${{` for a literal `${{`");
                    faults.push(TemplateFault::Wrong(message));
                    plain.push_str("${");
                    rest = &hole[2..];
                }
            }
        }
        plain.push_str(rest);
        template.add_text(&mut plain);
        (template, faults)
    }

    fn add_text(&mut self, plain: &mut String) {
        if !plain.is_empty() {
            let mut json = Vec::new();
            // Escaped once here rather than each time the template is sent.
            write_inner(&mut json, plain);
            self.parts.push(TemplatePart::Text(std::mem::take(plain), json.into()));
        }
    }

    /// The text, if it has no variables.
    pub fn as_plain(&self) -> Option<&str> {
        match &self.parts[..] {
            [] => Some(""),
            [TemplatePart::Text(text, _)] => Some(text),
            _ => None,
        }
    }

    /// Whether one of its variables is a reply from the client.
    pub(super) fn needs_replies(&self) -> bool {
        fn needs_reply(expression: &TemplateExpression) -> bool {
            match expression {
                TemplateExpression::Text(_) => false,
                TemplateExpression::Variable(variable) => {
                    matches!(variable, TemplateVariable::Reply(..))
                }
                TemplateExpression::Call(_, arguments) => arguments.iter().any(needs_reply),
            }
        }
        self.parts
            .iter()
            .any(|part| matches!(part, TemplatePart::Hole(expression) if needs_reply(expression)))
    }

    /// The filled text.
    pub fn fill(&self, context: &TemplateContext<'_>) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text, _) => out.push_str(text),
                TemplatePart::Hole(expression) => out.push_str(&context.value(expression).text()),
            }
        }
        out
    }

    /// Appends the filled text as a JSON string, with its quotes.
    pub(super) fn write_json(&self, context: &TemplateContext<'_>, out: &mut Vec<u8>) {
        out.push(b'"');
        for part in &self.parts {
            match part {
                TemplatePart::Text(_, json) => out.extend_from_slice(json),
                TemplatePart::Hole(expression) => match context.value(expression) {
                    // A JSON string is already escaped.
                    VariableValue::Json([b'"', inner @ .., b'"']) => out.extend_from_slice(inner),
                    found => write_inner(out, &found.text()),
                },
            }
        }
        out.push(b'"');
    }
}

/// A problem found in a template.
enum TemplateFault {
    Wrong(String),
    Odd(String),
}

fn note_unknown(expression: &TemplateExpression, hole: &str, faults: &mut Vec<TemplateFault>) {
    match expression {
        TemplateExpression::Variable(TemplateVariable::Unknown) => {
            faults.push(TemplateFault::Odd(format!(
                "unknown variable in `{hole}`; its value is always empty"
            )));
        }
        TemplateExpression::Call(_, arguments) => {
            arguments.iter().for_each(|argument| note_unknown(argument, hole, faults));
        }
        _ => {}
    }
}

/// Appends text as it appears between the quotes of a JSON string.
fn write_inner(out: &mut Vec<u8>, text: &str) {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    json::write_str(&mut quoted, text);
    out.extend_from_slice(&quoted[1..quoted.len() - 1]);
}
