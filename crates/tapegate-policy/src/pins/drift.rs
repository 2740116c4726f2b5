//! How definitions differ from the accepted ones.

use std::collections::{BTreeSet, HashMap};

use tapegate_core::gate::HoldId;
use tapegate_core::json::JsonLocation;
use tapegate_core::json::diff::{DiffOptions, ValueChange, diff};

use super::lock::{Pin, PinLock};
use super::shadow::visual_form;
use crate::decide::resource_readings;
use crate::filter::ResultList;
use crate::gated_requests::OfferKind;

/// How many changed fields are named.
const FIELDS_MAX: usize = 6;
/// How much of a value is shown.
const VALUE_CHARS_MAX: usize = 60;
/// How many definitions that were not accepted are remembered. Any beyond that still count as
/// drifted, because they were not accepted.
const KEPT_MAX: usize = 1 << 16;

/// The descriptions of drift, or how they begin.
const CHANGED: &str = "changed: ";
const NEW: &str = "new: never pinned";
const LOOKALIKE: &str = "whose name differs only in blanks, case or letters that look alike";
const GONE: &str = "gone: no longer listed";
pub(crate) const NOT_COMPARED: &str = "not compared with its pin: ";
const OTHERWISE: &str = "changed: its definition differs";
/// How many lists can be read page by page at the same time.
const READERS_MAX: usize = 4096;

/// An item that differs from what was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriftedItem {
    pub offer: OfferKind,
    pub name: String,
    /// A description of the difference.
    pub message: String,
}

/// Remembers the definitions that a live server has sent.
#[derive(Debug, Default)]
pub struct DefinitionWatch {
    last_listed: HashMap<(OfferKind, String), LastDefinition>,
    /// The other readings of listed resources, with their names as listed. A server that finds a
    /// resource by such a reading serves the one that was listed.
    other_readings: HashMap<(OfferKind, String), String>,
    /// The accepted names on the pages so far, by reader and kind.
    paged: HashMap<(ListReader, OfferKind), BTreeSet<String>>,
}

/// The reader of a list that comes page by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListReader {
    pub session: u32,
    /// The held call that the gate lists for; `None` if the client reads the list.
    pub own: Option<HoldId>,
}

/// The last definition that the server has sent.
#[derive(Debug)]
struct LastDefinition {
    hash: String,
    /// How it differs from the accepted one, if it does.
    drift: Option<String>,
}

