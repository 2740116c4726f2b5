//! Prints the messages and events of a session on standard error.

use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_core::decision::LoggedDecision;
use tapegate_shim::message_log::MessageLog;
use tapegate_store::activity::event_json;

use crate::logs::{Logger, VerbosityLevel};
use crate::program_name;
use crate::terminal_output;
use crate::views::visible_text;

/// The longest line printed for an event.
const LINE_CHARS_MAX: usize = 600;

impl MessageLog for Logger {
    fn message(&self, level: EventLevel, text: &str) {
        self.log(verbosity_of(level), text);
    }

    fn event(&self, event: &ActivityEvent<'_>) {
        let level = verbosity_of(event.level);
        if !self.is_enabled(level) {
            return;
        }
        if self.is_json() {
            return terminal_output::line(&event_json(event));
        }
        self.log(level, &visible_text::inline(&event_message(event), LINE_CHARS_MAX));
    }
}

fn verbosity_of(level: EventLevel) -> VerbosityLevel {
    match level {
        EventLevel::Error => VerbosityLevel::Error,
        EventLevel::Warn => VerbosityLevel::Warn,
        EventLevel::Info => VerbosityLevel::Info,
    }
}

fn event_message(event: &ActivityEvent<'_>) -> String {
    let decision = event.governance_decision.map_or(event.kind.as_str(), LoggedDecision::as_str);
    let method = event.method.as_deref().unwrap_or("a message");
    let what = match &event.tool {
        Some(name) => format!("{method} `{name}`"),
        None => method.to_owned(),
    };
    let about = match (decision, &event.approval_id) {
        ("forward", _) => format!("{what} is sent on"),
        ("deny", _) => format!("{what} is denied"),
        ("pending_approval", Some(id)) => {
            let line = program_name::command(format!("approvals approve {id}"));
            format!("{what} waits for a person: {line}")
        }
        ("pending_approval", None) => format!("{what} waits for a person"),
        _ if matches!(event.kind, ActivityKind::Session | ActivityKind::Policy) => String::new(),
        (word, _) => format!("{word}: {what}"),
    };
    let by = event.decided_by.as_ref().map(|by| format!("decided by {by}"));
    let gate =
        event.gate.filter(|_| decision != "forward").map(|gate| format!("gate {}", gate.as_str()));
    let parts = [Some(about), by, event.policy_reason.as_deref().map(str::to_owned), gate];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    format!("{}: {}", event.server_id, parts.join("; "))
}

#[cfg(test)]
mod tests {
    use tapegate_core::activity::GateName;

    use super::*;

    fn event(decision: LoggedDecision) -> ActivityEvent<'static> {
        ActivityEvent {
            kind: ActivityKind::Decision,
            server_id: "files".into(),
            method: Some("tools/call".into()),
            tool: Some("rm".into()),
            governance_decision: Some(decision),
            gate: Some(GateName::Governance),
            policy_reason: Some("rule `rules[0]` says so".into()),
            ..ActivityEvent::default()
        }
    }

    #[test]
    fn people_read_what_was_called_what_became_of_it_and_why() {
        assert_eq!(
            event_message(&event(LoggedDecision::Deny)),
            "files: tools/call `rm` is denied; rule `rules[0]` says so; gate governance"
        );
        let held = ActivityEvent {
            approval_id: Some("ap_1".into()),
            ..event(LoggedDecision::PendingApproval)
        };
        assert!(
            event_message(&held).contains("tapegate approvals approve ap_1"),
            "{}",
            event_message(&held)
        );
        assert!(
            event_message(&event(LoggedDecision::WouldBlock))
                .starts_with("files: WOULD_BLOCK: tools/call `rm`")
        );
    }
}
