//! Lists that the gate requests itself.
//!
//! Pins are compared with what the server lists. Some clients call before they list, and some do
//! not list again when the server announces a change. The gate then requests the lists itself and
//! holds the call until they are compared. It requests nothing from a server that is not pinned.

mod requests;

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use tapegate_core::frame::{Body, Envelope, Frame, Kind, each_element};
use tapegate_core::gate::{Case, ListFirst, ListStep, Ticket};
use tapegate_core::json;
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::At;

use super::Warden;
use crate::decide::Outcome;
use crate::filter::{lists, next_cursor};
use crate::gated::Offer;
use crate::inspect::Carrier;
use crate::judge::Judgement;
use crate::model::{OnDrift, Policy};
use crate::pins::{NOT_COMPARED, Reader};
use requests::{Listing, meta_of};

/// How long the server may take to send all the lists that a call needs.
const TIMEOUT_MS: u64 = 10_000;
/// How many sessions are remembered.
const SESSIONS_MAX: usize = 4096;
/// The maximum number of held calls that are tracked; more than the relay ever holds.
const LISTINGS_MAX: usize = 64;
/// How long a comparison is valid for an HTTP server, which cannot announce changes without a
/// stream.
const HTTP_AGE_MAX_NS: u64 = 60_000_000_000;
/// What is known about the server's lists.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// The kinds that are pinned.
    pinned: Vec<Offer>,
    /// How many changes of its lists the server has announced.
    changes: u64,
    /// When the lists of each session were compared.
    compared: HashMap<(u32, Offer), Compared, RandomState>,
    /// The number of changes when the client started listing.
    client_began: HashMap<(u32, Offer), u64, RandomState>,
    listings: VecDeque<Listing>,
}

#[derive(Debug, Clone, Copy)]
struct Compared {
    /// The number of changes when the listing started.
    changes: u64,
    at_ns: u64,
}

impl Lists {
    /// Switches to the current pins. Earlier comparisons used a different lock.
    pub(super) fn repin(&mut self, policy: Option<&Policy>, server: &str) {
        self.compared.clear();
        let held = policy.filter(|policy| policy.pins.on_drift != OnDrift::Ignore);
        let pinned = held.and_then(|policy| policy.pins.lock.servers.get(server));
        self.pinned =
            pinned.map(|server| server.offers.keys().copied().collect()).unwrap_or_default();
    }

    /// Forgets a call that no longer waits.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        self.listings.retain(|listing| listing.ticket != ticket);
    }

    /// Handles a request of the client; returns the list that it starts to read, if any.
    fn client_asks(&mut self, lane: Lane, said: &Envelope<'_>) -> Option<Offer> {
        let offer = Offer::ALL.into_iter().find(|offer| said.is_method(offer.list_method()))?;
        let cursor = said.params.and_then(|params| json::member(params, "cursor"));
        if cursor.is_some_and(|cursor| cursor != b"null") {
            return None;
        }
        if self.client_began.len() >= SESSIONS_MAX {
            self.client_began.clear();
        }
        self.client_began.insert((lane.session, offer), self.changes);
        Some(offer)
    }

    /// The client has received the last page of a list.
    fn client_listed(&mut self, at: At, lane: Lane, offer: Offer) {
        if let Some(changes) = self.client_began.remove(&(lane.session, offer)) {
            self.note_compared(at, lane, offer, changes);
        }
    }

    fn note_compared(&mut self, at: At, lane: Lane, offer: Offer, changes: u64) {
        if self.compared.len() >= SESSIONS_MAX {
            self.compared.clear();
        }
        let compared = Compared { changes, at_ns: at.mono_ns };
        self.compared.insert((lane.session, offer), compared);
    }

    fn is_fresh(&self, at: At, lane: Lane, offer: Offer, server: Carrier) -> bool {
        let Some(compared) = self.compared.get(&(lane.session, offer)) else { return false };
        let age_ns = at.mono_ns.saturating_sub(compared.at_ns);
        compared.changes == self.changes && (server == Carrier::Lines || age_ns < HTTP_AGE_MAX_NS)
    }

    fn listing(&mut self, ticket: Ticket) -> Option<&mut Listing> {
        self.listings.iter_mut().find(|listing| listing.ticket == ticket)
    }

    fn put(&mut self, listing: Listing) {
        if self.listings.len() == LISTINGS_MAX {
            self.listings.pop_front();
        }
        self.listings.push_back(listing);
    }
}

impl Warden {
    /// Learns about the server's lists from a message, and collects the result of a listing that a
    /// call waited for.
    pub(super) fn before_judging(&mut self, case: &Case<'_>) {
        self.state.set_drift(None);
        if self.lists.pinned.is_empty() || !self.settings.lists {
            return;
        }
        if let Some(ticket) = case.listed {
            let failure = self.lists.listing(ticket).and_then(|listing| listing.failure.take());
            self.lists.forget(ticket);
            self.state.set_drift(failure.map(|why| format!("{NOT_COMPARED}{why}")));
        }
        match case.frame.body() {
            Body::Message(said) => self.hear_of_lists(case, said),
            Body::Batch => {
                for element in each_element(case.frame.bytes()) {
                    element.envelope().into_iter().for_each(|said| self.hear_of_lists(case, said));
                }
            }
            Body::Garbage(_) => {}
        }
    }

    fn hear_of_lists(&mut self, case: &Case<'_>, said: &Envelope<'_>) {
        if case.from == Side::Client {
            if let Some(offer) = self.lists.client_asks(case.lane, said) {
                let reader = Reader { session: case.lane.session, own: None };
                self.state.watch.restart(reader, Some(offer));
            }
            return;
        }
        if said.method.is_some_and(|method| is_list_changed(&method.decode())) {
            self.lists.changes += 1;
        }
        let Some(result) = said.result.filter(|_| said.lists) else { return };
        let last = next_cursor(result).is_none();
        for list in lists(result).iter().filter(|list| last && list.items.is_some()) {
            self.lists.client_listed(case.at, case.lane, list.offer);
        }
    }

