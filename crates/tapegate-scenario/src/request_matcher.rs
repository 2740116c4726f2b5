//! Conditions on requests.
//!
//! Used by the triggers of phases and by the branches of a response. Patterns are compiled when the
//! scenario is loaded; regular expressions take linear time. Text is a glob, or after `regex:` a
//! regular expression; numbers and booleans are compared by value. A missing value matches only
//! `exists: false`.

mod read;
mod value_test;

use crate::template::{TemplateContext, TemplateVariable, VariableValue};
use value_test::ConditionTest;

/// A condition on a request; all parts must match.
#[derive(Debug, Clone, Default)]
pub struct RequestMatcher {
    conditions: Vec<Condition>,
}

/// The tests of one part of a request.
#[derive(Debug, Clone)]
struct Condition {
    variable: TemplateVariable,
    tests: Vec<ConditionTest>,
}

impl RequestMatcher {
    /// Whether all parts match.
    pub fn matches(&self, context: &TemplateContext<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.matches(context))
    }
}

impl Condition {
    fn matches(&self, context: &TemplateContext<'_>) -> bool {
        let found = context.variable(&self.variable);
        let found = match &found {
            VariableValue::Missing => None,
            found => Some(found),
        };
        // A missing `arguments` object counts as an empty one.
        let none = found.is_none()
            && matches!(&self.variable, TemplateVariable::Arguments(steps) if steps.is_empty());
        self.tests.iter().all(|test| test.matches(found) || none && test.wants_an_empty_map())
    }
}

#[cfg(test)]
mod tests;
