//! Notices for users and logs about the acceptance of a policy.

use std::path::Path;

use tapegate_shim::reload::PolicyNotice;
use tapegate_store::accepted_policies::Acceptance;

use super::{TrustStatus, TrustedPolicy};
use crate::program_name;

impl TrustedPolicy {
    /// The notice about a loaded policy, if there is anything to report.
    pub(crate) fn notice(&self, path: &Path) -> Option<PolicyNotice> {
        let (path, hash) = (path.display(), &self.hash);
        let (event, message, hash) = match &self.standing {
            TrustStatus::Accepted | TrustStatus::Unloadable | TrustStatus::NeverAccepted => {
                return None;
            }
            TrustStatus::Adopted(Acceptance::FirstUse) => {
                ("accepted", format!("`{path}` is accepted on first use, with hash {hash}"), hash)
            }
            TrustStatus::Adopted(Acceptance::Tighter) => {
                let message = format!(
                    "`{path}` has changed, permits nothing more, and is accepted, with hash {hash}"
                );
                ("accepted", message, hash)
            }
            TrustStatus::Adopted(how) => {
                let how = how.as_str();
                ("accepted", format!("`{path}` is accepted ({how}), with hash {hash}"), hash)
            }
            TrustStatus::AdoptedInsteadOf(other) => {
                let message = format!(
                    "`{path}` is new and replaces the accepted policy `{}` here; it permits \
                     nothing more, and is accepted, with hash {hash}",
                    other.display()
                );
                ("accepted", message, hash)
            }
            TrustStatus::Differs { reason, hash } => {
                let message = format!(
                    "`{path}` is not what was accepted, and the accepted policy stays in force: \
                     {reason}; a person accepts the change with `{}` in a terminal",
                    program_name::command(format!("policy accept {path}"))
                );
                ("not_accepted", message, hash)
            }
        };
        // Every later change may be an agent's, even one that only tightens.
        let is_warning = self.standing != TrustStatus::Adopted(Acceptance::FirstUse);
        Some(PolicyNotice { event, message, hash: hash.clone(), is_warning })
    }
}
