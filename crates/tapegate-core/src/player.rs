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

/// Something worth telling a person while a tape is played.
#[derive(Debug)]
pub enum Notice<'a> {
    /// For whoever looks for the reason of something.
    Debug(String),
    /// Something is amiss.
    Warn(String),
    /// A request was not on the tape.
    Diverged(&'a Divergence),
}

/// A request that the tape has no answer to.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// Which session of this replay asked, from 1.
    pub session: u32,
    /// The method.
    pub method: String,
    /// The name or uri it asked for.
    pub name: Option<String>,
    /// The request, redacted as the tape is.
    pub request: Vec<u8>,
    /// Why nothing fits.
    pub reason: Reason,
    /// What comes nearest, best first; at most three.
    pub nearest: Vec<Near>,
    /// Whether the server behind was asked instead.
    pub passed_on: bool,
}

/// Why nothing on the tape fits a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Nothing like it was recorded.
    NotRecorded,
    /// It was recorded, but not as often as it was asked.
    Exhausted,
    /// In order, another request comes first: the one that is nearest.
    OutOfOrder,
    /// In order, the tape has no more requests.
    TapeEnded,
    /// It was recorded, but never answered.
    Unanswered,
}

/// A recorded request that comes near.
#[derive(Debug, Clone, PartialEq)]
pub struct Near {
    /// Its `seq`, or its line where there is none.
    pub number: u32,
    /// The recorded request.
    pub request: Vec<u8>,
    /// How much of it is equal, from 0 to 1.
    pub score: f64,
}

/// What came of a replay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Requests that were answered from the tape.
    pub matched: u64,
    /// Those among them whose params differed from the recorded ones.
    pub differing: u64,
    /// Requests that were answered without the tape, as any server would: `ping` and the like.
    pub courtesies: u64,
    /// Requests that the tape had no answer to.
    pub unmatched: u64,
    /// The first of them.
    pub divergences: Vec<Divergence>,
    /// How many recorded requests nobody asked for.
    pub unused: u64,
    /// The first of them.
    pub unused_first: Vec<Unused>,
    /// How many sessions there were.
    pub sessions: u32,
}

/// A recorded request that nobody asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    /// Its `seq`, or its line where there is none.
    pub number: u32,
    /// The method.
    pub method: String,
    /// The name or uri it asked for.
    pub name: Option<String>,
}
