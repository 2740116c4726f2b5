//! Which held calls become tasks.
//!
//! A client of revision 2025-11-25 that sends a call with `task` polls for its result, and gets a
//! task of ours while the call is held. So does one of revision 2026-07-28 that accepts tasks, which
//! are an extension there, unless it can be asked for input: such questions are answered by repeating
//! the call. Over HTTP the call would outlive its exchange: there, calls wait as all others do.

use tapegate_core::frame::Envelope;
use tapegate_core::gate::{TaskDialect, TaskHandle, accepts_tasks, gives_input};
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
        if !is_tool_call || self.settings.client != TransportKind::Lines {
            return None;
        }
        let (dialect, keep_ms) = wanted_task(now.envelope)?;
        Some(TaskHandle {
            task_id: format!("tapegate-task-{}", self.effects.ids.next()),
            request_id: format!("tapegate-call-{}", self.effects.ids.next()),
            ttl_ms: timeout_ms.saturating_add(keep_ms),
            keep_ms,
            poll_ms: POLL_MS,
            dialect,
        })
    }
}

/// Whether the caller takes a task for an answer, and how long it wants the outcome kept.
fn wanted_task(call: &Envelope<'_>) -> Option<(TaskDialect, u64)> {
    if call.protocol_version.is_some() {
        let takes_one = accepts_tasks(call) && !gives_input(call);
        return takes_one.then_some((TaskDialect::Extension, KEEP_MS));
    }
    let task = json::member(call.params?, "task")?;
    json::whole_object(task).ok()?;
    let requested = json::member(task, "ttl").and_then(|ttl| std::str::from_utf8(ttl).ok());
    let requested = requested.and_then(|ttl| ttl.parse().ok()).unwrap_or(KEEP_MS);
    Some((TaskDialect::Core, requested.clamp(KEEP_MS, KEEP_MS_MAX)))
}
