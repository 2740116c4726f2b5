//! Handles lists of the server: pages that the tape has, and further pages that are fetched.

use std::io;

use crate::json::member;

use super::super::finding::{About, List, NoteSort};
use super::super::listing::{Listing, Next, PAGES_MORE_MAX};
use super::super::tape;
use super::super::tools::Tools;
use super::answers::tell;
use super::own::own_meta;
use super::{Kit, Play, Purpose};

impl Play {
    /// The list that the answer to the request in `slot` is a page of.
    pub(super) fn page(
        &mut self,
        kit: &mut Kit<'_, '_>,
        slot: u32,
        method: &str,
    ) -> io::Result<Option<u32>> {
        let Some(list) = List::of_method(method) else { return Ok(None) };
        let request = kit.tape.text(slot)?;
        let params = member(&request, "params");
        Ok(match params.and_then(|params| member(params, "cursor")) {
            Some(cursor) => self.listings.follows(list, cursor),
            None => {
                self.listings.begin(list, slot);
                Some(slot)
            }
        })
    }

    /// Continues with a list after one of its pages.
    pub(super) fn list_next(&mut self, kit: &mut Kit<'_, '_>, first: u32) -> io::Result<()> {
        match self.listings.next(first) {
            Next::Wait => Ok(()),
            Next::Compare(listing) => self.compare_list(kit, first, *listing),
            Next::Fetch(cursor) => {
                let request = kit.tape.text(first)?;
                let meta = member(&request, "params").and_then(own_meta);
                let method = tape::about(&request).method;
                self.ask(kit, &method, Some(&cursor), meta.as_deref(), Purpose::Page(first));
                Ok(())
            }
        }
    }

    /// Compares a list that is as complete as it will be.
    pub(super) fn compare_list(
        &mut self,
        kit: &mut Kit<'_, '_>,
        first: u32,
        mut listing: Listing,
    ) -> io::Result<()> {
        let about = kit.tape.about(kit.tape.slot(first).pair)?;
        let compared = listing.compare(kit.judge);
        for verdict in compared.pages {
            tell(kit, about.clone(), verdict, self.left_out);
        }
        for what in compared.items {
            kit.report.find(about.clone(), what);
        }
        if let Some(pages) = listing.unfinished() {
            let list = listing.list;
            kit.report.note(about.clone(), NoteSort::Unfinished { list, pages });
        }
        if compared.reordered {
            kit.report.note(about, NoteSort::Reordered(listing.list));
        }
        if let Some(tools) = listing.tools() {
            self.tools = Some(tools);
        }
        Ok(())
    }

    pub(super) fn tools_page(
        &mut self,
        kit: &mut Kit<'_, '_>,
        mut tools: Tools,
        meta: Option<Vec<u8>>,
        result: Option<&[u8]>,
    ) {
        let Some(result) = result else {
            kit.report.note(self.about(), NoteSort::ToolsUnknown);
            self.tools = Some(Tools::default());
            return;
        };
        let before = tools.len();
        tools.add(result);
        // A list that repeats itself or never ends is known well enough.
        let endless = tools.pages() >= PAGES_MORE_MAX;
        let goes_on = tools.len() > before && !endless;
        let next = member(result, "nextCursor");
        if endless && next.is_some() {
            let sort = NoteSort::Unfinished { list: List::Tools, pages: tools.pages() };
            kit.report.note(About { method: "tools/list".to_owned(), ..self.about() }, sort);
        }
        match next.filter(|_| goes_on) {
            Some(cursor) => {
                let purpose = Purpose::Tools(tools, meta.clone());
                self.ask(kit, "tools/list", Some(cursor), meta.as_deref(), purpose);
            }
            None => self.tools = Some(tools),
        }
    }
}
