//! Lists that are requested again.
//!
//! A client that is notified of a changed list requests it again at some point. So only the first
//! request has a position in the order of a session; later ones may come at any time.

use std::collections::HashMap;

use super::tape_run::BitSet;
use crate::signature::Signature;
use crate::tape::index::{Index, NONE};

/// The methods that request lists.
pub(super) const LISTS: [&str; 4] =
    ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];

/// The lists of a tape that are requested again.
#[derive(Debug, Default)]
pub(super) struct RepeatedLists {
    /// The subject hashes of list requests.
    likes: [u32; LISTS.len()],
    /// The first request of a session for a list, by session and subject hash.
    first: HashMap<(u32, u32), u32>,
    again: BitSet,
}

impl RepeatedLists {
    /// Finds them by the signatures of [`LISTS`].
    pub(super) fn of(index: &Index, lists: [Signature; LISTS.len()]) -> Self {
        let mut found = Self { likes: lists.map(|list| list.like), ..Self::default() };
        for signature in lists {
            let mut request_number = index.first_with_subject(signature).unwrap_or(NONE);
            while request_number != NONE {
                let session = index.entry(index.request(request_number).entry_number).session;
                let first = *found.first.entry((session, signature.like)).or_insert(request_number);
                if first != request_number {
                    found.again.set(request_number);
                }
                request_number = index.next_with_subject(request_number);
            }
        }
        found
    }

    /// Whether a request is for a list, for the first time or again.
    pub(super) fn is_list(&self, signature: Signature) -> bool {
        self.likes.contains(&signature.like)
    }

    /// Whether a request is for a list again.
    pub(super) fn contains(&self, request_number: u32) -> bool {
        self.again.contains(request_number)
    }

    /// The first request of a session with the subject of `signature`, if that is a list.
    pub(super) fn first(&self, session: u32, signature: Signature) -> Option<u32> {
        self.first.get(&(session, signature.like)).copied()
    }
}
