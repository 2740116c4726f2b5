//! The unanswered requests of one side of a session.
//!
//! There are nearly always only a few, for which a linear search is the fastest. When there are
//! many, they are kept in a map by id.

use std::collections::{HashMap, VecDeque};

use crate::signature::HashedKey;

/// The maximum number of requests for a linear search.
const FEW: usize = 16;
/// How many requests with one id are tried before an answer counts as unmatched.
const TRIES_MAX: usize = 1000;

/// Unanswered requests.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    /// A few, in the order they were made.
    few: Vec<(HashedKey, UnpairedRequest)>,
    /// Many; then `few` is empty.
    many: HashMap<HashedKey, VecDeque<UnpairedRequest>, foldhash::fast::RandomState>,
    /// Those of `many` that have a progress token.
    tokens: HashMap<HashedKey, u32, foldhash::fast::RandomState>,
}

/// An unanswered request.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnpairedRequest {
    pub(super) entry_number: u32,
    pub(super) seq: Option<u64>,
    /// The scene it belongs to; its own, if it begins one.
    pub(super) scene: u32,
    pub(super) token: Option<HashedKey>,
}

impl OpenRequests {
    pub(super) fn add(&mut self, id: HashedKey, request: UnpairedRequest) {
        if self.many.is_empty() && self.few.len() < FEW {
            return self.few.push((id, request));
        }
        for (id, request) in std::mem::take(&mut self.few) {
            self.insert(id, request);
        }
        self.insert(id, request);
    }

    /// Takes the request that an answer is for: the one it names, or else the oldest with its id.
    /// `done` returns whether a request already has an answer.
    pub(super) fn take_answered(
        &mut self,
        id: HashedKey,
        req: Option<u64>,
        done: impl Fn(u32) -> bool,
    ) -> Option<UnpairedRequest> {
        if self.many.is_empty() {
            let fits = |(known, request): &(HashedKey, UnpairedRequest)| {
                *known == id && (req.is_none() || request.seq == req)
            };
            let index = self.few.iter().position(fits)?;
            let request = self.few.remove(index).1;
            // Skip a request that was already answered by number.
            return if done(request.entry_number) {
                self.take_answered(id, req, done)
            } else {
                Some(request)
            };
        }
        let requests = self.many.get_mut(&id)?;
        while requests.front().is_some_and(|request| done(request.entry_number)) {
            requests.pop_front();
        }
        let request = match req.map_or(Some(0), |_| position(requests, req)) {
            Some(0) => requests.pop_front(),
            // Removing it would be slow if there are very many; `done` skips it from now on.
            Some(index) => {
                requests.get(index).filter(|request| !done(request.entry_number)).copied()
            }
            None => None,
        };
        if requests.is_empty() {
            self.many.remove(&id);
        }
        // Another request may use the token by now.
        if let Some(UnpairedRequest { entry_number, token: Some(token), .. }) = &request
            && self.tokens.get(token) == Some(entry_number)
        {
            self.tokens.remove(token);
        }
        request
    }

    /// The request that reports progress under `token`.
    pub(super) fn with_token(&self, token: HashedKey) -> Option<u32> {
        let latest = self.few.iter().rev().find(|(_, request)| request.token == Some(token));
        latest.map(|(_, request)| request.entry_number).or_else(|| self.tokens.get(&token).copied())
    }

    /// The requests with this id, latest first.
    pub(super) fn with_id(&self, id: HashedKey) -> impl Iterator<Item = u32> {
        let few = self.few.iter().rev().filter(move |(known, _)| *known == id);
        let many = self.many.get(&id).into_iter().flatten().rev();
        few.map(|(_, request)| request.entry_number).chain(many.map(|request| request.entry_number))
    }

    fn insert(&mut self, id: HashedKey, request: UnpairedRequest) {
        if let Some(token) = request.token {
            self.tokens.insert(token, request.entry_number);
        }
        self.many.entry(id).or_default().push_back(request);
    }
}

/// The position of the request numbered `seq`. Numbers nearly always increase.
fn position(requests: &VecDeque<UnpairedRequest>, seq: Option<u64>) -> Option<usize> {
    // The search is wrong if numbers do not increase, so a miss is checked once more.
    let index = requests.partition_point(|request| request.seq < seq);
    match requests.get(index) {
        Some(request) if request.seq == seq => Some(index),
        _ => requests.iter().take(TRIES_MAX).position(|request| request.seq == seq),
    }
}
