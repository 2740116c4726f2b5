//! How what servers say differs from what was accepted.

use std::collections::{BTreeSet, HashMap};

use tapegate_core::gate::Ticket;
use tapegate_core::json::Place;
use tapegate_core::json::diff::{Change, Terms, diff};

use super::lock::{Lock, Pin};
use super::shadow::look;
use crate::filter::List;
use crate::gated::Offer;

/// How many fields are named.
const FIELDS_MAX: usize = 6;
/// How much of a value is shown.
const VALUE_CHARS_MAX: usize = 60;
/// How many definitions of what was not accepted are remembered. What is beyond drifts all the
/// same, for not being accepted.
const KEPT_MAX: usize = 1 << 16;

/// How the ways begin in which something is not what was accepted.
const CHANGED: &str = "changed: ";
const NEW: &str = "new: never pinned";
const LOOKALIKE: &str = "whose name differs only in blanks, case or letters that look alike";
const GONE: &str = "gone: no longer listed";
pub(crate) const NOT_COMPARED: &str = "not compared with its pin: ";
const OTHERWISE: &str = "changed: it is defined otherwise";
/// How many lists are gathered page by page at once.
const READERS_MAX: usize = 4096;

/// Something that is not what was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drifted {
    /// What it is.
    pub offer: Offer,
    /// Its name.
    pub name: String,
    /// How it differs, in words.
    pub words: String,
}

/// Remembers what a live server has said about itself.
#[derive(Debug, Default)]
pub struct Watch {
    said: HashMap<(Offer, String), Said>,
    /// What was accepted and is on the pages so far, by who reads them and kind.
    paged: HashMap<(Reader, Offer), BTreeSet<String>>,
}

/// Who reads a list page by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reader {
    /// The session.
    pub session: u32,
    /// The held call that the gate lists for; `None` if the client lists.
    pub own: Option<Ticket>,
}

/// A definition as it was said last.
#[derive(Debug)]
struct Said {
    hash: String,
    /// How it differs from what was accepted, if it does.
    drift: Option<String>,
}

