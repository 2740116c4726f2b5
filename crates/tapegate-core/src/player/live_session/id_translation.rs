//! Maps recorded ids, tokens and subscriptions to those of the live session.

use super::{LiveSession, NAMES_MAX};
use crate::frame::same_id;
use crate::pending::{IdKey, new_own_id};

impl LiveSession {
    /// The scene and recorded request that an answer of the client belongs to, if any.
    pub(in crate::player) fn reply(&mut self, id: &[u8]) -> Option<(u32, u32)> {
        self.client_requests.remove(&IdKey::new(id))
    }

    /// Notes a request that was sent to the client.
    pub(in crate::player) fn note_client_request(&mut self, id: IdKey, scene: u32, request: u32) {
        self.client_requests.insert(id, (scene, request));
    }

    /// The id for a request of the server: the recorded one, unless it is in use.
    pub(in crate::player) fn live_id_for(&mut self, recorded: &[u8]) -> Vec<u8> {
        let key = IdKey::new(recorded);
        if !self.is_in_use(&key) {
            // A later cancellation with this id is about the request that has it now.
            self.renamed.remove(&key);
            return recorded.to_vec();
        }
        let name = self.fresh_id();
        if self.renamed.len() < NAMES_MAX {
            self.renamed.insert(key, name.clone());
        }
        name
    }

    /// An id that is not in use in the session.
    pub(in crate::player) fn fresh_id(&mut self) -> Vec<u8> {
        let Self { names_made, client_requests, passthrough, .. } = self;
        new_own_id(names_made, |id| {
            client_requests.contains_key(id) || passthrough.has_client_request(id)
        })
    }

    pub(in crate::player) fn is_in_use(&self, id: &IdKey) -> bool {
        self.client_requests.contains_key(id) || self.passthrough.has_client_request(id)
    }

    /// The id that a pending recorded request of the server was sent with.
    pub(in crate::player) fn live_id_of<'a>(&'a self, recorded: &'a [u8]) -> Option<&'a [u8]> {
        let key = IdKey::new(recorded);
        match self.renamed.get(&key) {
            Some(name) => Some(name),
            None => self.client_requests.contains_key(&key).then_some(recorded),
        }
    }

    /// Remembers the live token for a recorded one.
    pub(in crate::player) fn learn_token(&mut self, recorded: &[u8], token: &[u8]) {
        // Old tokens are rarely needed again; losing one only drops its progress.
        if self.tokens.len() >= NAMES_MAX {
            self.tokens.clear();
        }
        self.tokens.insert(IdKey::new(recorded), token.to_vec());
    }

    /// The live token for a recorded one.
    pub(in crate::player) fn token(&self, recorded: &[u8]) -> Option<&[u8]> {
        self.tokens.get(&IdKey::new(recorded)).map(Vec::as_slice)
    }

    /// Remembers the live subscription for a recorded one.
    pub(in crate::player) fn subscribe(&mut self, run: u32, recorded: &[u8], id: &[u8]) {
        if self.subscriptions.len() >= NAMES_MAX {
            self.subscriptions.clear();
        }
        self.subscriptions.insert((run, IdKey::new(recorded)), id.to_vec());
    }

    /// Forgets a subscription that the client has ended.
    pub(in crate::player) fn unsubscribe(&mut self, id: &[u8]) {
        self.subscriptions.retain(|_, subscription| !same_id(subscription, id));
    }

    /// The id of the live subscription for a recorded one.
    pub(in crate::player) fn subscription(&self, run: u32, recorded: &[u8]) -> Option<&[u8]> {
        self.subscriptions.get(&(run, IdKey::new(recorded))).map(Vec::as_slice)
    }
}
