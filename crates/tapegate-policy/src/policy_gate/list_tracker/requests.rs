//! The gate's own requests for the lists that a held call needs, page by page.

use tapegate_core::frame::Envelope;
use tapegate_core::gate::{HoldId, OwnRequest};
use tapegate_core::json::{self, write_str};
use tapegate_core::side::Lane;

use crate::filter::next_cursor;
use crate::gated_requests::OfferKind;
use crate::pins::ListReader;

/// The maximum number of pages requested per list.
const PAGES_MAX: usize = 1000;
/// What clients send about themselves in every request, in the revision without sessions.
const META: [&str; 3] = [
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

/// A listing that a held call waits for.
#[derive(Debug)]
pub(super) struct PinListing {
    pub(super) hold_id: HoldId,
    pub(super) lane: Lane,
    pub(super) changes: u64,
    pub(super) offer: OfferKind,
    /// The kinds that are listed afterwards.
    pub(super) rest: Vec<OfferKind>,
    /// The `_meta` for each request, if the client's requests have one.
    pub(super) meta: Option<Vec<u8>>,
    pub(super) cursor: Option<String>,
    pub(super) pages: usize,
    pub(super) failure: Option<String>,
}

impl PinListing {
    pub(super) fn reader(&self) -> ListReader {
        ListReader { session: self.lane.session, own: Some(self.hold_id) }
    }

    /// The next request.
    pub(super) fn request(&self, name: &str) -> OwnRequest {
        // The prefix and the counter of the session keep it apart from the client's ids.
        let id = format!("tapegate:list:{name}");
        let cursor = self.cursor.as_deref();
        OwnRequest::new(&id, self.offer.list_request(), cursor, self.meta.as_deref())
    }

    /// Takes a page; returns whether another one follows, or why it cannot be read.
    pub(super) fn take_page(&mut self, result: &[u8]) -> Result<bool, String> {
        let Some(next) = next_cursor(result) else { return Ok(false) };
        let next = json::string(next).ok_or("`nextCursor` is not a string")?;
        self.pages += 1;
        // A server could hold the call for the whole timeout with pages that repeat.
        if self.pages >= PAGES_MAX || self.cursor.as_deref() == Some(&*next) {
            return Err("the list never ends".to_owned());
        }
        self.cursor = Some(next.into_owned());
        Ok(true)
    }
}

/// The client's `_meta` for the gate's own requests, in the revision where every request needs it.
pub(super) fn meta_of(envelope: &Envelope<'_>) -> Option<Vec<u8>> {
    let meta = envelope.params.and_then(|params| json::member(params, "_meta"))?;
    // Earlier revisions have sessions, and their servers know the client from `initialize`.
    json::member(meta, META[0])?;
    let mut out = b"{".to_vec();
    for (key, value) in META.iter().filter_map(|key| Some((key, json::member(meta, key)?))) {
        out.extend((out.len() > 1).then_some(b','));
        write_str(&mut out, key);
        out.push(b':');
        out.extend_from_slice(&json::compact(value));
    }
    out.push(b'}');
    Some(out)
}
