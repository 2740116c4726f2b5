//! The tables of a language, and the checks and documents made from them.
//!
//! They are the single source of the keys and their values: texts are checked against them, and the
//! JSON Schema and the reference are generated from them.

mod check;
/// Writes the tables as a reference page.
pub mod reference;
/// Writes the tables as a JSON Schema.
pub mod schema;
mod suggestion;

pub use check::{StrayKeys, accepts, check};
pub use suggestion::{nearest_name, nearest_name_within};

/// The values that are valid in a place.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Anything.
    Any,
    /// Any map.
    Object,
    Text,
    /// Text that is not empty.
    Name,
    /// A boolean.
    Bool,
    /// A whole number in this inclusive range.
    Whole(u64, u64),
    Number,
    /// A duration: `250ms`, `5s`, `2m`, `1h`.
    Duration,
    /// A number of bytes: a number, or `64kb`, `10mb`.
    Bytes,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A word that is checked by a function.
    Word(&'static CheckedWord),
    /// A list of these.
    List(&'static Shape),
    /// A map from any key to these.
    MapOf(&'static Shape),
    /// A map with these keys.
    Table(&'static Table),
    /// One of these, distinguished by the kind of node.
    Either(&'static [Shape]),
    /// The same, but its contents are checked by the code that reads it.
    Elsewhere(&'static Shape),
}

/// A word that is checked by a function.
#[derive(Debug)]
pub struct CheckedWord {
    /// The name for messages: "an event, such as `tools/call`".
    pub name: &'static str,
    /// Whether unquoted numbers are checked too; otherwise they are reported as not text.
    pub numbers: bool,
    /// Checks a text; on failure, the error message.
    pub check: fn(&str) -> Result<(), String>,
    /// A pattern that matches all such words, for the JSON Schema; empty if there is none.
    pub pattern: fn() -> String,
}

/// A map with known keys.
#[derive(Debug)]
pub struct Table {
    /// Its name in the schema.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Its keys, in groups that tables may share.
    pub groups: &'static [&'static [TableEntry]],
    /// How other keys are handled.
    pub rest: UnknownKeys,
}

/// How keys are handled that a table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownKeys {
    /// They are errors.
    Refuse,
    /// They are accepted unchecked.
    Take,
    /// They are sent unchanged, because the map is an MCP object. Keys of the table that are not
    /// required may be null, as some servers send them.
    Pass,
}

/// A key and its value.
#[derive(Debug, Clone, Copy)]
pub struct TableEntry {
    /// The key.
    pub name: &'static str,
    /// Alternative spellings.
    pub aliases: &'static [&'static str],
    /// The values it accepts.
    pub shape: Shape,
    /// Whether it is required.
    pub required: bool,
    /// Whether it is an extension of ours, not part of the original language.
    pub ours: bool,
    /// The values of the map's `type` for which it is valid; empty for all.
    pub only: &'static [&'static str],
    /// Its description.
    pub about: &'static str,
}

impl TableEntry {
    /// Creates an optional key.
    pub const fn new(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self { name, aliases: &[], shape, required: false, ours: false, only: &[], about }
    }

    /// Makes it required.
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Marks it as an extension of ours.
    pub const fn own_extension(self) -> Self {
        Self { ours: true, ..self }
    }

    /// Adds alternative spellings.
    pub const fn with_aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Limits it to maps of these types.
    pub const fn only_for(self, only: &'static [&'static str]) -> Self {
        Self { only, ..self }
    }

    /// Whether `name` is one of its spellings.
    pub fn has_name(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

impl Table {
    /// Its keys.
    pub fn entries(&self) -> impl Iterator<Item = &'static TableEntry> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The key with this spelling.
    pub fn entry(&self, name: &str) -> Option<&'static TableEntry> {
        self.entries().find(|entry| entry.has_name(name))
    }
}

/// The entries of a table, one key each: `"key" | "alias": SHAPE, required => "Description.";`. The
/// words between the shape and the arrow are methods of [`TableEntry`].
#[macro_export]
macro_rules! table_entries {
    ($(
        $name:literal $(| $alias:literal)*: $shape:expr
            $(, $method:ident $(($argument:expr))?)* => $about:expr;
    )*) => {
        &[$(
            $crate::shape::TableEntry::new($name, $shape, $about)
                $(.$method($($argument)?))*
                .with_aliases(&[$($alias),*])
        ),*]
    };
}

/// Defines a [`Table`]: the name of the static, its name in the schema, how it handles unknown keys
/// ([`UnknownKeys`]), its description, its own entries, and the groups that it shares with others:
/// `..GROUP;`.
#[macro_export]
macro_rules! table {
    (
        $table:ident $title:expr, $rest:ident, $about:expr;
        $($name:literal $(| $alias:literal)*: $shape:expr
            $(, $method:ident $(($argument:expr))?)* => $text:expr;)*
        $(..$group:expr;)*
    ) => {
        #[doc = $about]
        pub static $table: $crate::shape::Table = $crate::shape::Table {
            name: $title,
            about: $about,
            rest: $crate::shape::UnknownKeys::$rest,
            groups: &[
                $crate::table_entries! {
                    $($name $(| $alias)*: $shape $(, $method $(($argument))?)* => $text;)*
                },
                $($group),*
            ],
        };
    };
}
