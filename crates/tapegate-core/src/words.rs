//! Enums whose variants are words in logs and messages.

/// Defines an enum from a table of words. Programs parse these words: new ones may be added, but
/// existing ones never change.
macro_rules! word_enum {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $name:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$doc])* $name,)*
        }

        impl $type {
            /// All of them, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
            /// Their words, in the same order.
            pub const WORDS: &[&str] = &[$($word,)*];

            /// The word in the log.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }

        impl crate::words::WordEnum for $type {
            const ALL: &[Self] = Self::ALL;

            fn as_str(self) -> &'static str {
                self.as_str()
            }
        }
    };
}
pub(crate) use word_enum;

/// An enum whose variants are words.
pub trait WordEnum: Copy + 'static {
    /// All variants.
    const ALL: &[Self];

    /// The word of a variant.
    fn as_str(self) -> &'static str;

    /// The variant with exactly this word.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|variant| variant.as_str() == word)
    }
}
