//! The two ends of a session.

/// One end of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The client, which opens the session.
    Client,
    /// The MCP server.
    Server,
}

impl Side {
    /// The opposite end.
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The conversation that a message belongs to, when one tape holds several.
///
/// `session` numbers the MCP sessions of a tape from 1; a stdio session is always 1. `exchange` is 0 where
/// ids are unique within the session. Otherwise it numbers a single HTTP exchange, since sessionless clients
/// may use the same id at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// The session's number on the tape.
    pub session: u32,
    /// The exchange within it, or 0.
    pub exchange: u64,
}

impl Lane {
    /// The only lane of a stdio session.
    pub const ONLY: Self = Self { session: 1, exchange: 0 };

    /// The lane of a whole session.
    pub fn session(session: u32) -> Self {
        Self { session, exchange: 0 }
    }

    /// Whether a message here can refer to a call there: in the same lane or, for sessionless clients, in
    /// another exchange.
    pub fn reaches(self, other: Self) -> bool {
        // Each request of a sessionless client is an exchange of its own, and so is its
        // cancellation.
        let exchanges = self.exchange != 0 && other.exchange != 0;
        self == other || (exchanges && self.session == other.session)
    }
}
