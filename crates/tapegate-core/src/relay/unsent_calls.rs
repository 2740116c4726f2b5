//! The client's latest calls that were refused or abandoned before they were sent. The server does not know
//! them, so cancelling them means nothing to it.

use std::collections::VecDeque;

use crate::pending::IdKey;
use crate::side::{Lane, Side};

/// How many calls are remembered. Clients cancel only recent requests.
const CALLS_MAX: usize = 256;
/// Longer ids are not remembered.
const ID_BYTES_MAX: usize = 256;

/// Calls that were never sent, oldest first.
#[derive(Debug, Default)]
pub(super) struct UnsentCalls(VecDeque<(Lane, IdKey)>);

impl UnsentCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Remembers a call if `from` is the client: a server makes few requests.
    pub(super) fn insert(&mut self, lane: Lane, from: Side, id: &[u8]) {
        if from == Side::Server || id.len() > ID_BYTES_MAX {
            return;
        }
        if self.0.len() == CALLS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((lane, IdKey::new(id)));
    }

    /// Whether it contains a call with this id that a message of `from` in `lane` can refer to.
    pub(super) fn contains(&self, lane: Lane, from: Side, id: &[u8]) -> bool {
        let id = IdKey::new(id);
        from == Side::Client && self.0.iter().any(|(of, key)| lane.reaches(*of) && *key == id)
    }
}
