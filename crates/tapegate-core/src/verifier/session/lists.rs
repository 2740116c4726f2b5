//! Handles lists of the server: pages that the tape has, and further pages that are fetched.

use std::io;

use crate::json::member;

use super::super::finding::{ListKind, MessageRef, VerifyNoteKind};
use super::super::paged_lists::{ListingStep, PAGES_MORE_MAX, PagedList};
use super::super::tape;
use super::super::tool_hints::ToolHints;
use super::answers::report_verdict;
use super::own_requests::own_meta;
use super::{RequestPurpose, VerifyContext, VerifySession};

impl VerifySession {
    /// The list that the answer to the request at `entry_number` is a page of.
    pub(super) fn page(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        entry_number: u32,
        method: &str,
    ) -> io::Result<Option<u32>> {
        let Some(list) = ListKind::of_method(method) else { return Ok(None) };
        let request = context.tape.text(entry_number)?;
        let params = member(&request, "params");
        Ok(match params.and_then(|params| member(params, "cursor")) {
            // If the tape lacks the first page, the answer is compared as any other.
            Some(cursor) => self.listings.list_continued_by(list, cursor),
            None => {
                self.listings.begin(list, entry_number);
                Some(entry_number)
            }
        })
    }

    /// Continues with a list after one of its pages.
    pub(super) fn request_next_page(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        first: u32,
    ) -> io::Result<()> {
        match self.listings.next(first) {
            ListingStep::Wait => Ok(()),
            ListingStep::Compare(listing) => self.compare_list(context, first, *listing),
            ListingStep::Fetch(cursor) => {
                // The same `_meta`, because a sessionless server expects it in every request.
                let request = context.tape.text(first)?;
                let meta = member(&request, "params").and_then(own_meta);
                let method = tape::message_ref_of(&request).method;
                self.request_page(
                    context,
                    &method,
                    Some(&cursor),
                    meta.as_deref(),
                    RequestPurpose::Page(first),
                );
                Ok(())
            }
        }
    }

    /// Compares a list that is as complete as it will be.
    pub(super) fn compare_list(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        first: u32,
        mut listing: PagedList,
    ) -> io::Result<()> {
        let about = context.tape.message_ref(context.tape.entry(first).pair)?;
        let compared = listing.compare(context.judge);
        for verdict in compared.pages {
            report_verdict(context, about.clone(), verdict, self.left_out);
        }
        for what in compared.items {
            context.report.find(about.clone(), what);
        }
        if let Some(pages) = listing.unfinished_after() {
            let list = listing.list;
            context.report.note(about.clone(), VerifyNoteKind::Unfinished { list, pages });
        }
        if compared.reordered {
            context.report.note(about, VerifyNoteKind::Reordered(listing.list));
        }
        // The list need not be fetched again before the first tool call.
        if let Some(tools) = listing.tools() {
            self.tools = Some(tools);
        }
        Ok(())
    }

    pub(super) fn handle_tools_page(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        mut tools: ToolHints,
        meta: Option<Vec<u8>>,
        result: Option<&[u8]>,
    ) {
        let Some(result) = result else {
            context.report.note(self.session_subject(), VerifyNoteKind::ToolsUnknown);
            // An empty list: no tool is known to be read-only, so no call is sent.
            self.tools = Some(ToolHints::default());
            return;
        };
        let before = tools.len();
        tools.add(result);
        // A list that repeats itself or never ends is known well enough.
        let endless = tools.pages() >= PAGES_MORE_MAX;
        let goes_on = tools.len() > before && !endless;
        let next = member(result, "nextCursor");
        if endless && next.is_some() {
            let sort = VerifyNoteKind::Unfinished { list: ListKind::Tools, pages: tools.pages() };
            context.report.note(
                MessageRef { method: "tools/list".to_owned(), ..self.session_subject() },
                sort,
            );
        }
        match next.filter(|_| goes_on) {
            Some(cursor) => {
                let purpose = RequestPurpose::Tools(tools, meta.clone());
                self.request_page(context, "tools/list", Some(cursor), meta.as_deref(), purpose);
            }
            None => self.tools = Some(tools),
        }
    }
}
