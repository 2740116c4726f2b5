//! Finds the request that a notification belongs to, on the tape and live.

use std::collections::{HashMap, HashSet};

use crate::frame::Envelope;
use crate::pending::IdKey;

use super::super::notice_matcher::{NoticeGroup, NoticeOwner};

/// Maps the tokens of notifications to their requests.
#[derive(Default)]
pub(super) struct TokenOwners {
    /// By recorded progress token (false), and by the id of a recorded subscription (true).
    pub(super) recorded: HashMap<(bool, IdKey), u32>,
    /// The same by the values that were sent.
    pub(super) live: HashMap<(bool, IdKey), u32>,
    /// The latest request with each recorded id.
    pub(super) by_id: HashMap<IdKey, u32>,
    /// The requests that were sent.
    pub(super) sent: HashSet<u32>,
}

impl TokenOwners {
    /// Notes the id and the token of a recorded request.
    pub(super) fn note(&mut self, envelope: &Envelope<'_>, entry_number: u32) {
        if let Some(token) = envelope.progress_token {
            self.recorded.insert((false, IdKey::new(token)), entry_number);
        }
        let Some(id) = envelope.id.map(IdKey::new) else { return };
        if envelope.is_method("subscriptions/listen") {
            self.recorded.insert((true, id.clone()), entry_number);
        }
        self.by_id.insert(id, entry_number);
    }

    /// Notes the id and the token that the live server knows it by.
    pub(super) fn note_live(
        &mut self,
        envelope: &Envelope<'_>,
        entry_number: u32,
        id: &[u8],
        token: Option<&[u8]>,
    ) {
        self.sent.insert(entry_number);
        if let Some(token) = token {
            self.live.insert((false, IdKey::new(token)), entry_number);
        }
        if envelope.is_method("subscriptions/listen") {
            self.live.insert((true, IdKey::new(id)), entry_number);
        }
    }
}

/// The group of a notification, and the request that it belongs to, if any.
pub(super) fn group(
    known: &HashMap<(bool, IdKey), u32>,
    envelope: &Envelope<'_>,
) -> (NoticeGroup, Option<u32>) {
    let method = envelope.method.map(|method| method.decode().into_owned()).unwrap_or_default();
    let token = envelope.progress_token.filter(|_| envelope.is_method("notifications/progress"));
    let of = |subscription, id| known.get(&(subscription, IdKey::new(id))).copied();
    let by_token = token.and_then(|token| of(false, token));
    // A subscription's notifications carry its id, whatever their method.
    let request = by_token.or_else(|| of(true, envelope.subscription_id?));
    let owner = request.map_or(NoticeOwner::Nobody, NoticeOwner::Request);
    (NoticeGroup { method, owner }, request)
}
