//! What clients are told about our tasks, as JSON.

use super::{OwnTask, TaskOutcome, TaskStep};
use crate::frame::{self, Frame};
use crate::gate::TaskDialect;
use crate::json::{self, JsonEdits};
use crate::time::{SubSecond, write_rfc3339};

/// The member of `_meta` that names the task of a message.
const RELATED_KEY: &str = "io.modelcontextprotocol/related-task";
/// The error code for the result of a task that was cancelled.
const CODE_CANCELLED: i32 = -32006;
/// The error code of a server that does not know a method.
const CODE_UNKNOWN_METHOD: &[u8] = b"-32601";
const CANCELLED: &str = "Tapegate: the task was cancelled, and the call was not completed";
const RUNNING: &str = "the MCP server is running the call";
const TOOL_FAILED: &str = "the tool reported an error";

/// The text of an answer about a task of ours: one of a few fixed forms, or an outcome that the gate
/// has let through.
#[derive(Debug)]
pub(in crate::relay) enum OwnTaskAnswer<'t> {
    Result(AnswerText<'t>),
    Error(AnswerText<'t>),
}

/// Text that only this module makes.
#[derive(Debug)]
pub(in crate::relay) struct AnswerText<'t>(std::borrow::Cow<'t, [u8]>);

impl AnswerText<'_> {
    pub(in crate::relay) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn owned(text: Vec<u8>) -> AnswerText<'static> {
        AnswerText(text.into())
    }
}

/// A result of the server, with the reference to our task in `_meta`.
#[derive(Debug)]
pub(in crate::relay) struct RelatedResult {
    text: Vec<u8>,
    /// Whether the tool reported an error in it.
    is_error: bool,
}

impl RelatedResult {
    /// A result that the gate has let through, on one line; `None` if it is not an object.
    pub(in crate::relay) fn new(result: &[u8], task_id: &str) -> Option<Self> {
        let members = json::whole_object(result).ok()?;
        let mut related = b"{\"taskId\":".to_vec();
        json::write_str(&mut related, task_id);
        related.push(b'}');
        let (mut out, mut meta, mut is_error) = (b"{".to_vec(), None, false);
        for (key, value) in members {
            if key.is("_meta") {
                meta = json::whole_object(value).ok();
                continue;
            }
            is_error |= key.is("isError") && value == b"true";
            write_member(&mut out, &key.decode(), value);
        }
        let mut new_meta = b"{".to_vec();
        for (key, value) in meta.unwrap_or_default() {
            // The server's own task stands behind ours and is not known to the client.
            if !key.is(RELATED_KEY) {
                write_member(&mut new_meta, &key.decode(), value);
            }
        }
        write_member(&mut new_meta, RELATED_KEY, &related);
        new_meta.push(b'}');
        write_member(&mut out, "_meta", &new_meta);
        out.push(b'}');
        Some(Self { text: json::compact(&out).into_owned(), is_error })
    }

    /// The same without the reference, for a client that gets it within the task.
    pub(in crate::relay) fn plain(result: &[u8]) -> Option<Self> {
        json::whole_object(result).ok()?;
        let is_error = json::member(result, "isError") == Some(b"true");
        Some(Self { text: json::compact(result).into_owned(), is_error })
    }

    pub(in crate::relay) fn bytes(&self) -> &[u8] {
        &self.text
    }
}

impl OwnTaskAnswer<'_> {
    /// The answer of the extension that only says that a request has arrived.
    pub(in crate::relay) fn acknowledged() -> OwnTaskAnswer<'static> {
        OwnTaskAnswer::Result(AnswerText::owned(b"{\"resultType\":\"complete\"}".to_vec()))
    }
}

