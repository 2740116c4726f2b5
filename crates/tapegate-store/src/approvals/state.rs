//! The states of a request, and what changes them: one table for the store, the hub and the views.

use super::ApprovalOutcome;
use super::folder::ApprovalEntry;

/// The state of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// It can still be decided.
    Pending,
    /// It was approved, and its call may be sent once.
    Approved,
    /// Its call was sent.
    Used,
    /// An approver has denied it.
    Denied,
    /// No approver has decided in time.
    Expired,
    /// Its caller has withdrawn it.
    Cancelled,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalChange {
    /// The same call is made again, and waits too.
    Join,
    /// A caller waits no longer, and leaves the request open.
    Leave,
    /// One of several approvers that are needed approves it.
    Vote,
    /// Approvers have decided, or the caller or the time has ended it.
    Decide(ApprovalOutcome),
    /// The approved call is sent.
    Use,
}

impl ApprovalState {
    /// The state after a change; `None` if the change is refused in this state.
    pub fn after(self, change: ApprovalChange) -> Option<Self> {
        match (self, change) {
            (Self::Pending, ApprovalChange::Join | ApprovalChange::Vote) => Some(Self::Pending),
            (Self::Pending, ApprovalChange::Decide(outcome)) => Some(Self::of(outcome)),
            (Self::Approved, ApprovalChange::Use) => Some(Self::Used),
            // Whoever waits may stop waiting.
            (state, ApprovalChange::Leave) => Some(state),
            // The first decision stays, and an approval counts once.
            _ => None,
        }
    }

    /// The state of a request with this decision, whose call was not sent.
    pub fn of(outcome: ApprovalOutcome) -> Self {
        match outcome {
            ApprovalOutcome::Approved => Self::Approved,
            ApprovalOutcome::Denied => Self::Denied,
            ApprovalOutcome::Expired => Self::Expired,
            ApprovalOutcome::Cancelled => Self::Cancelled,
        }
    }

    /// The name in lists. A used approval is an approved one; `used` tells them apart.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved | Self::Used => ApprovalOutcome::Approved.as_str(),
            Self::Denied => ApprovalOutcome::Denied.as_str(),
            Self::Expired => ApprovalOutcome::Expired.as_str(),
            Self::Cancelled => ApprovalOutcome::Cancelled.as_str(),
        }
    }
}

impl ApprovalEntry {
    /// The state at this time.
    pub fn state(&self, now_us: i64) -> ApprovalState {
        let decided = self.decided.as_ref().map(|decided| ApprovalState::of(decided.ruling));
        match decided {
            Some(ApprovalState::Approved) if self.used => ApprovalState::Used,
            Some(state) => state,
            None if self.is_pending(now_us) => ApprovalState::Pending,
            // Its time is over, though no process has noted that yet.
            None => ApprovalState::Expired,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::approvals::folder::tests::{NOW, again, desk};
    use crate::approvals::{ApprovalDecision, ApprovalError, ApprovalRecord, AskOutcome, new_id};

    const PEOPLE: [&str; 3] = ["ann", "bob", "cem"];

    /// What a process does with a request.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Ask,
        Leave,
        Decide(ApprovalOutcome, usize),
        Use,
        /// All processes are killed and started again.
        Restart,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let outcome = prop_oneof![
            4 => Just(ApprovalOutcome::Approved),
            1 => Just(ApprovalOutcome::Denied),
            1 => Just(ApprovalOutcome::Expired),
            1 => Just(ApprovalOutcome::Cancelled),
        ];
        let step = prop_oneof![
            Just(Step::Ask),
            Just(Step::Leave),
            (outcome, 0..PEOPLE.len()).prop_map(|(outcome, by)| Step::Decide(outcome, by)),
            Just(Step::Use),
            Just(Step::Restart),
        ];
        prop::collection::vec(step, 1..14)
    }

    fn request(quorum: u32) -> ApprovalRecord {
        ApprovalRecord {
            id: new_id().unwrap(),
            created_us: NOW,
            expires_us: NOW + 60_000_000,
            call_hash: "abc".to_owned(),
            connection_id: "c".to_owned(),
            principal: "agent".to_owned(),
            approvers: PEOPLE.map(str::to_owned).to_vec(),
            quorum,
            ..ApprovalRecord::default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_request_in_the_folder_changes_as_the_table_says(quorum in 1u32..3, steps in steps()) {
            let (folder, mut approvals) = desk();
            let first = request(quorum);
            approvals.publish_request_once(&first, None).unwrap();
            let (mut state, mut voters) = (ApprovalState::Pending, BTreeSet::new());
            for step in steps {
                let change = match step {
                    Step::Restart => {
                        approvals = again(&folder);
                        continue;
                    }
                    Step::Ask => ApprovalChange::Join,
                    Step::Leave => ApprovalChange::Leave,
                    Step::Use => ApprovalChange::Use,
                    Step::Decide(ApprovalOutcome::Approved, by) => {
                        if state == ApprovalState::Pending {
                            voters.insert(by);
                        }
                        match (voters.len() as u32) < quorum {
                            true => ApprovalChange::Vote,
                            false => ApprovalChange::Decide(ApprovalOutcome::Approved),
                        }
                    }
                    Step::Decide(outcome, _) => ApprovalChange::Decide(outcome),
                };
                let expected = state.after(change);
                let happened = match step {
                    Step::Restart => continue,
                    // Another request is a new one, and no change of this one.
                    Step::Ask => match approvals.publish_request_once(&request(quorum), None).unwrap() {
                        AskOutcome::Joined(joined) => joined.id == first.id,
                        AskOutcome::New(new) => {
                            approvals.withdraw(&new.id, "test", NOW).unwrap();
                            false
                        }
                    },
                    Step::Leave => approvals.remove_waiter(&first.id, NOW).is_ok(),
                    // A caller looks for an approval before it uses one.
                    Step::Use => matches!(state, ApprovalState::Approved | ApprovalState::Used)
                        && approvals.use_approval(&first.id).unwrap(),
                    Step::Decide(ruling, by) => {
                        let by = PEOPLE[by].to_owned();
                        let decided = ApprovalDecision { ruling, by, at_us: NOW + 1, reason: None };
                        match approvals.decide(&first.id, &decided) {
                            Ok(()) | Err(ApprovalError::NeedsMore { .. }) => true,
                            Err(ApprovalError::AlreadyDecided { .. }) => false,
                            Err(error) => panic!("{error}"),
                        }
                    }
                };
                prop_assert_eq!(happened, expected.is_some(), "{:?} in {:?}", step, state);
                state = expected.unwrap_or(state);
                prop_assert_eq!(approvals.entry(&first.id).unwrap().state(NOW), state);
            }
            prop_assert!(approvals.take_refused().is_empty());
        }
    }
}
