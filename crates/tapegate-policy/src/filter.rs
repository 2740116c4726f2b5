//! Removes hidden items from list replies.
//!
//! Only hidden items are cut; every other byte of the reply stays. A list is recognised by its
//! content, not by its request, since a server may reply with any id. A filtered reply is valid for
//! this client only and for an unknown time, so its `ttlMs` becomes 0 and a `cacheScope` of
//! `public` becomes `private`. Neither is removed: clients of 2026-07-28 reject a list without
//! them.

mod list;

use tapegate_core::json::{JsonEdits, place_of};

use crate::gated_requests::OfferKind;
pub(crate) use list::members;
pub use list::{ListItem, ResultList, lists};

/// Decides which items of a list are visible.
pub trait ListVisibility {
    /// Whether any item of this kind may be hidden.
    fn may_hide(&self, offer: OfferKind) -> bool;
    /// Whether this item is visible.
    fn is_visible(&self, offer: OfferKind, name: &str) -> bool;
}

/// The result of filtering a reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilteredReply {
    /// The reply without the hidden items, if there were any.
    pub text: Option<Vec<u8>>,
    /// Each list in it.
    pub lists: Vec<FilteredList>,
}

/// The result of filtering one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredList {
    /// The kind of item listed.
    pub offer: OfferKind,
    /// The number of visible items.
    pub kept: usize,
    /// The names of the hidden items; empty for an item without a name.
    pub hidden: Vec<String>,
}

impl FilteredReply {
    /// The number of hidden items in all lists.
    pub fn hidden_count(&self) -> usize {
        self.lists.iter().map(|list| list.hidden.len()).sum()
    }
}

/// Removes the hidden items from a reply. `result` must be a slice of `message`.
pub fn filter(message: &[u8], result: &[u8], sight: &dyn ListVisibility) -> FilteredReply {
    let members = list::members(result);
    let mut edits = JsonEdits::new(message);
    let mut filtered = FilteredReply::default();
    let mut changed = false;
    for list in lists(result) {
        let limited = sight.may_hide(list.offer);
        let mut shown = FilteredList { offer: list.offer, kept: 0, hidden: Vec::new() };
        let Some(items) = &list.items else {
            // Not an array, so clients may read anything into it: replace it with an empty list.
            if limited {
                changed = true;
                edits.replace(list.text, b"[]");
            }
            continue;
        };
        let keep: Vec<bool> =
            items.iter().map(|item| is_item_visible(sight, list.offer, item)).collect();
        for (item, kept) in items.iter().zip(&keep) {
            match kept {
                true => shown.kept += 1,
                false => shown.hidden.push(item.names.first().cloned().unwrap_or_default().into()),
            }
        }
        // A reply that hides nothing is forwarded byte for byte.
        changed |= !shown.hidden.is_empty();
        let texts: Vec<&[u8]> = items.iter().map(|item| item.text).collect();
        remove_parts(message, &texts, &keep, &mut edits);
        filtered.lists.push(shown);
    }
    if changed {
        for member in &members {
            if let Some(value) = member.uncacheable_value() {
                edits.replace(member.value, value);
            }
        }
        filtered.text = Some(edits.finish().into_owned());
    }
    filtered
}

/// Whether an item is visible under every name that some client may read from it.
fn is_item_visible(sight: &dyn ListVisibility, offer: OfferKind, item: &ListItem<'_>) -> bool {
    if !sight.may_hide(offer) {
        return true;
    }
    // An item without a name cannot be matched against a list, so it is hidden where anything may
    // be.
    item.named && item.names.iter().all(|name| sight.is_visible(offer, name))
}

/// Cuts the `parts` that are not kept, with one comma each. The parts follow each other in
/// `message`, separated by commas.
fn remove_parts(message: &[u8], parts: &[&[u8]], keep: &[bool], edits: &mut JsonEdits<'_>) {
    let places: Vec<_> = parts.iter().filter_map(|part| place_of(part, message)).collect();
    let mut at = 0;
    while at < places.len() {
        let run = keep[at..].iter().take_while(|kept| !**kept).count();
        let after = at + run;
        if run > 0 {
            let range = match (places.get(after), at.checked_sub(1)) {
                // The comma after the run goes with it; at the end of the list, the one before it.
                (Some(next), _) => places[at].start..next.start,
                (None, Some(before)) => places[before].end..places[after - 1].end,
                (None, None) => places[at].start..places[after - 1].end,
            };
            edits.replace(&message[range], b"");
        }
        at = after + 1;
    }
}

/// The cursor of the next page of a list: any value of `nextCursor` other than `null`.
pub(crate) fn next_cursor(result: &[u8]) -> Option<&[u8]> {
    tapegate_core::json::member(result, "nextCursor").filter(|cursor| *cursor != b"null")
}

#[cfg(test)]
mod tests;
