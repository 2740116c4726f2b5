//! Lists that are requested again.
//!
//! A client that is notified of a changed list requests it again at some point. So only the first
//! request has a position in the order of a session; later ones may come at any time.

use std::collections::HashMap;

use super::run::Bits;
use crate::signature::Signature;
use crate::tape::index::{Index, NONE};

/// The methods that request lists.
pub(super) const LISTS: [&str; 4] =
    ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];

/// The lists of a tape that are requested again.
#[derive(Debug, Default)]
pub(super) struct Relists {
    /// The subject hashes of list requests.
    likes: [u32; LISTS.len()],
    /// The first request of a session for a list, by session and subject hash.
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

    /// Whether a request is for a list, for the first time or again.
    pub(super) fn is_list(&self, signature: Signature) -> bool {
        self.likes.contains(&signature.like)
    }

    /// Whether a request is for a list again.
    pub(super) fn has(&self, ask: u32) -> bool {
        self.again.has(ask)
    }

    /// The first request of a session with the subject of `signature`, if that is a list.
    pub(super) fn first(&self, session: u32, signature: Signature) -> Option<u32> {
        self.first.get(&(session, signature.like)).copied()
    }
}
