//! Logs refused attempts to decide in the activity log.
//!
//! An agent that tries to approve its own calls should leave a trace, just like one that forges a
//! decision file.

use std::borrow::Cow;
use std::path::Path;

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel, GateName};
use tapegate_core::decision::LoggedDecision;
use tapegate_store::activity::{self, log_event};

use crate::exit::Failure;
use crate::state_folder::now_us;
use crate::terminal_output;
use crate::views::visible_text;

/// Longer command lines are truncated.
const COMMAND_CHARS_MAX: usize = 500;

/// An attempt to do something that requires a person.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PersonAttempt<'a> {
    /// The kind of event: `Approval` or `Policy`.
    pub(crate) kind: ActivityKind,
    /// The command with its subject, such as `approvals approve ap_k3x9`.
    pub(crate) command: &'a str,
    /// The approval request, if it is known.
    pub(crate) approval_id: Option<&'a str>,
}

impl PersonAttempt<'_> {
    /// Logs that this was refused, in the project with this state folder.
    pub(crate) fn log_refusal(&self, state_folder: &Path, reason: &str) {
        // Without a state folder there is no project, and a refusal does not create one.
        if !state_folder.is_dir() {
            return;
        }
        let command = visible_text::inline(self.command, COMMAND_CHARS_MAX);
        let event = ActivityEvent {
            wall_us: now_us(),
            level: EventLevel::Error,
            kind: self.kind,
            component: Some(EventComponent::Cli),
            governance_decision: Some(LoggedDecision::Refused),
            gate: (self.kind == ActivityKind::Approval).then_some(GateName::Approval),
            policy_reason: Some(format!("refused `tapegate {command}`: {reason}").into()),
            approval_id: self.approval_id.map(Cow::Borrowed),
            extra: activity::extra(&json!({ "event": "refused", "command": command })),
            ..ActivityEvent::default()
        };
        if let Err(error) = log_event(state_folder, &event) {
            terminal_output::warn(&format!("this attempt is not in the activity log: {error}"));
        }
    }

    /// Logs a refusal if `done` is an error.
    pub(crate) fn log_if_refused<T>(
        &self,
        state_folder: &Path,
        done: Result<T, Failure>,
    ) -> Result<T, Failure> {
        done.inspect_err(|failure| self.log_refusal(state_folder, &failure.message))
    }
}
