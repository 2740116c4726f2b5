//! How a server behaves besides what it says.

use crate::form::Form;

/// How a server behaves.
#[derive(Debug, Default)]
pub struct Behavior {
    /// How its answers travel.
    pub delivery: Delivery,
    /// What it does besides.
    pub side_effects: Vec<SideEffect>,
    /// What it makes of a client that no longer wants to know.
    pub on_cancel: OnCancel,
}

/// How an answer travels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Delivery {
    /// As it should.
    #[default]
    Normal,
    /// A few bytes at a time.
    SlowLoris {
        /// How long it rests between two pieces, in nanoseconds.
        delay_ns: u64,
        /// How many bytes a piece has.
        chunk_bytes: usize,
    },
    /// Without an end, behind padding.
    UnboundedLine {
        /// How long it is at least.
        bytes: usize,
        /// What it is filled up with.
        padding: char,
    },
    /// Deep inside of objects.
    NestedJson {
        /// How deep.
        depth: usize,
        /// The key of each.
        key: String,
    },
    /// Late.
    ResponseDelay {
        /// How late, in nanoseconds.
        delay_ns: u64,
    },
}

/// What a server makes of a client that no longer wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnCancel {
    /// It lets the answer go.
    #[default]
    Stop,
    /// It answers anyway.
    Ignore,
}

/// Something a server does besides answering.
#[derive(Debug)]
pub struct SideEffect {
    /// When.
    pub trigger: EffectTrigger,
    /// What.
    pub effect: Effect,
}

/// When a side effect happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EffectTrigger {
    /// With each request that the behaviour is for.
    #[default]
    OnRequest,
    /// When a client has come.
    OnConnect,
    /// When a client subscribes to a resource.
    OnSubscribe,
    /// When a client no longer does.
    OnUnsubscribe,
    /// All the time.
    Continuous,
}

/// What a server does besides answering.
#[derive(Debug)]
pub enum Effect {
    /// Many notifications for a while.
    NotificationFlood {
        /// How many a second.
        per_second: u32,
        /// How long, in nanoseconds.
        duration_ns: u64,
        /// The method.
        method: String,
        /// The params.
        params: Option<Form>,
    },
    /// Many notifications in one array.
    BatchAmplify {
        /// How many.
        count: usize,
        /// The method.
        method: String,
        /// The params.
        params: Option<Form>,
    },
    /// More bytes than a pipe holds.
    PipeDeadlock {
        /// How many.
        bytes: usize,
    },
    /// An end of the connection.
    CloseConnection {
        /// Whether what was said still goes out.
        graceful: bool,
        /// How long it waits before, in nanoseconds.
        delay_ns: u64,
    },
    /// Several requests with one id.
    DuplicateRequestIds {
        /// How many.
        count: usize,
        /// The id, as JSON.
        id: String,
        /// The method.
        method: String,
        /// The params.
        params: Option<Form>,
    },
}
