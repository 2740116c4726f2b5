//! Requests for approval, shared by the process that waits and the person who decides.
//!
//! A request is one file and its decision another, published in one step by the first who decides,
//! so there is never more than one decision. Both survive the process that wrote them. Every file
//! carries a message authentication code made with a key that only the user's own processes can
//! read: a file that was forged, edited or copied is set aside and reported, never acted on.
//!
//! ```text
//! approvals/ap_….request.json    what is asked, by the process that waits
//! approvals/ap_….decision.json   what was decided, by the first who did
//! approvals/ap_….used            the approved call has been sent
//! approvals/ap_….unlogged        a decision that the activity log does not tell of yet
//! approvals/unmasked/ap_…        the whole params, while the request is pending
//! approvals/calls/<hash>/ap_…    which requests are about the same call
//! approvals/refused-…            a file that was set aside
//! approvals/clock                shows the time of the file system
//! ```

mod age;
mod check;
mod clean;
mod error;
mod folder;
mod id;
mod repeats;
mod seal;
mod text;
mod unlogged;
mod unmasked;

use tapegate_core::decision::LoggedDecision;

pub use error::ApprovalError;
pub use folder::{Approvals, Entry, RefusedFile};
pub use id::{is_id, new_id};
pub use repeats::Asked;
pub use unmasked::Unmasked;

/// Something that a person must decide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Its name: `ap_` and 16 letters.
    pub id: String,
    /// Microseconds since 1970.
    pub created_us: i64,
    /// When it is too late.
    pub expires_us: i64,
    /// The server.
    pub server_id: String,
    /// The method.
    pub method: String,
    /// The tool, prompt or URI.
    pub tool: String,
    /// The whole `params` as JSON, with secrets masked.
    pub params: Option<String>,
    /// The keyed hash of the whole `params` if some of them are masked and they are kept for the one who
    /// decides; else empty.
    pub params_hash: String,
    /// Blake3 of the method, the canonical `params` before masking without the ids of the single call in
    /// `_meta`, and the workflow.
    pub call_hash: String,
    /// Who calls.
    pub principal: String,
    /// The folder that the caller works in, on which relative paths depend.
    pub folder: String,
    /// The policy's file, by which a person is asked.
    pub policy: String,
    /// The workflow.
    pub workflow: String,
    /// Why a person is asked.
    pub reason: String,
    /// Who may decide; nobody named means anybody.
    pub approvers: Vec<String>,
    /// The shim's connection.
    pub connection_id: String,
    /// What the caller is told as `correlation_id`.
    pub request_id: String,
    /// The process that waits.
    pub pid: u32,
    /// How often the same call was made while this request was open.
    pub asked: u32,
    /// How many of these calls still wait.
    pub waiting: u32,
    /// When the last caller that gave up did so.
    pub left_us: Option<i64>,
}

impl Request {
    /// The raw JSON of the call's arguments, with secrets masked.
    pub fn arguments(&self) -> Option<&str> {
        let params = self.params.as_deref()?;
        let arguments = tapegate_core::json::member(params.as_bytes(), "arguments")?;
        std::str::from_utf8(arguments).ok()
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// A person said yes.
    Approved,
    /// A person said no.
    Denied,
    /// The caller took it back.
    Cancelled,
    /// Nobody decided in time.
    Expired,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// What was decided.
    pub ruling: Ruling,
    /// By whom.
    pub by: String,
    /// Microseconds since 1970.
    pub at_us: i64,
    /// Why, if they said.
    pub reason: Option<String>,
}

impl Ruling {
    /// The word for it, in files and reports.
    pub fn word(self) -> &'static str {
        self.logged().word()
    }

    /// What the activity log calls it.
    pub fn logged(self) -> LoggedDecision {
        match self {
            Self::Approved => LoggedDecision::Approved,
            Self::Denied => LoggedDecision::Denied,
            Self::Cancelled => LoggedDecision::Cancelled,
            Self::Expired => LoggedDecision::Expired,
        }
    }

    /// The ruling that a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        let all = [Self::Approved, Self::Denied, Self::Cancelled, Self::Expired];
        all.into_iter().find(|ruling| ruling.word() == word)
    }
}
