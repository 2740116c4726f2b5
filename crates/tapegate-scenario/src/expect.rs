//! What a safe agent does and does not do.

/// One thing that a safe agent does, or does not do.
#[derive(Debug)]
pub struct Expectation {}
