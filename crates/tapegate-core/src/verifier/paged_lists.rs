//! Lists that a server offers: pages are merged, and items are matched by name, not by position.
//!
//! A live server may split its list into other pages. A list that was recorded to its end is
//! therefore fetched to its end, and only then compared.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::frame::array_items;
use crate::json::{JsonLocation, LocationStep, member, string};

use super::answer_comparer::{AnswerComparer, AnswerDiff};
use super::finding::{Discrepancy, ItemChange, ListKind};
use super::tool_hints::ToolHints;

/// How many pages of a live list are fetched beyond those of the tape, and the maximum size of a
/// live list.
pub(super) const PAGES_MORE_MAX: usize = 1000;
const LIVE_BYTES_MAX: usize = 256 << 20;

/// The incomplete lists of a session, by the entry of the first request.
#[derive(Debug, Default)]
pub(super) struct PagedLists {
    open: BTreeMap<u32, PagedList>,
}

/// One list, page by page.
#[derive(Debug)]
pub(super) struct PagedList {
    pub(super) list: ListKind,
    /// The recorded pages, as whole answers.
    recorded: Vec<Vec<u8>>,
    /// The cursor of the next recorded page.
    recorded_next: Option<String>,
    /// The live pages, as whole answers the way the tape would have recorded them.
    live: Vec<Vec<u8>>,
    /// The cursor of the next live page, as JSON.
    live_next: Option<Vec<u8>>,
    /// Whether a live page was not available.
    live_failed: bool,
    live_bytes: usize,
    /// What the live pages declare about tools.
    tools: ToolHints,
    /// How many pages were fetched that the tape has no request for.
    fetched: usize,
}

/// What to do about a list after a page.
#[derive(Debug)]
pub(super) enum ListingStep {
    /// Wait: more pages are on the tape.
    Wait,
    /// Fetch the live page at this cursor (JSON), which is beyond the tape.
    Fetch(Vec<u8>),
    /// Compare: both lists are as complete as they will be.
    Compare(Box<PagedList>),
}

/// The result of comparing a list.
#[derive(Debug, Default)]
pub(super) struct ListComparison {
    /// Changed items.
    pub(super) items: Vec<Discrepancy>,
    /// Other differences of its pages.
    pub(super) pages: Vec<AnswerDiff>,
    /// Whether the common items are in a different order.
    pub(super) reordered: bool,
}

/// An item with its index in the page and its rank in the whole list.
struct ComparedItem<'a> {
    name: String,
    text: &'a [u8],
    index: usize,
    rank: usize,
}

impl PagedLists {
    /// The list that the page at `cursor` (JSON) continues.
    pub(super) fn list_continued_by(&self, list: ListKind, cursor: &[u8]) -> Option<u32> {
        let cursor = string(cursor)?;
        let follows =
            |open: &PagedList| open.list == list && open.recorded_next.as_deref() == Some(&*cursor);
        // The latest list wins: the same cursor may occur in an earlier listing of the session.
        self.open.iter().rfind(|(_, open)| follows(open)).map(|(first, _)| *first)
    }

    /// Begins a list with the request at entry `first`.
    pub(super) fn begin(&mut self, list: ListKind, first: u32) {
        self.open.insert(first, PagedList::new(list));
    }

    pub(super) fn add_recorded_page(&mut self, first: u32, page: &[u8]) {
        let Some(open) = self.open.get_mut(&first) else { return };
        open.recorded_next = next_cursor(page).and_then(string).map(Cow::into_owned);
        open.recorded.push(page.to_vec());
    }

    /// Adds a live page, as received and as the tape would have recorded it.
    pub(super) fn add_live_page(&mut self, first: u32, page: &[u8], masked: &[u8]) {
        let Some(open) = self.open.get_mut(&first) else { return };
        let next = next_cursor(page).filter(|next| string(next).is_some()).map(<[u8]>::to_vec);
        // A repeated cursor would never end.
        open.live_failed |= next.is_some() && next == open.live_next;
        open.live_bytes += page.len();
        open.live_failed |= open.live_bytes > LIVE_BYTES_MAX;
        open.live_next = next;
        open.live.push(masked.to_vec());
        open.tools.add(result(page).unwrap_or_default());
    }

    /// Notes that a live page was not available.
    pub(super) fn mark_failed(&mut self, first: u32) {
        if let Some(open) = self.open.get_mut(&first) {
            open.live_failed = true;
        }
    }

    /// What to do about a list after one of its pages.
    pub(super) fn next(&mut self, first: u32) -> ListingStep {
        let Some(open) = self.open.get_mut(&first) else { return ListingStep::Wait };
        match &open.live_next {
            // The recorded pages come first; the live list is only completed after them.
            _ if open.recorded_next.is_some() => return ListingStep::Wait,
            // Beyond these bounds a hostile server could keep the verifier busy without end.
            Some(cursor) if !open.live_failed && open.fetched < PAGES_MORE_MAX => {
                open.fetched += 1;
                return ListingStep::Fetch(cursor.clone());
            }
            _ => {}
        }
        self.open
            .remove(&first)
            .map_or(ListingStep::Wait, |listing| ListingStep::Compare(Box::new(listing)))
    }

