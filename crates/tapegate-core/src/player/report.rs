//! What a replay reports, as it runs and at its end.

use super::client_replies::ChangedReply;

/// Something to report while a tape is played.
#[derive(Debug)]
pub enum ReplayNotice<'a> {
    /// Details for debugging.
    Debug(String),
    /// A request was matched to the tape.
    Matched {
        /// The recorded request's `seq`, or its line where there is none.
        number: u32,
        /// The live request, redacted as the tape is.
        request: &'a [u8],
        /// How it was matched.
        how: &'static str,
    },
    /// A warning.
    Warn(String),
    /// A request was answered with the answer recorded for other params.
    Differs {
        /// The recorded request's `seq`, or its line where there is none.
        number: u32,
        /// The recorded request.
        recorded: &'a [u8],
        /// The live request, redacted as the tape is.
        request: &'a [u8],
    },
    /// A request was not on the tape.
    Diverged(&'a Divergence),
    /// The client answered the server differently than recorded.
    Replied(&'a ChangedReply),
}

/// A request for which the tape has no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// The session of this replay that made it, from 1.
    pub session: u32,
    /// The recorded session that is played for it, from 1, if there is one.
    pub tape_session: Option<u32>,
    pub method: String,
    /// The name or uri it asked for.
    pub name: Option<String>,
    /// The request, redacted as the tape is.
    pub request: Vec<u8>,
    /// Why nothing matches.
    pub reason: DivergenceReason,
    /// The next request on the tape, if another one was made.
    pub next: Option<NearMatch>,
    /// The nearest recorded requests, best first; at most three.
    pub nearest: Vec<NearMatch>,
    /// Whether it was passed to the server behind the tape.
    pub passed_on: bool,
}

/// Why nothing on the tape matches a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DivergenceReason {
    /// Nothing like it was recorded.
    NotRecorded,
    /// It was recorded, but is made more often than that.
    Exhausted,
    /// In sequential mode, another request is next.
    OutOfOrder,
    /// In sequential mode, the next request is the same with other params, which are not accepted.
    OtherParams,
    /// In sequential mode, the tape has no more requests.
    TapeEnded,
    /// It was recorded, but never answered.
    Unanswered,
    /// The recorded client cancelled it, and the live one did not.
    NotCancelled,
}

/// A recorded request that is similar.
#[derive(Debug, Clone, PartialEq)]
pub struct NearMatch {
    /// Its `seq`, or its line where there is none.
    pub number: u32,
    /// The recorded request.
    pub request: Vec<u8>,
    /// The share of its params that is equal, from 0 to 1, as fuzzy matching counts it: without the
    /// name or uri, unless that differs.
    pub score: f64,
    /// The recorded session it belongs to, from 1.
    pub session: u32,
}

/// The outcome of a replay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplaySummary {
    /// Requests answered from the tape.
    pub matched: u64,
    /// How many of those had params that differ from the recorded ones.
    pub differing: u64,
    /// The first of them.
    pub differing_first: Vec<DifferingRequest>,
    /// Requests answered without the tape, as any server would answer them, such as `ping`.
    pub courtesies: u64,
    /// Requests for which the tape had no answer.
    pub unmatched: u64,
    /// How many of those were passed to the server behind the tape.
    pub passed_on: u64,
    /// How many of those it failed to answer, because it did not start or failed.
    pub server_failed: u64,
    /// The first reason for that.
    pub server_failure: Option<String>,
    /// The first unmatched requests.
    pub divergences: Vec<Divergence>,
    /// Whether clients only initialized and listed, and made none of the other recorded requests.
    pub only_setup: bool,
    /// How many recorded requests no client made.
    pub unused: u64,
    /// The first of them.
    pub unused_first: Vec<UnusedRequest>,
    /// Answers of the client that differ from the recorded ones.
    pub changed_replies: u64,
    /// How many of those count as divergences.
    pub failed_replies: u64,
    /// The first of them.
    pub changed_replies_first: Vec<ChangedReply>,
    /// Reads that were made more often than recorded, or out of order.
    pub extra_reads: u64,
    /// The first of them.
    pub extra_reads_first: Vec<ExtraRead>,
    /// How many sessions there were.
    pub sessions: u32,
}

/// A read, such as `tools/list`, that was answered from the tape although it was out of order or
/// made more often than recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraRead {
    /// The recorded request's `seq`, or its line where there is none.
    pub number: u32,
    /// The live request, redacted as the tape is.
    pub request: Vec<u8>,
    /// Whether it was made more often than recorded.
    pub again: bool,
}

/// A request that was answered with the answer recorded for other params.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifferingRequest {
    /// The recorded request's `seq`, or its line where there is none.
    pub number: u32,
    /// The recorded request.
    pub recorded: Vec<u8>,
    /// The live request, redacted as the tape is.
    pub request: Vec<u8>,
}

/// A recorded request that no client made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedRequest {
    /// Its `seq`, or its line where there is none.
    pub number: u32,
    pub method: String,
    /// The name or uri it asked for.
    pub name: Option<String>,
}

impl DivergenceReason {
    /// The reason as worded in an error message.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotRecorded => "not on the tape",
            Self::Exhausted => "requested more often than recorded",
            Self::OutOfOrder => "not the next request on the tape",
            Self::OtherParams => "its arguments differ from the recorded ones",
            Self::TapeEnded => "the tape is at its end",
            Self::Unanswered => "recorded, but never answered",
            Self::NotCancelled => "cancelled on the tape, and never answered",
        }
    }
}
