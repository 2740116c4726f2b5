//! What one conversation has used of the tape.

use std::collections::{HashMap, HashSet};

use super::tape::Tape;
use crate::signature::Signature;
use crate::tape::index::NONE;

/// How many requests are treated as concurrent at most.
const SIDE_BY_SIDE_MAX: usize = 256;

/// What one conversation has used of the tape: its position in order, and the requests it has
/// taken.
#[derive(Debug)]
pub(super) struct Run {
    /// Its number among those of its session.
    pub(super) number: u32,
    /// The recorded session that it plays, or the whole tape if all sessions share one position.
    part: Part,
    /// How many requests of its part it has passed.
    place: u32,
    /// The slot of the last answer to the requests taken in order.
    busy_until: u32,
    /// Requests further on that were already taken.
    ahead: Ahead,
    /// Whether it has started over after its end.
    cycled: bool,
    used: Bits,
    /// How many requests were taken.
    taken: usize,
    /// Where the search for an unused request continues, by the first one with the same signature;
    /// separate for its own session and for all.
    search: HashMap<(u32, bool), u32, foldhash::fast::RandomState>,
    /// The request that was taken last, by the first one with the same signature.
    last: HashMap<u32, u32, foldhash::fast::RandomState>,
}

/// Requests that were taken before their turn.
pub(super) type Ahead = HashSet<u32, foldhash::fast::RandomState>;

/// The part of the tape that a run goes through in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Session(u32),
    Whole,
}

impl Run {
    pub(super) fn new(number: u32, part: Part) -> Self {
        let (search, last) = (HashMap::default(), HashMap::default());
        Self {
            number,
            part,
            place: 0,
            busy_until: 0,
            ahead: HashSet::default(),
            cycled: false,
            used: Bits::default(),
            taken: 0,
            search,
            last,
        }
    }

    /// The recorded session that is played, if it is only one.
    pub(super) fn session(&self) -> Option<u32> {
        match self.part {
            Part::Session(session) => Some(session),
            Part::Whole => None,
        }
    }

    /// The next request in order.
    pub(super) fn peek(&mut self, tape: &Tape) -> Option<u32> {
        loop {
            let ask = tape.in_order(self.part, self.place)?;
            if !self.ahead.remove(&ask) && !tape.is_unordered(ask) {
                return Some(ask);
            }
            self.place += 1;
        }
    }

    /// Whether its part of the tape is used up.
    pub(super) fn is_finished(&mut self, tape: &Tape) -> bool {
        let asks = self.session().and_then(|session| tape.index.sessions().get(session as usize));
        let used_up = asks.is_some_and(|asks| self.taken >= asks.len());
        used_up || self.place > 0 && self.peek(tape).is_none()
    }

    /// Whether any request has been taken in order.
    pub(super) fn has_begun(&self) -> bool {
        self.place > 0
    }

    /// The requests from the next one on that were made while earlier ones were still unanswered.
    /// The order of concurrent requests is arbitrary.
    pub(super) fn side_by_side(&self, tape: &Tape) -> Vec<u32> {
        let mut busy_until = self.busy_until;
        let mut asks = Vec::new();
        for place in self.place.. {
            let Some(ask) = tape.in_order(self.part, place) else { break };
            if self.ahead.contains(&ask) {
                continue;
            }
            let number = tape.index.ask(ask).slot;
            let quiet = number > busy_until && !asks.is_empty();
            if quiet || asks.len() >= SIDE_BY_SIDE_MAX {
                break;
            }
            if !tape.is_unordered(ask) {
                busy_until = busy_until.max(answered_at(tape, ask));
                asks.push(ask);
            }
        }
        asks
    }

    /// The next requests, as long as they have the same subject or are all lists: many clients make
    /// such requests concurrently, so that they arrive in arbitrary order.
    pub(super) fn row(&self, tape: &Tape, signature: Signature) -> Vec<u32> {
        let asks = (self.place..).map_while(|place| tape.in_order(self.part, place));
        let asks = asks.filter(|ask| !self.ahead.contains(ask) && !tape.is_unordered(*ask));
        let list = tape.relists.is_list(signature);
        let fits = |ask: &u32| {
            let other = tape.index.ask(*ask).signature;
            other.like == signature.like || (list && tape.relists.is_list(other))
        };
        asks.take_while(fits).take(SIDE_BY_SIDE_MAX).collect()
    }

