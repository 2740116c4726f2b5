//! What a server said it has: lists with all of their pages, and what changed later.

use std::collections::HashMap;

use tapegate_core::json;

use super::tree;

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ItemKind {
    Tool,
    Resource,
    Template,
    Prompt,
}

/// The lists of a tape, by what is listed.
#[derive(Debug, Default)]
pub(super) struct Listings {
    kinds: [Lists; 4],
}

/// The lists of one kind.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Those that differ from the one before, in order.
    pub(super) distinct: Vec<Listing>,
    /// How many requests for pages there were.
    asked: u64,
    /// Lists of which more pages are to come, by session and cursor.
    open: HashMap<(u32, Vec<u8>), Listing>,
}

/// A list.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    /// The definitions as they were sent, and the names they go by.
    pub(super) items: Vec<(String, Vec<u8>)>,
    /// How many items the first page has, if there was another.
    pub(super) page_items: Option<usize>,
    /// How many calls came before it.
    pub(super) calls_before: u64,
    /// How many requests for such lists came before it.
    pub(super) asked_before: u64,
}

impl ItemKind {
    /// What a method lists.
    pub(super) fn of_list(method: &str) -> Self {
        match method {
            "resources/list" => Self::Resource,
            "resources/templates/list" => Self::Template,
            "prompts/list" => Self::Prompt,
            _ => Self::Tool,
        }
    }

    /// The member of a list's result.
    fn member(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
            Self::Prompt => "prompts",
        }
    }

    /// The member of a definition that it goes by.
    pub(super) fn naming(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::Template => "uriTemplate",
        }
    }

    /// What one of them is called.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Prompt => "prompt",
        }
    }

    /// What a scenario calls all of them.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource => "resources",
            Self::Template => "resource_templates",
            Self::Prompt => "prompts",
        }
    }
}

impl Listings {
    pub(super) fn of(&mut self, kind: ItemKind) -> Taking<'_> {
        Taking { kind, lists: &mut self.kinds[kind as usize] }
    }

    /// The list that counts: the first that is complete.
    pub(super) fn first(&self, kind: ItemKind) -> Option<&Listing> {
        self.kinds[kind as usize].distinct.first()
    }

    /// The lists that came after the first, each other than the one before.
    pub(super) fn changes(&self, kind: ItemKind) -> &[Listing] {
        self.kinds[kind as usize].distinct.get(1..).unwrap_or_default()
    }

    /// The list that came last in the place of the first.
    pub(super) fn later(&self, kind: ItemKind) -> Option<&Listing> {
        let distinct = &self.kinds[kind as usize].distinct;
        distinct.last().filter(|_| distinct.len() > 1)
    }

    /// A definition from any list, the first that has it.
    pub(super) fn anywhere(&self, kind: ItemKind, name: &str) -> Option<&[u8]> {
        let mut lists = self.kinds[kind as usize].distinct.iter();
        lists.find_map(|list| list.get(name))
    }

    /// Whether something was listed by a method.
    pub(super) fn has(&self, method: &str) -> bool {
        let lists = matches!(
            method,
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list"
        );
        lists && self.first(ItemKind::of_list(method)).is_some()
    }

    /// Ends the reading: lists whose last page was not asked for count as far as they go.
    pub(super) fn finish(&mut self, warnings: &mut Vec<String>) {
        for kind in [ItemKind::Tool, ItemKind::Resource, ItemKind::Template, ItemKind::Prompt] {
            let lists = &mut self.kinds[kind as usize];
            let mut open: Vec<Listing> = lists.open.drain().map(|(_, listing)| listing).collect();
            open.sort_by_key(|listing| listing.asked_before);
            if let (true, Some(listing)) = (lists.distinct.is_empty(), open.into_iter().next()) {
                let (words, count) = (kind.member(), listing.items.len());
                warnings.push(format!(
                    "no list of {words} is complete on the tape; the {count} that were listed count"
                ));
                lists.distinct.push(listing);
            }
            if lists.distinct.len() > 1 {
                let (words, times) = (kind.member(), lists.distinct.len() - 1);
                let calls = lists.distinct[1].calls_before;
                let how = if times == 1 { "once".to_owned() } else { format!("{times} times") };
                let s = if calls == 1 { "" } else { "s" };
                warnings.push(format!(
                    "the server changed its {words} {how}, first after {calls} call{s}"
                ));
            }
        }
    }
}

/// The lists of one kind, to be added to.
pub(super) struct Taking<'a> {
    kind: ItemKind,
    lists: &'a mut Lists,
}

impl Taking<'_> {
    /// Takes a page, by the session and the cursor it was asked for with.
    pub(super) fn page(
        self,
        (session, cursor): (u32, Option<&[u8]>),
        result: Option<&[u8]>,
        calls: u64,
    ) {
        let Self { kind, lists } = self;
        let result = result.unwrap_or_default();
        let mut listing = match cursor {
            None => {
                Listing { calls_before: calls, asked_before: lists.asked, ..Listing::default() }
            }
            // A page of a list whose start is not on the tape is no list.
            Some(cursor) => match lists.open.remove(&(session, cursor.to_vec())) {
                Some(listing) => listing,
                None => return lists.asked += 1,
            },
        };
        lists.asked += 1;
        let items = json::member(result, kind.member()).unwrap_or(b"[]");
        for item in tree::items(items) {
            let name = json::member(item, kind.naming()).and_then(json::string);
            listing.items.push((name.unwrap_or_default().into_owned(), item.to_vec()));
        }
        let next = json::member(result, "nextCursor").filter(|next| *next != b"null");
        match next {
            Some(next) => {
                listing.page_items.get_or_insert(listing.items.len());
                lists.open.insert((session, next.to_vec()), listing);
            }
            None if lists.distinct.last().is_some_and(|last| last.is_same(&listing)) => {}
            None => lists.distinct.push(listing),
        }
    }
}

impl Listing {
    /// A definition.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        // The last of several is the one that is called.
        let mut items = self.items.iter().rev();
        items.find(|item| item.0 == name).map(|item| item.1.as_slice())
    }

    /// Whether two lists have the same in any order.
    fn is_same(&self, other: &Self) -> bool {
        let sorted = |listing: &Self| {
            let mut items = listing.items.clone();
            items.sort_unstable();
            items
        };
        self.items == other.items || sorted(self) == sorted(other)
    }
}
