//! What callers are told when a message goes nowhere.
//!
//! The words name what was called and the gate, never a pattern, a rule or a policy: whoever is
//! refused learns that, not how to get round it.

use std::time::Duration;

use tapegate_core::gate::Refusal;
use tapegate_core::json::write_str;

use crate::decide::{Decision, GateName};
use crate::inspect::Fault;
use crate::own_files::OWN_FILES;

/// The longest name that is repeated to a caller.
const NAME_CHARS_MAX: usize = 200;

/// What a refusal is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What it is: `tool`, `prompt`, `resource`, `method`.
    pub word: &'static str,
    /// Its name or URI.
    pub name: String,
    /// What the caller is told, and what the activity log has as `request_id`.
    pub correlation_id: String,
}

impl Subject {
    /// The policy says no.
    pub fn denied(&self, decision: &Decision) -> Refusal {
        let (code, error_type, words) = match decision.gate {
            GateName::Framing => (-32600, "invalid_request", "is not called as it must be"),
            GateName::Visibility => (-32015, "tool_not_exposed", "is not available"),
            GateName::Governance if decision.drift => {
                (-32014, "definition_drift", crate::pins::refusal_words(&decision.reason))
            }
            GateName::Governance if decision.rule.as_deref() == Some(OWN_FILES) => (
                -32014,
                "governance_rule_denied",
                "names a policy, lock or state file of Tapegate, which only a person may change: ask \
                 the user to do it",
            ),
            GateName::Governance => (-32014, "governance_rule_denied", "is denied by the rules"),
            GateName::Policy => (-32003, "policy_denied", "is denied by policy"),
            GateName::Approval => {
                (-32013, "service_unavailable", "needs an approval that nobody can give")
            }
        };
        self.refusal(code, error_type, Some(decision.gate), words)
    }

    /// A person has said no.
    pub fn rejected(&self) -> Refusal {
        let approval = Some(GateName::Approval);
        self.refusal(-32007, "approval_rejected", approval, "was not approved")
    }

    /// Nobody has answered in time.
    pub fn timed_out(&self, after: Duration) -> Refusal {
        let words = format!("was not approved within {} s", after.as_secs_f64());
        self.refusal(-32008, "approval_timeout", Some(GateName::Approval), &words)
    }

    /// What a decision needs cannot be had: people, the hub, the log.
    pub fn unavailable(&self, why: &str) -> Refusal {
        let words = format!("cannot be decided about: {why}");
        self.refusal(-32013, "service_unavailable", None, &words)
    }

    /// It was approved, but by now it is denied.
    pub fn changed(&self, gate: GateName) -> Refusal {
        let words = "was approved, but the policy has changed since and denies it";
        self.refusal(-32011, "policy_drift", Some(gate), words)
    }

    /// It needs an approval, but is sent in a way that cannot wait: in a batch, or unasked.
    pub fn cannot_wait(&self) -> Refusal {
        let words = "needs an approval, which only a single request can wait for";
        self.refusal(-32600, "invalid_request", Some(GateName::Approval), words)
    }

    /// The message is at fault.
    pub fn faulty(&self, fault: Fault) -> Refusal {
        Refusal {
            code: fault.code(),
            message: format!("refused: {}", fault.words()),
            data: self.data(fault.error_type(), Some(GateName::Framing)),
            why: format!("framing: {}", fault.words()),
        }
    }

    fn refusal(&self, code: i32, error_type: &str, gate: Option<GateName>, words: &str) -> Refusal {
        let gate_name = gate.map_or(String::new(), |gate| format!(" (gate: {})", gate.name()));
        let shown = self.shown_name();
        Refusal {
            code,
            message: format!("{} `{shown}` {words}{gate_name}", self.word),
            data: self.data(error_type, gate),
            why: format!("{error_type}{gate_name}"),
        }
    }

    fn data(&self, error_type: &str, gate: Option<GateName>) -> String {
        let mut out = b"{".to_vec();
        let mut member = |key: &str, value: &str| {
            if !value.is_empty() {
                out.extend((out.len() > 1).then_some(b','));
                write_str(&mut out, key);
                out.push(b':');
                write_str(&mut out, value);
            }
        };
        member("gate", gate.map_or("", GateName::name));
        member("tool", &self.shown_name());
        member("correlation_id", &self.correlation_id);
        member("error_type", error_type);
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Its name, as far as it is repeated to callers.
    pub fn shown_name(&self) -> String {
        let mut letters = self.name.chars();
        let mut shown: String = letters.by_ref().take(NAME_CHARS_MAX).collect();
        if letters.next().is_some() {
            shown.push('…');
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_told_what_was_called_and_which_gate_and_how_to_ask_about_it() {
        let subject =
            Subject { word: "tool", name: "rm \"x\"".to_owned(), correlation_id: "c-1".to_owned() };
        let refusal = subject.timed_out(Duration::from_secs(600));
        assert_eq!(refusal.code, -32008);
        assert_eq!(
            refusal.message,
            "tool `rm \"x\"` was not approved within 600 s (gate: approval)"
        );
        assert_eq!(
            refusal.data,
            r#"{"gate":"approval","tool":"rm \"x\"","correlation_id":"c-1","error_type":"approval_timeout"}"#
        );
        let long = Subject { name: "é".repeat(1 << 20), ..subject };
        assert!(long.rejected().message.len() < 1000 && long.rejected().data.len() < 1000);
    }
}
