//! Lists that the gate requests itself.
//!
//! Pins are compared with what the server lists. Some clients call before they list, and some do
//! not list again when the server announces a change. The gate then requests the lists itself and
//! holds the call until they are compared. It requests nothing from a server that is not pinned.

mod requests;

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use tapegate_core::frame::{Envelope, Frame, FrameBody, MessageKind, each_element};
use tapegate_core::gate::{GateInput, HoldId, ListFirst, ListStep};
use tapegate_core::json;
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::Timestamp;

use super::PolicyGate;
use crate::decide::DecisionOutcome;
use crate::filter::{lists, next_cursor};
use crate::gated_requests::OfferKind;
use crate::inspect::TransportKind;
use crate::judge::Judgement;
use crate::model::{OnDrift, Policy};
use crate::pins::{ListReader, NOT_COMPARED};
use requests::{PinListing, meta_of};

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
pub(super) struct ListTracker {
    /// The kinds that are pinned.
    pinned: Vec<OfferKind>,
    /// How many changes of its lists the server has announced.
    changes: u64,
    /// When the lists of each session were compared.
    compared: HashMap<(u32, OfferKind), ComparisonTime, RandomState>,
    /// The number of changes when the client started listing.
    client_began: HashMap<(u32, OfferKind), u64, RandomState>,
    listings: VecDeque<PinListing>,
}

#[derive(Debug, Clone, Copy)]
struct ComparisonTime {
    /// The number of changes when the listing started.
    changes: u64,
    at_ns: u64,
}

impl ListTracker {
    /// Switches to the current pins. Earlier comparisons used a different lock.
    pub(super) fn update_pins(&mut self, policy: Option<&Policy>, server: &str) {
        self.compared.clear();
        let held = policy.filter(|policy| policy.pins.on_drift != OnDrift::Ignore);
        let pinned = held.and_then(|policy| policy.pins.lock.servers.get(server));
        self.pinned =
            pinned.map(|server| server.offers.keys().copied().collect()).unwrap_or_default();
    }

    /// Forgets a call that no longer waits.
    pub(super) fn forget_hold(&mut self, hold_id: HoldId) {
        self.listings.retain(|listing| listing.hold_id != hold_id);
    }

    /// Handles a request of the client; returns the list that it starts to read, if any.
    fn note_client_request(&mut self, lane: Lane, msg: &Envelope<'_>) -> Option<OfferKind> {
        let offer = OfferKind::ALL.into_iter().find(|offer| msg.is_method(offer.list_method()))?;
        let cursor = msg.params.and_then(|params| json::member(params, "cursor"));
        // A later page continues a listing; only the first page starts one.
        if cursor.is_some_and(|cursor| cursor != b"null") {
            return None;
        }
        if self.client_began.len() >= SESSIONS_MAX {
            // Forgetting a listing only means that the gate requests it again.
            self.client_began.clear();
        }
        self.client_began.insert((lane.session, offer), self.changes);
        Some(offer)
    }

    /// The client has received the last page of a list.
    fn note_client_list_end(&mut self, at: Timestamp, lane: Lane, offer: OfferKind) {
        // The count at the start, not the current one: a change that is announced during a listing
        // may be missing in it.
        if let Some(changes) = self.client_began.remove(&(lane.session, offer)) {
            self.note_compared(at, lane, offer, changes);
        }
    }

    fn note_compared(&mut self, at: Timestamp, lane: Lane, offer: OfferKind, changes: u64) {
        if self.compared.len() >= SESSIONS_MAX {
            self.compared.clear();
        }
        let compared = ComparisonTime { changes, at_ns: at.mono_ns };
        self.compared.insert((lane.session, offer), compared);
    }

    fn is_fresh(&self, at: Timestamp, lane: Lane, offer: OfferKind, server: TransportKind) -> bool {
        let Some(compared) = self.compared.get(&(lane.session, offer)) else { return false };
        let age_ns = at.mono_ns.saturating_sub(compared.at_ns);
        // A server on a pipe can announce changes at any time, so only its announcements matter.
        compared.changes == self.changes
            && (server == TransportKind::Lines || age_ns < HTTP_AGE_MAX_NS)
    }

