//! What a server offers now, compared with what was accepted, for review.

use std::collections::{BTreeMap, BTreeSet};

use tapegate_core::json;

use super::lock::{Pin, PinLock, PinnedServer};
use crate::filter::lists;
use crate::gated_requests::OfferKind;

/// The items a server offers, collected page by page.
#[derive(Debug, Default)]
pub struct ServerSurvey {
    offers: BTreeMap<OfferKind, BTreeMap<String, Pin>>,
    /// The kinds that were listed completely.
    whole: BTreeSet<OfferKind>,
    /// Items that were defined in several ways; the last definition is used.
    fickle: BTreeSet<(OfferKind, String)>,
    /// The number of items without a name.
    nameless: usize,
}

/// A difference between what is offered and what was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinDifference {
    pub offer: OfferKind,
    pub name: String,
    /// The accepted definition, unless it is new.
    pub accepted: Option<Pin>,
    /// The offered definition, unless it is gone.
    pub offered: Option<Pin>,
}

impl ServerSurvey {
    /// Adds the result of a list request.
    pub fn page(&mut self, result: &[u8]) {
        let last = json::member(result, "nextCursor").is_none_or(|next| next == b"null");
        for list in lists(result) {
            let Some(items) = list.items else { continue };
            let kind = self.offers.entry(list.offer).or_default();
            for item in items {
                let Some(name) = item.names.first().filter(|_| item.named) else {
                    self.nameless += 1;
                    continue;
                };
                let pin = Pin::of(list.offer, item.text);
                let known = kind.insert(name.to_string(), pin.clone());
                // A server that defines an item twice may show one definition to reviewers and
                // another to agents.
                if known.is_some_and(|known| known != pin) {
                    self.fickle.insert((list.offer, name.to_string()));
                }
            }
            if last {
                self.whole.insert(list.offer);
            }
        }
    }

    /// Whether nothing was listed.
    pub fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    /// The number of items offered.
    pub fn len(&self) -> usize {
        self.offers.values().map(BTreeMap::len).sum()
    }

    /// The items that were defined in several ways.
    pub fn inconsistent_items(&self) -> impl Iterator<Item = (OfferKind, &str)> {
        self.fickle.iter().map(|(offer, name)| (*offer, name.as_str()))
    }

    /// The number of items without a name, which cannot be accepted.
    pub fn unnamed_count(&self) -> usize {
        self.nameless
    }

    /// All differences from what was accepted. Items are missing only if their list was read
    /// completely.
    pub fn differences(&self, lock: &PinLock, server: &str) -> Vec<PinDifference> {
        let accepted = |offer: OfferKind| lock.servers.get(server)?.offers.get(&offer);
        let mut found = Vec::new();
        for (&offer, offered) in &self.offers {
            for (name, pin) in offered {
                let was = accepted(offer).and_then(|pins| pins.get(name));
                if was != Some(pin) {
                    let (accepted, offered) = (was.cloned(), Some(pin.clone()));
                    found.push(PinDifference { offer, name: name.clone(), accepted, offered });
                }
            }
            let whole = self.whole.contains(&offer);
            for (name, pin) in accepted(offer).into_iter().flatten().filter(|_| whole) {
                if !offered.contains_key(name) {
                    let accepted = Some(pin.clone());
                    found.push(PinDifference {
                        offer,
                        name: name.clone(),
                        accepted,
                        offered: None,
                    });
                }
            }
        }
        found
    }

    /// Accepts all that a server offers, and removes everything else of the kinds that were listed.
    pub fn accept_all(&self, lock: &mut PinLock, server: &str) {
        for difference in self.differences(lock, server) {
            difference.accept(lock, server);
        }
        // An empty kind is pinned too: items that appear later were not accepted.
        let pinned = lock.servers.entry(server.to_owned()).or_default();
        for offer in self.offers.keys() {
            pinned.offers.entry(*offer).or_default();
        }
    }
}

impl PinDifference {
    /// Accepts this difference.
    pub fn accept(&self, lock: &mut PinLock, server: &str) {
        let kind = lock.servers.entry(server.to_owned()).or_default();
        let kind = kind.offers.entry(self.offer).or_default();
        match &self.offered {
            Some(pin) => drop(kind.insert(self.name.clone(), pin.clone())),
            None => drop(kind.remove(&self.name)),
        }
    }
}

