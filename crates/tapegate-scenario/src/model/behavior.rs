//! How a server behaves apart from the content of its answers.

use tapegate_yaml::word_choices;

use crate::template::JsonTemplate;

/// How a server behaves.
#[derive(Debug, Default)]
pub struct Behavior {
    /// How its answers are delivered.
    pub delivery: Delivery,
    /// What it does besides answering.
    pub side_effects: Vec<SideEffect>,
    /// How it reacts to a cancelled request.
    pub on_cancel: OnCancel,
}

/// How an answer is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Delivery {
    /// Normally.
    #[default]
    Normal,
    /// A few bytes at a time.
    SlowLoris {
        /// The pause between two pieces, in nanoseconds.
        delay_ns: u64,
        /// The size of a piece in bytes.
        chunk_bytes: usize,
    },
    /// Without a line end, and padded.
    UnboundedLine {
        /// The minimum length in bytes.
        bytes: usize,
        /// The padding character.
        padding: char,
    },
    /// Nested in many objects.
    NestedJson {
        depth: usize,
        /// The key of each object.
        key: String,
    },
    /// Delayed.
    ResponseDelay {
        /// The delay in nanoseconds.
        delay_ns: u64,
    },
}

word_choices! {
    /// How a server reacts to a cancelled request.
    #[derive(Default)]
    pub enum OnCancel {
        /// It drops the answer.
        #[default]
        Stop = "stop",
        /// It answers anyway.
        Ignore = "ignore",
    }
}

/// Something a server does besides answering.
#[derive(Debug)]
pub struct SideEffect {
    /// When it happens.
    pub trigger: EffectTrigger,
    /// What happens.
    pub effect: ServerEffect,
}

word_choices! {
    /// When a side effect happens.
    #[derive(Default)]
    pub enum EffectTrigger {
        /// With each request that the behaviour applies to.
        #[default]
        OnRequest = "on_request",
        /// When a client has connected.
        OnConnect = "on_connect",
        /// When a client subscribes to a resource.
        OnSubscribe = "on_subscribe",
        /// When a client unsubscribes.
        OnUnsubscribe = "on_unsubscribe",
        /// Continuously, once a client has connected.
        Continuous = "continuous",
    }
}

/// What a server does besides answering.
#[derive(Debug)]
pub enum ServerEffect {
    /// Many notifications for some time.
    NotificationFlood {
        /// How many per second.
        per_second: u32,
        /// For how long, in nanoseconds.
        duration_ns: u64,
        method: String,
        params: Option<JsonTemplate>,
    },
    /// Many notifications in one array.
    BatchAmplify {
        /// How many.
        count: usize,
        method: String,
        params: Option<JsonTemplate>,
    },
    /// More bytes than a pipe buffers.
    PipeDeadlock {
        /// How many.
        bytes: usize,
    },
    /// Closing the connection.
    CloseConnection {
        /// Whether queued messages are sent first.
        graceful: bool,
        /// The delay in nanoseconds.
        delay_ns: u64,
    },
    /// Several requests with the same id.
    DuplicateRequestIds {
        /// How many.
        count: usize,
        /// The id, as JSON.
        id: String,
        method: String,
        params: Option<JsonTemplate>,
    },
}
