//! The tools that read the output of a command and stop it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::ToolArguments;
use super::execute::{exit_code, signal_of};
use super::mailbox::ToolCallKey;
use super::output_text::decode_part;
use super::process_table::ProcessEntry;
use super::tool_host::ToolHost;
use super::tool_result;
use crate::executor::{CommandState, StreamCapture, TERM_GRACE};
use crate::recording::recorder::RecordingOutcome;
use crate::signal_name::signal_number;

/// The longest wait for output.
const WAIT_SECONDS_MAX: u64 = 600;
/// How long to wait for the effect of a signal.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(1);

/// What to read.
struct ReadRequest {
    number: u64,
    entry: ProcessEntry,
    id: String,
    offsets: [u64; 2],
    bytes_max: usize,
    wait: Duration,
}

impl ToolHost {
    /// Reads output, and waits for it if that is wanted.
    pub(super) fn read_output(
        self: &Arc<Self>,
        key: &ToolCallKey,
        arguments: &ToolArguments<'_>,
    ) -> Result<(), String> {
        let (number, entry, id) = self.find_process(key, arguments)?;
        let inline = self.config().execution.inline_output_size as u64;
        let offset =
            |name: &str, next: u64| arguments.number(name, 0).map(|offset| offset.unwrap_or(next));
        let [stdout, stderr] = entry.offsets;
        let offsets = [offset("since_offset", stdout)?, offset("since_stderr_offset", stderr)?];
        let bytes_max = arguments.number("max_bytes", 1)?.unwrap_or(inline).min(inline) as usize;
        let wait = arguments.number("wait_seconds", 0)?.unwrap_or(0).min(WAIT_SECONDS_MAX);
        let wait = Duration::from_secs(wait);
        let request = ReadRequest { number, entry, id, offsets, bytes_max, wait };
        // On a thread, since waiting here would stop all sessions.
        self.answer_later(key, move |host| tool_result::success(request.read(host)))
    }

    /// Stops a command, or sends it a signal.
    pub(super) fn stop(
        self: &Arc<Self>,
        key: &ToolCallKey,
        arguments: &ToolArguments<'_>,
    ) -> Result<(), String> {
        let (number, entry, id) = self.find_process(key, arguments)?;
        let signal = match arguments.text("signal")? {
            None => None,
            Some(name) => {
                let number = signal_number(name);
                Some(
                    number
                        .ok_or_else(|| format!("Invalid argument: signal {name} is not known"))?,
                )
            }
        };
        self.answer_later(key, move |host| {
            let patience = match signal {
                Some(signal) => {
                    entry.command.signal(signal);
                    SIGNAL_PATIENCE
                }
                None => {
                    entry.command.end(TERM_GRACE);
                    TERM_GRACE + SIGNAL_PATIENCE
                }
            };
            // The answer then shows the effect, which saves the model another call.
            entry.command.wait_until(patience, |state| !is_running(state));
            let recording = host.processes.recording(number);
            tool_result::success(final_state(&id, &entry, recording.as_ref()))
        })
    }

    fn find_process(
        &self,
        key: &ToolCallKey,
        arguments: &ToolArguments<'_>,
    ) -> Result<(u64, ProcessEntry, String), String> {
        let id = arguments.required_text("process_id")?;
        match self.processes.find(key.session, id) {
            Some((number, entry)) => Ok((number, entry, id.to_owned())),
            None => {
                let known = self.processes.known_ids(key.session);
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(format!("Unknown process: {id} (known are: {known})"))
            }
        }
    }
}

impl ReadRequest {
    fn read(self, host: &ToolHost) -> Value {
        let Self { number, entry, id, offsets, bytes_max, wait } = self;
        let [stdout, stderr] = offsets;
        entry.command.wait_until(wait, |state| {
            let has_more =
                state.stdout.total_bytes() > stdout || state.stderr.total_bytes() > stderr;
            has_more || !is_running(state)
        });
        let state = entry.command.state();
        let is_over = !is_running(&state);
        let out = read_stream(&state.stdout, stdout, bytes_max, is_over);
        let err = read_stream(&state.stderr, stderr, bytes_max, is_over);
        drop(state);
        host.processes.change(number, |entry| entry.offsets = [out.next_offset, err.next_offset]);
        let recording = host.processes.recording(number);
        let mut result = final_state(&id, &entry, recording.as_ref());
        result["stdout"] = out.text.into();
        result["stderr"] = err.text.into();
        result["next_offset"] = out.next_offset.into();
        result["next_stderr_offset"] = err.next_offset.into();
        result["skipped_bytes"] = (out.skipped_bytes + err.skipped_bytes).into();
        result
    }
}

/// A part of a stream as text.
struct TextPart {
    text: String,
    next_offset: u64,
    skipped_bytes: u64,
}

fn read_stream(stream: &StreamCapture, offset: u64, bytes_max: usize, is_over: bool) -> TextPart {
    let part = stream.part(offset, bytes_max);
    let is_last = is_over && part.next_offset == stream.total_bytes();
    let (text, unfinished) = decode_part(&part.bytes, is_last);
    let next_offset = part.next_offset - unfinished as u64;
    TextPart { text, next_offset, skipped_bytes: part.skipped_bytes }
}

fn final_state(id: &str, entry: &ProcessEntry, recording: Option<&RecordingOutcome>) -> Value {
    let state = entry.command.state();
    let outcome = state.outcome.as_ref();
    let elapsed = outcome.map_or_else(|| entry.command.elapsed(), |outcome| outcome.duration);
    let mut result = json!({
        "process_id": id,
        "running": is_running(&state),
        "exit_code": outcome.and_then(exit_code),
        "timed_out": outcome.is_some_and(|outcome| outcome.timed_out),
        "duration_ms": elapsed.as_millis() as u64,
        "recording_id": recording.and_then(RecordingOutcome::id),
    });
    // The call that started it was answered long before.
    if let Some(notice) = recording.and_then(RecordingOutcome::notice) {
        result["notice"] = notice.into();
    }
    if let Some(signal) = outcome.and_then(signal_of) {
        result["signal"] = signal.into();
    }
    result
}

/// Whether the command, or something that it left behind, still runs.
fn is_running(state: &CommandState) -> bool {
    match &state.outcome {
        None => true,
        Some(outcome) => outcome.has_children && !state.is_gone,
    }
}
