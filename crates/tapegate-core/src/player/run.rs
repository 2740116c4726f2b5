//! What one conversation has used of the tape.

use std::collections::{HashMap, HashSet};

use super::tape::Tape;
use crate::signature::Signature;
use crate::tape::index::NONE;

/// How many requests are taken to have been made side by side.
const SIDE_BY_SIDE_MAX: usize = 256;

/// What one conversation has used of the tape: its place in order, and what was given out.
#[derive(Debug)]
pub(super) struct Run {
    /// Its number among those of its session.
    pub(super) number: u32,
    /// The session of the tape that it plays; with one place for all sessions, the whole tape.
    part: Part,
    /// How many requests of its part lie behind it.
    place: u32,
    /// When the last answer to what was taken in order came: a slot.
    busy_until: u32,
    /// Requests further on that were taken already.
    ahead: Ahead,
    /// Whether it has begun again after its end.
    cycled: bool,
    used: Bits,
    /// How many requests were given out.
    taken: usize,
    /// Where the search for an unused request goes on, by the first one with the same signature;
    /// apart for its own session and for all.
    search: HashMap<(u32, bool), u32, foldhash::fast::RandomState>,
    /// Which request was given out last, by the first one with the same signature.
    last: HashMap<u32, u32, foldhash::fast::RandomState>,
}

/// Requests that were taken before their turn.
pub(super) type Ahead = HashSet<u32, foldhash::fast::RandomState>;

/// Which requests of the tape a run goes through in order.
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

    /// The session of the tape that is played, if it is one.
    pub(super) fn session(&self) -> Option<u32> {
        match self.part {
            Part::Session(session) => Some(session),
            Part::Whole => None,
        }
    }

    /// The request that comes next in order.
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

    /// Whether anything has been taken in order.
    pub(super) fn has_begun(&self) -> bool {
        self.place > 0
    }

    /// The requests from the next one on that were made before the client had all its answers: a
    /// client that asks several things at once leaves their order to chance.
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

    /// The next requests, as long as they ask for the same thing, or all for lists: many clients
    /// make such requests all at once, and in which order they arrive is chance.
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

    /// Takes a request before those that come first in order.
    pub(super) fn take_ahead(&mut self, tape: &Tape, ask: u32) {
        self.busy_until = self.busy_until.max(answered_at(tape, ask));
        self.ahead.insert(ask);
        self.taken += 1;
        self.used.set(ask);
    }

    /// Where it stands in order: how far it has come, and what it has taken further on.
    pub(super) fn place(&self) -> (u32, Ahead) {
        (self.place, self.ahead.clone())
    }

    /// Goes back to where it stood.
    pub(super) fn go_back(&mut self, (place, ahead): (u32, Ahead)) {
        (self.place, self.ahead) = (place, ahead);
    }

    /// Moves on without using what comes next.
    pub(super) fn skip(&mut self) {
        self.place += 1;
    }

    /// Moves behind the request that [`Run::peek`] gave.
    pub(super) fn advance(&mut self, tape: &Tape, ask: u32) {
        self.busy_until = self.busy_until.max(answered_at(tape, ask));
        self.place += 1;
        self.taken += 1;
        self.used.set(ask);
    }

    /// Begins again.
    pub(super) fn rewind(&mut self) {
        self.place = 0;
        self.busy_until = 0;
        self.ahead.clear();
        self.cycled = true;
    }

    /// Whether it has begun again after its end.
    pub(super) fn has_cycled(&self) -> bool {
        self.cycled
    }

    pub(super) fn is_used(&self, ask: u32) -> bool {
        self.used.has(ask)
    }

    /// Gives out `ask`, which has the same signature as `head`.
    pub(super) fn take(&mut self, tape: &Tape, head: u32, ask: u32) {
        self.taken += 1;
        self.used.set(ask);
        // What the tape has once needs no note of its own.
        if !is_only_one(tape, head) {
            self.last.insert(head, ask);
        }
    }

    /// Which request with the signature of `head` was given out last.
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

    /// Makes every request with the signature of `head` unused again.
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

/// Whether no other request has the signature of `head`, the first that has it.
fn is_only_one(tape: &Tape, head: u32) -> bool {
    tape.index.next_same(head) == NONE
}

/// The slot of the answer to a request. What was never answered kept nobody waiting.
fn answered_at(tape: &Tape, ask: u32) -> u32 {
    match tape.slot_of(ask).pair {
        NONE => 0,
        slot => slot,
    }
}

/// A set of numbers, a bit each.
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
