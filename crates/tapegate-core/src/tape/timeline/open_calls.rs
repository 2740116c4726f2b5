//! Unanswered requests, in bounded memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::RowPosition;
use crate::pending::IdKey;
use crate::side::Side;

/// The sender of a request, its session, and its id or progress token.
pub(super) type RequestKey = (Side, Option<String>, IdKey);

/// How many requests may be open; beyond that, answers get rows of their own.
const OPEN_MAX: usize = 1 << 20;
/// Longer ids and tokens are not remembered.
const ID_BYTES_MAX: usize = 4096;

/// An unanswered request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenCall {
    pub(super) position: RowPosition,
    pub(super) line: u64,
    pub(super) seq: Option<u64>,
    pub(super) at_us: Option<i64>,
    pub(super) method: String,
    pub(super) name: Option<String>,
    pub(super) token: Option<RequestKey>,
    /// Whether its message matches the search.
    pub(super) matched: bool,
    pub(super) cancelled: CancelPoint,
}

/// When a request was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelPoint {
    Never,
    /// Its row was not returned yet, and says so.
    BeforeRow,
    AfterRow,
}

/// A request that was never answered, who sent it, and its session.
pub(super) struct CallWithoutAnswer {
    pub(super) from: Side,
    pub(super) session: Option<String>,
    pub(super) open_call: OpenCall,
}

/// A request that another message belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParentRequest {
    pub(super) position: RowPosition,
    /// Its subject.
    pub(super) about: Arc<str>,
}

/// All unanswered requests.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    by_id: HashMap<RequestKey, VecDeque<OpenCall>, foldhash::fast::RandomState>,
    by_token: HashMap<RequestKey, ParentRequest, foldhash::fast::RandomState>,
    /// The client's open requests by session, the latest last.
    latest: HashMap<Option<String>, BTreeMap<RowPosition, Arc<str>>, foldhash::fast::RandomState>,
    count: usize,
}

impl OpenCalls {
    /// Remembers a request; returns false if there is no room.
    pub(super) fn add(&mut self, key: RequestKey, id: &[u8], open_call: OpenCall) -> bool {
        if self.count >= OPEN_MAX || id.len() > ID_BYTES_MAX {
            return false;
        }
        self.count += 1;
        let about: Arc<str> = open_call.name.as_deref().unwrap_or(&open_call.method).into();
        let position = open_call.position;
        if key.0 == Side::Client && is_waited_for(&open_call.method) && open_call.method != "ping" {
            self.latest.entry(key.1.clone()).or_default().insert(position, Arc::clone(&about));
        }
        if let Some(token) = &open_call.token {
            self.by_token.insert(token.clone(), ParentRequest { position, about });
        }
        self.by_id.entry(key).or_default().push_back(open_call);
        true
    }

    /// Takes the request that an answer is for: the one it names, or else the oldest with its id.
    pub(super) fn take_answered(&mut self, key: &RequestKey, req: Option<u64>) -> Option<OpenCall> {
        let waiting = self.by_id.get_mut(key)?;
        let named =
            req.and_then(|req| waiting.iter().position(|open_call| open_call.seq == Some(req)));
        let open_call = waiting.remove(named.unwrap_or(0))?;
        if waiting.is_empty() {
            self.by_id.remove(key);
        }
        self.count -= 1;
        if let Some(token) = &open_call.token
            && self.by_token.get(token).is_some_and(|parent| parent.position == open_call.position)
        {
            self.by_token.remove(token);
        }
        if let Some(latest) = self.latest.get_mut(&key.1) {
            latest.remove(&open_call.position);
            if latest.is_empty() {
                self.latest.remove(&key.1);
            }
        }
        Some(open_call)
    }

    /// The latest request with this id.
    pub(super) fn with_id(&self, key: &RequestKey) -> Option<ParentRequest> {
        let open_call = self.by_id.get(key)?.back()?;
        let about = open_call.name.as_deref().unwrap_or(&open_call.method).into();
        Some(ParentRequest { position: open_call.position, about })
    }

    /// Marks the latest request with this id as cancelled.
    pub(super) fn mark_cancelled(&mut self, key: &RequestKey, when: CancelPoint) {
        let latest = self.by_id.get_mut(key).and_then(VecDeque::back_mut);
        for open_call in latest.into_iter().filter(|call| call.cancelled == CancelPoint::Never) {
            open_call.cancelled = when;
        }
    }

    /// The request that reports progress under a token.
    pub(super) fn with_token(&self, key: &RequestKey) -> Option<ParentRequest> {
        self.by_token.get(key).cloned()
    }

    /// The client's latest open request.
    pub(super) fn latest(&self, session: &Option<String>) -> Option<ParentRequest> {
        let (position, about) = self.latest.get(session)?.last_key_value()?;
        Some(ParentRequest { position: *position, about: Arc::clone(about) })
    }

    /// Takes all requests, or those of one session, in the order of their rows.
    pub(super) fn remove_all(
        &mut self,
        session: Option<&Option<String>>,
    ) -> Vec<CallWithoutAnswer> {
        let is_meant = |key: &RequestKey| session.is_none_or(|session| key.1 == *session);
        let mut calls = Vec::new();
        self.by_id.retain(|key, waiting| {
            if is_meant(key) {
                self.count -= waiting.len();
                calls.extend(waiting.drain(..).map(|open_call| CallWithoutAnswer {
                    from: key.0,
                    session: key.1.clone(),
                    open_call,
                }));
            }
            !is_meant(key)
        });
        self.by_token.retain(|key, _| !is_meant(key));
        self.latest.retain(|of, _| session.is_some_and(|session| of != session));
        calls.sort_unstable_by_key(|call| call.open_call.position);
        calls
    }
}

/// Whether to wait for the answer to a request. A subscription lasts as long as its session.
pub(super) fn is_waited_for(method: &str) -> bool {
    method != "subscriptions/listen"
}