    /// The lists that are still incomplete at the end of a session.
    pub(super) fn take_incomplete(&mut self) -> impl Iterator<Item = (u32, PagedList)> + use<> {
        std::mem::take(&mut self.open).into_iter()
    }
}

impl PagedList {
    fn new(list: ListKind) -> Self {
        let (recorded, live, tools) = (Vec::new(), Vec::new(), ToolHints::default());
        let (recorded_next, live_next) = (None, None);
        let (live_failed, live_bytes, fetched) = (false, 0, 0);
        Self {
            list,
            recorded,
            recorded_next,
            live,
            live_next,
            live_failed,
            live_bytes,
            tools,
            fetched,
        }
    }

    /// What the live server declares about its tools, if the list is complete.
    pub(super) fn tools(&mut self) -> Option<ToolHints> {
        // An incomplete list proves nothing about a tool that is missing from it.
        let known = self.list == ListKind::Tools && self.is_live_complete();
        known.then(|| std::mem::take(&mut self.tools))
    }

    /// How many pages were read of a live list that continues where the recorded one has ended.
    pub(super) fn unfinished_after(&self) -> Option<usize> {
        let goes_on = self.recorded_next.is_none() && self.live_next.is_some();
        goes_on.then_some(self.live.len())
    }

    fn is_live_complete(&self) -> bool {
        self.live_next.is_none() && !self.live_failed && !self.live.is_empty()
    }

    /// Compares the recorded with the live list.
    pub(super) fn compare(&self, judge: &AnswerComparer) -> ListComparison {
        let mut found = ListComparison::default();
        // Pages are paired by position; their items are compared by name below.
        for (recorded, live) in self.recorded.iter().zip(&self.live) {
            let verdict = judge.page(self.list, recorded, live);
            if verdict != AnswerDiff::default() {
                found.pages.push(verdict);
            }
        }
        if !judge.compares_items(self.list) {
            return found;
        }
        let (recorded, live) = (items(self.list, &self.recorded), items(self.list, &self.live));
        let there: HashMap<&str, &ComparedItem<'_>> =
            live.iter().map(|item| (item.name.as_str(), item)).collect();
        let mut ranks = Vec::new();
        for item in recorded.iter().filter(|item| !judge.is_ignored(&self.place(item.index))) {
            let item_change = match there.get(item.name.as_str()) {
                Some(new) => {
                    ranks.push(new.rank);
                    let changes = judge.item(self.place(new.index), item.text, new.text);
                    (!changes.is_empty()).then_some(ItemChange::Changed(changes))
                }
                // Only a complete list shows that an item is gone.
                None => self.is_live_complete().then(|| ItemChange::Removed(item.text.to_vec())),
            };
            found.items.extend(item_change.map(|item_change| self.discrepancy(item, item_change)));
        }
        found.reordered = !ranks.is_sorted();
        // Items of recorded pages that were never read are not new.
        if self.recorded_next.is_none() {
            let before: HashSet<&str> = recorded.iter().map(|item| item.name.as_str()).collect();
            let is_new = |item: &&ComparedItem<'_>| {
                !before.contains(item.name.as_str()) && !judge.is_ignored(&self.place(item.index))
            };
            let new = live.iter().filter(is_new);
            let added =
                new.map(|item| self.discrepancy(item, ItemChange::Added(item.text.to_vec())));
            found.items.extend(added);
        }
        found
    }

    fn discrepancy(&self, item: &ComparedItem<'_>, item_change: ItemChange) -> Discrepancy {
        Discrepancy::Item { list: self.list, name: item.name.clone(), item_change }
    }

    fn place(&self, index: usize) -> JsonLocation {
        let steps = vec![
            LocationStep::Key("result".to_owned()),
            LocationStep::Key(self.list.member().to_owned()),
            LocationStep::Index(index),
        ];
        JsonLocation { steps }
    }
}

/// The items of all pages. An item without a name is named by its number; a second item with the
/// same name is called `name (2)`.
fn items(list: ListKind, pages: &[Vec<u8>]) -> Vec<ComparedItem<'_>> {
    let mut items = Vec::new();
    let mut seen: HashMap<String, u32> = HashMap::new();
    for page in pages {
        let texts = result(page).and_then(|result| member(result, list.member()));
        for (index, text) in texts.map(array_items).unwrap_or_default().into_iter().enumerate() {
            let name = member(text, list.key()).and_then(string);
            let rank = items.len();
            let name = name.map_or_else(|| format!("#{rank}"), Cow::into_owned);
            let times = seen.entry(name.clone()).or_default();
            *times += 1;
            // A second item must not hide the first one in the map.
            let name = if *times > 1 { format!("{name} ({times})") } else { name };
            items.push(ComparedItem { name, text, index, rank });
        }
    }
    items
}

fn result(answer: &[u8]) -> Option<&[u8]> {
    member(answer, "result")
}

fn next_cursor(answer: &[u8]) -> Option<&[u8]> {
    result(answer).and_then(|result| member(result, "nextCursor"))
}
