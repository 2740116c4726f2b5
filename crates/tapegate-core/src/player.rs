//! A tape in the role of the server.
//!
//! The player answers each request of a client with what the tape has for it, and says what the
//! server said of its own accord at the place it said it. It never gives one call's answer to
//! another: what the tape does not have is a divergence, which is answered with an error, said
//! aloud and counted.

use crate::signature::Signer;
use crate::tape::Mask;

/// How a request is found on the tape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Requests come in the order of the tape.
    Sequential,
    /// Requests come in any order and ask for exactly what was asked.
    ByRequest,
    /// Requests come in any order and may differ a little.
    Fuzzy {
        /// The least share of equal leaves, from 0 to 1.
        threshold: f64,
    },
}

/// What happens to a request that is not on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnmatched {
    /// It is answered with an error, and replay ends.
    Error,
    /// It is answered with an error, and replay goes on.
    Warn,
    /// It is passed to the server behind.
    Passthrough,
}

/// What happens to a request that was asked more often than the tape has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExhausted {
    /// It counts as not recorded.
    Error,
    /// The last answer is given again.
    Last,
    /// The answers begin again.
    Cycle,
}

/// Whose requests use up the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateScope {
    /// Each session plays the tape from its start.
    Session,
    /// All sessions share one place on the tape.
    Global,
}

/// What is said of what the server said of its own accord.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerMessages {
    /// Everything.
    All,
    /// Notifications, but no requests.
    Notifications,
    /// Nothing.
    None,
}

/// How a tape is played.
pub struct Options {
    /// How a request is found.
    pub mode: Mode,
    /// By what recorded delays are multiplied; 0 for none.
    pub pace: f64,
    /// What happens to a request that is not on the tape.
    pub on_unmatched: OnUnmatched,
    /// What happens to a request that was asked too often.
    pub on_exhausted: OnExhausted,
    /// Whose requests use up the tape.
    pub scope: StateScope,
    /// What is said of the server's own messages.
    pub server_messages: ServerMessages,
    /// Whether a call whose params differ from the next one on the tape is no match, in order.
    pub strict_params: bool,
    /// What the tape was redacted with.
    pub mask: Option<Box<dyn Mask>>,
    /// What the index was signed with.
    pub signer: Signer,
}
