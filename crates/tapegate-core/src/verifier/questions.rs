//! Requests of a server to its client, and the recorded answers.
//!
//! A live request gets the answer of a recorded one with the same method: of one that asks the
//! same, or else of the next in order. An answer may contain something that was meant for one call
//! only, so it is not given before that call was made.

use std::collections::{BTreeMap, HashMap};
use std::io;

use crate::frame::Kind;
use crate::side::Side;

use super::finding::Changes;
use super::judge::Judge;
use super::tape::Tape;

/// How many recorded requests are compared to find one that asks the same.
const LOOK_MAX: usize = 64;
/// Made at any time, and answered whatever was called.
const ANY_TIME: [&str; 2] = ["ping", "roots/list"];
/// Made any number of times, so that their count means nothing.
const REPEATED: [&str; 2] = ["ping", "tasks/get"];

/// The server's requests in a session.
#[derive(Debug, Default)]
pub(super) struct Questions {
    by_method: HashMap<String, Asked>,
    /// Slots of requests that are still expected, and how long to wait for each.
    wanted: BTreeMap<u32, u64>,
}

/// The recorded requests with one method, in tape order.
#[derive(Debug, Default)]
struct Asked {
    slots: Vec<u32>,
    /// Which of them the live server has made.
    taken: Vec<bool>,
    /// Which of them may be answered.
    offered: Vec<bool>,
    /// All before this index have been made.
    open_from: usize,
}

/// What a live request corresponds to.
#[derive(Debug)]
pub(super) enum Match {
    /// A recorded one.
    Recorded {
        /// Its slot.
        slot: u32,
        /// How they differ.
        changes: Changes,
    },
    /// One that was recorded in a call that was not sent.
    Withheld,
    /// One that was not recorded.
    Unknown,
}

impl Questions {
    /// The requests among the slots of a session; if `all` calls may be sent, all of them may be
    /// answered.
    pub(super) fn read(tape: &mut Tape<'_>, slots: &[u32], all: bool) -> io::Result<Self> {
        let mut by_method: HashMap<String, Asked> = HashMap::new();
        for &slot in slots {
            let there = tape.slot(slot);
            if there.from == Side::Server && there.kind == Kind::Request {
                let method = tape.about(slot)?.method;
                let offered = all || ANY_TIME.contains(&method.as_str());
                let asked = by_method.entry(method).or_default();
                asked.slots.push(slot);
                asked.taken.push(false);
                asked.offered.push(offered);
            }
        }
        Ok(Self { by_method, wanted: BTreeMap::new() })
    }

    /// Whether there is one with this method.
    pub(super) fn has(&self, method: &str) -> bool {
        self.by_method.contains_key(method)
    }

    /// Notes that the request in `slot` is expected, and how long to wait for it.
    pub(super) fn expect(&mut self, slot: u32, method: &str, patience_ns: u64) {
        let Some(asked) = self.by_method.get_mut(method) else { return };
        let Ok(at) = asked.slots.binary_search(&slot) else { return };
        asked.offered[at] = true;
        if !asked.taken[at] && !REPEATED.contains(&method) {
            self.wanted.insert(slot, patience_ns);
        }
    }

    /// Finds the recorded request that a live one corresponds to, and marks it as made.
    pub(super) fn take(
        &mut self,
        tape: &mut Tape<'_>,
        judge: &Judge,
        method: &str,
        live: &[u8],
    ) -> io::Result<Match> {
        let Some(asked) = self.by_method.get_mut(method) else { return Ok(Match::Unknown) };
        // Prefer one that asks the same and may be answered; then one that asks the same; then the
        // first that may be answered.
        let mut found: Option<(usize, Changes)> = None;
        let open = (asked.open_from..asked.slots.len()).filter(|at| !asked.taken[*at]);
        for at in open.take(LOOK_MAX) {
            let changes = judge.own_accord(method, &tape.text(asked.slots[at])?, live);
            let (same, offered) = (changes.is_empty(), asked.offered[at]);
            let better = match &found {
                Some((_, before)) => same && (offered || !before.is_empty()),
                None => same || offered,
            };
            if better {
                found = Some((at, changes));
            }
            if same && offered {
                break;
            }
        }
        let Some((at, changes)) = found else {
            // A polling server gets the last answer again.
            let last = asked.taken.iter().rposition(|taken| *taken);
            let mut withheld = asked.taken.iter().zip(&asked.offered);
            return Ok(match last.filter(|_| REPEATED.contains(&method)) {
                Some(at) => Match::Recorded { slot: asked.slots[at], changes: Changes::default() },
                None if withheld.any(|(taken, offered)| !taken && !offered) => Match::Withheld,
                None => Match::Unknown,
            });
        };
        if !asked.offered[at] {
            return Ok(Match::Withheld);
        }
        asked.taken[at] = true;
        while asked.taken.get(asked.open_from) == Some(&true) {
            asked.open_from += 1;
        }
        let slot = asked.slots[at];
        self.wanted.remove(&slot);
        Ok(Match::Recorded { slot, changes })
    }

    /// The earliest time until which to wait for an expected request, counted from `base_ns`, if
    /// any.
    pub(super) fn wanted_until(&self, now_ns: u64, base_ns: u64) -> Option<u64> {
        let until = self.wanted.values().map(|patience_ns| base_ns + patience_ns);
        until.filter(|until_ns| *until_ns > now_ns).min()
    }

    /// The slots of expected requests that the server did not make.
    pub(super) fn missing(&self) -> Vec<u32> {
        self.wanted.keys().copied().collect()
    }
}
