//! What an engine tells whoever watches it.

/// What happens, for logs and for whoever judges the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note<'a> {
    /// The client has said something: one line.
    Said {
        /// The line.
        bytes: &'a [u8],
        /// The phase it was said in.
        phase: &'a str,
    },
    /// The client has said something over the limit, which nobody has read.
    Unread,
    /// Another phase has begun.
    Phase {
        /// The one that is over.
        from: &'a str,
        /// The one that has begun.
        to: &'a str,
        /// What led there.
        why: &'a str,
    },
    /// Something for people.
    Log {
        /// How bad it is.
        level: crate::model::LogLevel,
        /// In words.
        words: &'a str,
    },
    /// A side effect has begun.
    Effect {
        /// What it is called.
        name: &'a str,
        /// Why it was left out, if it was.
        left_out: Option<&'a str>,
    },
    /// The client was asked something.
    Asked {
        /// Under this id; by an answer that wants more, under this name, which is a string in JSON too.
        id: &'a [u8],
        /// By this method.
        method: &'a str,
    },
}
