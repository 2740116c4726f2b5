//! Events that an engine reports to its observer.

/// An event, for logs and for judging the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineNote<'a> {
    /// The client has sent a line.
    Said {
        /// The line.
        bytes: &'a [u8],
        /// The phase in which it was received.
        phase: &'a str,
    },
    /// The client has sent a message over the size limit, which was not read.
    Unread,
    /// The phase has changed.
    Phase {
        /// The phase that ended.
        from: &'a str,
        /// The phase that began.
        to: &'a str,
        /// The trigger.
        reason: &'a str,
    },
    /// A log message for the user.
    Log {
        /// Its severity.
        level: crate::model::LogLevel,
        message: &'a str,
    },
    /// A side effect has started.
    Effect {
        /// The name of the effect.
        name: &'a str,
        /// Why it was skipped, if it was.
        left_out: Option<&'a str>,
    },
    /// The server has sent a request to the client.
    Asked {
        /// The request's id; for a sessionless client the name of the input request, as a JSON
        /// string.
        id: &'a [u8],
        method: &'a str,
    },
}
