//! What a verification has to tell.

use crate::json::Place;

use super::minted::Token;

/// Something that has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub about: About,
    /// What has changed.
    pub what: What,
    /// How often exactly this was found.
    pub times: u32,
    /// Whether something before it was not sent, which may be why.
    pub after_skipped: bool,
}

/// Which message something is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The session of the tape, from 1.
    pub session: u32,
    /// The `seq` of the recorded message, or its line where there is none.
    pub number: Option<u32>,
    /// The method.
    pub method: String,
    /// The name or uri that was asked for.
    pub name: Option<String>,
}

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// An answer is another one.
    Answer(Changes),
    /// There is an error where there was a result.
    Error {
        /// The recorded answer.
        recorded: Vec<u8>,
        /// The live one.
        live: Vec<u8>,
    },
    /// There is a result where there was an error.
    Result {
        /// The recorded answer.
        recorded: Vec<u8>,
        /// The live one.
        live: Vec<u8>,
    },
    /// There was no answer in time.
    NoAnswer {
        /// How long was waited.
        waited_ms: u64,
    },
    /// The answer was too large to be read.
    TooLarge {
        /// How large it was.
        bytes_total: u64,
        /// The limit.
        bytes_max: usize,
    },
    /// There was an answer to nothing that was asked.
    Stray {
        /// The answer.
        live: Vec<u8>,
    },
    /// The server says something else about itself.
    Server(Changes),
    /// The server has another version.
    Version {
        /// The recorded version, as JSON.
        recorded: Vec<u8>,
        /// The live one.
        live: Vec<u8>,
    },
    /// Something on a list of what the server has.
    Item {
        /// The list.
        list: List,
        /// The name, or uri, that it goes by.
        name: String,
        /// What became of it.
        became: Became,
    },
    /// Something that the server says of its own accord.
    Notice(Became),
    /// A notification that comes in another order among those of its sort.
    Moved {
        /// The notification.
        live: Vec<u8>,
    },
    /// Something that the server asks the client.
    Question(Became),
    /// The server was gone, or was given up, before everything was said.
    Ended {
        /// Why.
        why: String,
    },
}

/// What became of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Became {
    /// It is new; its text.
    Added(Vec<u8>),
    /// It is no longer there; its text.
    Removed(Vec<u8>),
    /// It is different.
    Changed(Changes),
}

/// What is different about something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The first differences.
    pub listed: Vec<Change>,
    /// How many more there are.
    pub more: usize,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where it is: from the message on, or from the item on a list.
    pub place: Place,
    /// What was recorded, as JSON; nothing if it is new.
    pub recorded: Option<Vec<u8>>,
    /// What is said live, as JSON; nothing if it is gone.
    pub live: Option<Vec<u8>>,
}

/// The lists of what a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum List {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
}

/// A client's message that was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Which one.
    pub about: About,
    /// Why.
    pub why: Why,
}

/// Why a client's message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It may change something, and that was not asked for.
    NotAskedFor,
    /// It only reads, and not even that was asked for.
    OnlyListed,
    /// A server may read it otherwise than we do, and not everything was asked for.
    Doubtful,
    /// The live server does not say that the tool only reads.
    NotReadOnlyLive,
    /// The tape does not say that the tool only reads.
    NotReadOnlyOnTape,
    /// It holds secrets that were masked on the tape.
    Masked,
    /// A gate kept it from the server when it was recorded.
    Refused,
    /// It hands back what the live server has not minted.
    NotMinted(Token),
    /// The server was gone, or was given up.
    ServerGone,
}

/// Something worth knowing that is no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub about: About,
    /// What is worth knowing.
    pub sort: NoteSort,
}

/// What is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoteSort {
    /// A list has the same items in another order.
    Reordered(List),
    /// A notification came in another order among those that belong to no request.
    Moved,
    /// A masked secret was sent as its placeholder.
    PlaceholderSent,
    /// The server wrote something that is no message.
    NoMessage {
        /// The start of it.
        start: String,
    },
    /// The server asked what it asked on the tape in a call that was not made, and got no answer.
    Withheld,
    /// The client's introduction is not on the tape, and was made up.
    Introduced,
    /// The live list of tools could not be had, so no tool is known to read only.
    ToolsUnknown,
    /// A live list goes on, but was not read any further.
    Unfinished {
        /// The list.
        list: List,
        /// How many pages were read.
        pages: usize,
    },
}

impl What {
    /// Whether a tool is another one than it was: what a user agreed to may not be what is there.
    pub fn is_tool_drift(&self) -> bool {
        matches!(self, Self::Item { list: List::Tools, .. })
    }

    /// How many bytes of messages it holds.
    pub(super) fn bytes(&self) -> usize {
        let of = |changes: &Changes| changes.listed.iter().map(Change::bytes).sum();
        match self {
            Self::Answer(changes) | Self::Server(changes) => of(changes),
            Self::Error { recorded, live }
            | Self::Result { recorded, live }
            | Self::Version { recorded, live } => recorded.len() + live.len(),
            Self::Stray { live } | Self::Moved { live } => live.len(),
            Self::Item { became, .. } | Self::Notice(became) | Self::Question(became) => {
                match became {
                    Became::Added(text) | Became::Removed(text) => text.len(),
                    Became::Changed(changes) => of(changes),
                }
            }
            Self::NoAnswer { .. } | Self::TooLarge { .. } | Self::Ended { .. } => 0,
        }
    }

    /// Whether it is something that a server may say as often as it likes.
    pub(super) fn is_unasked(&self) -> bool {
        matches!(
            self,
            Self::Stray { .. } | Self::Moved { .. } | Self::Notice(_) | Self::Question(_)
        )
    }

    pub(super) fn is_of_server(&self) -> bool {
        matches!(self, Self::Item { .. } | Self::Server(_) | Self::Version { .. })
    }
}

impl Change {
    fn bytes(&self) -> usize {
        [&self.recorded, &self.live].into_iter().flatten().map(Vec::len).sum()
    }
}

impl Changes {
    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.more == 0
    }
}

impl List {
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

    /// The member of an item that it goes by.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}
