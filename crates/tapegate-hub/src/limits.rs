//! How much a hub bears of those who talk to it, known or not.
//!
//! Without the token nobody gets more than a refusal, but a connection is had by everybody on the
//! machine. So each must come to the point in time, and there are only so many.

use std::time::Duration;

/// What a hub bears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many connections there are at once. Further ones wait until one of them ends. Each shim
    /// keeps one, and another for every call that waits for a person.
    pub connections_max: usize,
    /// How long the head of a request may take; also how long a connection may be idle.
    pub head_patience: Duration,
    /// How long the body of a request may take.
    pub body_patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let (head_patience, body_patience) = (Duration::from_secs(10), Duration::from_secs(30));
        Self { connections_max: 512, head_patience, body_patience }
    }
}
