//! Logs refused attempts to decide, as the command line does.
//!
//! Any program on the machine can send requests without a token, so the log takes only a few a
//! second.

use std::cell::Cell;

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel, GateName};
use tapegate_core::decision::LoggedDecision;
use tapegate_store::activity;
use tapegate_store::approvals::is_id;

use super::response::ApiRefusal;
use super::route::{ApiRoute, RouteMatch};
use super::{Hub, NoticeLevel, journal};

/// How many attempts are logged per second.
const A_SECOND_MAX: u32 = 10;

/// The attempts of the current second.
#[derive(Debug, Default)]
pub(super) struct AttemptLimiter {
    second: Cell<i64>,
    count: Cell<u32>,
}

/// A request to approve, deny or shut down.
#[derive(Debug)]
pub(super) struct DecidingRequest {
    path: String,
    id: String,
}

impl AttemptLimiter {
    /// Whether one more may be logged.
    fn admits(&self, now_us: i64) -> bool {
        let second = now_us / 1_000_000;
        if self.second.replace(second) != second {
            self.count.set(0);
        }
        self.count.set(self.count.get().saturating_add(1));
        self.count.get() <= A_SECOND_MAX
    }
}

impl DecidingRequest {
    /// The request, if it approves, denies or shuts down the hub.
    pub(super) fn of(route_match: &RouteMatch<'_>, path: &str) -> Option<Self> {
        match route_match {
            RouteMatch::Route(
                ApiRoute::Answer
                | ApiRoute::Approve
                | ApiRoute::Deny
                | ApiRoute::Link
                | ApiRoute::RevokeGrant
                | ApiRoute::Shutdown,
                id,
            ) => Some(Self { path: path.to_owned(), id: (*id).to_owned() }),
            // The name of the channel may be anything, and is not the id of a request.
            RouteMatch::Route(ApiRoute::ChannelPost, _) => {
                Some(Self { path: "/approvals/channels/…".to_owned(), id: String::new() })
            }
            _ => None,
        }
    }
}

impl Hub {
    /// Logs that a request was refused because of who sent it.
    pub(super) fn log_attempt(&self, request: &DecidingRequest, refusal: &ApiRefusal) {
        let now_us = self.clock.now().wall_us;
        // A malformed body or an unknown id is a mistake, not an attempt.
        if !refusal.is_about_caller() || !self.attempts.admits(now_us) {
            return;
        }
        let DecidingRequest { path, id } = request;
        let is_known = is_id(id);
        // A value that is not a valid id may contain anything, so it is left out.
        let command = match is_known || id.is_empty() {
            true => format!("POST {path}"),
            false => format!("POST {}", path.replace(id.as_str(), "…")),
        };
        let reason = format!("refused `{command}`: {}", refusal.message());
        let event = ActivityEvent {
            governance_decision: Some(LoggedDecision::Refused),
            gate: Some(GateName::Approval),
            policy_reason: Some(reason.into()),
            approval_id: is_known.then(|| id.as_str().into()),
            extra: activity::extra(&json!({ "event": "refused", "command": command })),
            ..journal::event(
                now_us,
                EventLevel::Error,
                ActivityKind::Approval,
                self.active_policy().profile,
            )
        };
        if let Err(cause_text) = self.journal.write(&[event]) {
            (self.options.notice)(NoticeLevel::Error, &cause_text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_attempts_of_a_second_are_logged() {
        let attempts = AttemptLimiter::default();
        let logged = |at: i64| (0..50).filter(|_| attempts.admits(at)).count();
        assert_eq!((logged(5_000_000), logged(5_900_000)), (10, 0));
        assert_eq!(logged(6_000_000), 10);
    }
}
