//! An event of the activity log: one type for the gate that decides, the log and the hub.
//!
//! The keys of the log and their order are those of the fields; the store writes and reads them.

use std::borrow::Cow;

use crate::decision::LoggedDecision;
use crate::side::Side;
use crate::words::word_enum;

word_enum! {
    /// How much attention an event needs.
    #[derive(Default)]
    EventLevel {
        /// Nothing to do.
        #[default]
        Info = "info",
        /// A person should look at it.
        Warn = "warn",
        /// Something failed.
        Error = "error",
    }
}

word_enum! {
    /// The kind of an event.
    #[derive(Default)]
    ActivityKind {
        /// A decision about a message.
        #[default]
        Decision = "decision",
        /// A request for approval, or its end.
        Approval = "approval",
        /// A malformed message.
        Framing = "framing",
        /// Items hidden from a list.
        Filter = "filter",
        /// A definition that differs from the accepted one.
        Drift = "drift",
        /// Secrets that were masked.
        Redaction = "redaction",
        /// A response without a request, or the reverse.
        Orphan = "orphan",
        /// An HTTP request without a message.
        Http = "http",
        /// The start or end of a session.
        Session = "session",
        /// The policy in force, or a change of it.
        Policy = "policy",
        /// The hub itself.
        Hub = "hub",
        /// What the log records about itself.
        Log = "log",
    }
}

word_enum! {
    /// The component that logs an event.
    EventComponent {
        /// A shim.
        Shim = "shim",
        /// The hub.
        Hub = "hub",
        /// A command.
        Cli = "cli",
    }
}

word_enum! {
    /// The gate that made a decision.
    GateName {
        /// The form of the message.
        Framing = "framing",
        /// Which items are visible at all.
        Visibility = "visibility",
        /// The rules.
        Governance = "governance",
        /// Cedar.
        Policy = "policy",
        /// Human approval.
        Approval = "approval",
    }
}

word_enum! {
    /// How strictly a policy is enforced.
    #[derive(Default)]
    Profile {
        /// Refused messages are not sent on.
        #[default]
        Production = "production",
        /// Messages that would be refused are logged and sent on.
        Development = "development",
    }
}

impl GateName {
    /// The name in text for people, as in the documentation. Logs and messages use
    /// [`as_str`](Self::as_str), which other programs read.
    pub fn title(self) -> &'static str {
        match self {
            Self::Governance => "rules",
            Self::Policy => "cedar",
            _ => self.as_str(),
        }
    }
}

/// One event.
///
/// Empty and `None` members are left out of the line. Borrows, because every call creates an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActivityEvent<'a> {
    /// Microseconds since 1970.
    pub wall_us: i64,
    /// How much attention it needs.
    pub level: EventLevel,
    /// The kind of event.
    pub kind: ActivityKind,
    /// The component that logs it.
    pub component: Option<EventComponent>,
    /// The name of the server.
    pub server_id: Cow<'a, str>,
    /// Who sent the message.
    pub direction: Option<Side>,
    pub method: Option<Cow<'a, str>>,
    /// The name of the tool or prompt, or the URI.
    pub tool: Option<Cow<'a, str>>,
    /// The raw id of the message.
    pub message_id: Option<Cow<'a, str>>,
    pub governance_decision: Option<LoggedDecision>,
    /// The gate that decided.
    pub gate: Option<GateName>,
    /// The rule that matched.
    pub rule: Option<Cow<'a, str>>,
    /// The Cedar policies that decided.
    pub policies: Cow<'a, [String]>,
    /// The reason, for people.
    pub policy_reason: Option<Cow<'a, str>>,
    /// The version of the policy in force.
    pub policy_version: Option<Cow<'a, str>>,
    /// The profile in force.
    pub profile: Option<Profile>,
    /// Whether the message was forwarded.
    pub forwarded: Option<bool>,
    /// Whether approval was skipped because the profile does not require it.
    pub auto_approved: bool,
    /// How long the decision took.
    pub latency_us: Option<u64>,
    /// The caller.
    pub principal: Option<Cow<'a, str>>,
    /// The approval request that this is about.
    pub approval_id: Option<Cow<'a, str>>,
    /// Who approved or denied.
    pub decided_by: Option<Cow<'a, str>>,
    /// Identifies one connection of one shim.
    pub connection_id: Cow<'a, str>,
    /// Reported to the caller as `correlation_id`.
    pub request_id: Option<Cow<'a, str>>,
    /// The tape with the messages that this is about.
    pub tape_session_id: Option<Cow<'a, str>>,
    /// The number of the message on that tape.
    pub tape_seq: Option<u64>,
    /// W3C trace context, as the caller sent it.
    pub traceparent: Option<Cow<'a, str>>,
    /// Anything else, as JSON members: `"a":1,"b":2`.
    pub extra: Cow<'a, str>,
}

impl ActivityEvent<'_> {
    /// The same event without borrowed data.
    pub fn into_owned(self) -> ActivityEvent<'static> {
        fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        ActivityEvent {
            server_id: owned(self.server_id),
            method: self.method.map(owned),
            tool: self.tool.map(owned),
            message_id: self.message_id.map(owned),
            rule: self.rule.map(owned),
            policies: Cow::Owned(self.policies.into_owned()),
            policy_reason: self.policy_reason.map(owned),
            policy_version: self.policy_version.map(owned),
            principal: self.principal.map(owned),
            approval_id: self.approval_id.map(owned),
            decided_by: self.decided_by.map(owned),
            connection_id: owned(self.connection_id),
            request_id: self.request_id.map(owned),
            tape_session_id: self.tape_session_id.map(owned),
            traceparent: self.traceparent.map(owned),
            extra: owned(self.extra),
            wall_us: self.wall_us,
            level: self.level,
            kind: self.kind,
            component: self.component,
            direction: self.direction,
            governance_decision: self.governance_decision,
            gate: self.gate,
            profile: self.profile,
            forwarded: self.forwarded,
            auto_approved: self.auto_approved,
            latency_us: self.latency_us,
            tape_seq: self.tape_seq,
        }
    }
}
