//! A scenario, read and checked: everything the engine needs, and nothing it has to doubt.
//!
//! Phases are kept as the state they lead to, not as the differences that people write. An item
//! that a phase leaves alone is the same item in every state, which is what its sequence goes by.

mod answer;
mod behavior;
mod phase;

use std::rc::Rc;

pub use answer::{
    Action, Answer, Branch, Exhausted, Handler, HandlerKind, Outcome, Reply, Response, Sequence,
};
pub use behavior::{Behavior, Delivery, Effect, EffectTrigger, OnCancel, SideEffect};
pub use phase::{Advance, Event, EventKind, OnTimeout, Phase};

use crate::expect::Expectation;
use crate::node::Node;

/// The revisions of the protocol that are known, newest first.
pub const PROTOCOL_VERSIONS: [&str; 5] =
    ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A scenario.
#[derive(Debug)]
pub struct Scenario {
    /// What people know it by.
    pub about: About,
    /// What the server says of itself.
    pub server: Server,
    /// How the server is before any phase, and after the last one is over.
    pub baseline: State,
    /// The phases, each with the state it leads to.
    pub phases: Vec<Phase>,
    /// What becomes of methods that nobody has thought of.
    pub unknown_methods: UnknownMethods,
    /// Answers to methods by their names, before anything else is asked.
    pub methods: Vec<(String, Response)>,
    /// What is said to people.
    pub logging: Logging,
    /// What a safe agent does and does not do.
    pub expect: Vec<Expectation>,
}

/// What people know a scenario by: the `metadata` block.
#[derive(Debug, Default)]
pub struct About {
    /// A short name: `rug-pull`.
    pub id: Option<String>,
    /// A title.
    pub name: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// What a safe agent does when it meets it.
    pub safe: Option<String>,
    /// How bad it is if the agent falls for it.
    pub severity: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
}

/// What the server says of itself.
#[derive(Debug)]
pub struct Server {
    /// `serverInfo` as it is sent: name, version, and whatever else was given.
    pub info: Node,
    /// What the model is told about the server.
    pub instructions: Option<String>,
    /// Who shares phases and counts.
    pub scope: Scope,
    /// The revisions of the protocol that it speaks, newest first; all that are known, unless given.
    pub protocol_versions: Vec<String>,
    /// How many items a list has on one page; all of them, unless given.
    pub page_size: Option<usize>,
}

/// Who shares phases and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Each client has its own. Clients without sessions that come through one door share theirs.
    #[default]
    Connection,
    /// All clients share one.
    Global,
}

/// What a server has to offer while a phase lasts.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Its tools, in the order they are listed. A name may come twice; the last one is called.
    pub tools: Vec<Rc<Item>>,
    /// Its resources.
    pub resources: Vec<Rc<Item>>,
    /// Its resource templates.
    pub templates: Vec<Rc<Item>>,
    /// Its prompts.
    pub prompts: Vec<Rc<Item>>,
    /// What it says it can do; inferred from what there is, unless given.
    pub capabilities: Option<Node>,
    /// How it behaves where an item does not say otherwise.
    pub behavior: Option<Rc<Behavior>>,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A resource.
    Resource,
    /// A resource template.
    Template,
    /// A prompt.
    Prompt,
}

/// A tool, a resource, a resource template or a prompt, and what using it gives.
#[derive(Debug)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Its name; of a resource its URI, of a template the template.
    pub name: String,
    /// The definition as it is listed.
    pub definition: Node,
    /// Whether it is listed at all; one that is not can be used all the same.
    pub listed: bool,
    /// What using it gives.
    pub response: Response,
    /// How it behaves, if it is special.
    pub behavior: Option<Rc<Behavior>>,
}

/// What becomes of methods that nobody has thought of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownMethods {
    /// They are answered with `null`.
    #[default]
    Ignore,
    /// They are answered with an error.
    Error,
    /// They are not answered.
    Drop,
}

/// What is said to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logging {
    /// What is worth saying.
    pub level: LogLevel,
    /// Whether a change of phase is said.
    pub on_phase_change: bool,
    /// Whether it is said when a trigger fires.
    pub on_trigger_match: bool,
    /// Where it is said; standard error, unless given.
    pub output: LogOutput,
}

/// What is worth saying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// What happens.
    #[default]
    Info,
    /// What may be wrong.
    Warn,
    /// What is wrong.
    Error,
}

/// Where people are told things.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogOutput {
    /// On standard error.
    #[default]
    Stderr,
    /// On standard output, which the protocol must not need.
    Stdout,
    /// In a file.
    File(String),
}

impl Default for Logging {
    fn default() -> Self {
        let (level, output) = Default::default();
        Self { level, on_phase_change: false, on_trigger_match: false, output }
    }
}
