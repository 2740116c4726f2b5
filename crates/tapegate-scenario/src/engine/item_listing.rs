//! The items of one kind in a state, indexed by name and listed page by page.

use std::cell::OnceCell;
use std::rc::Rc;

use tapegate_core::json::{self, JsonObject};
use tapegate_core::tape::{base64_decode, base64_encode};

use super::{EngineMap, stateless};
use crate::model::{ItemKind, ScenarioItem};

/// The items of one kind in a state.
pub(super) struct ItemListing {
    kind: ItemKind,
    items: Vec<Rc<ScenarioItem>>,
    /// Positions by name; if a name occurs more than once, the last one.
    index: EngineMap<Box<str>, usize>,
    page_size: usize,
    pages: OnceCell<Vec<Box<[u8]>>>,
    modern_pages: OnceCell<Vec<Box<[u8]>>>,
}

impl ItemListing {
    pub(super) fn new(
        kind: ItemKind,
        items: &[Rc<ScenarioItem>],
        page_size: Option<usize>,
    ) -> Self {
        let named = items.iter().enumerate();
        Self {
            kind,
            items: items.to_vec(),
            index: named.map(|(position, item)| (item.name.as_str().into(), position)).collect(),
            page_size: page_size.unwrap_or(usize::MAX).max(1),
            pages: OnceCell::new(),
            modern_pages: OnceCell::new(),
        }
    }

    /// The item with this name.
    pub(super) fn get(&self, name: &str) -> Option<&Rc<ScenarioItem>> {
        self.index.get(name).map(|position| &self.items[*position])
    }

    /// All items, listed or not.
    pub(super) fn items(&self) -> &[Rc<ScenarioItem>] {
        &self.items
    }

    /// The page that a cursor refers to, as a result; without a cursor, the first page.
    pub(super) fn page(&self, cursor: Option<&str>, modern: Option<&[u8]>) -> Option<&[u8]> {
        let pages = match modern {
            Some(info) => self.modern_pages.get_or_init(|| self.stateless_pages(info)),
            None => self.pages.get_or_init(|| self.write()),
        };
        let number = match cursor {
            Some(cursor) => self.read_cursor(cursor)?,
            None => 0,
        };
        pages.get(number).map(|page| &**page)
    }

    fn member(&self) -> &'static str {
        self.kind.info().member
    }

    fn visible_items(&self) -> impl Iterator<Item = &Rc<ScenarioItem>> {
        self.items.iter().filter(|item| item.listed)
    }

    fn write(&self) -> Vec<Box<[u8]>> {
        // An empty list is one empty page, not none.
        let count = self.visible_items().count().div_ceil(self.page_size).max(1);
        (0..count).map(|number| self.write_page(number, number + 1 < count)).collect()
    }

    fn write_page(&self, number: usize, more: bool) -> Box<[u8]> {
        let start = number.saturating_mul(self.page_size);
        let items = self.visible_items().skip(start).take(self.page_size);
        let items = json::array(items.map(|item| item.definition.to_json()));
        // The kind is part of the cursor, so that a cursor of one list is an error in another.
        let cursor = || base64_encode(format!("{}:{}", self.member(), number + 1).as_bytes());
        let cursor = more.then(|| json::quoted(&cursor()));
        JsonObject::new().raw(self.member(), items).raw_opt("nextCursor", cursor).finish().into()
    }

    fn stateless_pages(&self, info: &[u8]) -> Vec<Box<[u8]>> {
        let pages = self.write().into_iter();
        pages.map(|page| stateless::complete_result(&page, true, info).into()).collect()
    }

    fn read_cursor(&self, cursor: &str) -> Option<usize> {
        let bytes = base64_decode(cursor)?;
        let text = std::str::from_utf8(&bytes).ok()?;
        text.strip_prefix(self.member())?.strip_prefix(':')?.parse().ok()
    }
}
