//! Requests for approval: files in the state folder that whoever waits and whoever decides share.
//!
//! A request is one file and its decision another, made in one step by the first who decides, so
//! that there is never more than one decision. Both survive whoever wrote them.
//!
//! ```text
//! approvals/ap_….request.json    what is asked, by whoever waits
//! approvals/ap_….decision.json   what was decided, by the first who did
//! approvals/ap_….used            the call that was approved has been let through
//! ```

mod error;
mod folder;
mod id;
mod text;

pub use error::ApprovalError;
pub use folder::{Approvals, Entry, Listing};
pub use id::{is_id, new_id};

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
    /// The arguments as JSON, with secrets masked.
    pub arguments: Option<String>,
    /// Blake3 of method, name and canonical arguments, before masking.
    pub call_hash: String,
    /// Who calls.
    pub principal: String,
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
    /// The process that waits, so that what nobody waits for can be told apart.
    pub pid: u32,
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
        match self {
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    /// The ruling that a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        let all = [Self::Approved, Self::Denied, Self::Cancelled, Self::Expired];
        all.into_iter().find(|ruling| ruling.word() == word)
    }
}
