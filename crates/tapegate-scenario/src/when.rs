//! Conditions on requests.
//!
//! Used by the triggers of phases and by the branches of a response. Patterns are compiled when the
//! scenario is loaded; regular expressions take linear time. Text is a glob, or after `regex:` a
//! regular expression; numbers and booleans are compared by value. A missing value matches only
//! `exists: false`.

mod read;
mod test;

use crate::form::{Context, Found, Variable};
use test::Test;

/// A condition on a request; all parts must match.
#[derive(Debug, Clone, Default)]
pub struct When {
    conditions: Vec<Condition>,
}

/// The tests of one part of a request.
#[derive(Debug, Clone)]
struct Condition {
    variable: Variable,
    tests: Vec<Test>,
}

impl When {
    /// Whether all parts match.
    pub fn fits(&self, context: &Context<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.fits(context))
    }
}

impl Condition {
    fn fits(&self, context: &Context<'_>) -> bool {
        let found = context.variable(&self.variable);
        let found = match &found {
            Found::Missing => None,
            found => Some(found),
        };
        // A missing `arguments` object counts as an empty one.
        let none = found.is_none()
            && matches!(&self.variable, Variable::Arguments(steps) if steps.is_empty());
        self.tests.iter().all(|test| test.fits(found) || none && test.wants_an_empty_map())
    }
}

#[cfg(test)]
mod tests;
