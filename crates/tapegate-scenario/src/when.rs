//! What a request must look like.
//!
//! One matcher for what leads out of a phase and for the branches of an answer. A condition is read
//! and its patterns are compiled when the scenario is; regular expressions take linear time. Text is a
//! glob, or a regular expression after `regex:`; numbers and words are compared by value. What is
//! missing fits nothing but `exists: false`.

mod read;
mod test;

use crate::form::{Context, Found, Variable};
use test::Test;

/// What a request must look like: all of it must fit.
#[derive(Debug, Clone, Default)]
pub struct When {
    conditions: Vec<Condition>,
}

/// What one part of a request must look like.
#[derive(Debug, Clone)]
struct Condition {
    variable: Variable,
    tests: Vec<Test>,
}

impl When {
    /// Whether all of it fits.
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
        // No arguments are the same as none.
        let none = found.is_none()
            && matches!(&self.variable, Variable::Arguments(steps) if steps.is_empty());
        self.tests.iter().all(|test| test.fits(found) || none && test.wants_an_empty_map())
    }
}

#[cfg(test)]
mod tests;
