//! A gate whose verdicts a test chooses.

use std::collections::{BTreeMap, BTreeSet};

use tapegate_core::frame::Frame;
use tapegate_core::gate::{
    Gate, GateInput, Hold, HoldEnd, HoldId, MessagePlace, Refusal, UserChoice, Verdict,
};
use tapegate_core::tape::RecordError;
use tapegate_core::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GateAnswer {
    Forward,
    Rewrite,
    Refuse,
    Hold,
    /// Held, and sent on if there is no decision.
    Trust,
}

/// Returns the verdicts it is given, and remembers what it has permitted.
#[derive(Debug, Default)]
pub(super) struct ScriptedGate {
    pub(super) word: Option<GateAnswer>,
    pub(super) tickets: u64,
    /// The held calls by id: the text, and whether it is sent on if there is no decision.
    pub(super) held: BTreeMap<u64, (Vec<u8>, bool)>,
    pub(super) permitted: BTreeSet<Vec<u8>>,
    pub(super) judged: usize,
    /// How many answers of the client's user it was given.
    pub(super) heard: usize,
}

pub(super) fn refusal() -> Refusal {
    let text = || "no".to_owned();
    Refusal { code: -1, message: text(), data: "{}".to_owned(), reason: text() }
}

impl Gate for ScriptedGate {
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict {
        assert!(case.frame.has_gate_details());
        self.judged += 1;
        let text = case.frame.bytes().to_vec();
        if let Some(approval) = case.approved {
            assert!(self.held.remove(&approval.hold_id.0).is_some(), "approved and not held");
        }
        match self.word.expect("a word") {
            GateAnswer::Forward => {
                self.permitted.insert(text);
                Verdict::Forward
            }
            GateAnswer::Rewrite => {
                // White space changes the bytes but not the meaning.
                let instead = [&text[..], b" "].concat();
                self.permitted.insert(instead.clone());
                Verdict::Rewrite(instead)
            }
            GateAnswer::Refuse => Verdict::Refuse(Box::new(refusal())),
            word @ (GateAnswer::Hold | GateAnswer::Trust) => {
                self.tickets += 1;
                let trusts = word == GateAnswer::Trust;
                self.held.insert(self.tickets, (text, trusts));
                let on_timeout = (!trusts).then(refusal);
                let ticket = HoldId(self.tickets);
                Verdict::Hold(Box::new(Hold {
                    hold_id: ticket,
                    timeout_ms: 15_000,
                    on_timeout,
                    ..Hold::default()
                }))
            }
        }
    }

    fn hold_ended(&mut self, _: Timestamp, ticket: HoldId, how: HoldEnd) {
        let (text, trusts) = self.held.remove(&ticket.0).expect("it was held");
        if how == HoldEnd::TimedOut && trusts {
            self.permitted.insert(text);
        }
    }

    fn user_answered(&mut self, _: Timestamp, ticket: HoldId, choice: Option<UserChoice>) {
        assert!(self.held.contains_key(&ticket.0), "the call is held");
        assert_eq!(choice, Some(UserChoice::Deny));
        self.heard += 1;
    }

    fn note_oversize(&mut self, _: MessagePlace, _: u64, _: &[u8]) {}

    fn note_unsent(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) {}

    fn reject_ambiguous(&mut self, _: MessagePlace, _: &Frame<'_>, _: &str) -> bool {
        true
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}
