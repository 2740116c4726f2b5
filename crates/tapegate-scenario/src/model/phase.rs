//! Phases, and the triggers that end them.

use tapegate_yaml::word_choices;

use super::{PhaseState, ScenarioAction};
use crate::request_matcher::RequestMatcher;

#[derive(Debug)]
pub struct Phase {
    pub name: String,
    /// The server's complete state during the phase: the baseline with the phase's changes.
    pub state: PhaseState,
    /// The entry actions.
    pub on_enter: Vec<ScenarioAction>,
    /// What ends the phase; without it, the phase is the last.
    pub advance: Option<PhaseAdvance>,
}

/// What ends a phase.
#[derive(Debug)]
pub struct PhaseAdvance {
    /// The event that is awaited.
    pub on: Option<PhaseEvent>,
    /// How many such events, counted from the start of the scenario.
    pub count: u64,
    /// A condition on the request.
    pub matching: Option<RequestMatcher>,
    /// How long after entering the phase it ends regardless, in nanoseconds.
    pub after_ns: Option<u64>,
    /// How long to wait for the event, in nanoseconds.
    pub timeout_ns: Option<u64>,
    /// What happens after that.
    pub on_timeout: OnTimeout,
}

word_choices! {
    /// What happens when an event has not come in time.
    #[derive(Default)]
    pub enum OnTimeout {
        /// The phase ends.
        #[default]
        Advance = "advance",
        /// The server stops with an error.
        Abort = "abort",
    }
}

/// Something a client does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PhaseEvent {
    pub kind: EventKind,
    /// The name of a tool or prompt, or the URI of a resource; `None` matches any.
    pub key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `initialize`, or the first request of a sessionless client.
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

/// The method of each kind of event, and whether a key may narrow it down.
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

    /// The method.
    pub fn name(self) -> &'static str {
        EVENTS[self as usize].0
    }

    /// The kind of event that a method causes.
    pub fn of_method(method: &[u8]) -> Option<Self> {
        let known = EVENTS.iter().find(|(name, _, _)| name.as_bytes() == method);
        known.map(|(_, kind, _)| *kind)
    }
}

impl PhaseEvent {
    /// The names of events, and whether a key may narrow each one down.
    pub fn names() -> impl Iterator<Item = (&'static str, bool)> {
        let short = ("initialized", false);
        EVENTS.iter().map(|(name, _, narrows)| (*name, *narrows)).chain([short])
    }

    /// Parses the name of an event: `tools/call`, `tools/call:NAME`, `resources/read:URI`. On
    /// failure, returns the error message.
    pub fn parse(text: &str) -> Result<Self, String> {
        // Split at the first colon only: a URI contains colons.
        let (name, key) = match text.split_once(':') {
            Some((name, key)) => (name, Some(key)),
            None => (text, None),
        };
        let name = if name == "initialized" { "notifications/initialized" } else { name };
        let Some((_, kind, narrows)) = EVENTS.iter().find(|known| known.0 == name) else {
            let known: Vec<&str> = EVENTS.iter().map(|known| known.0).collect();
            return Err(format!("unknown event `{name}`; known events: {}", known.join(", ")));
        };
        match key {
            Some(_) if !narrows => Err(format!("`{name}` takes nothing after a colon")),
            Some("") => Err(format!("`{name}` has nothing after its colon")),
            key => Ok(Self { kind: *kind, key: key.map(str::to_owned) }),
        }
    }
}
