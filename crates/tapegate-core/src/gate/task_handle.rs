//! How a held call becomes a task of ours.

use crate::frame::Envelope;
use crate::json;

/// The extension of revision 2026-07-28 by which a client accepts tasks.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A task of ours that stands for a held call, as the gate chooses it. Its client polls it instead of
/// waiting for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskHandle {
    /// The id that the client is given.
    pub task_id: String,
    /// The id of our own request to the server, once the call is released. The client's own id has
    /// been answered by then.
    pub request_id: String,
    /// How long the task is kept at least, as the client is told.
    pub ttl_ms: u64,
    /// How long it is kept at least after it has ended.
    pub keep_ms: u64,
    /// How often the client should ask.
    pub poll_ms: u64,
    pub dialect: TaskDialect,
}

/// The messages in which a client and a server speak about tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskDialect {
    /// Those of revision 2025-11-25, where a client asks for a task.
    Core,
    /// Those of the extension, where the server decides to make one.
    Extension,
}

/// Whether the sender of a request accepts tasks of the extension.
pub fn accepts_tasks(request: &Envelope<'_>) -> bool {
    let extensions = capabilities(request).and_then(|all| json::member(all, "extensions"));
    let tasks = extensions.and_then(|extensions| json::member(extensions, TASKS_EXTENSION));
    tasks.is_some_and(|tasks| json::whole_object(tasks).is_ok())
}

/// Whether a server may ask the sender of a request for input.
pub fn gives_input(request: &Envelope<'_>) -> bool {
    let declared = |name| capabilities(request).and_then(|all| json::member(all, name));
    ["elicitation", "sampling", "roots"].into_iter().any(|name| declared(name).is_some())
}

fn capabilities<'a>(request: &Envelope<'a>) -> Option<&'a [u8]> {
    let meta = json::member(request.params?, "_meta")?;
    json::member(meta, "io.modelcontextprotocol/clientCapabilities")
}
