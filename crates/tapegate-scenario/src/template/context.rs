//! The values of template variables.

use std::borrow::Cow;
use std::cell::Cell;

use tapegate_core::json;
use tapegate_core::time::Timestamp;

use super::access_path::{as_text, walk};
use super::functions;
use super::parse::{TemplateExpression, TemplateVariable};
use crate::generate::random::next_random;
use crate::model::{ItemKind, ScenarioItem};

/// A value with its name.
pub type NamedValue<T> = (String, T);

/// The values of template variables, evaluated only when a template uses them.
#[derive(Clone, Copy)]
pub struct TemplateContext<'a> {
    /// The params of the request, as received.
    pub params: &'a [u8],
    /// The item that is used.
    pub item: Option<&'a ScenarioItem>,
    /// The name it was used by; for a resource template, the actual URI.
    pub called: Option<&'a str>,
    /// The variables of that URI.
    pub uri: &'a [NamedValue<String>],
    /// How often it was used, this time included.
    pub call_count: u64,
    /// The name of the phase.
    pub phase: &'a str,
    /// The index of the phase, from 0; -1 if there is none.
    pub phase_index: i64,
    /// The id of the request, as received.
    pub id: &'a [u8],
    pub method: &'a str,
    /// The number of the client.
    pub connection: u32,
    /// Looks up an environment variable.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The client's replies, by the names the scenario gives them.
    pub replies: &'a [NamedValue<Vec<u8>>],
    /// The current time.
    pub at: Timestamp,
    /// The state of the random number generator.
    pub dice: &'a Cell<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum VariableValue<'a> {
    /// It does not exist.
    Missing,
    /// A value, as JSON.
    Json(&'a [u8]),
    /// Text that did not come from JSON.
    Text(Cow<'a, str>),
}

impl<'a> VariableValue<'a> {
    /// The value as text; empty if it is missing.
    pub(crate) fn text(self) -> Cow<'a, str> {
        match self {
            Self::Missing => Cow::Borrowed(""),
            Self::Json(text) => as_text(text),
            Self::Text(text) => text,
        }
    }

    fn of(text: Option<&'a [u8]>) -> Self {
        text.map_or(Self::Missing, Self::Json)
    }

    fn from_text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    fn number(number: impl ToString) -> Self {
        Self::Text(Cow::Owned(number.to_string()))
    }
}

impl<'a> TemplateContext<'a> {
    /// The arguments of the request.
    pub(crate) fn arguments(&self) -> Option<&'a [u8]> {
        json::member(self.params, "arguments")
    }

    /// Evaluates an expression.
    pub(super) fn value(&self, expression: &'a TemplateExpression) -> VariableValue<'a> {
        match expression {
            TemplateExpression::Text(text) => VariableValue::from_text(text),
            TemplateExpression::Variable(variable) => self.variable(variable),
            TemplateExpression::Call(function, arguments) => {
                functions::call(*function, arguments, self)
            }
        }
    }

    /// Evaluates a variable.
    pub(crate) fn variable(&self, variable: &TemplateVariable) -> VariableValue<'a> {
        match variable {
            TemplateVariable::Arguments(steps) => {
                VariableValue::of(self.arguments().and_then(|arguments| walk(arguments, steps)))
            }
            TemplateVariable::Params(steps) => VariableValue::of(walk(self.params, steps)),
            TemplateVariable::Uri(name) => match self.uri.iter().find(|(known, _)| known == name) {
                Some((_, value)) => VariableValue::from_text(value),
                None => VariableValue::Missing,
            },
            TemplateVariable::Reply(name, steps) => {
                // The latest: a phase may ask the same again.
                let reply = self.replies.iter().rfind(|(known, _)| known == name);
                VariableValue::of(reply.and_then(|(_, reply)| walk(reply, steps)))
            }
            TemplateVariable::Item(kind, field) => self.of_item(*kind, field),
            TemplateVariable::CallCount(kind) => match self.is_about(*kind) {
                true => VariableValue::number(self.call_count),
                false => VariableValue::Missing,
            },
            TemplateVariable::PhaseName => VariableValue::from_text(self.phase),
            TemplateVariable::PhaseIndex => VariableValue::number(self.phase_index),
            TemplateVariable::RequestId => match self.id {
                b"" => VariableValue::Missing,
                id => VariableValue::Json(id),
            },
            TemplateVariable::RequestMethod => VariableValue::from_text(self.method),
            TemplateVariable::Connection => VariableValue::number(self.connection),
            TemplateVariable::Env(name) => (self.env)(name)
                .map_or(VariableValue::Missing, |value| VariableValue::Text(Cow::Owned(value))),
            TemplateVariable::Unknown => VariableValue::Missing,
        }
    }

    /// Whether the request uses an item of this kind.
    fn is_about(&self, kind: ItemKind) -> bool {
        self.item.is_some_and(|item| {
            let template = item.kind == ItemKind::Template && kind == ItemKind::Resource;
            item.kind == kind || template
        })
    }

    /// A member of the item's definition; its name is the one it was used by.
    fn of_item(&self, kind: ItemKind, field: &str) -> VariableValue<'a> {
        let Some(item) = self.item.filter(|_| self.is_about(kind)) else {
            return VariableValue::Missing;
        };
        let id = if kind == ItemKind::Resource { "uri" } else { "name" };
        if field == id {
            // Of a resource template, the URI that was asked for and not the pattern.
            return VariableValue::from_text(self.called.unwrap_or(&item.name));
        }
        match item.definition.get(field) {
            Some(node) => match node.as_text() {
                Some(text) => VariableValue::from_text(text),
                None => VariableValue::Text(Cow::Owned(
                    String::from_utf8_lossy(&node.to_json()).into_owned(),
                )),
            },
            None => VariableValue::Missing,
        }
    }

    /// The next random number.
    pub(crate) fn next_random(&self) -> u64 {
        let mut state = self.dice.get();
        let number = next_random(&mut state);
        self.dice.set(state);
        number
    }
}