    fn listing(&mut self, hold_id: HoldId) -> Option<&mut PinListing> {
        self.listings.iter_mut().find(|listing| listing.hold_id == hold_id)
    }

    fn insert(&mut self, listing: PinListing) {
        if self.listings.len() == LISTINGS_MAX {
            self.listings.pop_front();
        }
        self.listings.push_back(listing);
    }
}

impl PolicyGate {
    /// Learns about the server's lists from a message, and collects the result of a listing that a
    /// call waited for.
    pub(super) fn observe_lists(&mut self, case: &GateInput<'_>) {
        // Drift that was set for one message must not affect the next one.
        self.state.set_drift(None);
        if self.lists.pinned.is_empty() || !self.settings.lists {
            return;
        }
        // The held call is judged again now. A failed listing counts as drift for it alone.
        if let Some(hold_id) = case.listed {
            let failure = self.lists.listing(hold_id).and_then(|listing| listing.failure.take());
            self.lists.forget_hold(hold_id);
            self.state.set_drift(failure.map(|reason| format!("{NOT_COMPARED}{reason}")));
        }
        match case.frame.body() {
            FrameBody::Message(msg) => self.observe_list_message(case, msg),
            FrameBody::Batch => {
                for element in each_element(case.frame.bytes()) {
                    element
                        .envelope()
                        .into_iter()
                        .for_each(|msg| self.observe_list_message(case, msg));
                }
            }
            FrameBody::Garbage(_) => {}
        }
    }

    fn observe_list_message(&mut self, case: &GateInput<'_>, msg: &Envelope<'_>) {
        if case.from == Side::Client {
            if let Some(offer) = self.lists.note_client_request(case.lane, msg) {
                let reader = ListReader { session: case.lane.session, own: None };
                // Pages of an unfinished earlier listing must not count as part of this one.
                self.state.watch.restart(reader, Some(offer));
            }
            return;
        }
        // One counter for all kinds: an announcement of any kind makes every list stale.
        if msg.method.is_some_and(|method| is_list_changed(&method.decode())) {
            self.lists.changes += 1;
        }
        let Some(result) = msg.result.filter(|_| msg.lists) else { return };
        let last = next_cursor(result).is_none();
        for list in lists(result).iter().filter(|list| last && list.items.is_some()) {
            self.lists.note_client_list_end(case.at, case.lane, list.offer);
        }
    }

    /// Requests the lists that a call depends on before it is decided about, unless they have been
    /// compared. The error says why that is impossible.
    pub(super) fn request_lists_first(
        &mut self,
        case: &GateInput<'_>,
        judgement: &Judgement<'_>,
    ) -> Result<Option<Box<ListFirst>>, String> {
        // A call that has just waited for a failed listing has its drift set, and must not wait
        // again.
        let asks = self.settings.lists && case.from == Side::Client && !self.state.has_drift();
        // A call that is refused in any case need not wait.
        if self.lists.pinned.is_empty()
            || !asks
            || judgement.strict_outcome() == DecisionOutcome::Deny
        {
            return Ok(None);
        }
        let (at, lane, server) = (case.at, case.lane, self.settings.server);
        let offers = judgement.all_calls().filter_map(|call| call.offer);
        let mut wanted: Vec<OfferKind> = Vec::new();
        for offer in offers.flat_map(required_lists) {
            let pinned = self.lists.pinned.contains(offer) && !wanted.contains(offer);
            if pinned && !self.lists.is_fresh(at, lane, *offer, server) {
                wanted.push(*offer);
            }
        }
        let Some((&offer, rest)) = wanted.split_first() else { return Ok(None) };
        // A batch cannot be held, and a notification has no sender that waits.
        let Some(msg) = case.frame.envelope().filter(|msg| msg.kind() == MessageKind::Request)
        else {
            let reason =
                "only a single request can wait for the server's list; send the call alone";
            return Err(format!("{NOT_COMPARED}{reason}"));
        };
        self.last_hold_id += 1;
        let listing = PinListing {
            hold_id: HoldId(self.last_hold_id),
            lane,
            // Taken before the request is sent, so a change announced meanwhile makes the result
            // stale.
            changes: self.lists.changes,
            offer,
            rest: rest.to_vec(),
            meta: meta_of(msg),
            cursor: None,
            pages: 0,
            failure: None,
        };
        let request = listing.request(self.effects.ids.next());
        let first = ListFirst { hold_id: listing.hold_id, timeout_ms: TIMEOUT_MS, request };
        self.lists.insert(listing);
        Ok(Some(Box::new(first)))
    }

