//! Lists that are asked for again.
//!
//! A client that hears that a list has changed asks for it again, when it comes to it. So only the
//! first time has a place in the order of a session; later ones come when they come.

use std::collections::HashMap;

use super::run::Bits;
use crate::signature::Signature;
use crate::tape::index::{Index, NONE};

/// What asks what a server has.
pub(super) const LISTS: [&str; 4] =
    ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];

/// The lists of a tape that are asked for again.
#[derive(Debug, Default)]
pub(super) struct Relists {
    /// What asks for lists, by what it is like.
    likes: [u32; LISTS.len()],
    /// The first time that a session asks for a list, by session and likeness.
    first: HashMap<(u32, u32), u32>,
    again: Bits,
}

impl Relists {
    /// Finds them by the signatures of [`LISTS`].
    pub(super) fn of(index: &Index, lists: [Signature; LISTS.len()]) -> Self {
        let mut found = Self { likes: lists.map(|list| list.like), ..Self::default() };
        for signature in lists {
            let mut ask = index.first_like(signature).unwrap_or(NONE);
            while ask != NONE {
                let session = index.slot(index.ask(ask).slot).session;
                let first = *found.first.entry((session, signature.like)).or_insert(ask);
                if first != ask {
                    found.again.set(ask);
                }
                ask = index.next_like(ask);
            }
        }
        found
    }

    /// Whether a request asks for a list, for the first time or again.
    pub(super) fn is_list(&self, signature: Signature) -> bool {
        self.likes.contains(&signature.like)
    }

    /// Whether a request asks for a list again.
    pub(super) fn has(&self, ask: u32) -> bool {
        self.again.has(ask)
    }

    /// The first time that a session asks for what `signature` asks for, if that is a list.
    pub(super) fn first(&self, session: u32, signature: Signature) -> Option<u32> {
        self.first.get(&(session, signature.like)).copied()
    }
}
