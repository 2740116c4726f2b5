//! What a grant lets differ from the call that was approved.

/// An argument that may have other values than in the approved call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantPattern {
    /// The name of the argument.
    pub argument: String,
    /// Which values it may have.
    pub range: ArgumentRange,
}

/// The values that an argument may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentRange {
    /// A path in this folder.
    Under(String),
    /// A text that this glob matches.
    Matching(String),
}

impl ArgumentRange {
    /// The word of the range, and its text.
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Under(folder) => ("under", folder),
            Self::Matching(glob) => ("matching", glob),
        }
    }

    /// The range with this word.
    pub fn of(word: &str, text: &str) -> Option<Self> {
        match word {
            "under" => Some(Self::Under(text.to_owned())),
            "matching" => Some(Self::Matching(text.to_owned())),
            _ => None,
        }
    }
}
