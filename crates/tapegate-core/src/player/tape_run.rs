//! What one conversation has used of the tape.

use std::collections::{HashMap, HashSet};

use super::tape::PlayerTape;
use crate::signature::Signature;
use crate::tape::index::NONE;

/// How many requests are treated as concurrent at most.
const SIDE_BY_SIDE_MAX: usize = 256;

/// What one conversation has used of the tape: its position in order, and the requests it has
/// taken.
#[derive(Debug)]
pub(super) struct TapeRun {
    /// Its number among those of its session.
    pub(super) number: u32,
    /// The recorded session that it plays, or the whole tape if all sessions share one position.
    part: RunScope,
    /// How many requests of its part it has passed.
    position: u32,
    /// The entry of the last answer to the requests taken in order.
    busy_until: u32,
    /// Requests further on that were already taken.
    ahead: EarlyRequests,
    /// Whether it has started over after its end.
    cycled: bool,
    used: BitSet,
    /// How many requests were taken.
    taken: usize,
    /// Where the search for an unused request continues, by the first one with the same signature;
    /// separate for its own session and for all.
    search: HashMap<(u32, bool), u32, foldhash::fast::RandomState>,
    /// The request that was taken last, by the first one with the same signature.
    last: HashMap<u32, u32, foldhash::fast::RandomState>,
}

/// Requests that were taken before their turn.
pub(super) type EarlyRequests = HashSet<u32, foldhash::fast::RandomState>;

/// The part of the tape that a run goes through in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunScope {
    Session(u32),
    Whole,
}

impl TapeRun {
    pub(super) fn new(number: u32, part: RunScope) -> Self {
        let (search, last) = (HashMap::default(), HashMap::default());
        Self {
            number,
            part,
            position: 0,
            busy_until: 0,
            ahead: HashSet::default(),
            cycled: false,
            used: BitSet::default(),
            taken: 0,
            search,
            last,
        }
    }

    /// The recorded session that is played, if it is only one.
    pub(super) fn session(&self) -> Option<u32> {
        match self.part {
            RunScope::Session(session) => Some(session),
            RunScope::Whole => None,
        }
    }

    /// The next request in order.
    pub(super) fn peek(&mut self, tape: &PlayerTape) -> Option<u32> {
        loop {
            let request_number = tape.request_at(self.part, self.position)?;
            // `remove` forgets an early request once its position is passed.
            if !self.ahead.remove(&request_number) && !tape.is_unordered(request_number) {
                return Some(request_number);
            }
            self.position += 1;
        }
    }

    /// Whether its part of the tape is used up.
    pub(super) fn is_finished(&mut self, tape: &PlayerTape) -> bool {
        let request_numbers =
            self.session().and_then(|session| tape.index.sessions().get(session as usize));
        let used_up =
            request_numbers.is_some_and(|request_numbers| self.taken >= request_numbers.len());
        // A run that has not begun is not finished, even if nothing in its part has an order.
        used_up || self.position > 0 && self.peek(tape).is_none()
    }

    /// Whether any request has been taken in order.
    pub(super) fn has_begun(&self) -> bool {
        self.position > 0
    }

    /// The requests from the next one on that were made while earlier ones were still unanswered.
    /// The order of concurrent requests is arbitrary.
    pub(super) fn concurrent_requests(&self, tape: &PlayerTape) -> Vec<u32> {
        let mut busy_until = self.busy_until;
        let mut request_numbers = Vec::new();
        for position in self.position.. {
            let Some(request_number) = tape.request_at(self.part, position) else { break };
            if self.ahead.contains(&request_number) {
                continue;
            }
            let number = tape.index.request(request_number).entry_number;
            // Everything before was answered when this one was made, so its place is certain.
            let quiet = number > busy_until && !request_numbers.is_empty();
            if quiet || request_numbers.len() >= SIDE_BY_SIDE_MAX {
                break;
            }
            if !tape.is_unordered(request_number) {
                busy_until = busy_until.max(answer_entry(tape, request_number));
                request_numbers.push(request_number);
            }
        }
        request_numbers
    }

    /// The next requests, as long as they have the same subject or are all lists: many clients make
    /// such requests concurrently, so that they arrive in arbitrary order.
    pub(super) fn row(&self, tape: &PlayerTape, signature: Signature) -> Vec<u32> {
        let request_numbers =
            (self.position..).map_while(|position| tape.request_at(self.part, position));
        let request_numbers = request_numbers.filter(|request_number| {
            !self.ahead.contains(request_number) && !tape.is_unordered(*request_number)
        });
        let list = tape.relists.is_list(signature);
        let fits = |request_number: &u32| {
            let other = tape.index.request(*request_number).signature;
            other.like == signature.like || (list && tape.relists.is_list(other))
        };
        request_numbers.take_while(fits).take(SIDE_BY_SIDE_MAX).collect()
    }