impl Watch {
    /// Takes the lists of a reply; returns what has drifted and was not known to. `last` if no
    /// page follows.
    pub fn learn(
        &mut self,
        lock: &Lock,
        server: &str,
        lists: &[List<'_>],
        reader: Reader,
        last: bool,
    ) -> Vec<Drifted> {
        let mut news = Vec::new();
        for list in lists {
            let offer = list.offer;
            let pins = lock.servers.get(server).and_then(|server| server.offers.get(&offer));
            for item in list.items.iter().flatten() {
                for name in &item.names {
                    let found = Pin::of(offer, item.text);
                    let drift = pins.and_then(|pins| words(pins.get(name.as_ref()), &found));
                    // Room for what was accepted is never taken by names that a server makes up.
                    let accepted = pins.is_some_and(|pins| pins.contains_key(name.as_ref()));
                    if !accepted && self.said.len() >= KEPT_MAX {
                        continue;
                    }
                    if let Some(words) = self.remember(offer, name, found.hash, drift) {
                        news.push(Drifted { offer, name: name.to_string(), words });
                    }
                }
            }
            let Some(pins) = pins else { continue };
            let names = list.items.iter().flatten().flat_map(|item| &item.names);
            let names = names.filter(|name| pins.contains_key(name.as_ref()));
            if self.paged.len() >= READERS_MAX {
                self.paged.clear();
            }
            let paged = self.paged.entry((reader, offer)).or_default();
            paged.extend(names.map(|name| name.to_string()));
            if last {
                let gone = pins.keys().filter(|name| !paged.contains(*name)).cloned();
                news.extend(gone.map(|name| Drifted { offer, name, words: GONE.to_owned() }));
                self.paged.remove(&(reader, offer));
            }
        }
        news
    }

    /// Forgets the pages that a reader has seen, of one kind or of all: it begins again, or gives up.
    pub fn restart(&mut self, reader: Reader, offer: Option<Offer>) {
        self.paged.retain(|(one, kind), _| *one != reader || offer.is_some_and(|of| of != *kind));
    }

    /// Remembers what was said; returns how it has drifted, if that is news.
    ///
    /// What has drifted once is not trusted again for being listed twice, or as before.
    fn remember(
        &mut self,
        offer: Offer,
        name: &str,
        hash: String,
        drift: Option<String>,
    ) -> Option<String> {
        let key = (offer, name.to_owned());
        let before = self.said.get(&key).and_then(|said| said.drift.as_ref());
        if before.is_some() && (drift.is_none() || before == drift.as_ref()) {
            return None;
        }
        self.said.insert(key, Said { hash, drift: drift.clone() });
        drift
    }

    /// How something that is called differs from what was accepted, if it does.
    ///
    /// A tool or prompt that was not accepted differs; resources come and go, and only one that is
    /// listed otherwise than it was differs.
    pub fn drift(&self, lock: &Lock, server: &str, offer: Offer, name: &str) -> Option<&str> {
        let pins = lock.servers.get(server)?.offers.get(&offer)?;
        let strict = matches!(offer, Offer::Tool | Offer::Prompt);
        if strict && !pins.contains_key(name) {
            return Some(NEW);
        }
        if self.said.is_empty() {
            return None;
        }
        self.said.get(&(offer, name.to_owned()))?.drift.as_deref()
    }

    /// Holds what was said against another lock.
    pub fn relock(&mut self, lock: &Lock, server: &str) {
        for ((offer, name), said) in &mut self.said {
            let pins = lock.servers.get(server).and_then(|server| server.offers.get(offer));
            said.drift = match pins.map(|pins| pins.get(name)) {
                None => None,
                Some(None) => Some(NEW.to_owned()),
                Some(Some(pin)) if pin.hash == said.hash => None,
                Some(Some(_)) => said.drift.take().or_else(|| Some(OTHERWISE.to_owned())),
            };
        }
    }
}

/// How a definition differs from the one that was accepted, if it does.
fn words(accepted: Option<&Pin>, found: &Pin) -> Option<String> {
    let Some(accepted) = accepted else { return Some(NEW.to_owned()) };
    if accepted.hash == found.hash {
        return None;
    }
    let terms = Terms { root: Place::default(), ignored: &[], listed_max: FIELDS_MAX };
    let Ok(differences) = diff(&accepted.definition, &found.definition, &terms) else {
        return Some(OTHERWISE.to_owned());
    };
    let fields = differences.listed.iter().map(|difference| {
        let place = &difference.place;
        match difference.change {
            Change::Added(new) => format!("`{place}` is new: {}", shown(new)),
            Change::Removed(old) => format!("`{place}` is gone: {}", shown(old)),
            Change::Value { old, new } | Change::Kind { old, new } => {
                format!("`{place}` was {}, is {}", shown(old), shown(new))
            }
        }
    });
    let mut fields: Vec<String> = fields.collect();
    if differences.more > 0 {
        fields.push(format!("{} more", differences.more));
    }
    if fields.is_empty() {
        // Members that occur twice, of which a comparison sees one.
        fields.push("it is written otherwise".to_owned());
    }
    Some(format!("{CHANGED}{}", fields.join("; ")))
}

/// How something differs from what was accepted, with the accepted name that it could be taken for if it is
/// new. Lists are long, and need only know that it differs.
pub(crate) fn told(drift: &str, lock: &Lock, server: &str, offer: Offer, name: &str) -> String {
    let pins = lock.servers.get(server).and_then(|server| server.offers.get(&offer));
    let mut names = pins.into_iter().flat_map(|pins| pins.keys()).filter(|_| drift == NEW);
    match names.find(|pinned| look(pinned) == look(name)) {
        Some(pinned) => format!("{NEW}; `{pinned}` is pinned, {LOOKALIKE}"),
        None => drift.to_owned(),
    }
}

/// What a caller is told of something that is not what was accepted, for this reason.
pub(crate) fn refusal_words(reason: &str) -> &'static str {
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

fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    let mut letters = text.chars();
    let mut shown: String = letters.by_ref().take(VALUE_CHARS_MAX).collect();
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}
