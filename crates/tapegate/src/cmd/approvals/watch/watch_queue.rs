//! Which request is shown, and which wait behind it.
//!
//! No clock and no terminal: the session feeds it what is in the folder, and the times.

use std::collections::BTreeSet;

use tapegate_store::approvals::ApprovalEntry;

/// Keys within this time of a new request were meant for the one before it.
const UNREAD_US: i64 = 500_000;

/// The waiting requests, and the one that is shown.
#[derive(Debug, Default)]
pub(super) struct WatchQueue {
    waiting: Vec<ApprovalEntry>,
    current: Option<CurrentRequest>,
    /// Ids of requests that were announced.
    announced: BTreeSet<String>,
    /// Ids of requests that are shown only when no other waits.
    skipped: Vec<String>,
}

/// The request that is shown.
#[derive(Debug)]
struct CurrentRequest {
    id: String,
    shown_us: i64,
    /// Whether all of it was on the screen.
    is_whole: bool,
}

/// What has changed in the folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct QueueChange {
    /// Whether there are requests that were not announced before.
    pub(super) arrived: bool,
    /// The request that was shown, if another process has decided or withdrawn it.
    pub(super) ended: Option<String>,
}

impl WatchQueue {
    /// Takes over the requests that wait now, oldest first.
    pub(super) fn update(&mut self, waiting: Vec<ApprovalEntry>) -> QueueChange {
        let ids: BTreeSet<&str> = waiting.iter().map(|entry| entry.request.id.as_str()).collect();
        let arrived = ids.iter().any(|id| !self.announced.contains(*id));
        let current = self.current.take_if(|current| !ids.contains(current.id.as_str()));
        self.skipped.retain(|id| ids.contains(id.as_str()));
        self.announced = ids.into_iter().map(str::to_owned).collect();
        self.waiting = waiting;
        QueueChange { arrived, ended: current.map(|current| current.id) }
    }

    /// The next request to show, if none is shown: the oldest, and skipped ones last.
    pub(super) fn next(&self) -> Option<&ApprovalEntry> {
        if self.current.is_some() {
            return None;
        }
        let is_skipped = |entry: &&ApprovalEntry| self.skipped.contains(&entry.request.id);
        self.waiting.iter().find(|entry| !is_skipped(entry)).or_else(|| {
            let id = self.skipped.first()?;
            self.waiting.iter().find(|entry| entry.request.id == *id)
        })
    }

    /// Records that a request is on the screen, at this time.
    pub(super) fn show(&mut self, id: &str, is_whole: bool, now_us: i64) {
        self.skipped.retain(|skipped| skipped != id);
        self.current = Some(CurrentRequest { id: id.to_owned(), shown_us: now_us, is_whole });
    }

    /// Records that all of the current request was on the screen.
    pub(super) fn show_whole(&mut self) {
        self.current.iter_mut().for_each(|current| current.is_whole = true);
    }

    /// The request that is shown.
    pub(super) fn current(&self) -> Option<&ApprovalEntry> {
        let current = self.current.as_ref()?;
        self.waiting.iter().find(|entry| entry.request.id == current.id)
    }

    /// Whether the current request was shown long enough ago for a key to be meant for it.
    pub(super) fn takes_keys(&self, now_us: i64) -> bool {
        // A clock that was set back must not block the keys, so an earlier time counts too.
        let is_recent = |shown_us: i64| (shown_us..shown_us + UNREAD_US).contains(&now_us);
        self.current.as_ref().is_none_or(|current| !is_recent(current.shown_us))
    }

    /// Whether the current request was shown as a whole.
    pub(super) fn is_whole(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.is_whole)
    }

    /// Puts the current request behind all others.
    pub(super) fn skip(&mut self) {
        self.skipped.extend(self.current.take().map(|current| current.id));
    }

    /// Removes the current request: it was decided here.
    pub(super) fn finish(&mut self) {
        if let Some(current) = self.current.take() {
            self.waiting.retain(|entry| entry.request.id != current.id);
        }
    }

    /// How many wait besides the current one.
    pub(super) fn others(&self) -> usize {
        self.waiting.len() - usize::from(self.current().is_some())
    }
}

#[cfg(test)]
mod tests {
    use tapegate_store::approvals::ApprovalRecord;

    use super::*;

    fn waiting(ids: &[&str]) -> Vec<ApprovalEntry> {
        let entry = |id: &&str| {
            let request = ApprovalRecord { id: (*id).to_owned(), ..ApprovalRecord::default() };
            ApprovalEntry { request, ..ApprovalEntry::default() }
        };
        ids.iter().map(entry).collect()
    }

    fn next(queue: &WatchQueue) -> Option<&str> {
        queue.next().map(|entry| entry.request.id.as_str())
    }

    #[test]
    fn requests_are_shown_one_by_one_and_announced_once() {
        let mut queue = WatchQueue::default();
        assert_eq!(queue.update(Vec::new()), QueueChange::default());
        assert!(queue.update(waiting(&["a", "b"])).arrived);
        assert!(!queue.update(waiting(&["a", "b"])).arrived);
        assert_eq!(next(&queue), Some("a"));
        queue.show("a", true, 0);
        assert_eq!((next(&queue), queue.others()), (None, 1));
        queue.finish();
        assert_eq!((next(&queue), queue.others()), (Some("b"), 1));
        queue.show("b", true, 0);
        assert!(queue.update(waiting(&["b", "c"])).arrived);
        assert_eq!(queue.current().unwrap().request.id, "b");
    }

    #[test]
    fn a_request_that_ends_elsewhere_makes_room_for_the_next() {
        let mut queue = WatchQueue::default();
        queue.update(waiting(&["a", "b"]));
        queue.show("a", true, 0);
        let change = queue.update(waiting(&["b"]));
        assert_eq!(change, QueueChange { arrived: false, ended: Some("a".to_owned()) });
        assert_eq!(next(&queue), Some("b"));
    }

    #[test]
    fn a_skipped_request_comes_again_after_all_others() {
        let mut queue = WatchQueue::default();
        queue.update(waiting(&["a", "b", "c"]));
        for expected in ["a", "b", "c", "a", "b"] {
            assert_eq!(next(&queue), Some(expected));
            queue.show(expected, true, 0);
            queue.skip();
        }
        queue.update(waiting(&["a", "c", "d"]));
        assert_eq!(next(&queue), Some("d"));
    }

    #[test]
    fn a_key_typed_for_the_request_before_is_not_taken_for_the_next() {
        let mut queue = WatchQueue::default();
        assert!(queue.takes_keys(0), "q works while nothing waits");
        queue.update(waiting(&["a"]));
        queue.show("a", true, 1_000_000);
        assert!(!queue.takes_keys(1_000_000) && !queue.takes_keys(1_499_999));
        assert!(queue.takes_keys(1_500_000));
        assert!(queue.takes_keys(999_999), "the clock was set back");
    }

    #[test]
    fn a_request_that_was_cut_is_whole_only_once_it_was_shown() {
        let mut queue = WatchQueue::default();
        queue.update(waiting(&["a"]));
        assert!(!queue.is_whole());
        queue.show("a", false, 0);
        assert!(!queue.is_whole());
        queue.show_whole();
        assert!(queue.is_whole());
    }
}