impl DefinitionWatch {
    /// Takes the lists of a reply and returns newly found drift. `last` says that no page follows.
    pub fn learn(
        &mut self,
        lock: &PinLock,
        server: &str,
        lists: &[ResultList<'_>],
        reader: ListReader,
        last: bool,
    ) -> Vec<DriftedItem> {
        let mut news = Vec::new();
        for list in lists {
            let offer = list.offer;
            let pins = lock.servers.get(server).and_then(|server| server.offers.get(&offer));
            for item in list.items.iter().flatten() {
                for name in &item.names {
                    let found = Pin::of(offer, item.text);
                    let drift =
                        pins.and_then(|pins| describe_drift(pins.get(name.as_ref()), &found));
                    // Names that a server makes up must not displace accepted ones.
                    let accepted = pins.is_some_and(|pins| pins.contains_key(name.as_ref()));
                    if !accepted && self.last_listed.len() >= KEPT_MAX {
                        continue;
                    }
                    if let Some(message) = self.remember(offer, name, found.hash, drift) {
                        news.push(DriftedItem { offer, name: name.to_string(), message });
                    }
                }
            }
            let Some(pins) = pins else { continue };
            let names = list.items.iter().flatten().flat_map(|item| &item.names);
            let names = names.filter(|name| pins.contains_key(name.as_ref()));
            // A list whose first pages are forgotten reports more items as gone, never fewer.
            if self.paged.len() >= READERS_MAX {
                self.paged.clear();
            }
            let paged = self.paged.entry((reader, offer)).or_default();
            // Only pinned names, so a server cannot fill memory with names that it makes up.
            paged.extend(names.map(|name| name.to_string()));
            if last {
                let gone = pins.keys().filter(|name| !paged.contains(*name)).cloned();
                news.extend(gone.map(|name| DriftedItem { offer, name, message: GONE.to_owned() }));
                self.paged.remove(&(reader, offer));
            }
        }
        news
    }

    /// Forgets the pages that a reader has seen, of one kind or of all, because it starts again or
    /// gives up.
    pub fn restart(&mut self, reader: ListReader, offer: Option<OfferKind>) {
        self.paged.retain(|(one, kind), _| *one != reader || offer.is_some_and(|of| of != *kind));
    }

    /// Remembers a definition; returns how it has drifted, if that is news.
    ///
    /// Once something has drifted, it stays so, even if it is listed again as before.
    fn remember(
        &mut self,
        offer: OfferKind,
        name: &str,
        hash: String,
        drift: Option<String>,
    ) -> Option<String> {
        let key = (offer, name.to_owned());
        let before = self.last_listed.get(&key).and_then(|last_listed| last_listed.drift.as_ref());
        // A server that shows the accepted definition when it is watched must not clear its drift.
        if before.is_some() && (drift.is_none() || before == drift.as_ref()) {
            return None;
        }
        if !is_strict(offer) && self.other_readings.len() < KEPT_MAX {
            for reading in resource_readings(name) {
                self.other_readings.insert((offer, reading), name.to_owned());
            }
        }
        self.last_listed.insert(key, LastDefinition { hash, drift: drift.clone() });
        drift
    }

    /// How something that is called differs from what was accepted, if it does.
    ///
    /// A tool or prompt that was not accepted differs. Resources come and go, so one differs only
    /// if it is listed with a definition other than the accepted one.
    pub fn drift(
        &self,
        lock: &PinLock,
        server: &str,
        offer: OfferKind,
        name: &str,
    ) -> Option<&str> {
        let pins = lock.servers.get(server)?.offers.get(&offer)?;
        // Without a listing: a tool that was never pinned is refused even before the server lists it.
        if is_strict(offer) && !pins.contains_key(name) {
            return Some(NEW);
        }
        if self.last_listed.is_empty() {
            return None;
        }
        let written = self.listed_drift(offer, name);
        if written.is_some() || is_strict(offer) {
            return written;
        }
        let readings = resource_readings(name);
        readings.iter().find_map(|reading| self.listed_drift(offer, reading))
    }

    /// The drift of a listed item, by its name or another reading of it.
    fn listed_drift(&self, offer: OfferKind, name: &str) -> Option<&str> {
        let key = (offer, name.to_owned());
        let listed = self.last_listed.get(&key).and_then(|listed| listed.drift.as_deref());
        listed.or_else(|| {
            let key = (offer, self.other_readings.get(&key)?.clone());
            self.last_listed.get(&key)?.drift.as_deref()
        })
    }

    /// Compares the remembered definitions with another lock.
    pub fn compare_with_lock(&mut self, lock: &PinLock, server: &str) {
        for ((offer, name), last_listed) in &mut self.last_listed {
            let pins = lock.servers.get(server).and_then(|server| server.offers.get(offer));
            last_listed.drift = match pins.map(|pins| pins.get(name)) {
                None => None,
                Some(None) => Some(NEW.to_owned()),
                Some(Some(pin)) if pin.hash == last_listed.hash => None,
                // Only the hash of the listed definition is kept, so a new difference cannot be
                // described.
                Some(Some(_)) => last_listed.drift.take().or_else(|| Some(OTHERWISE.to_owned())),
            };
        }
    }
}

/// Whether an item must be pinned to be used. Resources come and go; tools and prompts do not.
fn is_strict(offer: OfferKind) -> bool {
    matches!(offer, OfferKind::Tool | OfferKind::Prompt)
}

/// A description of how a definition differs from the accepted one, if it does.
fn describe_drift(accepted: Option<&Pin>, found: &Pin) -> Option<String> {
    let Some(accepted) = accepted else { return Some(NEW.to_owned()) };
    if accepted.hash == found.hash {
        return None;
    }
    let terms = DiffOptions { root: JsonLocation::default(), ignored: &[], listed_max: FIELDS_MAX };
    let Ok(differences) = diff(&accepted.definition, &found.definition, &terms) else {
        return Some(OTHERWISE.to_owned());
    };
    let fields = differences.listed.iter().map(|difference| {
        let place = &difference.location;
        match difference.change {
            ValueChange::Added(new) => format!("`{place}` is new: {}", shortened_value(new)),
            ValueChange::Removed(old) => format!("`{place}` is gone: {}", shortened_value(old)),
            ValueChange::Value { old, new } | ValueChange::Kind { old, new } => {
                format!("`{place}` was {}, is {}", shortened_value(old), shortened_value(new))
            }
        }
    });
    let mut fields: Vec<String> = fields.collect();
    if differences.more > 0 {
        fields.push(format!("{} more", differences.more));
    }
    if fields.is_empty() {
        // Duplicate members, of which the comparison sees only one.
        fields.push("it is written differently".to_owned());
    }
    Some(format!("{CHANGED}{}", fields.join("; ")))
}

/// Adds to the drift of a new item the accepted name that it could be confused with. Not done for
/// lists: they are long and only need to know that an item differs.
pub(crate) fn drift_message(
    drift: &str,
    lock: &PinLock,
    server: &str,
    offer: OfferKind,
    name: &str,
) -> String {
    let pins = lock.servers.get(server).and_then(|server| server.offers.get(&offer));
    let mut names = pins.into_iter().flat_map(|pins| pins.keys()).filter(|_| drift == NEW);
    match names.find(|pinned| visual_form(pinned) == visual_form(name)) {
        Some(pinned) => format!("{NEW}; `{pinned}` is pinned, {LOOKALIKE}"),
        None => drift.to_owned(),
    }
}

/// The text for a caller about an item that has drifted for this reason.
pub(crate) fn refusal_message(reason: &str) -> &'static str {
    if reason.starts_with(CHANGED) {
        "has changed since it was pinned, and is denied"
    } else if reason.starts_with(NOT_COMPARED) {
        "could not be compared with its pin, and is denied"
    } else if reason == GONE {
        "is no longer listed by its server, and is denied"
    } else if reason.ends_with(LOOKALIKE) {
        "was never pinned, and is denied: its name differs from a pinned one in blanks, case or letters that look alike"
    } else {
        "was never pinned, and is denied"
    }
}

fn shortened_value(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let mut letters = text.chars();
    let mut display_text: String = letters.by_ref().take(VALUE_CHARS_MAX).collect();
    if letters.next().is_some() {
        display_text.push('…');
    }
    display_text
}
