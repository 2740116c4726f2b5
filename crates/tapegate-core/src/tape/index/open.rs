//! The unanswered requests of one side of a session.
//!
//! There are nearly always only a few, for which a linear search is the fastest. When there are
//! many, they are kept in a map by id.

use std::collections::{HashMap, VecDeque};

use crate::signature::Key;

/// The maximum number of requests for a linear search.
const FEW: usize = 16;
/// How many requests with one id are tried before an answer counts as unmatched.
const TRIES_MAX: usize = 1000;

/// Unanswered requests.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// A few, in the order they were made.
    few: Vec<(Key, Request)>,
    /// Many; then `few` is empty.
    many: HashMap<Key, VecDeque<Request>, foldhash::fast::RandomState>,
    /// Those of `many` that have a progress token.
    tokens: HashMap<Key, u32, foldhash::fast::RandomState>,
}

/// An unanswered request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) slot: u32,
    pub(super) seq: Option<u64>,
    /// The scene it belongs to; its own, if it begins one.
    pub(super) scene: u32,
    pub(super) token: Option<Key>,
}

impl Open {
    pub(super) fn ask(&mut self, id: Key, request: Request) {
        if self.many.is_empty() && self.few.len() < FEW {
            return self.few.push((id, request));
        }
        for (id, request) in std::mem::take(&mut self.few) {
            self.keep(id, request);
        }
        self.keep(id, request);
    }

    /// Takes the request that an answer is for: the one it names, or else the oldest with its id.
    /// `done` returns whether a request already has an answer.
    pub(super) fn answer(
        &mut self,
        id: Key,
        req: Option<u64>,
        done: impl Fn(u32) -> bool,
    ) -> Option<Request> {
        if self.many.is_empty() {
            let fits = |(known, request): &(Key, Request)| {
                *known == id && (req.is_none() || request.seq == req)
            };
            let place = self.few.iter().position(fits)?;
            let request = self.few.remove(place).1;
            // Skip a request that was already answered by number.
            return if done(request.slot) { self.answer(id, req, done) } else { Some(request) };
        }
        let requests = self.many.get_mut(&id)?;
        while requests.front().is_some_and(|request| done(request.slot)) {
            requests.pop_front();
        }
        let request = match req.map_or(Some(0), |_| position(requests, req)) {
            Some(0) => requests.pop_front(),
            // Removing it would be slow if there are very many; `done` skips it from now on.
            Some(place) => requests.get(place).filter(|request| !done(request.slot)).copied(),
            None => None,
        };
        if requests.is_empty() {
            self.many.remove(&id);
        }
        if let Some(Request { slot, token: Some(token), .. }) = &request
            && self.tokens.get(token) == Some(slot)
        {
            self.tokens.remove(token);
        }
        request
    }

    /// The request that reports progress under `token`.
    pub(super) fn with_token(&self, token: Key) -> Option<u32> {
        let latest = self.few.iter().rev().find(|(_, request)| request.token == Some(token));
        latest.map(|(_, request)| request.slot).or_else(|| self.tokens.get(&token).copied())
    }

    /// The requests with this id, latest first.
    pub(super) fn with_id(&self, id: Key) -> impl Iterator<Item = u32> {
        let few = self.few.iter().rev().filter(move |(known, _)| *known == id);
        let many = self.many.get(&id).into_iter().flatten().rev();
        few.map(|(_, request)| request.slot).chain(many.map(|request| request.slot))
    }

    fn keep(&mut self, id: Key, request: Request) {
        if let Some(token) = request.token {
            self.tokens.insert(token, request.slot);
        }
        self.many.entry(id).or_default().push_back(request);
    }
}

/// The position of the request numbered `seq`. Numbers nearly always increase.
fn position(requests: &VecDeque<Request>, seq: Option<u64>) -> Option<usize> {
    let place = requests.partition_point(|request| request.seq < seq);
    match requests.get(place) {
        Some(request) if request.seq == seq => Some(place),
        _ => requests.iter().take(TRIES_MAX).position(|request| request.seq == seq),
    }
}
