//! A scenario, parsed and validated: the engine does not have to check it again.
//!
//! Phases are stored as complete states, not as the differences that a scenario file gives. An item
//! that a phase does not change is shared between states, and so is its position in a sequence.

mod answer;
mod behavior;
mod phase;

use std::rc::Rc;

pub use answer::{
    AnswerSource, HandlerKind, HandlerType, ItemResponse, OnSequenceEnd, ReplyOutcome,
    ReplySequence, ResponseBranch, ResponseHandler, ScenarioAction, ScenarioReply,
};
pub use behavior::{Behavior, Delivery, EffectTrigger, OnCancel, ServerEffect, SideEffect};
pub use phase::{EventKind, OnTimeout, Phase, PhaseAdvance, PhaseEvent};

use tapegate_yaml::word_choices;

use crate::expect::Expectation;
use crate::node::Node;

/// The levels of log messages to clients, least severe first.
pub(crate) const MESSAGE_LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The known protocol revisions, newest first.
pub const PROTOCOL_VERSIONS: [&str; 5] =
    ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

#[derive(Debug)]
pub struct Scenario {
    pub about: ScenarioMetadata,
    /// What the server reports about itself.
    pub server: ScenarioServer,
    /// The state before the first phase, and after the last one.
    pub baseline: PhaseState,
    /// The phases, each with its complete state.
    pub phases: Vec<Phase>,
    /// How unknown methods are handled.
    pub unknown_methods: UnknownMethods,
    /// Responses by method name, which take precedence over everything else.
    pub methods: Vec<(String, ItemResponse)>,
    /// The log settings.
    pub logging: LogSettings,
    /// Expectations of how a safe agent acts.
    pub expect: Vec<Expectation>,
}

/// Metadata of a scenario: the `metadata` block.
#[derive(Debug, Default)]
pub struct ScenarioMetadata {
    /// A short name: `rug-pull`.
    pub id: Option<String>,
    /// A title.
    pub name: Option<String>,
    pub description: Option<String>,
    /// How a safe agent reacts to it.
    pub safe: Option<String>,
    /// How severe it is if the agent falls for it.
    pub severity: Option<String>,
    /// Keywords for searching.
    pub tags: Vec<String>,
}

/// What the server reports about itself.
#[derive(Debug)]
pub struct ScenarioServer {
    /// `serverInfo` as it is sent: name, version and any other members given.
    pub info: Node,
    /// The instructions for the model.
    pub instructions: Option<String>,
    /// Which clients share phases and counts.
    pub scope: ScenarioScope,
    /// The protocol revisions that it speaks, newest first; all known ones if empty.
    pub protocol_versions: Vec<String>,
    /// How many items one page of a list has; by default, all of them.
    pub page_size: Option<usize>,
}

word_choices! {
    /// Which clients share phases and counts.
    #[derive(Default)]
    pub enum ScenarioScope {
        /// Each client has its own. Sessionless clients of one endpoint share theirs.
        #[default]
        Connection = "per_connection",
        /// All clients share them.
        Global = "global",
    }
}

/// What a server offers during a phase.
#[derive(Debug, Clone, Default)]
pub struct PhaseState {
    /// Its tools, in list order. If a name occurs twice, calls go to the last one.
    pub tools: Vec<Rc<ScenarioItem>>,
    pub resources: Vec<Rc<ScenarioItem>>,
    /// Its resource templates.
    pub templates: Vec<Rc<ScenarioItem>>,
    pub prompts: Vec<Rc<ScenarioItem>>,
    /// Its capabilities; inferred from its contents unless given.
    pub capabilities: Option<Node>,
    /// How it behaves where an item has no behavior of its own.
    pub behavior: Option<Rc<Behavior>>,
}

impl PhaseState {
    /// The items of a kind.
    pub(crate) fn items(&self, kind: ItemKind) -> &[Rc<ScenarioItem>] {
        match kind {
            ItemKind::Tool => &self.tools,
            ItemKind::Resource => &self.resources,
            ItemKind::Template => &self.templates,
            ItemKind::Prompt => &self.prompts,
        }
    }

    /// The items of a kind, to be changed.
    pub(crate) fn items_mut(&mut self, kind: ItemKind) -> &mut Vec<Rc<ScenarioItem>> {
        match kind {
            ItemKind::Tool => &mut self.tools,
            ItemKind::Resource => &mut self.resources,
            ItemKind::Template => &mut self.templates,
            ItemKind::Prompt => &mut self.prompts,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    Tool,
    Resource,
    /// A resource template.
    Template,
    Prompt,
}

/// A tool, resource, resource template or prompt, and the response to using it.
#[derive(Debug)]
pub struct ScenarioItem {
    pub kind: ItemKind,
    /// Its name; for a resource its URI, for a template the template text.
    pub name: String,
    /// The definition as it is listed.
    pub definition: Node,
    /// Whether it is listed; an unlisted item can still be used.
    pub listed: bool,
    /// The response to using it.
    pub response: ItemResponse,
    /// Its own behavior, if it has one.
    pub behavior: Option<Rc<Behavior>>,
}

word_choices! {
    /// How unknown methods are handled.
    #[derive(Default)]
    pub enum UnknownMethods {
        /// They are answered with `null`.
        #[default]
        Ignore = "ignore",
        /// They are answered with an error.
        Error = "error",
        /// They are not answered.
        Drop = "drop",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogSettings {
    /// The lowest level that is logged.
    pub level: LogLevel,
    /// Whether phase changes are logged.
    pub on_phase_change: bool,
    /// Whether firing triggers are logged.
    pub on_trigger_match: bool,
    /// The destination; standard error unless given.
    pub output: LogOutput,
}

word_choices! {
    /// A log level.
    #[derive(PartialOrd, Ord, Default)]
    pub enum LogLevel {
        /// Details for debugging.
        Debug = "debug",
        /// Normal events.
        #[default]
        Info = "info",
        /// Possible problems.
        Warn = "warn",
        /// Errors.
        Error = "error",
    }
}

/// The destination of log messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogOutput {
    /// Standard error.
    #[default]
    Stderr,
    /// Standard output; not possible if the protocol uses it.
    Stdout,
    File(String),
}
