//! Requests that wait for their answers.

mod id;

use std::collections::VecDeque;
use std::collections::hash_map::{Entry as Slot, HashMap};

use crate::gate::Topic;
use crate::side::Lane;
use crate::time::Timestamp;

pub use id::IdKey;
pub(crate) use id::{SmallId, new_own_id};

/// How many unanswered requests are remembered. Beyond that, for a peer that never answers, new
/// requests are forwarded and recorded but not paired with their answers.
const PENDING_MAX: usize = 1 << 20;
/// The same for the total size of their ids, since an id may be as long as a message.
const ID_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The requests of one side that wait for answers; oldest first where an id was reused.
#[derive(Debug, Default)]
pub struct PendingRequests {
    waiting: HashMap<(Lane, IdKey), PendingQueue, foldhash::fast::RandomState>,
    count: usize,
    id_bytes: usize,
    /// How many of them were cancelled.
    cancelled: usize,
}

/// A request that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRequest {
    /// When it was forwarded.
    pub at: Timestamp,
    /// Its number on the tape.
    pub n: u64,
    /// Its topic, as far as that affects how its answer is inspected.
    pub topic: Topic,
    /// Whether its sender has cancelled it.
    pub cancelled: bool,
    /// Whether its missing answer has been reported already, or need not be.
    pub late: bool,
}

/// A pending request with its id as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnansweredRequest {
    /// The lane it was made in.
    pub lane: Lane,
    /// Its raw id.
    pub id: Vec<u8>,
    pub pending_request: PendingRequest,
}

/// Kept small: thousands may wait, and lookups hit them in random order.
#[derive(Debug)]
struct PendingQueue {
    /// The id as it was written, if the key does not preserve its spelling.
    id: Option<Box<[u8]>>,
    first: PendingRequest,
    /// Later requests with the same id.
    #[expect(clippy::box_collection, reason = "there is hardly ever one")]
    more: Option<Box<VecDeque<PendingRequest>>>,
}

impl PendingRequests {
    /// Remembers a request; returns false if too many wait already.
    pub fn add(&mut self, lane: Lane, id: &[u8], at: Timestamp, n: u64, topic: Topic) -> bool {
        if self.count >= PENDING_MAX || self.id_bytes + id.len() > ID_BYTES_MAX {
            return false;
        }
        self.count += 1;
        let pending_request = PendingRequest { at, n, topic, cancelled: false, late: false };
        match self.waiting.entry((lane, IdKey::new(id))) {
            Slot::Occupied(mut waiting) => {
                waiting.get_mut().more.get_or_insert_default().push_back(pending_request);
            }
            Slot::Vacant(free) => {
                self.id_bytes += id.len();
                let id = (!free.key().1.has_spelling(id)).then(|| id.into());
                free.insert(PendingQueue { id, first: pending_request, more: None });
            }
        }
        true
    }

    /// Removes and returns the oldest request that an answer with this id can be for.
    pub fn take_answered(&mut self, lane: Lane, id: &[u8]) -> Option<PendingRequest> {
        let Slot::Occupied(mut slot) = self.waiting.entry((lane, IdKey::new(id))) else {
            return None;
        };
        self.count -= 1;
        let pending_request = match slot.get_mut().more.as_mut().and_then(|more| more.pop_front()) {
            Some(next) => std::mem::replace(&mut slot.get_mut().first, next),
            None => {
                let ((_, key), PendingQueue { id, first, .. }) = slot.remove_entry();
                self.id_bytes -= id.map_or(key.len(), |id| id.len());
                first
            }
        };
        self.cancelled -= usize::from(pending_request.cancelled);
        Some(pending_request)
    }

    /// The oldest request that an answer with this id can be for.
    pub fn find(&self, lane: Lane, id: &[u8]) -> Option<&PendingRequest> {
        self.waiting.get(&(lane, IdKey::new(id))).map(|waiting| &waiting.first)
    }

    /// Whether a request with this id is pending that a message in `lane` can refer to.
    pub fn is_waiting_in(&self, lane: Lane, id: &[u8]) -> bool {
        if lane.exchange == 0 {
            return self.find(lane, id).is_some();
        }
        // Sessionless clients cancel in another exchange than they call, so all of them are
        // searched.
        let id = IdKey::new(id);
        self.waiting.keys().any(|(of, key)| lane.reaches(*of) && *key == id)
    }

    /// Marks the requests with this id as cancelled. An answer may still arrive but is not needed.
    pub fn cancel(&mut self, lane: Lane, id: &[u8]) {
        if let Some(waiting) = self.waiting.get_mut(&(lane, IdKey::new(id))) {
            let more = waiting.more.iter_mut().flat_map(|more| more.iter_mut());
            for pending_request in std::iter::once(&mut waiting.first).chain(more) {
                self.cancelled +=
                    usize::from(!std::mem::replace(&mut pending_request.cancelled, true));
            }
        }
    }

    /// Marks a request as one whose answer may be late without being reported.
    pub fn expect_no_answer(&mut self, lane: Lane, id: &[u8]) {
        if let Some(waiting) = self.waiting.get_mut(&(lane, IdKey::new(id))) {
            waiting.first.late = true;
        }
    }