    /// Takes a request before those that precede it in order.
    pub(super) fn take_ahead(&mut self, tape: &Tape, ask: u32) {
        self.busy_until = self.busy_until.max(answered_at(tape, ask));
        self.ahead.insert(ask);
        self.taken += 1;
        self.used.set(ask);
    }

    /// Its position in order, and the requests it has taken further on.
    pub(super) fn place(&self) -> (u32, Ahead) {
        (self.place, self.ahead.clone())
    }

    /// Returns to an earlier position.
    pub(super) fn go_back(&mut self, (place, ahead): (u32, Ahead)) {
        (self.place, self.ahead) = (place, ahead);
    }

    /// Moves on without using the next request.
    pub(super) fn skip(&mut self) {
        self.place += 1;
    }

    /// Moves past the request that [`Run::peek`] returned.
    pub(super) fn advance(&mut self, tape: &Tape, ask: u32) {
        self.busy_until = self.busy_until.max(answered_at(tape, ask));
        self.place += 1;
        self.taken += 1;
        self.used.set(ask);
    }

    /// Starts over.
    pub(super) fn rewind(&mut self) {
        self.place = 0;
        self.busy_until = 0;
        self.ahead.clear();
        self.cycled = true;
    }

    /// Whether it has started over after its end.
    pub(super) fn has_cycled(&self) -> bool {
        self.cycled
    }

    pub(super) fn is_used(&self, ask: u32) -> bool {
        self.used.has(ask)
    }

    /// Takes `ask`, which has the same signature as `head`.
    pub(super) fn take(&mut self, tape: &Tape, head: u32, ask: u32) {
        self.taken += 1;
        self.used.set(ask);
        // A signature that occurs only once needs no entry.
        if !is_only_one(tape, head) {
            self.last.insert(head, ask);
        }
    }

    /// The last request taken with the signature of `head`.
    pub(super) fn last(&self, tape: &Tape, head: u32) -> Option<u32> {
        match is_only_one(tape, head) {
            true => self.used.has(head).then_some(head),
            false => self.last.get(&head).copied(),
        }
    }

    /// The first unused request from where the last search ended: of its own session, or of any.
    pub(super) fn first_unused(&mut self, tape: &Tape, head: u32, own: bool) -> u32 {
        let foreign = |ask| own && Some(tape.session_of(ask)) != self.session();
        if is_only_one(tape, head) {
            return if self.used.has(head) || foreign(head) { NONE } else { head };
        }
        let mut ask = self.search.get(&(head, own)).copied().unwrap_or(head);
        while ask != NONE && (self.used.has(ask) || foreign(ask)) {
            ask = tape.index.next_same(ask);
        }
        self.search.insert((head, own), ask);
        ask
    }

    /// Marks every request with the signature of `head` as unused again.
    pub(super) fn renew(&mut self, tape: &Tape, head: u32) {
        self.search.remove(&(head, true));
        self.search.remove(&(head, false));
        let mut ask = head;
        while ask != NONE {
            self.used.clear(ask);
            ask = tape.index.next_same(ask);
        }
    }
}

/// Whether `head`, the first request with its signature, is the only one.
fn is_only_one(tape: &Tape, head: u32) -> bool {
    tape.index.next_same(head) == NONE
}

/// The slot of the answer to a request; 0 if it was never answered, since no client waited for it.
fn answered_at(tape: &Tape, ask: u32) -> u32 {
    match tape.slot_of(ask).pair {
        NONE => 0,
        slot => slot,
    }
}

/// A set of numbers, one bit each.
#[derive(Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn has(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64).copied().unwrap_or_default();
        word >> (number % 64) & 1 == 1
    }

    pub(super) fn set(&mut self, number: u32) {
        let word = number as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    pub(super) fn clear(&mut self, number: u32) {
        if let Some(word) = self.0.get_mut(number as usize / 64) {
            *word &= !(1 << (number % 64));
        }
    }
}
