//! Errors of asking and deciding.

use std::io;
use std::path::PathBuf;

use super::ApprovalDecision;

/// Why asking or deciding failed.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// No request has this id, or the id is invalid.
    #[error("there is no request `{}`", id.escape_debug())]
    Unknown { id: String },
    /// A request with this id exists.
    #[error("request `{id}` already exists")]
    Exists { id: String },
    /// The request was already decided.
    #[error("`{id}` was already {} by {}", decided.ruling.as_str(), decided.by.escape_debug())]
    AlreadyDecided {
        id: String,
        /// The earlier decision.
        decided: Box<ApprovalDecision>,
    },
    /// The request has expired.
    #[error("`{id}` has expired")]
    Expired { id: String },
    /// The person is not one of the workflow's approvers.
    #[error("`{}` may not decide about `{id}`, only {}", by.escape_debug(), approvers.join(", "))]
    NotAnApprover {
        id: String,
        /// Who tried to decide.
        by: String,
        /// Who may decide.
        approvers: Vec<String>,
    },
    /// The approval counts, and the request needs more.
    #[error(
        "`{id}` was approved by {}; {missing} more approver{} must approve it",
        by.escape_debug(), if *missing == 1 { "" } else { "s" }
    )]
    NeedsMore {
        id: String,
        /// Who has approved it now.
        by: String,
        /// How many approvals are missing.
        missing: u32,
    },
    /// A caller may not approve their own request.
    #[error(
        "`{id}` was requested by `{}`, who may not approve their own call; {}",
        by.escape_debug(), approver_hint(others)
    )]
    OwnRequest {
        id: String,
        /// Who asked and tried to approve.
        by: String,
        /// The other approvers.
        others: Vec<String>,
    },
    /// The private folder or its key cannot be used.
    #[error(transparent)]
    Private(#[from] crate::user_state::UserStateError),
    /// The operating system refused.
    #[error("cannot use `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Who else may approve, or what to change if there is no other approver.
fn approver_hint(others: &[String]) -> String {
    match others {
        [] => "the workflow has no other approver: a call is made in the name of the user who starts the \
               agent, unless the policy says `principal: { name: agent }`; give it such a name, add an \
               approver, or leave `approvers` out"
            .to_owned(),
        others => format!("{} may", others.join(", ").escape_debug()),
    }
}
