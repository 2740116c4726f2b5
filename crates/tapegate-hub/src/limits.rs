//! Limits on what any client, known or unknown, can demand of a hub.
//!
//! Without a token a request is refused, but any program on the machine can open a connection. So
//! every request has a deadline, and the number of connections is limited.

use std::time::Duration;

/// What a hub allows its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubLimits {
    /// The number of concurrent connections; further ones wait until one closes. Each shim holds
    /// one, and another for each call that awaits approval.
    pub connections_max: usize,
    /// How long the head of a request may take; also how long a connection may stay idle.
    pub head_patience: Duration,
    /// How long the body of a request may take.
    pub body_patience: Duration,
}

impl Default for HubLimits {
    fn default() -> Self {
        let (head_patience, body_patience) = (Duration::from_secs(10), Duration::from_secs(30));
        Self { connections_max: 512, head_patience, body_patience }
    }
}
