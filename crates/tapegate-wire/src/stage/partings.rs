//! Where, in what is said at a seat, the streams of requests end early.
//!
//! A seat speaks in lines, which have no room for it. So it stands beside them, with the number of
//! lines that go before it.

use std::cell::RefCell;
use std::collections::VecDeque;

use tokio::sync::Notify;

/// Where streams end early.
#[derive(Default)]
pub(crate) struct Partings {
    /// How many lines go before, and the id of the request.
    due: RefCell<VecDeque<(u64, Vec<u8>)>>,
    news: Notify,
}

impl Partings {
    /// Has the stream of request `id` end behind as many lines.
    pub(super) fn add(&self, lines: u64, id: &[u8]) {
        self.due.borrow_mut().push_back((lines, id.to_vec()));
        self.news.notify_one();
    }

    /// Takes the id of the next request whose stream is to end, once as many lines were heard.
    pub(crate) fn take(&self, lines: u64) -> Option<Vec<u8>> {
        let mut due = self.due.borrow_mut();
        due.pop_front_if(|(before, _)| *before <= lines).map(|(_, id)| id)
    }

    /// Waits until there may be something to take.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_behind_its_lines_and_not_before() {
        let partings = Partings::default();
        partings.add(1, b"7");
        partings.add(1, b"8");
        partings.add(3, b"9");
        assert_eq!(partings.take(0), None);
        assert_eq!(partings.take(1).as_deref(), Some(&b"7"[..]));
        assert_eq!(partings.take(2).as_deref(), Some(&b"8"[..]));
        assert_eq!(partings.take(2), None);
        assert_eq!(partings.take(3).as_deref(), Some(&b"9"[..]));
    }
}
