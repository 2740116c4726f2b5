//! The errors returned for refused messages.
//!
//! The reader is mostly a model, so a refusal names who refused (Tapegate), what was called, the
//! rule, the reason in the words of the policy's author, and what to do instead. It never quotes a
//! pattern: a caller learns what to do, not how to get around the rule.

use std::time::Duration;

use tapegate_core::gate::Refusal;
use tapegate_core::json::write_str;

use crate::decide::{Decision, GateName};
use crate::inspect::MessageFault;
use crate::own_files::OWN_FILES;

/// The longest name that is repeated to a caller; longer ones are shortened.
const NAME_CHARS_MAX: usize = 200;
/// The longest reason that is passed on to a caller.
const REASON_CHARS_MAX: usize = 1000;

/// The thing that a refusal is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalSubject {
    /// Its kind: `tool`, `prompt`, `resource`, `method`.
    pub word: &'static str,
    /// Its name or URI.
    pub name: String,
    /// The id that the caller is given; the activity log has it as `request_id`.
    pub correlation_id: String,
}

impl RefusalSubject {
    /// The policy denies the call.
    pub fn policy_denial(&self, decision: &Decision) -> Refusal {
        let rule = decision.rule.as_deref();
        let by_rule = match rule {
            Some(rule) => format!("is denied by rule `{}`", shorten(rule, NAME_CHARS_MAX)),
            None => "is denied by the policy's default".to_owned(),
        };
        let (code, error_type, message_text) = match decision.gate {
            GateName::Framing => (-32600, "invalid_request", "is not called correctly".into()),
            GateName::Visibility => (-32015, "tool_not_exposed", "is not available here".into()),
            GateName::Governance if decision.drift => {
                (-32014, "definition_drift", crate::pins::refusal_message(&decision.reason).into())
            }
            GateName::Governance if rule == Some(OWN_FILES) => {
                let message_text = "names a policy, lock or state file of Tapegate, which an agent may neither read nor change";
                (-32014, "governance_rule_denied", message_text.into())
            }
            GateName::Governance if decision.other_arguments => {
                let by = rule.map_or(String::new(), |rule| {
                    format!(" (rule `{}`)", shorten(rule, NAME_CHARS_MAX))
                });
                let message_text = format!("is allowed, but not with these arguments{by}");
                (-32014, "governance_rule_denied", message_text)
            }
            GateName::Governance => (-32014, "governance_rule_denied", by_rule),
            GateName::Policy => (-32003, "policy_denied", "is denied by policy".into()),
            GateName::Approval => {
                let message_text = "needs an approval, and no approver is reachable";
                (-32013, "service_unavailable", message_text.into())
            }
        };
        let advice = match decision.gate {
            GateName::Framing => "",
            GateName::Visibility => "Use what the server lists.",
            _ if decision.drift => {
                "Do not call it again; ask the user to review the definition and pin it."
            }
            GateName::Governance if decision.relative_path => {
                "Use an absolute path, because a relative one is ambiguous, or ask the user."
            }
            GateName::Governance if decision.other_arguments => {
                "Call it with other arguments, or ask the user."
            }
            _ => "Do not repeat the call; find another way, or ask the user.",
        };
        let mut refusal = self.refusal(code, error_type, Some(decision.gate), &message_text);
        let description =
            decision.description.as_deref().map(|text| shorten(text, REASON_CHARS_MAX));
        refusal.message = sentences(&refusal.message, description.as_deref(), advice);
        if let Some(rule) = rule {
            refusal.data = with_rule(&refusal.data, &shorten(rule, NAME_CHARS_MAX));
        }
        refusal
    }

    /// An approver has rejected the call, perhaps with a reason.
    pub fn approval_rejected(&self, reason: Option<&str>) -> Refusal {
        let approval = Some(GateName::Approval);
        let message_text = "was not approved by a person";
        let mut refusal = self.refusal(-32007, "approval_rejected", approval, message_text);
        let reason = reason.map(|reason| shorten(reason, REASON_CHARS_MAX));
        let advice = "Do not repeat the call unless the user asks for it.";
        refusal.message = sentences(&refusal.message, reason.as_deref(), advice);
        refusal
    }

    /// The approval was used up by an identical call.
    pub fn superseded_by_identical(&self) -> Refusal {
        let message_text = "was not sent: the approval was used by an identical call";
        let mut refusal =
            self.refusal(-32007, "approval_used", Some(GateName::Approval), message_text);
        let advice = "Make the call again only if it is needed a second time.";
        refusal.message = sentences(&refusal.message, None, advice);
        refusal
    }

    /// No approver answered in time.
    pub fn timed_out(&self, after: Duration) -> Refusal {
        let message_text = format!("was not approved within {} s", after.as_secs_f64());
        let mut refusal =
            self.refusal(-32008, "approval_timeout", Some(GateName::Approval), &message_text);
        let advice = "It was not run. Tell the user, or make the same call again to ask again.";
        refusal.message = sentences(&refusal.message, None, advice);
        refusal
    }