    /// Takes a request before those that precede it in order.
    pub(super) fn take_out_of_order(&mut self, tape: &PlayerTape, request_number: u32) {
        // Requests made before that answer count as concurrent, wherever they are.
        self.busy_until = self.busy_until.max(answer_entry(tape, request_number));
        self.ahead.insert(request_number);
        self.taken += 1;
        self.used.set(request_number);
    }

    /// Its position in order, and the requests it has taken further on.
    pub(super) fn checkpoint(&self) -> (u32, EarlyRequests) {
        (self.position, self.ahead.clone())
    }

    /// Returns to an earlier position.
    pub(super) fn restore(&mut self, (position, ahead): (u32, EarlyRequests)) {
        (self.position, self.ahead) = (position, ahead);
    }

    /// Moves on without using the next request.
    pub(super) fn skip(&mut self) {
        self.position += 1;
    }

    /// Moves past the request that [`TapeRun::peek`] returned.
    pub(super) fn advance(&mut self, tape: &PlayerTape, request_number: u32) {
        self.busy_until = self.busy_until.max(answer_entry(tape, request_number));
        self.position += 1;
        self.taken += 1;
        self.used.set(request_number);
    }

    /// Starts over.
    pub(super) fn rewind(&mut self) {
        self.position = 0;
        self.busy_until = 0;
        // Everything may be taken again, also requests that were early in the last pass.
        self.ahead.clear();
        self.cycled = true;
    }

    /// Whether it has started over after its end.
    pub(super) fn has_cycled(&self) -> bool {
        self.cycled
    }

    pub(super) fn is_used(&self, request_number: u32) -> bool {
        self.used.contains(request_number)
    }

    /// Takes `request_number`, which has the same signature as `head`.
    pub(super) fn take_request(&mut self, tape: &PlayerTape, head: u32, request_number: u32) {
        self.taken += 1;
        self.used.set(request_number);
        // A signature that occurs only once needs no entry.
        if !is_sole_request(tape, head) {
            self.last.insert(head, request_number);
        }
    }

    /// The last request taken with the signature of `head`.
    pub(super) fn last(&self, tape: &PlayerTape, head: u32) -> Option<u32> {
        match is_sole_request(tape, head) {
            true => self.used.contains(head).then_some(head),
            false => self.last.get(&head).copied(),
        }
    }

    /// The first unused request from where the last search ended: of its own session, or of any.
    pub(super) fn first_unused(&mut self, tape: &PlayerTape, head: u32, own: bool) -> u32 {
        let foreign =
            |request_number| own && Some(tape.session_of(request_number)) != self.session();
        if is_sole_request(tape, head) {
            return if self.used.contains(head) || foreign(head) { NONE } else { head };
        }
        let mut request_number = self.search.get(&(head, own)).copied().unwrap_or(head);
        while request_number != NONE
            && (self.used.contains(request_number) || foreign(request_number))
        {
            request_number = tape.index.next_with_hash(request_number);
        }
        // The next search starts here, so that many equal requests take linear time in total.
        self.search.insert((head, own), request_number);
        request_number
    }

    /// Marks every request with the signature of `head` as unused again.
    pub(super) fn mark_unused(&mut self, tape: &PlayerTape, head: u32) {
        self.search.remove(&(head, true));
        self.search.remove(&(head, false));
        let mut request_number = head;
        while request_number != NONE {
            self.used.clear(request_number);
            request_number = tape.index.next_with_hash(request_number);
        }
    }
}

/// Whether `head`, the first request with its signature, is the only one.
fn is_sole_request(tape: &PlayerTape, head: u32) -> bool {
    tape.index.next_with_hash(head) == NONE
}

/// The entry of the answer to a request; 0 if it was never answered, since no client waited for it.
fn answer_entry(tape: &PlayerTape, request_number: u32) -> u32 {
    match tape.entry_of(request_number).pair {
        NONE => 0,
        slot => slot,
    }
}

/// A set of numbers, one bit each.
#[derive(Debug, Default)]
pub(super) struct BitSet(Vec<u64>);

impl BitSet {
    pub(super) fn contains(&self, number: u32) -> bool {
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
