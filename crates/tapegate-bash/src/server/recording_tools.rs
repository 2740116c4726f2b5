//! The tools that show recordings.

use std::sync::Arc;

use serde_json::{Value, json};

use super::arguments::ToolArguments;
use super::caller::CallerRequest;
use super::mailbox::ToolCallKey;
use super::tool_host::ToolHost;
use super::tool_result;
use crate::config::SessionMode;
use crate::recording::session_id::timestamp;

/// How many commands are listed if the caller does not say, and at most.
const COUNT_DEFAULT: u64 = 10;
const COUNT_MAX: u64 = 100;

impl ToolHost {
    /// Describes the session of the caller.
    pub(super) fn session_info(
        self: &Arc<Self>,
        key: &ToolCallKey,
        caller: &CallerRequest,
    ) -> Result<(), String> {
        let start = self.caller_start(caller);
        // Health needs the disk, which may be slow.
        self.answer_later(key, move |host| {
            let health = host.recorder.health();
            let session = host.recorder.session_of(&start);
            let session = session.as_ref();
            let mut health_json = health.to_json();
            let waiting = host.waiting_keys();
            if !waiting.is_empty() {
                // Under a policy, settings are those of the start.
                health_json["settings_waiting_for_restart"] = json!(waiting);
            }
            tool_result::success(json!({
                "session_id": session.map(|session| session.session_id.as_str()),
                "entry_count": session.map_or(0, |session| session.entry_count),
                "recording_enabled": health.recording_enabled,
                "status": session.map(|session| session.status.as_str()),
                "created_at": session.map(|session| timestamp(session.created_us)),
                "session_mode": mode_name(host.recorder.session_mode()),
                "recording_directory": host.config().recording.directory.display().to_string(),
                "health": health_json,
            }))
        })
    }

    /// Lists the last commands of the caller's session.
    pub(super) fn list_recent(
        self: &Arc<Self>,
        key: &ToolCallKey,
        caller: &CallerRequest,
        arguments: &ToolArguments<'_>,
    ) -> Result<(), String> {
        let count = arguments.number("count", 1)?.unwrap_or(COUNT_DEFAULT);
        if count > COUNT_MAX {
            return Err(format!(
                "Invalid argument: count must be at most {COUNT_MAX}, not {count}"
            ));
        }
        let session = self.recorder.session_of(&self.caller_start(caller));
        let recent = session.map(|it| self.recorder.recent(&it.session_id, count as usize));
        let recordings: Vec<Value> = recent
            .unwrap_or_default()
            .iter()
            .map(|one| {
                json!({
                    "entry_id": one.entry_id,
                    "command": one.command,
                    "exit_code": one.exit_code,
                    "timed_out": one.timed_out,
                    "duration_ms": one.duration_ms,
                    "timestamp": timestamp(one.started_us),
                })
            })
            .collect();
        let result = tool_result::success(json!({"recordings": recordings}));
        self.mailbox.answer(key, Ok(result));
        Ok(())
    }
}

fn mode_name(mode: SessionMode) -> &'static str {
    match mode {
        SessionMode::PerConversation => "per_conversation",
        SessionMode::PerDay => "per_day",
        SessionMode::Continuous => "continuous",
    }
}