    /// Reports requests made before `before_ns` that still wait, each only once and at most
    /// `count_max` of them, and when the oldest of the others was made.
    pub fn take_late(
        &mut self,
        before_ns: u64,
        count_max: usize,
    ) -> (Vec<UnansweredRequest>, Option<u64>) {
        let (mut late, mut oldest_ns): (Vec<UnansweredRequest>, Option<u64>) = (Vec::new(), None);
        for ((lane, key), waiting) in &mut self.waiting {
            let more = waiting.more.iter_mut().flat_map(|more| more.iter_mut());
            for pending_request in std::iter::once(&mut waiting.first).chain(more) {
                if pending_request.late || pending_request.cancelled {
                    continue;
                }
                if pending_request.at.mono_ns > before_ns {
                    oldest_ns = oldest_ns.into_iter().chain([pending_request.at.mono_ns]).min();
                    continue;
                }
                // Marked even beyond `count_max`, so that a later check does not report the rest
                // after all.
                pending_request.late = true;
                if late.len() < count_max {
                    let id = waiting.id.as_deref().map_or_else(|| key.spelling(), <[u8]>::to_vec);
                    late.push(UnansweredRequest {
                        lane: *lane,
                        id,
                        pending_request: pending_request.clone(),
                    });
                }
            }
        }
        late.sort_by_key(|unanswered| unanswered.pending_request.n);
        (late, oldest_ns)
    }

    /// Removes and returns all requests of `lane` (of all lanes if `None`), in the order they were
    /// made.
    pub fn take_all(&mut self, lane: Option<Lane>) -> Vec<UnansweredRequest> {
        let mut taken = Vec::new();
        self.waiting.retain(|(of, key), waiting| {
            if lane.is_some_and(|lane| lane != *of) {
                return true;
            }
            let id = waiting.id.take().map_or_else(|| key.spelling(), Vec::from);
            // An `id` is kept wherever the key has another length, so this is the length that `add`
            // counted.
            self.id_bytes -= id.len();
            let more = waiting.more.take().into_iter().flat_map(|more| *more);
            let all = std::iter::once(waiting.first.clone()).chain(more);
            taken.extend(all.map(|pending_request| UnansweredRequest {
                lane: *of,
                id: id.clone(),
                pending_request,
            }));
            false
        });
        self.count -= taken.len();
        self.cancelled -= taken.iter().filter(|taken| taken.pending_request.cancelled).count();
        // The map has no order, but answers go out in the order of the requests.
        taken.sort_by_key(|unanswered| unanswered.pending_request.n);
        taken
    }

    /// How many pending requests have not been cancelled.
    pub fn wanted_count(&self) -> usize {
        self.count - self.cancelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane = Lane::ONLY;

    #[test]
    fn ids_are_kept_apart_by_type_and_together_by_meaning() {
        let mut pending = PendingRequests::default();
        for (n, id) in
            ["1", "\"1\"", "1.0", "null", "\"é\"", "18446744073709551616"].iter().enumerate()
        {
            assert!(pending.add(LANE, id.as_bytes(), Timestamp::default(), n as u64, Topic::Other));
        }
        let mut number = |id: &str| {
            pending.take_answered(LANE, id.as_bytes()).map(|pending_request| pending_request.n)
        };
        assert_eq!(number("\"1\""), Some(1));
        assert_eq!(number("1"), Some(0));
        assert_eq!(number("1"), None);
        assert_eq!(number(r#""\u00e9""#), Some(4));
        assert_eq!(number("18446744073709551616"), Some(5));
        assert_eq!(number("1.0"), Some(2));
        assert_eq!(number("null"), Some(3));
        assert!(pending.take_all(None).is_empty());
    }

    #[test]
    fn a_repeated_id_is_answered_oldest_first_and_lanes_do_not_mix() {
        let mut pending = PendingRequests::default();
        let other = Lane { session: 1, exchange: 9 };
        pending.add(LANE, b"7", Timestamp::default(), 1, Topic::Other);
        pending.add(other, b"7", Timestamp::default(), 2, Topic::Other);
        pending.add(LANE, b"7", Timestamp::default(), 3, Topic::Other);
        assert_eq!(pending.take_answered(LANE, b"7").map(|a| a.n), Some(1));
        assert_eq!(pending.take_answered(LANE, b"7").map(|a| a.n), Some(3));
        assert_eq!(pending.take_answered(LANE, b"7"), None);
        assert_eq!(pending.take_answered(other, b"7").map(|a| a.n), Some(2));
    }

    #[test]
    fn ids_of_any_length_take_bounded_memory_and_give_it_back() {
        let mut pending = PendingRequests::default();
        let long = |n: usize| format!("\"{n}{}\"", "x".repeat(ID_BYTES_MAX / 4)).into_bytes();
        let ask = |pending: &mut PendingRequests, n| {
            pending.add(LANE, &long(n), Timestamp::default(), n as u64, Topic::Other)
        };
        let taken = (0..9).filter(|&n| ask(&mut pending, n)).count();
        assert_eq!(taken, 3);
        assert!(pending.take_answered(LANE, &long(1)).is_some() && ask(&mut pending, 9));
        assert_eq!(pending.take_all(None).len(), 3);
        assert!(ask(&mut pending, 1));
    }

    #[test]
    fn what_is_taken_back_is_not_wanted() {
        let mut pending = PendingRequests::default();
        pending.add(LANE, b"1", Timestamp::default(), 1, Topic::Other);
        pending.add(LANE, b"2", Timestamp::default(), 2, Topic::Other);
        pending.cancel(LANE, b"1");
        assert_eq!(pending.wanted_count(), 1);
        let ids: Vec<_> = pending
            .take_all(None)
            .into_iter()
            .map(|u| (u.id, u.pending_request.cancelled))
            .collect();
        assert_eq!(ids, [(b"1".to_vec(), true), (b"2".to_vec(), false)]);
    }
}
