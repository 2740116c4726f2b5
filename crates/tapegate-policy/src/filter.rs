//! Takes out of list replies what may not be seen.
//!
//! Only what is hidden is cut out; every other byte of the reply stays. A reply is taken for a list
//! by what is in it, not by what was asked: a server may answer under an id that is ours to the
//! client only. A reply from which something was cut is nobody else's and holds for nobody knows how
//! long: its `ttlMs` becomes 0 and a `cacheScope` of `public` becomes `private`. Both stay, for
//! clients of 2026-07-28 reject a list without them.

mod list;

use tapegate_core::json::{Edits, place_of};

use crate::gated::Offer;
pub(crate) use list::members;
pub use list::{Item, List, lists};

/// What may be seen.
pub trait Sight {
    /// Whether anything of this kind may be hidden.
    fn limited(&self, offer: Offer) -> bool;
    /// Whether this may be seen.
    fn shows(&self, offer: Offer, name: &str) -> bool;
}

/// What became of the lists in a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filtered {
    /// The reply without what is hidden, if anything is.
    pub text: Option<Vec<u8>>,
    /// Each list in it.
    pub lists: Vec<Shown>,
}

/// What became of one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// What is listed.
    pub offer: Offer,
    /// How many stay.
    pub kept: usize,
    /// The names of those that were hidden; of one without a name, nothing.
    pub hidden: Vec<String>,
}

impl Filtered {
    /// How many were hidden.
    pub fn hidden(&self) -> usize {
        self.lists.iter().map(|list| list.hidden.len()).sum()
    }
}

/// Takes out of a reply what may not be seen. `result` must be a slice of `message`.
pub fn filter(message: &[u8], result: &[u8], sight: &dyn Sight) -> Filtered {
    let members = list::members(result);
    let mut edits = Edits::new(message);
    let mut filtered = Filtered::default();
    let mut changed = false;
    for list in lists(result) {
        let limited = sight.limited(list.offer);
        let mut shown = Shown { offer: list.offer, kept: 0, hidden: Vec::new() };
        let Some(items) = &list.items else {
            // What is no array is no list, and nobody knows what a reader would find in it.
            if limited {
                changed = true;
                edits.replace(list.text, b"[]");
            }
            continue;
        };
        let keep: Vec<bool> = items.iter().map(|item| keeps(sight, list.offer, item)).collect();
        for (item, kept) in items.iter().zip(&keep) {
            match kept {
                true => shown.kept += 1,
                false => shown.hidden.push(item.names.first().cloned().unwrap_or_default().into()),
            }
        }
        changed |= !shown.hidden.is_empty();
        let texts: Vec<&[u8]> = items.iter().map(|item| item.text).collect();
        cut(message, &texts, &keep, &mut edits);
        filtered.lists.push(shown);
    }
    if changed {
        for member in &members {
            if let Some(value) = member.kept_by_nobody() {
                edits.replace(member.value, value);
            }
        }
        filtered.text = Some(edits.finish().into_owned());
    }
    filtered
}

/// Whether an item may be seen under every name that somebody may read it by.
fn keeps(sight: &dyn Sight, offer: Offer, item: &Item<'_>) -> bool {
    if !sight.limited(offer) {
        return true;
    }
    item.named && item.names.iter().all(|name| sight.shows(offer, name))
}

/// Cuts out those of `parts`, which follow each other in `message` with commas between them, that
/// are not kept; and as many commas.
fn cut(message: &[u8], parts: &[&[u8]], keep: &[bool], edits: &mut Edits<'_>) {
    let places: Vec<_> = parts.iter().filter_map(|part| place_of(part, message)).collect();
    let mut at = 0;
    while at < places.len() {
        let run = keep[at..].iter().take_while(|kept| !**kept).count();
        let after = at + run;
        if run > 0 {
            let range = match (places.get(after), at.checked_sub(1)) {
                (Some(next), _) => places[at].start..next.start,
                (None, Some(before)) => places[before].end..places[after - 1].end,
                (None, None) => places[at].start..places[after - 1].end,
            };
            edits.replace(&message[range], b"");
        }
        at = after + 1;
    }
}

/// Where the next page of a list begins, if one follows: whatever is there and not `null`.
pub(crate) fn next_cursor(result: &[u8]) -> Option<&[u8]> {
    tapegate_core::json::member(result, "nextCursor").filter(|cursor| *cursor != b"null")
}

#[cfg(test)]
mod tests;
