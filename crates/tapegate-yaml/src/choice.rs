//! Enums whose values are words of a document.
//!
//! A word is stated once, next to its value: the tables list the words of an enum, and the code
//! that reads a document turns a word into its value.

/// An enum whose values are words of a document; `word_choices!` defines one.
pub trait WordChoice: Copy + 'static {
    /// The words, for the tables.
    const WORDS: &'static [&'static str];
    /// The words and the values that they stand for.
    const CHOICES: &'static [(&'static str, Self)];

    /// The value that a word stands for.
    fn from_word(word: &str) -> Option<Self> {
        Self::CHOICES.iter().find(|choice| choice.0 == word).map(|choice| choice.1)
    }
}

/// Defines an enum, each value with its word: `Cycle = "cycle"`.
#[macro_export]
macro_rules! word_choices {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident { $($(#[$note:meta])* $value:ident = $word:literal,)* }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $visibility enum $name { $($(#[$note])* $value,)* }

        impl $crate::choice::WordChoice for $name {
            const WORDS: &'static [&'static str] = &[$($word),*];
            const CHOICES: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),*];
        }
    };
}