    /// Compares a page of a list that the gate has requested.
    pub(super) fn compare_own_list(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        answer: &Frame<'_>,
    ) -> ListStep {
        match self.take_page(at, hold_id, answer) {
            Ok(step) => step,
            Err(reason) => {
                self.note_own_list_failure(hold_id, &reason);
                ListStep::Done
            }
        }
    }

    /// A list that the gate has requested could not be read.
    pub(super) fn note_own_list_failure(&mut self, hold_id: HoldId, reason: &str) {
        let Some(listing) = self.lists.listing(hold_id) else { return };
        listing.failure = Some(format!("`{}`: {reason}", listing.offer.list_method()));
        // Pages that were read so far are dropped: half a list would report the rest as gone.
        let reader = listing.reader();
        self.state.watch.restart(reader, None);
    }

    fn take_page(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        answer: &Frame<'_>,
    ) -> Result<ListStep, String> {
        let Some(listing) = self.lists.listing(hold_id) else { return Ok(ListStep::Done) };
        let lane = listing.lane;
        let msg = answer.envelope();
        let Some(result) = msg.and_then(|msg| msg.result) else {
            let error = msg.and_then(|msg| msg.error);
            let message = error.and_then(|error| json::member(error, "message"));
            let message = message.and_then(json::string);
            let message = message.as_deref().unwrap_or("an error");
            // This text is sent to the client whose call waits.
            let masked = self.masked_text((at, lane), "an error of the server", message.as_bytes());
            let masked = masked.map(|text| String::from_utf8_lossy(&text).into_owned());
            return Err(format!("the server answered: {}", masked.as_deref().unwrap_or(message)));
        };
        let found = lists(result);
        // Looked up again, because `masked_text` needed all of `self` above.
        let Some(listing) = self.lists.listing(hold_id) else { return Ok(ListStep::Done) };
        let (offer, reader) = (listing.offer, listing.reader());
        // A reply without the list would otherwise look like an empty list, with nothing drifted in
        // it.
        if !found.iter().any(|list| list.offer == offer && list.items.is_some()) {
            return Err(format!("the answer has no `{}`", offer.list()));
        }
        // Checked before the page is learned, so an endless list fails instead of growing.
        let goes_on = listing.take_page(result)?;
        if let Some(policy) = self.active_policy.policy.clone() {
            let (lock, server) = (&policy.pins.lock, &self.settings.source);
            let news = self.state.watch.learn(lock, server, &found, reader, !goes_on);
            self.note_drifted((at, lane, msg.and_then(|msg| msg.id)), &policy, &news);
        }
        let Some(listing) = self.lists.listing(hold_id) else { return Ok(ListStep::Done) };
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
        let name = self.effects.ids.next();
        let listing = self.lists.listings.iter().find(|listing| listing.hold_id == hold_id);
        Ok(listing.map_or(ListStep::Done, |listing| ListStep::Next(listing.request(name))))
    }
}

/// Whether a notification announces that a list has changed.
fn is_list_changed(method: &str) -> bool {
    method.starts_with("notifications/") && method.ends_with("/list_changed")
}

/// The lists that define items of a kind.
fn required_lists(offer: OfferKind) -> &'static [OfferKind] {
    match offer {
        OfferKind::Tool => &[OfferKind::Tool],
        OfferKind::Prompt => &[OfferKind::Prompt],
        // A resource may be listed, or come from a template.
        OfferKind::Resource | OfferKind::Template => &[OfferKind::Resource, OfferKind::Template],
    }
}