    /// Something that the decision depends on is unavailable: approvers, the hub, the log.
    pub fn approval_unavailable(&self, cause_text: &str) -> Refusal {
        let message_text = format!("cannot be permitted: {cause_text}");
        self.refusal(-32013, "service_unavailable", None, &message_text)
    }

    /// The call was approved, but is now denied or needs a different approval.
    pub fn policy_changed(&self, decision: &Decision) -> Refusal {
        let (message_text, advice) = match decision.approval_scope() {
            None => ("was approved, but the policy has changed since and denies it", ""),
            Some(_) => (
                "was approved, but now needs another approval",
                "It was not run. Make the same call again to ask for it.",
            ),
        };
        let mut refusal = self.refusal(-32011, "policy_drift", Some(decision.gate), message_text);
        if !advice.is_empty() {
            refusal.message = sentences(&refusal.message, None, advice);
        }
        refusal
    }

    /// The call needs approval, but arrived in a form that cannot wait: in a batch or as a
    /// notification.
    pub fn cannot_be_held(&self) -> Refusal {
        let message_text = "needs an approval, and only a single request can wait for one";
        self.refusal(-32600, "invalid_request", Some(GateName::Approval), message_text)
    }

    pub fn malformed_message(&self, fault: MessageFault) -> Refusal {
        Refusal {
            code: fault.code(),
            message: format!("Tapegate refused the message: {}", fault.message()),
            data: self.error_data(fault.error_type(), Some(GateName::Framing)),
            reason: format!("framing: {}", fault.message()),
        }
    }

    fn refusal(
        &self,
        code: i32,
        error_type: &str,
        gate: Option<GateName>,
        message_text: &str,
    ) -> Refusal {
        let gate_name = gate.map_or(String::new(), |gate| format!(" (gate: {})", gate.as_str()));
        let shown = self.shown_name();
        Refusal {
            code,
            message: format!("Tapegate: {} `{shown}` {message_text}{gate_name}", self.word),
            data: self.error_data(error_type, gate),
            reason: format!("{error_type}{gate_name}"),
        }
    }

    fn error_data(&self, error_type: &str, gate: Option<GateName>) -> String {
        let mut out = b"{".to_vec();
        let mut member = |key: &str, value: &str| {
            if !value.is_empty() {
                out.extend((out.len() > 1).then_some(b','));
                write_str(&mut out, key);
                out.push(b':');
                write_str(&mut out, value);
            }
        };
        member("gate", gate.map_or("", GateName::as_str));
        member("tool", &self.shown_name());
        member("correlation_id", &self.correlation_id);
        member("error_type", error_type);
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Its name, shortened for callers.
    pub fn shown_name(&self) -> String {
        shorten(&self.name, NAME_CHARS_MAX)
    }
}

/// Joins a message, the reason given by a person, and advice.
fn sentences(message: &str, reason: Option<&str>, advice: &str) -> String {
    let mut out = message.to_owned();
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => {
            out.push_str(": ");
            out.push_str(reason);
            out.push_str(if reason.ends_with(['.', '!', '?']) { "" } else { "." });
        }
        None => out.push('.'),
    }
    if !advice.is_empty() {
        out.push(' ');
        out.push_str(advice);
    }
    out
}

/// The data of an error, with the rule that denied the call.
fn with_rule(data: &str, rule: &str) -> String {
    let mut out = data.strip_suffix('}').unwrap_or(data).as_bytes().to_vec();
    out.extend_from_slice(b",\"rule\":");
    write_str(&mut out, rule);
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

fn shorten(text: &str, chars_max: usize) -> String {
    let mut letters = text.chars();
    let mut display_text: String = letters.by_ref().take(chars_max).collect();
    if letters.next().is_some() {
        display_text.push('…');
    }
    display_text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_told_what_was_called_and_which_gate_and_how_to_ask_about_it() {
        let subject = RefusalSubject {
            word: "tool",
            name: "rm \"x\"".to_owned(),
            correlation_id: "c-1".to_owned(),
        };
        let refusal = subject.timed_out(Duration::from_secs(600));
        assert_eq!(refusal.code, -32008);
        assert_eq!(
            refusal.message,
            "Tapegate: tool `rm \"x\"` was not approved within 600 s (gate: approval). It was not run. \
             Tell the user, or make the same call again to ask again."
        );
        assert_eq!(
            refusal.data,
            r#"{"gate":"approval","tool":"rm \"x\"","correlation_id":"c-1","error_type":"approval_timeout"}"#
        );
        let said = subject.approval_rejected(Some(" use staging "));
        assert_eq!(
            said.message,
            "Tapegate: tool `rm \"x\"` was not approved by a person (gate: approval): use staging. \
             Do not repeat the call unless the user asks for it."
        );
        let long = RefusalSubject { name: "é".repeat(1 << 20), ..subject };
        assert!(
            long.approval_rejected(None).message.len() < 1000
                && long.approval_rejected(None).data.len() < 1000
        );
    }
}