impl OwnTask {
    /// The answer to the call that became this task.
    pub(in crate::relay) fn created_answer(&self) -> OwnTaskAnswer<'static> {
        let text = match self.handle.dialect {
            TaskDialect::Core => [b"{\"task\":", &self.json()[..], b"}"].concat(),
            TaskDialect::Extension => self.json_as("task"),
        };
        OwnTaskAnswer::Result(AnswerText::owned(text))
    }

    /// The state of the task, for `tasks/get` and `tasks/cancel`.
    pub(in crate::relay) fn state_answer(&self) -> OwnTaskAnswer<'static> {
        let text = match self.handle.dialect {
            TaskDialect::Core => self.json(),
            TaskDialect::Extension => self.json_with_outcome(),
        };
        OwnTaskAnswer::Result(AnswerText::owned(text))
    }

    /// The outcome of the call; `None` if there is none yet.
    pub(in crate::relay) fn outcome_answer(&self) -> Option<OwnTaskAnswer<'_>> {
        let TaskStep::Ended(outcome) = &self.step else { return None };
        Some(match outcome {
            TaskOutcome::Result(result) => OwnTaskAnswer::Result(AnswerText(result.bytes().into())),
            TaskOutcome::Error(error, _) => OwnTaskAnswer::Error(AnswerText((&error[..]).into())),
            TaskOutcome::Cancelled => {
                let data = frame::own_data(&[("error_type", b"\"task_cancelled\"")]);
                let error = frame::error_object(CODE_CANCELLED, CANCELLED, Some(data.as_bytes()));
                OwnTaskAnswer::Error(AnswerText::owned(error))
            }
        })
    }

    /// The task as a result of the extension, with what has come of it.
    fn json_with_outcome(&self) -> Vec<u8> {
        let mut out = self.json_as("complete");
        out.pop();
        match self.outcome_answer() {
            Some(OwnTaskAnswer::Result(result)) => {
                write_member(&mut out, "result", result.as_bytes())
            }
            Some(OwnTaskAnswer::Error(error)) if self.status() == "failed" => {
                write_member(&mut out, "error", error.as_bytes());
            }
            _ => {}
        }
        out.push(b'}');
        out
    }

    /// The task as a result of the extension.
    fn json_as(&self, result_type: &str) -> Vec<u8> {
        let mut out = b"{".to_vec();
        write_member(&mut out, "resultType", &quoted(result_type));
        self.write_members(&mut out, ("ttlMs", "pollIntervalMs"));
        out.push(b'}');
        out
    }

    /// The task as an object.
    pub(in crate::relay) fn json(&self) -> Vec<u8> {
        let mut out = b"{".to_vec();
        self.write_members(&mut out, ("ttl", "pollInterval"));
        out.push(b'}');
        out
    }

    fn write_members(&self, out: &mut Vec<u8>, (ttl, poll_interval): (&str, &str)) {
        let time = |wall_us| {
            let mut text = b"\"".to_vec();
            write_rfc3339(&mut text, wall_us, SubSecond::Millis);
            text.push(b'"');
            text
        };
        write_member(out, "taskId", &quoted(&self.handle.task_id));
        write_member(out, "status", &quoted(self.status()));
        if let Some(text) = self.status_text() {
            write_member(out, "statusMessage", &quoted(text));
        }
        write_member(out, "createdAt", &time(self.created.wall_us));
        write_member(out, "lastUpdatedAt", &time(self.updated.wall_us));
        write_member(out, ttl, self.handle.ttl_ms.to_string().as_bytes());
        write_member(out, poll_interval, self.handle.poll_ms.to_string().as_bytes());
    }

    pub(in crate::relay) fn status(&self) -> &'static str {
        match &self.step {
            TaskStep::Held(_) | TaskStep::Sent(_) | TaskStep::Linked(_) => "working",
            // The extension keeps `failed` for calls that have no result.
            TaskStep::Ended(TaskOutcome::Result(result))
                if !result.is_error || self.handle.dialect == TaskDialect::Extension =>
            {
                "completed"
            }
            TaskStep::Ended(TaskOutcome::Cancelled) => "cancelled",
            TaskStep::Ended(_) => "failed",
        }
    }

    fn status_text(&self) -> Option<&str> {
        match &self.step {
            TaskStep::Held(awaits) => {
                Some(awaits).filter(|text| !text.is_empty()).map(String::as_str)
            }
            TaskStep::Sent(_) | TaskStep::Linked(_) => Some(RUNNING),
            TaskStep::Ended(TaskOutcome::Result(result)) => result.is_error.then_some(TOOL_FAILED),
            TaskStep::Ended(TaskOutcome::Error(_, message)) => Some(message),
            TaskStep::Ended(TaskOutcome::Cancelled) => None,
        }
    }
}

/// A server's answer to `tasks/list` with our tasks before its own. A server without tasks answers that
/// it does not know the method: then ours are the whole list. `None` if nothing changes.
pub(in crate::relay) fn list_with(answer: &[u8], tasks: &[&OwnTask]) -> Option<Vec<u8>> {
    if tasks.is_empty() {
        return None;
    }
    let frame = Frame::read(answer);
    let envelope = frame.envelope()?;
    let mut list = tasks.iter().map(|task| task.json()).collect::<Vec<_>>().join(&b',');
    list.insert(0, b'[');
    if let Some(error) = envelope.error {
        let is_unknown = json::member(error, "code") == Some(CODE_UNKNOWN_METHOD);
        let id = envelope.id.filter(|_| is_unknown)?;
        let start = [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"result\":{\"tasks\":"].concat();
        return Some([&start[..], &list, b"]}}"].concat());
    }
    let theirs = json::member(envelope.result?, "tasks")?;
    let rest = theirs.strip_prefix(b"[")?;
    if rest.trim_ascii_start().first() != Some(&b']') {
        list.push(b',');
    }
    list.extend_from_slice(rest);
    let mut edits = JsonEdits::new(answer);
    edits.replace(theirs, &list);
    Some(edits.finish().into_owned())
}

fn write_member(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend((out.len() > 1).then_some(b','));
    json::write_str(out, name);
    out.push(b':');
    out.extend_from_slice(value);
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    json::write_str(&mut out, text);
    out
}
