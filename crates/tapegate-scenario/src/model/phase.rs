//! Phases, and what leads out of them.

use super::{Action, State};
use crate::when::When;

/// A phase.
#[derive(Debug)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// What the server has to offer while it lasts: the baseline with the phase's changes.
    pub state: State,
    /// What is done when it is entered.
    pub on_enter: Vec<Action>,
    /// What leads out of it; without, it is the last.
    pub advance: Option<Advance>,
}

/// What leads out of a phase.
#[derive(Debug)]
pub struct Advance {
    /// The event that is waited for.
    pub on: Option<Event>,
    /// How many of them since the start, at least.
    pub count: u64,
    /// What the request must look like.
    pub matching: Option<When>,
    /// How long after the phase was entered it is left anyway, in nanoseconds.
    pub after_ns: Option<u64>,
    /// How long the event is waited for, in nanoseconds.
    pub timeout_ns: Option<u64>,
    /// What happens then.
    pub on_timeout: OnTimeout,
}

/// What happens when an event has not come in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTimeout {
    /// The phase is left.
    #[default]
    Advance,
    /// The server ends with an error.
    Abort,
}

/// Something a client does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// With what: a tool's name, a resource's URI; with anything, if it is not said.
    pub key: Option<String>,
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `initialize`, or the first request of a client that has no use for it.
    Initialize,
    /// `notifications/initialized`.
    Initialized,
    /// `tools/list`.
    ToolsList,
    /// `tools/call`.
    ToolsCall,
    /// `resources/list`.
    ResourcesList,
    /// `resources/templates/list`.
    TemplatesList,
    /// `resources/read`.
    ResourcesRead,
    /// `resources/subscribe`.
    ResourcesSubscribe,
    /// `resources/unsubscribe`.
    ResourcesUnsubscribe,
    /// `prompts/list`.
    PromptsList,
    /// `prompts/get`.
    PromptsGet,
}
