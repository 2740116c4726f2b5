//! Which places of a message belong to the protocol and are never masked.
//!
//! Without them a tape could not be read, paired or replayed. A place is recognised by its
//! position, not by its name alone: `cursor` in `params` belongs to the protocol, `cursor` in a
//! tool's arguments to the user. Never masked, whatever the rules say:
//!
//! | where | what |
//! |---|---|
//! | the message | `jsonrpc`, `id`, `method`; the keys `params`, `result` and `error` |
//! | `error` | `code` |
//! | `params` | `name`, `progressToken`, `requestId`, `cursor`, `requestState`, `taskId`, `elicitationId`, `protocolVersion`, `requestedSchema` |
//! | `params.ref` | `type`, `name` |
//! | `result` | `resultType`, `protocolVersion`, `supportedVersions`, `nextCursor`, `requestState`, `taskId` |
//! | `params._meta`, `result._meta` | `progressToken`, `io.modelcontextprotocol/protocolVersion`, `io.modelcontextprotocol/subscriptionId` |
//! | `….task`, `result.tasks[*]`, `io.modelcontextprotocol/related-task` | `taskId` |
//! | `result.tools[*]`, `params.tools[*]` | `name`, `inputSchema`, `outputSchema` |
//! | `result.prompts[*]` | `name` |
//! | `result.inputRequests.*` | `method`, and in its `params` what is said above |
//!
//! `uri` is not in the list: a secret in it is masked, and replay masks a live `uri` in the same
//! way.

/// The role of a place in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolZone {
    /// A JSON-RPC message, or an element of a batch.
    Message,
    Params,
    Result,
    Error,
    /// `_meta` of params or of a result.
    Meta,
    /// A task, or a reference to one.
    Task,
    Tasks,
    Tools,
    /// An element of `tools`.
    Tool,
    Prompts,
    /// An element of `prompts`, or the reference of a completion.
    Named,
    /// `inputRequests`.
    Requests,
    /// Data that the protocol only carries.
    Data,
    /// Never masked.
    Protected,
}

impl ProtocolZone {
    /// The zone of the member `key`.
    pub(super) fn member(self, key: &str) -> Self {
        match (self, key) {
            (Self::Message, "jsonrpc" | "id" | "method") => Self::Protected,
            (Self::Message, "params") => Self::Params,
            (Self::Message, "result") => Self::Result,
            (Self::Message, "error") => Self::Error,
            (Self::Error, "code") => Self::Protected,
            (Self::Params, key) => Self::of_params(key),
            (Self::Result, key) => Self::of_result(key),
            (
                Self::Meta,
                "progressToken"
                | "io.modelcontextprotocol/protocolVersion"
                | "io.modelcontextprotocol/subscriptionId",
            ) => Self::Protected,
            (Self::Meta, "io.modelcontextprotocol/related-task") => Self::Task,
            (Self::Task, "taskId") => Self::Protected,
            (Self::Tool, "name" | "inputSchema" | "outputSchema") => Self::Protected,
            (Self::Named, "name" | "type") => Self::Protected,
            (Self::Requests, _) => Self::Message,
            _ => Self::Data,
        }
    }

    /// The zone of an array's elements.
    pub(super) fn element(self) -> Self {
        match self {
            Self::Tools => Self::Tool,
            Self::Tasks => Self::Task,
            Self::Prompts => Self::Named,
            _ => Self::Data,
        }
    }

    /// Whether a value here may contain protected places, so that a rule for the whole of it masks
    /// its members one by one.
    pub(super) fn may_contain_protected(self) -> bool {
        !matches!(self, Self::Data | Self::Protected)
    }

    fn of_params(key: &str) -> Self {
        match key {
            "name" | "progressToken" | "requestId" | "cursor" | "requestState" | "taskId"
            | "elicitationId" | "protocolVersion" | "requestedSchema" => Self::Protected,
            "_meta" => Self::Meta,
            "ref" => Self::Named,
            "task" => Self::Task,
            "tools" => Self::Tools,
            _ => Self::Data,
        }
    }

    fn of_result(key: &str) -> Self {
        match key {
            "resultType" | "protocolVersion" | "supportedVersions" | "nextCursor"
            | "requestState" | "taskId" => Self::Protected,
            "_meta" => Self::Meta,
            "task" => Self::Task,
            "tasks" => Self::Tasks,
            "tools" => Self::Tools,
            "prompts" => Self::Prompts,
            "inputRequests" => Self::Requests,
            _ => Self::Data,
        }
    }
}
