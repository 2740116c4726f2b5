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

/// What a client does, by the method that says it, and whether it may be narrowed down by a key.
const EVENTS: [(&str, EventKind, bool); 11] = [
    ("initialize", EventKind::Initialize, false),
    ("notifications/initialized", EventKind::Initialized, false),
    ("tools/list", EventKind::ToolsList, false),
    ("tools/call", EventKind::ToolsCall, true),
    ("resources/list", EventKind::ResourcesList, false),
    ("resources/templates/list", EventKind::TemplatesList, false),
    ("resources/read", EventKind::ResourcesRead, true),
    ("resources/subscribe", EventKind::ResourcesSubscribe, true),
    ("resources/unsubscribe", EventKind::ResourcesUnsubscribe, true),
    ("prompts/list", EventKind::PromptsList, false),
    ("prompts/get", EventKind::PromptsGet, true),
];

impl EventKind {
    /// How many kinds there are.
    pub const COUNT: usize = EVENTS.len();

    /// The method that says it.
    pub fn name(self) -> &'static str {
        EVENTS[self as usize].0
    }

    /// What a client does by this method.
    pub fn of_method(method: &[u8]) -> Option<Self> {
        let known = EVENTS.iter().find(|(name, _, _)| name.as_bytes() == method);
        known.map(|(_, kind, _)| *kind)
    }
}

impl Event {
    /// The names of events, and whether each may be narrowed down by a key.
    pub fn names() -> impl Iterator<Item = (&'static str, bool)> {
        let short = ("initialized", false);
        EVENTS.iter().map(|(name, _, narrows)| (*name, *narrows)).chain([short])
    }

    /// Reads the name of an event: `tools/call`, `tools/call:NAME`, `resources/read:URI`. On failure
    /// returns what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        // A URI has colons of its own.
        let (name, key) = match text.split_once(':') {
            Some((name, key)) => (name, Some(key)),
            None => (text, None),
        };
        let name = if name == "initialized" { "notifications/initialized" } else { name };
        let Some((_, kind, narrows)) = EVENTS.iter().find(|known| known.0 == name) else {
            let known: Vec<&str> = EVENTS.iter().map(|known| known.0).collect();
            return Err(format!("there is no event `{name}`; there are {}", known.join(", ")));
        };
        match key {
            Some(_) if !narrows => Err(format!("`{name}` takes nothing behind a colon")),
            Some("") => Err(format!("what follows the colon of `{name}` is missing")),
            key => Ok(Self { kind: *kind, key: key.map(str::to_owned) }),
        }
    }
}
