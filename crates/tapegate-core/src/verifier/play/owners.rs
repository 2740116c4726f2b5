//! Finds the request that a notification belongs to, on the tape and live.

use std::collections::{HashMap, HashSet};

use crate::frame::Envelope;
use crate::pending::IdKey;

use super::super::notices::{Group, Owner};

/// Maps the tokens of notifications to their requests.
#[derive(Default)]
pub(super) struct Owners {
    /// By recorded progress token (false), and by the id of a recorded subscription (true).
    pub(super) recorded: HashMap<(bool, IdKey), u32>,
    /// The same by the values that were sent.
    pub(super) live: HashMap<(bool, IdKey), u32>,
    /// The latest request with each recorded id.
    pub(super) by_id: HashMap<IdKey, u32>,
    /// The requests that were sent.
    pub(super) sent: HashSet<u32>,
}

impl Owners {
    /// Notes the id and the token of a recorded request.
    pub(super) fn note(&mut self, said: &Envelope<'_>, slot: u32) {
        if let Some(token) = said.progress_token {
            self.recorded.insert((false, IdKey::new(token)), slot);
        }
        let Some(id) = said.id.map(IdKey::new) else { return };
        if said.is_method("subscriptions/listen") {
            self.recorded.insert((true, id.clone()), slot);
        }
        self.by_id.insert(id, slot);
    }

    /// Notes the id and the token that the live server knows it by.
    pub(super) fn note_live(
        &mut self,
        said: &Envelope<'_>,
        slot: u32,
        id: &[u8],
        token: Option<&[u8]>,
    ) {
        self.sent.insert(slot);
        if let Some(token) = token {
            self.live.insert((false, IdKey::new(token)), slot);
        }
        if said.is_method("subscriptions/listen") {
            self.live.insert((true, IdKey::new(id)), slot);
        }
    }
}

/// The group of a notification, and the request that it belongs to, if any.
pub(super) fn group(
    known: &HashMap<(bool, IdKey), u32>,
    said: &Envelope<'_>,
) -> (Group, Option<u32>) {
    let method = said.method.map(|method| method.decode().into_owned()).unwrap_or_default();
    let token = said.progress_token.filter(|_| said.is_method("notifications/progress"));
    let of = |subscription, id| known.get(&(subscription, IdKey::new(id))).copied();
    let by_token = token.and_then(|token| of(false, token));
    let request = by_token.or_else(|| of(true, said.subscription_id?));
    let owner = request.map_or(Owner::Nobody, Owner::Request);
    (Group { method, owner }, request)
}
