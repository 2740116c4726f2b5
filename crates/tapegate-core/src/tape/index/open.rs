//! The requests of one side of a session that have no answer yet.

use std::collections::{HashMap, VecDeque};

use crate::pending::IdKey;

/// How many requests with one id are looked at in vain before an answer counts as nobody's.
const TRIES_MAX: usize = 1000;

/// Requests without an answer, by id and by progress token.
#[derive(Debug, Default)]
pub(super) struct Open {
    waiting: HashMap<IdKey, VecDeque<Request>, foldhash::fast::RandomState>,
    tokens: HashMap<IdKey, u32, foldhash::fast::RandomState>,
}

/// A request without an answer.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) slot: u32,
    pub(super) seq: Option<u64>,
    /// The scene it stands in; its own, if it begins one.
    pub(super) scene: u32,
    token: Option<IdKey>,
}

impl Open {
    pub(super) fn ask(
        &mut self,
        id: &IdKey,
        token: Option<IdKey>,
        slot: u32,
        seq: Option<u64>,
        scene: u32,
    ) {
        if let Some(token) = &token {
            self.tokens.insert(token.clone(), slot);
        }
        let requests = self.waiting.entry(id.clone()).or_default();
        requests.push_back(Request { slot, seq, scene, token });
    }

    /// Takes the request that an answer is for: the one it names, else the oldest with its id.
    /// `done` tells of those that have an answer; they are forgotten when they are the oldest.
    pub(super) fn answer(
        &mut self,
        id: &IdKey,
        req: Option<u64>,
        done: impl Fn(u32) -> bool,
    ) -> Option<Request> {
        let requests = self.waiting.get_mut(id)?;
        while requests.front().is_some_and(|request| done(request.slot)) {
            requests.pop_front();
        }
        let place = match req {
            Some(_) => position(requests, req),
            None => Some(0),
        };
        let request = match place {
            Some(0) => requests.pop_front(),
            // Taking it out would cost time with each of very many; it is done now.
            Some(place) => requests.get(place).filter(|request| !done(request.slot)).cloned(),
            None => None,
        };
        if requests.is_empty() {
            self.waiting.remove(id);
        }
        if let Some(Request { slot, token: Some(token), .. }) = &request
            && self.tokens.get(token) == Some(slot)
        {
            self.tokens.remove(token);
        }
        request
    }

    /// The request whose progress is told under `token`.
    pub(super) fn with_token(&self, token: &IdKey) -> Option<u32> {
        self.tokens.get(token).copied()
    }

    /// The requests with this id, latest first.
    pub(super) fn with_id(&self, id: &IdKey) -> impl Iterator<Item = u32> {
        let requests = self.waiting.get(id);
        requests.into_iter().flatten().rev().map(|request| request.slot)
    }
}

/// Where the request numbered `seq` stands. Numbers nearly always go up.
fn position(requests: &VecDeque<Request>, seq: Option<u64>) -> Option<usize> {
    let place = requests.partition_point(|request| request.seq < seq);
    match requests.get(place) {
        Some(request) if request.seq == seq => Some(place),
        _ => requests.iter().take(TRIES_MAX).position(|request| request.seq == seq),
    }
}
