//! The lists that a server gave, joined from their pages, and how they changed.

use std::collections::HashMap;

use tapegate_core::json;

use super::tree;
use crate::model::ItemKind;

/// All lists of a tape, by kind.
#[derive(Debug, Default)]
pub(super) struct TapeListings {
    kinds: [KindListings; 4],
}

/// The lists of one kind.
#[derive(Debug, Default)]
pub(super) struct KindListings {
    /// Those that differ from the previous one, in order.
    pub(super) distinct: Vec<TapeListing>,
    /// How many requests for pages there were.
    page_request_count: u64,
    /// Lists with pages still missing, by session and cursor.
    open: HashMap<(u32, Vec<u8>), TapeListing>,
}

/// A list.
#[derive(Debug, Clone, Default)]
pub(super) struct TapeListing {
    /// The names and the definitions as they were sent.
    pub(super) items: Vec<(String, Vec<u8>)>,
    /// How many items the first page has, if it was not the only one.
    pub(super) page_items: Option<usize>,
    /// How many calls came before it.
    pub(super) calls_before: u64,
    /// How many requests for such lists came before it.
    pub(super) asked_before: u64,
}

impl TapeListings {
    pub(super) fn of(&mut self, kind: ItemKind) -> ListingCollector<'_> {
        ListingCollector { kind, lists: &mut self.kinds[kind as usize] }
    }

    /// The list that the scenario starts with: the first complete one.
    pub(super) fn first(&self, kind: ItemKind) -> Option<&TapeListing> {
        self.kinds[kind as usize].distinct.first()
    }

    /// The lists after the first, each different from the previous one.
    pub(super) fn changes(&self, kind: ItemKind) -> &[TapeListing] {
        self.kinds[kind as usize].distinct.get(1..).unwrap_or_default()
    }

    /// The final list, if it is not the first.
    pub(super) fn latest_list(&self, kind: ItemKind) -> Option<&TapeListing> {
        let distinct = &self.kinds[kind as usize].distinct;
        distinct.last().filter(|_| distinct.len() > 1)
    }

    /// A definition from the first list that has it.
    pub(super) fn find_definition(&self, kind: ItemKind, name: &str) -> Option<&[u8]> {
        let mut lists = self.kinds[kind as usize].distinct.iter();
        lists.find_map(|list| list.get(name))
    }

    /// Whether a method's list is on the tape.
    pub(super) fn has_list(&self, method: &str) -> bool {
        ItemKind::of_list_method(method).is_some_and(|kind| self.first(kind).is_some())
    }

    /// Finishes reading. If no list is complete, the first incomplete one is used.
    pub(super) fn finish(&mut self, warnings: &mut Vec<String>) {
        for kind in ItemKind::ALL {
            let lists = &mut self.kinds[kind as usize];
            let mut open: Vec<TapeListing> =
                lists.open.drain().map(|(_, listing)| listing).collect();
            open.sort_by_key(|listing| listing.asked_before);
            if let (true, Some(listing)) = (lists.distinct.is_empty(), open.into_iter().next()) {
                let (kind_name, count) = (kind.info().member, listing.items.len());
                warnings.push(format!(
                    "no list of {kind_name} on the tape is complete; the {count} listed are used"
                ));
                lists.distinct.push(listing);
            }
            if lists.distinct.len() > 1 {
                let (kind_name, times) = (kind.info().member, lists.distinct.len() - 1);
                let calls = lists.distinct[1].calls_before;
                let how = if times == 1 { "once".to_owned() } else { format!("{times} times") };
                let s = if calls == 1 { "" } else { "s" };
                warnings.push(format!(
                    "the server changed its {kind_name} {how}, first after {calls} call{s}"
                ));
            }
        }
    }
}

/// The lists of one kind, while they are read.
pub(super) struct ListingCollector<'a> {
    kind: ItemKind,
    lists: &'a mut KindListings,
}

impl ListingCollector<'_> {
    /// Adds a page, given the session and the cursor of its request.
    pub(super) fn page(
        self,
        (session, cursor): (u32, Option<&[u8]>),
        result: Option<&[u8]>,
        calls: u64,
    ) {
        let Self { kind, lists } = self;
        let result = result.unwrap_or_default();
        let mut listing = match cursor {
            None => TapeListing {
                calls_before: calls,
                asked_before: lists.page_request_count,
                ..TapeListing::default()
            },
            // Ignore a page of a list whose first page is not on the tape.
            Some(cursor) => match lists.open.remove(&(session, cursor.to_vec())) {
                Some(listing) => listing,
                None => return lists.page_request_count += 1,
            },
        };
        lists.page_request_count += 1;
        let items = json::member(result, kind.info().member).unwrap_or(b"[]");
        for item in tree::items(items) {
            let name = json::member(item, kind.info().name_key).and_then(json::string);
            listing.items.push((name.unwrap_or_default().into_owned(), item.to_vec()));
        }
        let next = json::member(result, "nextCursor").filter(|next| *next != b"null");
        match next {
            Some(next) => {
                listing.page_items.get_or_insert(listing.items.len());
                lists.open.insert((session, next.to_vec()), listing);
            }
            // Clients list again and again; only a change begins a phase.
            None if lists.distinct.last().is_some_and(|last| last.is_same(&listing)) => {}
            None => lists.distinct.push(listing),
        }
    }
}

impl TapeListing {
    /// The definition of an item.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        // If a name occurs more than once, calls go to the last one.
        let mut items = self.items.iter().rev();
        items.find(|item| item.0 == name).map(|item| item.1.as_slice())
    }

    /// Whether two lists have the same items in any order.
    fn is_same(&self, other: &Self) -> bool {
        let sorted = |listing: &Self| {
            let mut items = listing.items.clone();
            items.sort_unstable();
            items
        };
        // Another order alone is not a change.
        self.items == other.items || sorted(self) == sorted(other)
    }
}
