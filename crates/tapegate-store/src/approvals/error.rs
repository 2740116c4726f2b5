//! Why something could not be asked or decided.

use std::io;
use std::path::PathBuf;

use super::Decided;

/// Why something could not be asked or decided.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// No request has this name, or can have it.
    #[error("there is no request `{}`", id.escape_debug())]
    Unknown {
        /// The name.
        id: String,
    },
    /// There is a request of this name already.
    #[error("there is a request `{id}` already")]
    Exists {
        /// The name.
        id: String,
    },
    /// Somebody was quicker.
    #[error("`{id}` was {} by {} already", decided.ruling.word(), decided.by.escape_debug())]
    AlreadyDecided {
        /// The name.
        id: String,
        /// What they decided.
        decided: Box<Decided>,
    },
    /// It is too late.
    #[error("`{id}` has expired")]
    Expired {
        /// The name.
        id: String,
    },
    /// The workflow names others.
    #[error("`{}` may not decide about `{id}`, only {}", by.escape_debug(), approvers.join(", "))]
    NotAnApprover {
        /// The name.
        id: String,
        /// Who tried to.
        by: String,
        /// Who may.
        approvers: Vec<String>,
    },
    /// Nobody approves their own request.
    #[error(
        "`{id}` was asked by `{}`, who may not approve their own call; {}",
        by.escape_debug(), who_else(others)
    )]
    OwnRequest {
        /// The name.
        id: String,
        /// Who asked and tried to approve.
        by: String,
        /// The other approvers.
        others: Vec<String>,
    },
    /// The private folder or its key cannot be used.
    #[error(transparent)]
    Private(#[from] crate::user_state::UserStateError),
    /// The system refused.
    #[error("cannot use `{}`: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Who may approve, or what to change if there is no such person.
fn who_else(others: &[String]) -> String {
    match others {
        [] => "the workflow has no other approver: a call is made in the name of the user who starts the \
               agent, unless the policy says `principal: { name: agent }`; give it such a name, add an \
               approver, or leave `approvers` out"
            .to_owned(),
        others => format!("{} may", others.join(", ").escape_debug()),
    }
}
