//! Which held calls become tasks.
//!
//! A client of revision 2025-11-25 that sends a call with `task` polls for its result, and gets a
//! task of ours while the call is held. In revision 2026-07-28 tasks are an extension with other
//! messages, and over HTTP the call would outlive its exchange: there, calls wait as all others do.

use tapegate_core::gate::TaskHandle;
use tapegate_core::json;
use tapegate_core::side::Side;

use super::calls::RequestedItem;
use super::{GateContext, PolicyGate};
use crate::inspect::TransportKind;

/// How long an outcome is kept at least, and by default; the client may ask for more.
const KEEP_MS: u64 = 5 * 60_000;
/// The most that a client may ask for.
const KEEP_MS_MAX: u64 = 60 * 60_000;
/// How often a client should ask.
const POLL_MS: u64 = 1000;

impl PolicyGate {
    /// The task that stands for a held call, if its client asks for one.
    pub(super) fn task_handle(
        &mut self,
        now: &GateContext<'_, '_>,
        item: RequestedItem<'_>,
        timeout_ms: u64,
    ) -> Option<TaskHandle> {
        let is_tool_call = now.case.from == Side::Client && item.method == "tools/call";
        let is_served =
            self.settings.client == TransportKind::Lines && now.envelope.protocol_version.is_none();
        if !is_tool_call || !is_served {
            return None;
        }
        let task = json::member(now.envelope.params?, "task")?;
        json::whole_object(task).ok()?;
        let requested = json::member(task, "ttl").and_then(|ttl| std::str::from_utf8(ttl).ok());
        let requested = requested.and_then(|ttl| ttl.parse().ok()).unwrap_or(KEEP_MS);
        let keep_ms = requested.clamp(KEEP_MS, KEEP_MS_MAX);
        Some(TaskHandle {
            task_id: format!("tapegate-task-{}", self.effects.ids.next()),
            request_id: format!("tapegate-call-{}", self.effects.ids.next()),
            ttl_ms: timeout_ms.saturating_add(keep_ms),
            keep_ms,
            poll_ms: POLL_MS,
        })
    }
}
