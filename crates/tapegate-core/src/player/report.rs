//! What a replay has to tell: to a person as it goes, and at its end.

use super::replies::ChangedReply;

/// Something worth telling a person while a tape is played.
#[derive(Debug)]
pub enum Notice<'a> {
    /// For whoever looks for the reason of something.
    Debug(String),
    /// A request was found on the tape.
    Matched {
        /// The recorded request's `seq`, or its line where there is none.
        number: u32,
        /// The live request, redacted as the tape is.
        asked: &'a [u8],
        /// How it was found, in words.
        how: &'static str,
    },
    /// Something is amiss.
    Warn(String),
    /// A request was answered with what was recorded for other params.
    Differs {
        /// The recorded request's `seq`, or its line where there is none.
        number: u32,
        /// The recorded request.
        recorded: &'a [u8],
        /// The live request, redacted as the tape is.
        asked: &'a [u8],
    },
    /// A request was not on the tape.
    Diverged(&'a Divergence),
    /// The client has answered the server otherwise than recorded.
    Replied(&'a ChangedReply),
}

/// A request that the tape has no answer to.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// Which session of this replay asked, from 1.
    pub session: u32,
    /// Which session of the tape is played for it, from 1, if it is one.
    pub tape_session: Option<u32>,
    /// The method.
    pub method: String,
    /// The name or uri it asked for.
    pub name: Option<String>,
    /// The request, redacted as the tape is.
    pub request: Vec<u8>,
    /// Why nothing fits.
    pub reason: Reason,
    /// What comes next on the tape, if something else was asked.
    pub next: Option<Near>,
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
    /// In order, another request comes next.
    OutOfOrder,
    /// In order, the tape has no more requests.
    TapeEnded,
    /// It was recorded, but never answered.
    Unanswered,
    /// The recorded client took it back, and this one does not.
    NotCancelled,
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
    /// The session of the tape that it is of, from 1.
    pub session: u32,
}

/// What came of a replay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Requests that were answered from the tape.
    pub matched: u64,
    /// Those among them whose params differed from the recorded ones.
    pub differing: u64,
    /// The first of them.
    pub differing_first: Vec<Differing>,
    /// Requests that were answered without the tape, as any server would: `ping` and the like.
    pub courtesies: u64,
    /// Requests that the tape had no answer to.
    pub unmatched: u64,
    /// Those among them that the server behind was asked instead.
    pub passed_on: u64,
    /// Those among them that the server behind could not answer, because it did not start or failed.
    pub server_failed: u64,
    /// Why, the first time.
    pub server_failure: Option<String>,
    /// The first of them.
    pub divergences: Vec<Divergence>,
    /// Whether clients only shook hands and listed, and left everything else that was recorded.
    pub only_setup: bool,
    /// How many recorded requests nobody asked for.
    pub unused: u64,
    /// The first of them.
    pub unused_first: Vec<Unused>,
    /// Answers of the client that were not the recorded ones.
    pub changed_replies: u64,
    /// Those among them that count as divergences.
    pub failed_replies: u64,
    /// The first of them.
    pub changed_replies_first: Vec<ChangedReply>,
    /// Reads that were made more often than recorded, or not in their turn.
    pub extra_reads: u64,
    /// The first of them.
    pub extra_reads_first: Vec<ExtraRead>,
    /// How many sessions there were.
    pub sessions: u32,
}

/// A read, such as `tools/list`, that was answered from the tape though its turn had not come or it
/// had been made as often as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraRead {
    /// The recorded request's `seq`, or its line where there is none.
    pub number: u32,
    /// The live request, redacted as the tape is.
    pub asked: Vec<u8>,
    /// Whether it was made more often than recorded.
    pub again: bool,
}

/// A request that was answered with what was recorded for other params.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// The recorded request's `seq`, or its line where there is none.
    pub number: u32,
    /// The recorded request.
    pub recorded: Vec<u8>,
    /// The live request, redacted as the tape is.
    pub asked: Vec<u8>,
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

impl Reason {
    /// The reason in the words of an error.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotRecorded => "not on the tape",
            Self::Exhausted => "asked more often than the tape has it",
            Self::OutOfOrder => "not what comes next on the tape",
            Self::TapeEnded => "the tape is at its end",
            Self::Unanswered => "recorded, but never answered",
            Self::NotCancelled => "cancelled on the tape, and never answered",
        }
    }
}