    /// Requests the lists that a call depends on before it is decided about, unless they have been
    /// compared. The error says why that is impossible.
    pub(super) fn list_first(
        &mut self,
        case: &Case<'_>,
        judgement: &Judgement<'_>,
    ) -> Result<Option<Box<ListFirst>>, String> {
        let asks = self.settings.lists && case.from == Side::Client && !self.state.has_drift();
        // A call that is refused in any case need not wait.
        if self.lists.pinned.is_empty() || !asks || judgement.strict() == Outcome::Deny {
            return Ok(None);
        }
        let (at, lane, server) = (case.at, case.lane, self.settings.server);
        let offers = judgement.all_calls().filter_map(|call| call.offer);
        let mut wanted: Vec<Offer> = Vec::new();
        for offer in offers.flat_map(needed) {
            let pinned = self.lists.pinned.contains(offer) && !wanted.contains(offer);
            if pinned && !self.lists.is_fresh(at, lane, *offer, server) {
                wanted.push(*offer);
            }
        }
        let Some((&offer, rest)) = wanted.split_first() else { return Ok(None) };
        let Some(said) = case.frame.envelope().filter(|said| said.kind() == Kind::Request) else {
            let why = "only a single request can wait for the server's list; send the call alone";
            return Err(format!("{NOT_COMPARED}{why}"));
        };
        self.tickets += 1;
        let listing = Listing {
            ticket: Ticket(self.tickets),
            lane,
            changes: self.lists.changes,
            offer,
            rest: rest.to_vec(),
            meta: meta_of(said),
            cursor: None,
            pages: 0,
            failure: None,
        };
        let request = listing.request(self.hands.ids.next());
        let first = ListFirst { ticket: listing.ticket, timeout_ms: TIMEOUT_MS, request };
        self.lists.put(listing);
        Ok(Some(Box::new(first)))
    }

    /// Compares a page of a list that the gate has requested.
    pub(super) fn own_listed(&mut self, at: At, ticket: Ticket, answer: &Frame<'_>) -> ListStep {
        match self.take_page(at, ticket, answer) {
            Ok(step) => step,
            Err(why) => {
                self.own_list_failed(ticket, &why);
                ListStep::Done
            }
        }
    }

    /// A list that the gate has requested could not be read.
    pub(super) fn own_list_failed(&mut self, ticket: Ticket, why: &str) {
        let Some(listing) = self.lists.listing(ticket) else { return };
        listing.failure = Some(format!("`{}`: {why}", listing.offer.list_method()));
        let reader = listing.reader();
        self.state.watch.restart(reader, None);
    }

    fn take_page(
        &mut self,
        at: At,
        ticket: Ticket,
        answer: &Frame<'_>,
    ) -> Result<ListStep, String> {
        let Some(listing) = self.lists.listing(ticket) else { return Ok(ListStep::Done) };
        let lane = listing.lane;
        let said = answer.envelope();
        let Some(result) = said.and_then(|said| said.result) else {
            let error = said.and_then(|said| said.error);
            let message = error.and_then(|error| json::member(error, "message"));
            let message = message.and_then(json::string);
            let message = message.as_deref().unwrap_or("an error");
            // This text is sent to the client whose call waits.
            let masked = self.masked_text((at, lane), "an error of the server", message.as_bytes());
            let masked = masked.map(|text| String::from_utf8_lossy(&text).into_owned());
            return Err(format!("the server answered: {}", masked.as_deref().unwrap_or(message)));
        };
        let found = lists(result);
        let Some(listing) = self.lists.listing(ticket) else { return Ok(ListStep::Done) };
        let (offer, reader) = (listing.offer, listing.reader());
        if !found.iter().any(|list| list.offer == offer && list.items.is_some()) {
            return Err(format!("the answer has no `{}`", offer.list()));
        }
        let goes_on = listing.goes_on(result)?;
        if let Some(policy) = self.regime.policy.clone() {
            let (lock, server) = (&policy.pins.lock, &self.settings.source);
            let news = self.state.watch.learn(lock, server, &found, reader, !goes_on);
            self.note_drifted((at, lane, said.and_then(|said| said.id)), &policy, &news);
        }
        let Some(listing) = self.lists.listing(ticket) else { return Ok(ListStep::Done) };
        if !goes_on {
            let changes = listing.changes;
            let rest = listing.rest.is_empty();
            if !rest {
                listing.offer = listing.rest.remove(0);
                (listing.cursor, listing.pages) = (None, 0);
            }
            self.lists.note_compared(at, lane, offer, changes);
            if rest {
                return Ok(ListStep::Done);
            }
        }
        let name = self.hands.ids.next();
        let listing = self.lists.listings.iter().find(|listing| listing.ticket == ticket);
        Ok(listing.map_or(ListStep::Done, |listing| ListStep::Next(listing.request(name))))
    }
}

/// Whether a notification announces that a list has changed.
fn is_list_changed(method: &str) -> bool {
    method.starts_with("notifications/") && method.ends_with("/list_changed")
}

/// The lists that define items of a kind.
fn needed(offer: Offer) -> &'static [Offer] {
    match offer {
        Offer::Tool => &[Offer::Tool],
        Offer::Prompt => &[Offer::Prompt],
        // A resource may be listed, or come from a template.
        Offer::Resource | Offer::Template => &[Offer::Resource, Offer::Template],
    }
}
