//! Notices for users and logs about the acceptance of a policy.

use std::path::{Path, PathBuf};

use tapegate_store::accepted_policies::Acceptance;

use super::{TrustStatus, TrustedPolicy};
use crate::program_name;

/// How a policy file relates to the policy in force, for reporting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyNotice {
    path: PathBuf,
    kind: NoticeKind,
    /// The hash of the texts concerned.
    pub(crate) hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum NoticeKind {
    Adopted(Acceptance),
    NotAccepted { reason: String },
    InsteadOf(PathBuf),
}

impl PolicyNotice {
    /// The notice for a loaded policy, if there is anything to report.
    pub(crate) fn of(path: &Path, governing: &TrustedPolicy) -> Option<Self> {
        let (kind, hash) = match &governing.standing {
            TrustStatus::Accepted | TrustStatus::Unloadable | TrustStatus::NeverAccepted => {
                return None;
            }
            TrustStatus::Adopted(how) => (NoticeKind::Adopted(*how), &governing.hash),
            TrustStatus::AdoptedInsteadOf(other) => {
                (NoticeKind::InsteadOf(other.clone()), &governing.hash)
            }
            TrustStatus::Differs { reason, hash } => {
                (NoticeKind::NotAccepted { reason: reason.clone() }, hash)
            }
        };
        Some(Self { path: path.to_owned(), kind, hash: hash.clone() })
    }

    /// Whether a person should act on it.
    pub(crate) fn is_warning(&self) -> bool {
        // Every later change may be an agent's, even one that only tightens.
        !matches!(self.kind, NoticeKind::Adopted(Acceptance::FirstUse))
    }

    /// The name of the event in the activity log.
    pub(crate) fn event(&self) -> &'static str {
        match self.kind {
            NoticeKind::Adopted(_) | NoticeKind::InsteadOf(_) => "accepted",
            NoticeKind::NotAccepted { .. } => "not_accepted",
        }
    }

    /// The notice as text.
    pub(crate) fn message(&self) -> String {
        let (path, hash) = (self.path.display(), &self.hash);
        match &self.kind {
            NoticeKind::Adopted(Acceptance::FirstUse) => {
                format!("`{path}` is accepted on first use, with hash {hash}")
            }
            NoticeKind::Adopted(Acceptance::Tighter) => format!(
                "`{path}` has changed, permits nothing more, and is accepted, with hash {hash}"
            ),
            NoticeKind::Adopted(how) => {
                format!("`{path}` is accepted ({}), with hash {hash}", how.as_str())
            }
            NoticeKind::NotAccepted { reason } => format!(
                "`{path}` is not what was accepted, and the accepted policy stays in force: \
                 {reason}; a person accepts the change with `{}` in a terminal",
                program_name::command(format!("policy accept {path}"))
            ),
            NoticeKind::InsteadOf(other) => format!(
                "`{path}` is new and replaces the accepted policy `{}` here; it permits nothing \
                 more, and is accepted, with hash {hash}",
                other.display()
            ),
        }
    }
}
