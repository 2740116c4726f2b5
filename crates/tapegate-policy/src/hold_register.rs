//! The calls that wait for approval: one register for the gate, the approval channels and the log,
//! which refer to a call by the id of its hold.
//!
//! The relay keeps the message of a held call and says when its hold is over. This register keeps
//! what approvers and the log need to know about the call until then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tapegate_core::gate::{HoldEnd, HoldId};
use tapegate_core::side::Lane;

use crate::refuse::RefusalSubject;

/// The maximum number of held calls that are tracked; more than the relay ever holds.
const HELD_MAX: usize = 2048;

/// A call that waits for approval.
#[derive(Debug, Clone)]
pub struct GateHold {
    /// What is called; builds the refusal if it is rejected.
    pub subject: RefusalSubject,
    pub method: String,
    /// The id of its approval request, or of the approval that it uses; `None` before there is one.
    pub approval_id: Option<String>,
    /// Whether a decision is on its way to the relay.
    pub(crate) is_settled: bool,
    pub(crate) id: Option<Vec<u8>>,
    pub(crate) lane: Lane,
    /// Its number on the tape.
    pub(crate) n: u64,
    /// The workflow that asks for approval.
    pub(crate) workflow: String,
    /// How the definition differed from the accepted one, if it did.
    pub(crate) drift: Option<String>,
    /// Whether it is sent on if no approver answers in time.
    pub(crate) forward_on_timeout: bool,
    /// How long it may wait.
    pub(crate) timeout: Duration,
    /// The rule and the Cedar policies that required approval.
    pub(crate) rule: Option<String>,
    pub(crate) policies: Vec<String>,
    /// The caller.
    pub(crate) principal: String,
    /// The client, as it introduced itself; empty if it has not.
    pub(crate) client: String,
}

impl GateHold {
    /// Why the hold ended without a decision by an approver.
    pub(crate) fn end_reason(&self, how: HoldEnd) -> String {
        let workflow = &self.workflow;
        let waited = || format!("no person decided within {} s", self.timeout.as_secs_f64());
        match how {
            HoldEnd::TimedOut if self.forward_on_timeout => {
                format!("{}, and workflow `{workflow}` has `on_timeout: approve`", waited())
            }
            HoldEnd::TimedOut => format!("{} (workflow `{workflow}`)", waited()),
            HoldEnd::Cancelled => "the caller cancelled the call".to_owned(),
            HoldEnd::Abandoned => "the caller stopped waiting".to_owned(),
            HoldEnd::Asked => {
                "the client's user is asked, and then the call is made again".to_owned()
            }
            HoldEnd::Unanswered => "no approver is reachable".to_owned(),
            HoldEnd::Closed => "the session ended".to_owned(),
        }
    }
}

/// The held calls of a session. Clones share the same register.
#[derive(Debug, Clone, Default)]
pub struct HoldRegister(Arc<Mutex<BTreeMap<HoldId, GateHold>>>);

impl HoldRegister {
    /// Names the approval request of a call, or the approval that it uses.
    pub fn set_approval_id(&self, hold_id: HoldId, approval_id: &str) {
        if let Some(gate_hold) = self.holds().get_mut(&hold_id) {
            gate_hold.approval_id = Some(approval_id.to_owned());
        }
    }

    /// The undecided calls that wait for this approval request, oldest first.
    pub fn waiting_for(&self, approval_id: &str) -> Vec<HoldId> {
        let holds = self.holds();
        let is_it =
            |one: &GateHold| !one.is_settled && one.approval_id.as_deref() == Some(approval_id);
        holds.iter().filter(|(_, one)| is_it(one)).map(|(hold_id, _)| *hold_id).collect()
    }

    /// Marks a call as decided and returns it; `None` if it already was, or no longer waits.
    pub fn settle(&self, hold_id: HoldId) -> Option<GateHold> {
        let mut holds = self.holds();
        let gate_hold = holds.get_mut(&hold_id).filter(|one| !one.is_settled)?;
        gate_hold.is_settled = true;
        Some(gate_hold.clone())
    }

    pub(crate) fn insert(&self, hold_id: HoldId, gate_hold: GateHold) {
        let mut holds = self.holds();
        if holds.len() == HELD_MAX {
            holds.pop_first();
        }
        holds.insert(hold_id, gate_hold);
    }

    pub(crate) fn get(&self, hold_id: HoldId) -> Option<GateHold> {
        self.holds().get(&hold_id).cloned()
    }

    /// The id of the approval request of a call, or of the approval that it uses.
    pub fn approval_id(&self, hold_id: HoldId) -> Option<String> {
        self.holds().get(&hold_id)?.approval_id.clone()
    }

    /// Removes a call whose hold is over.
    pub(crate) fn remove(&self, hold_id: HoldId) {
        self.holds().remove(&hold_id);
    }

    fn holds(&self) -> MutexGuard<'_, BTreeMap<HoldId, GateHold>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