impl PinLock {
    /// The differences from an earlier lock, by server; `None` if that lock pins a server or a kind
    /// that this one does not.
    pub fn changes_since(&self, earlier: &Self) -> Option<BTreeMap<String, Vec<PinDifference>>> {
        let kinds = |(name, server): (&String, &PinnedServer)| -> Vec<(String, OfferKind)> {
            server.offers.keys().map(|offer| (name.clone(), *offer)).collect()
        };
        let held: BTreeSet<_> = self.servers.iter().flat_map(kinds).collect();
        if !earlier.servers.iter().flat_map(kinds).all(|kind| held.contains(&kind)) {
            return None;
        }
        let each = |(name, server): (&String, &PinnedServer)| {
            let whole = server.offers.keys().copied().collect();
            let survey =
                ServerSurvey { offers: server.offers.clone(), whole, ..ServerSurvey::default() };
            (name.clone(), survey.differences(earlier, name))
        };
        Some(self.servers.iter().map(each).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(pages: &[&str]) -> ServerSurvey {
        let mut survey = ServerSurvey::default();
        pages.iter().for_each(|page| survey.page(page.as_bytes()));
        survey
    }

    fn shown(survey: &ServerSurvey, lock: &PinLock) -> Vec<String> {
        let all = survey.differences(lock, "s").into_iter();
        all.map(|one| match (one.accepted, one.offered) {
            (None, Some(_)) => format!("+{}", one.name),
            (Some(_), None) => format!("-{}", one.name),
            _ => format!("~{}", one.name),
        })
        .collect()
    }

    #[test]
    fn what_is_new_gone_or_other_is_told_until_it_is_accepted() {
        let mut lock = PinLock::default();
        let first = survey(&[
            r#"{"tools":[{"name":"a"},{"name":"b","description":"x"}],"nextCursor":"2"}"#,
            r#"{"tools":[{"name":"c"}]}"#,
        ]);
        assert_eq!(shown(&first, &lock), ["+a", "+b", "+c"]);
        first.accept_all(&mut lock, "s");
        assert!(shown(&first, &lock).is_empty());
        let later =
            survey(&[r#"{"tools":[{"name":"b","description":"y"},{"name":"d"},{"name":"c"}]}"#]);
        assert_eq!(shown(&later, &lock), ["~b", "+d", "-a"]);
        let differences = later.differences(&lock, "s");
        differences[0].accept(&mut lock, "s");
        assert_eq!(shown(&later, &lock), ["+d", "-a"]);
        differences[2].accept(&mut lock, "s");
        assert_eq!(shown(&later, &lock), ["+d"]);
        assert_eq!(PinLock::parse(&lock.write()), Ok(lock));
    }

    #[test]
    fn two_locks_differ_in_what_was_accepted_unless_one_holds_to_less() {
        let (mut old, mut new) = (PinLock::default(), PinLock::default());
        survey(&[r#"{"tools":[{"name":"a"},{"name":"b"}]}"#]).accept_all(&mut old, "s");
        survey(&[r#"{"tools":[{"name":"b","title":"B"},{"name":"c"}]}"#]).accept_all(&mut new, "s");
        let names =
            |list: &[PinDifference]| list.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&new.changes_since(&old).unwrap()["s"]), ["b", "c", "a"]);
        survey(&[r#"{"prompts":[]}"#]).accept_all(&mut old, "s");
        assert_eq!(new.changes_since(&old), None);
    }

    #[test]
    fn what_was_not_listed_to_the_end_is_not_missed() {
        let mut lock = PinLock::default();
        let whole = survey(&[r#"{"tools":[{"name":"a"},{"name":"b"}]}"#]);
        whole.accept_all(&mut lock, "s");
        let half = survey(&[r#"{"tools":[{"name":"a"}],"nextCursor":"2"}"#]);
        assert!(shown(&half, &lock).is_empty());
        half.accept_all(&mut lock, "s");
        assert!(lock.pin_of("s", OfferKind::Tool, "b").is_some());
        // Other kinds are not touched, and an empty kind is pinned.
        let prompts = survey(&[r#"{"prompts":[]}"#]);
        prompts.accept_all(&mut lock, "s");
        assert!(lock.servers["s"].offers[&OfferKind::Prompt].is_empty());
        assert!(lock.pin_of("s", OfferKind::Tool, "a").is_some());
    }

    #[test]
    fn what_is_defined_in_two_ways_or_has_no_name_is_told() {
        let odd = survey(&[
            r#"{"tools":[{"name":"a","description":"1"},{"title":"nameless"}]}"#,
            r#"{"tools":[{"name":"a","description":"2"},{"name":"b"}]}"#,
        ]);
        assert_eq!(odd.inconsistent_items().collect::<Vec<_>>(), [(OfferKind::Tool, "a")]);
        assert_eq!((odd.unnamed_count(), odd.len()), (1, 2));
    }
}
