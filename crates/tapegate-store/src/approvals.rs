//! Approval requests, shared by the process that waits and the person who decides.
//!
//! A request is one file and its decision another. The decision is published atomically and only
//! the first one succeeds, so a request never has two. Both files outlive the process that wrote
//! them. Each carries a message authentication code made with a key that only the user's own
//! processes can read: a file that was forged, edited or copied is set aside and reported, never
//! acted on.
//!
//! ```text
//! approvals/ap_….request.json    what is asked, by the process that waits
//! approvals/ap_….decision.json   what was decided, by the first who did
//! approvals/ap_….vote-…          one of several approvals that the request needs
//! approvals/ap_….used            the approved call has been sent
//! approvals/ap_….escalated       the request has gone to a second workflow, and that was logged
//! approvals/gr_….grant.json      an approval for more than one call
//! approvals/grants/gr_…          which grants there are
//! approvals/gr_….revoked         a person has revoked it
//! approvals/gr_….expired         its time is over, and that was logged
//! approvals/ap_….unlogged        a decision that the activity log does not tell of yet
//! approvals/unmasked/ap_…        the whole params, while the request is pending
//! approvals/calls/<hash>/ap_…    which requests are about the same call
//! approvals/refused-…            a file that was set aside
//! approvals/clock                shows the time of the file system
//! ```

mod age;
mod channel_receipts;
mod check;
mod cleanup;
mod error;
mod escalation;
mod folder;
mod grant_text;
mod grants;
mod id;
mod mac;
mod same_call_requests;
mod state;
mod text;
mod unlogged_decisions;
mod unmasked_params;
mod votes;

use tapegate_core::decision::LoggedDecision;

pub use channel_receipts::ChannelReceipts;
pub use error::ApprovalError;
pub use escalation::Escalation;
pub use folder::{ApprovalEntry, ApprovalStore, RefusedFile, RequestStamp};
pub use grants::{ApprovalGrant, GrantCoverage, GrantState};
pub use id::{is_id, new_id};
pub use same_call_requests::AskOutcome;
pub use state::{ApprovalChange, ApprovalState};
pub use unmasked_params::UnmaskedParams;

/// A call that needs approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRecord {
    /// Its id: `ap_` and 16 characters.
    pub id: String,
    /// Microseconds since 1970.
    pub created_us: i64,
    /// When it expires, in microseconds since 1970.
    pub expires_us: i64,
    pub server_id: String,
    pub method: String,
    /// The tool, prompt or URI.
    pub tool: String,
    /// The whole `params` as JSON, with secrets masked.
    pub params: Option<String>,
    /// The keyed hash of the whole `params`, if some of them are masked and the originals are kept
    /// for the approver; otherwise empty.
    pub params_hash: String,
    /// BLAKE3 of the method, the canonical unmasked `params` without the per-call ids in `_meta`,
    /// and the workflow.
    pub call_hash: String,
    /// The caller.
    pub principal: String,
    /// Whether the policy names the caller. Otherwise it is just the user who runs the agent, who is
    /// often the only person there.
    pub is_principal_named: bool,
    /// The caller's working folder, on which relative paths depend.
    pub folder: String,
    /// The file of the policy that requires approval.
    pub policy: String,
    pub workflow: String,
    /// Why approval is needed.
    pub reason: String,
    /// Who may decide; if empty, any approver may.
    pub approvers: Vec<String>,
    /// How many of them must approve; 0 and 1 mean that one is enough.
    pub quorum: u32,
    /// When it goes to a second workflow, if it does.
    pub escalation: Option<Escalation>,
    /// The shim's connection.
    pub connection_id: String,
    /// Reported to the caller as `correlation_id`.
    pub request_id: String,
    /// The process that waits.
    pub pid: u32,
    /// How many times the same call was made while this request was open.
    pub call_count: u32,
    /// How many of these calls are still waiting.
    pub waiting: u32,
    /// When a caller last gave up.
    pub left_us: Option<i64>,
}

impl ApprovalRecord {
    /// The raw JSON of the call's arguments, with secrets masked.
    pub fn arguments(&self) -> Option<&str> {
        let params = self.params.as_deref()?;
        let arguments = tapegate_core::json::member(params.as_bytes(), "arguments")?;
        std::str::from_utf8(arguments).ok()
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalOutcome {
    /// An approver approved it.
    Approved,
    /// An approver denied it.
    Denied,
    /// The caller withdrew it.
    Cancelled,
    /// No approver decided in time.
    Expired,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalDecision {
    /// What was decided.
    pub ruling: ApprovalOutcome,
    /// Who decided.
    pub by: String,
    /// Microseconds since 1970.
    pub at_us: i64,
    /// The reason, if one was given.
    pub reason: Option<String>,
}

impl ApprovalOutcome {
    /// The name used in files and reports.
    pub fn as_str(self) -> &'static str {
        self.logged().as_str()
    }

    /// The name used in the activity log.
    pub fn logged(self) -> LoggedDecision {
        match self {
            Self::Approved => LoggedDecision::Approved,
            Self::Denied => LoggedDecision::Denied,
            Self::Cancelled => LoggedDecision::Cancelled,
            Self::Expired => LoggedDecision::Expired,
        }
    }

    /// The ruling with this name.
    pub fn of(word: &str) -> Option<Self> {
        let all = [Self::Approved, Self::Denied, Self::Cancelled, Self::Expired];
        all.into_iter().find(|ruling| ruling.as_str() == word)
    }
}
