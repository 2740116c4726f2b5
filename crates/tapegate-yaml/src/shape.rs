//! The tables of a language, and what they are good for.
//!
//! They are the one truth about which keys there are and what they take: a text is checked
//! against them, the JSON Schema is written from them, and so is the reference.

mod check;
mod near;
/// The tables as a page for people.
pub mod reference;
/// The tables as JSON Schema.
pub mod schema;

pub use check::{Strays, check, takes};
pub use near::{near, near_within};

/// What may stand somewhere.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Anything.
    Any,
    /// Any map.
    Object,
    /// Text.
    Text,
    /// Text that is not empty.
    Name,
    /// Yes or no.
    Bool,
    /// A whole number between these two.
    Whole(u64, u64),
    /// A number.
    Number,
    /// A time: `250ms`, `5s`, `2m`, `1h`.
    Duration,
    /// An amount of bytes: a number, or `64kb`, `10mb`.
    Bytes,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A word that a function checks.
    Word(&'static Word),
    /// A list of these.
    List(&'static Shape),
    /// A map from any key to these.
    MapOf(&'static Shape),
    /// A map with these keys.
    Table(&'static Table),
    /// One of these, told apart by what kind of node it is.
    Either(&'static [Shape]),
    /// The same, but whoever reads it also checks it.
    Elsewhere(&'static Shape),
}

/// A word that takes more than a list of words to check.
#[derive(Debug)]
pub struct Word {
    /// What it is, in words for people: "an event, such as `tools/call`".
    pub name: &'static str,
    /// Whether a number without quotes is checked as well; else it is told to be no text.
    pub numbers: bool,
    /// Why a text is none, if it is none.
    pub check: fn(&str) -> Result<(), String>,
    /// The pattern of all such words, for JSON Schema; empty if there is none.
    pub pattern: fn() -> String,
}

/// A map with keys that mean something.
#[derive(Debug)]
pub struct Table {
    /// What it goes by in the schema.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its keys, in groups that tables may share.
    pub groups: &'static [&'static [Entry]],
    /// What becomes of other keys.
    pub rest: Rest,
}

/// What becomes of keys that a table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// They are errors.
    Refuse,
    /// They are taken as they are.
    Take,
    /// They are sent as they are: the map is one of MCP. Its keys may also be there with nothing
    /// under them, as some servers have it, unless they must be there.
    Pass,
}

/// A key and what it takes.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The key.
    pub name: &'static str,
    /// How else it may be spelled.
    pub aliases: &'static [&'static str],
    /// What it takes.
    pub shape: Shape,
    /// Whether it must be there.
    pub required: bool,
    /// Whether it is ours, and not of those whose language this was first.
    pub ours: bool,
    /// The kinds of the map, by its `type`, for which it means something; none for all.
    pub only: &'static [&'static str],
    /// What it means.
    pub about: &'static str,
}

impl Entry {
    /// A key that may be left out.
    pub const fn new(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, aliases: &[], shape, required: false, ours: false, only: &[], about }
    }

    /// The same, but it must be there.
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// The same, but ours.
    pub const fn ours(self) -> Self {
        Self { ours: true, ..self }
    }

    /// The same, with other spellings.
    pub const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The same, for maps of these kinds.
    pub const fn only(self, only: &'static [&'static str]) -> Self {
        Self { only, ..self }
    }

    /// Whether it is spelled so.
    pub fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

impl Table {
    /// Its keys.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The key that is spelled so.
    pub fn entry(&self, name: &str) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.is(name))
    }
}
