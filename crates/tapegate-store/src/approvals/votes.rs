//! Requests that need more than one approver.
//!
//! Each approval of such a request is a file of its own, one for each approver, until there are
//! enough. Then the last one becomes the decision. A denial needs no others.

use super::error::ApprovalError;
use super::folder::ApprovalStore;
use super::text::{self, VoteFile};
use super::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, check};

/// What precedes the hash of an approver in the name of a file.
pub(super) const VOTE: &str = ".vote-";
const VOTE_KIND: &str = "vote";
/// How many hexadecimal digits stand for an approver.
const DIGITS: usize = 16;

impl ApprovalRecord {
    /// How many approvers must approve it.
    pub fn needed_approvals(&self) -> u32 {
        self.quorum.max(1)
    }
}

impl ApprovalStore {
    /// Adds an approval to those of the request, unless it is enough by itself. An error says that
    /// more are needed.
    pub(super) fn collect_vote(
        &self,
        request: &ApprovalRecord,
        decided: &ApprovalDecision,
    ) -> Result<(), ApprovalError> {
        if decided.ruling != ApprovalOutcome::Approved || request.needed_approvals() == 1 {
            return Ok(());
        }
        let vote =
            VoteFile { by: decided.by.clone(), at_us: decided.at_us, request: request.digest() };
        let file = self.sealer().seal(VOTE_KIND, &request.id, text::vote_text(&request.id, &vote));
        // A second approval by the same person has the same name, so it is not a second one.
        self.publish(&vote_name(&request.id, &decided.by), &file)?;
        // Of two approvers at once both may find that there are enough; one decision is published.
        let missing = request.needed_approvals().saturating_sub(self.votes(request)?.len() as u32);
        match missing {
            0 => Ok(()),
            missing => {
                let (id, by) = (request.id.clone(), decided.by.clone());
                Err(ApprovalError::NeedsMore { id, by, missing })
            }
        }
    }

    /// Who has approved a request that needs several approvals.
    pub fn votes(&self, request: &ApprovalRecord) -> Result<Vec<String>, ApprovalError> {
        match request.needed_approvals() {
            1 => Ok(Vec::new()),
            _ => self.votes_among(request, &self.names()?),
        }
    }

    /// The same, if the folder has these files.
    pub(super) fn votes_among(
        &self,
        request: &ApprovalRecord,
        names: &[String],
    ) -> Result<Vec<String>, ApprovalError> {
        let mut votes = Vec::new();
        if request.needed_approvals() == 1 {
            return Ok(votes);
        }
        let beginning = format!("{}{VOTE}", request.id);
        for name in names.iter().filter(|name| name.starts_with(&beginning)) {
            let Some(Ok(file)) = self.read(name)? else { continue };
            let is_sealed = self.sealer().is_sealed(VOTE_KIND, &request.id, &file);
            let vote = text::read_vote(&file).filter(|vote| {
                is_sealed
                    && vote.request == request.digest()
                    // A copy under another name would count twice.
                    && *name == vote_name(&request.id, &vote.by)
            });
            let Some(VoteFile { by, at_us, .. }) = vote else {
                self.set_aside(&request.id, name, "it is forged, or about another request")?;
                continue;
            };
            let ruling = ApprovalOutcome::Approved;
            let decided = ApprovalDecision { ruling, by, at_us, reason: None };
            if check::check_approver(request, &decided).is_ok() {
                votes.push(decided.by);
            }
        }
        votes.sort();
        Ok(votes)
    }
}

fn vote_name(id: &str, by: &str) -> String {
    let hash = blake3::hash(by.as_bytes()).to_hex();
    format!("{id}{VOTE}{}", &hash.as_str()[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::folder::tests::{NOW, desk};
    use crate::approvals::new_id;

    fn asked(approvals: &ApprovalStore, quorum: u32) -> ApprovalRecord {
        let approvers = ["ann", "bob", "cem"].map(str::to_owned).to_vec();
        let (id, expires_us) = (new_id().unwrap(), NOW + 60_000_000);
        let request = ApprovalRecord {
            id,
            created_us: NOW,
            expires_us,
            quorum,
            approvers,
            ..ApprovalRecord::default()
        };
        approvals.publish_request(&request).unwrap();
        request
    }

    fn decide(
        approvals: &ApprovalStore,
        id: &str,
        by: &str,
        ruling: ApprovalOutcome,
    ) -> Result<(), ApprovalError> {
        let decided = ApprovalDecision { ruling, by: by.to_owned(), at_us: NOW + 1, reason: None };
        approvals.decide(id, &decided)
    }

    #[test]
    fn a_request_is_approved_once_enough_different_people_have_approved_it() {
        let (_folder, approvals) = desk();
        let request = asked(&approvals, 2);
        let approve = |by: &str| decide(&approvals, &request.id, by, ApprovalOutcome::Approved);
        for _ in 0..2 {
            assert!(matches!(approve("ann"), Err(ApprovalError::NeedsMore { missing: 1, .. })));
        }
        assert!(matches!(approve("eve"), Err(ApprovalError::NotAnApprover { .. })));
        assert_eq!(approvals.decision(&request.id).unwrap(), None);
        assert_eq!(approvals.entry(&request.id).unwrap().votes, ["ann"]);
        approve("bob").unwrap();
        assert_eq!(
            approvals.decision(&request.id).unwrap().unwrap().ruling,
            ApprovalOutcome::Approved
        );
        assert!(matches!(approve("cem"), Err(ApprovalError::AlreadyDecided { .. })));
    }

    #[test]
    fn one_denial_is_enough() {
        let (_folder, approvals) = desk();
        let request = asked(&approvals, 3);
        decide(&approvals, &request.id, "ann", ApprovalOutcome::Approved).unwrap_err();
        decide(&approvals, &request.id, "ann", ApprovalOutcome::Denied).unwrap();
        assert_eq!(
            approvals.decision(&request.id).unwrap().unwrap().ruling,
            ApprovalOutcome::Denied
        );
    }

    #[test]
    fn a_vote_that_was_copied_or_forged_does_not_count() {
        let (_folder, approvals) = desk();
        let (one, two) = (asked(&approvals, 2), asked(&approvals, 2));
        decide(&approvals, &one.id, "ann", ApprovalOutcome::Approved).unwrap_err();
        let path = |id: &str, by: &str| approvals.path().join(vote_name(id, by));
        let vote = std::fs::read_to_string(path(&one.id, "ann")).unwrap();
        std::fs::write(path(&one.id, "bob"), &vote).unwrap();
        std::fs::write(path(&one.id, "cem"), vote.replace("\"ann\"", "\"cem\"")).unwrap();
        std::fs::write(path(&two.id, "ann"), &vote).unwrap();
        assert_eq!(approvals.votes(&one).unwrap(), ["ann"]);
        assert!(approvals.votes(&two).unwrap().is_empty());
        assert_eq!(approvals.take_refused().len(), 3);
    }

    #[test]
    fn of_many_approvers_at_once_one_completes_the_quorum() {
        let (_folder, approvals) = desk();
        let request = asked(&approvals, 3);
        let done = std::thread::scope(|scope| {
            let approve = |by| scope.spawn(move || by);
            let names: Vec<_> = ["ann", "bob", "cem"].map(approve).into_iter().collect();
            let all: Vec<_> = names
                .into_iter()
                .map(|name| {
                    let (approvals, id) = (&approvals, &request.id);
                    scope.spawn(move || {
                        decide(approvals, id, name.join().unwrap(), ApprovalOutcome::Approved)
                    })
                })
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(Result::is_ok).count()
        });
        assert_eq!(done, 1);
    }
}
