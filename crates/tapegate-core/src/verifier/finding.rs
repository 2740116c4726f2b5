//! What a verification reports.

use crate::json::JsonLocation;

use super::minted_values::MintedKind;

/// A change in the server's behaviour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyFinding {
    /// What it is about.
    pub about: MessageRef,
    /// What has changed.
    pub discrepancy: Discrepancy,
    /// How often exactly this was found.
    pub times: u32,
    /// Whether an earlier message was not sent, which may be the reason.
    pub after_skipped: bool,
}

/// The message that a finding is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageRef {
    /// The session of the tape, from 1.
    pub session: u32,
    /// The `seq` of the recorded message, or its line if it has none.
    pub number: Option<u32>,
    pub method: String,
    /// The name or uri in the request.
    pub name: Option<String>,
}

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discrepancy {
    /// An answer differs.
    Answer(RecordedChanges),
    /// The live answer is an error, the recorded one a result.
    Error {
        /// The recorded answer.
        recorded: Vec<u8>,
        /// The live one.
        live: Vec<u8>,
    },
    /// The live answer is a result, the recorded one an error.
    Result {
        /// The recorded answer.
        recorded: Vec<u8>,
        /// The live one.
        live: Vec<u8>,
    },
    /// There was no answer within the time limit.
    NoAnswer {
        /// How long the verifier waited.
        waited_ms: u64,
    },
    /// The answer was too large to be read.
    TooLarge {
        /// How large it was.
        bytes_total: u64,
        bytes_max: usize,
    },
    /// An answer arrived that matches no request.
    Stray {
        /// The answer.
        live: Vec<u8>,
    },
    /// The server describes itself differently.
    Server(RecordedChanges),
    /// The server's version differs.
    Version {
        /// The recorded version, as JSON.
        recorded: Vec<u8>,
        /// The live one.
        live: Vec<u8>,
    },
    /// An item on one of the server's lists differs.
    Item {
        list: ListKind,
        /// Its name or uri.
        name: String,
        /// How it changed.
        item_change: ItemChange,
    },
    /// A notification from the server differs.
    Notice(ItemChange),
    /// A notification arrived in a different order among those of its kind.
    Moved {
        /// The notification.
        live: Vec<u8>,
    },
    /// A request from the server to the client differs.
    Question(ItemChange),
    /// The server was gone, or was given up on, before everything was sent.
    Ended {
        /// Why.
        reason: String,
    },
}

/// How something changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemChange {
    /// It is new, with this text.
    Added(Vec<u8>),
    /// It is gone; this was its text.
    Removed(Vec<u8>),
    /// It is different.
    Changed(RecordedChanges),
}

/// The differences of one thing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedChanges {
    /// The first differences.
    pub listed: Vec<RecordedChange>,
    /// How many more there are.
    pub more: usize,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    /// Its location, relative to the message or to the item on a list.
    pub location: JsonLocation,
    /// The recorded value, as JSON; `None` if it is new.
    pub recorded: Option<Vec<u8>>,
    /// The live value, as JSON; `None` if it is gone.
    pub live: Option<Vec<u8>>,
}

/// The lists that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
}

/// A message from the client that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedMessage {
    /// Which one.
    pub about: MessageRef,
    /// Why.
    pub skip_reason: SkipReason,
}

/// Why a message from the client was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// It may change something, and the user did not allow that.
    NotAskedFor,
    /// It only reads, but the user allowed only lists.
    OnlyListed,
    /// A server may read it differently than we do, and the user did not allow all calls.
    Doubtful,
    /// The live server does not declare the tool read-only.
    NotReadOnlyLive,
    /// The tape does not declare the tool read-only.
    NotReadOnlyOnTape,
    /// It contains secrets that were masked on the tape.
    Masked,
    /// A gate withheld it from the server when it was recorded.
    Refused,
    /// It contains a value that the live server has not issued.
    NotMinted(MintedKind),
    /// The server was gone, or was given up on.
    ServerGone,
}

/// Something worth knowing that is not a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyNote {
    /// What it is about.
    pub about: MessageRef,
    /// The kind of note.
    pub kind: VerifyNoteKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyNoteKind {
    /// A list has the same items in another order.
    Reordered(ListKind),
    /// A notification arrived in a different order among those that belong to no request.
    Moved,
    /// A masked secret was sent as its placeholder.
    PlaceholderSent,
    /// The server wrote something that is not a message.
    NoMessage {
        /// The start of its text.
        start: String,
    },
    /// The server made a request that belongs to a recorded call that was not sent, so it got no
    /// answer.
    Withheld,
    /// The client's `initialize` is not on the tape, so a synthetic one was sent.
    Introduced,
    /// The tape has no answer of the server to this request, so a live one was not compared.
    NotCompared,
    /// The live list of tools was not available, so no tool is known to be read-only.
    ToolsUnknown,
    /// A live list has more pages that were not read.
    Unfinished {
        list: ListKind,
        /// How many pages were read.
        pages: usize,
    },
}

impl Discrepancy {
    /// Whether a tool has changed, so that it may no longer be what a user agreed to.
    pub fn is_tool_drift(&self) -> bool {
        matches!(self, Self::Item { list: ListKind::Tools, .. })
    }

    /// The size of the messages it contains.
    pub(super) fn bytes(&self) -> usize {
        let of = |changes: &RecordedChanges| changes.listed.iter().map(RecordedChange::bytes).sum();
        match self {
            Self::Answer(changes) | Self::Server(changes) => of(changes),
            Self::Error { recorded, live }
            | Self::Result { recorded, live }
            | Self::Version { recorded, live } => recorded.len() + live.len(),
            Self::Stray { live } | Self::Moved { live } => live.len(),
            Self::Item { item_change, .. }
            | Self::Notice(item_change)
            | Self::Question(item_change) => match item_change {
                ItemChange::Added(text) | ItemChange::Removed(text) => text.len(),
                ItemChange::Changed(changes) => of(changes),
            },
            Self::NoAnswer { .. } | Self::TooLarge { .. } | Self::Ended { .. } => 0,
        }
    }

    /// Whether the server can cause any number of findings of this kind unprompted.
    pub(super) fn is_unsolicited(&self) -> bool {
        matches!(
            self,
            Self::Stray { .. } | Self::Moved { .. } | Self::Notice(_) | Self::Question(_)
        )
    }

    pub(super) fn is_of_server(&self) -> bool {
        matches!(self, Self::Item { .. } | Self::Server(_) | Self::Version { .. })
    }
}

impl RecordedChange {
    fn bytes(&self) -> usize {
        [&self.recorded, &self.live].into_iter().flatten().map(Vec::len).sum()
    }
}

impl RecordedChanges {
    /// Whether there are no differences.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.more == 0
    }
}

impl ListKind {
    /// The list that a request with this method asks for.
    pub fn of_method(method: &str) -> Option<Self> {
        Some(match method {
            "tools/list" => Self::Tools,
            "resources/list" => Self::Resources,
            "resources/templates/list" => Self::Templates,
            "prompts/list" => Self::Prompts,
            _ => return None,
        })
    }

    /// The member of a result that holds the items.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The member that identifies an item.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}
