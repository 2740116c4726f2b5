//! Unanswered requests, in bounded memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::Place;
use crate::pending::IdKey;
use crate::side::Side;

/// The sender of a request, its session, and its id or progress token.
pub(super) type AskedKey = (Side, Option<String>, IdKey);

/// How many requests may be open; beyond that, answers get rows of their own.
const OPEN_MAX: usize = 1 << 20;
/// Longer ids and tokens are not remembered.
const ID_BYTES_MAX: usize = 4096;

/// An unanswered request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) place: Place,
    pub(super) seq: Option<u64>,
    pub(super) at_us: Option<i64>,
    pub(super) method: String,
    pub(super) name: Option<String>,
    pub(super) token: Option<AskedKey>,
}

/// A request that another message belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) place: Place,
    /// Its subject.
    pub(super) about: Arc<str>,
}

/// All unanswered requests.
#[derive(Debug, Default)]
pub(super) struct Open {
    by_id: HashMap<AskedKey, VecDeque<Asked>, foldhash::fast::RandomState>,
    by_token: HashMap<AskedKey, Parent, foldhash::fast::RandomState>,
    /// The client's open requests by session, the latest last.
    latest: HashMap<Option<String>, BTreeMap<Place, Arc<str>>, foldhash::fast::RandomState>,
    count: usize,
}

impl Open {
    /// Remembers a request; returns false if there is no room.
    pub(super) fn ask(&mut self, key: AskedKey, id: &[u8], asked: Asked) -> bool {
        if self.count >= OPEN_MAX || id.len() > ID_BYTES_MAX {
            return false;
        }
        self.count += 1;
        let about: Arc<str> = asked.name.as_deref().unwrap_or(&asked.method).into();
        let place = asked.place;
        if key.0 == Side::Client && is_waited_for(&asked.method) && asked.method != "ping" {
            self.latest.entry(key.1.clone()).or_default().insert(place, Arc::clone(&about));
        }
        if let Some(token) = &asked.token {
            self.by_token.insert(token.clone(), Parent { place, about });
        }
        self.by_id.entry(key).or_default().push_back(asked);
        true
    }

    /// Takes the request that an answer is for: the one it names, or else the oldest with its id.
    pub(super) fn answer(&mut self, key: &AskedKey, req: Option<u64>) -> Option<Asked> {
        let waiting = self.by_id.get_mut(key)?;
        let named = req.and_then(|req| waiting.iter().position(|asked| asked.seq == Some(req)));
        let asked = waiting.remove(named.unwrap_or(0))?;
        if waiting.is_empty() {
            self.by_id.remove(key);
        }
        self.count -= 1;
        if let Some(token) = &asked.token
            && self.by_token.get(token).is_some_and(|parent| parent.place == asked.place)
        {
            self.by_token.remove(token);
        }
        if let Some(latest) = self.latest.get_mut(&key.1) {
            latest.remove(&asked.place);
            if latest.is_empty() {
                self.latest.remove(&key.1);
            }
        }
        Some(asked)
    }

    /// The latest request with this id.
    pub(super) fn with_id(&self, key: &AskedKey) -> Option<Parent> {
        let asked = self.by_id.get(key)?.back()?;
        let about = asked.name.as_deref().unwrap_or(&asked.method).into();
        Some(Parent { place: asked.place, about })
    }

    /// The request that reports progress under a token.
    pub(super) fn with_token(&self, key: &AskedKey) -> Option<Parent> {
        self.by_token.get(key).cloned()
    }

    /// The client's latest open request.
    pub(super) fn latest(&self, session: &Option<String>) -> Option<Parent> {
        let (place, about) = self.latest.get(session)?.last_key_value()?;
        Some(Parent { place: *place, about: Arc::clone(about) })
    }

    /// Forgets all requests, or those of one session.
    pub(super) fn forget(&mut self, session: Option<&Option<String>>) -> Vec<Place> {
        let is_meant = |key: &AskedKey| session.is_none_or(|session| key.1 == *session);
        let mut places = Vec::new();
        self.by_id.retain(|key, waiting| {
            if is_meant(key) {
                self.count -= waiting.len();
                places.extend(waiting.iter().map(|asked| asked.place));
            }
            !is_meant(key)
        });
        self.by_token.retain(|key, _| !is_meant(key));
        self.latest.retain(|of, _| session.is_some_and(|session| of != session));
        places
    }
}

/// Whether to wait for the answer to a request. A subscription lasts as long as its session.
pub(super) fn is_waited_for(method: &str) -> bool {
    method != "subscriptions/listen"
}
