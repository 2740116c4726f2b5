//! How what servers say differs from what was accepted.

use std::collections::{BTreeSet, HashMap};

use tapegate_core::json::Place;
use tapegate_core::json::diff::{Change, Terms, diff};

use super::lock::{Lock, Pin};
use crate::filter::List;
use crate::gated::Offer;

/// How many fields are named.
const FIELDS_MAX: usize = 6;
/// How much of a value is shown.
const VALUE_CHARS_MAX: usize = 60;
/// How many that have drifted are remembered; what lies beyond is not, and drifts by absence.
const KEPT_MAX: usize = 1 << 16;

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
    drifted: HashMap<(Offer, String), String>,
    /// The names on the pages so far, by kind.
    seen: HashMap<Offer, BTreeSet<String>>,
}

impl Watch {
    /// Takes the lists of a reply; returns what has drifted and was not known to. `last` if no
    /// page follows.
    pub fn learn(
        &mut self,
        lock: &Lock,
        server: &str,
        lists: &[List<'_>],
        last: bool,
    ) -> Vec<Drifted> {
        let Some(pinned) = lock.servers.get(server) else { return Vec::new() };
        let mut news = Vec::new();
        for list in lists {
            let Some(pins) = pinned.offers.get(&list.offer) else { continue };
            let seen = self.seen.entry(list.offer).or_default();
            for item in list.items.iter().flatten() {
                for name in &item.names {
                    seen.insert(name.to_string());
                    let key = (list.offer, name.to_string());
                    let words = words(pins.get(name.as_ref()), &Pin::of(list.offer, item.text));
                    // What has drifted once is not trusted again for being listed twice, or as before.
                    let Some(words) = words else { continue };
                    let known = self.drifted.get(&key) == Some(&words);
                    if !known && self.drifted.len() < KEPT_MAX {
                        self.drifted.insert(key, words.clone());
                        news.push(Drifted { offer: list.offer, name: name.to_string(), words });
                    }
                }
            }
            if last {
                let gone = pins.keys().filter(|name| !seen.contains(*name));
                news.extend(gone.map(|name| Drifted {
                    offer: list.offer,
                    name: name.clone(),
                    words: "it is no longer offered".to_owned(),
                }));
                seen.clear();
            }
        }
        news
    }

    /// How something that is called differs from what was accepted, if it does.
    ///
    /// A tool or prompt that was not accepted differs; resources come and go, and only one that is
    /// listed otherwise than it was differs.
    pub fn drift(&self, lock: &Lock, server: &str, offer: Offer, name: &str) -> Option<&str> {
        let pins = lock.servers.get(server)?.offers.get(&offer)?;
        if !self.drifted.is_empty()
            && let Some(words) = self.drifted.get(&(offer, name.to_owned()))
        {
            return Some(words);
        }
        let strict = matches!(offer, Offer::Tool | Offer::Prompt);
        (strict && !pins.contains_key(name)).then_some("it is not among what was accepted")
    }

    /// Forgets everything, as if nothing had been said: the lock is another one.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// How a server that was pinned once and is pinned anew has changed, kind by kind and by name.
pub fn compare(old: &Lock, new: &Lock, server: &str) -> Vec<Drifted> {
    let (Some(old), Some(new)) = (old.servers.get(server), new.servers.get(server)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for offer in Offer::ALL {
        let (Some(old), Some(new)) = (old.offers.get(&offer), new.offers.get(&offer)) else {
            continue;
        };
        for (name, pin) in new {
            let words = words(old.get(name), pin);
            found.extend(words.map(|words| Drifted { offer, name: name.clone(), words }));
        }
        let gone = old.keys().filter(|name| !new.contains_key(*name));
        let words = "it is no longer offered";
        found.extend(gone.map(|name| Drifted { offer, name: name.clone(), words: words.into() }));
    }
    found
}

/// How a definition differs from the one that was accepted, if it does.
fn words(accepted: Option<&Pin>, found: &Pin) -> Option<String> {
    let Some(accepted) = accepted else { return Some("it is new".to_owned()) };
    if accepted.hash == found.hash {
        return None;
    }
    let terms = Terms { root: Place::default(), ignored: &[], listed_max: FIELDS_MAX };
    let Ok(differences) = diff(&accepted.definition, &found.definition, &terms) else {
        return Some("it is defined otherwise".to_owned());
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
    Some(fields.join("; "))
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
