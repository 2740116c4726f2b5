//! Maps exchanges to sessions.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use http::uri::PathAndQuery;
use tapegate_core::side::Lane;
use tokio::sync::Mutex;

/// How many sessions are remembered. If a server never ends any, arbitrary ones are forgotten; a
/// forgotten session that comes back gets a new number on the tape.
const SESSIONS_MAX: usize = 16 * 1024;

/// The longest session id that is remembered.
const ID_BYTES_MAX: usize = 1024;

/// The known sessions, by their identifiers on the wire.
#[derive(Debug, Default)]
pub(super) struct ProxySessions {
    by_id: HashMap<Vec<u8>, Lane>,
    by_endpoint: HashMap<PathAndQuery, Lane>,
    /// The paths that the server has redirected endpoint requests to.
    redirects: HashMap<PathAndQuery, ()>,
    request_locks: HashMap<u32, Rc<Mutex<()>>>,
}

impl ProxySessions {
    /// The lane of the session with this id.
    pub(super) fn lane(&mut self, id: &[u8], open: impl FnOnce() -> Lane) -> Lane {
        if let Some(lane) = self.by_id.get(id) {
            return *lane;
        }
        let lane = open();
        self.bind(id, lane);
        lane
    }

    /// Remembers the id of a session.
    pub(super) fn bind(&mut self, id: &[u8], lane: Lane) {
        // No server assigns an id of such a length.
        if id.len() <= ID_BYTES_MAX {
            make_room(&mut self.by_id, id);
            self.by_id.insert(id.to_vec(), lane);
        }
    }

    /// Forgets an ended session, and returns its lane.
    pub(super) fn unbind(&mut self, id: &[u8]) -> Option<Lane> {
        let lane = self.by_id.remove(id)?;
        // The lock is dropped with the session, or the map would grow with every session.
        self.request_locks.remove(&lane.session);
        Some(lane)
    }

    /// The lock that serializes the requests of a session. Without a session there is no order.
    pub(super) fn request_lock(&mut self, lane: Option<Lane>) -> Rc<Mutex<()>> {
        match lane {
            Some(Lane { session, exchange: 0 }) => {
                make_room(&mut self.request_locks, &session);
                Rc::clone(self.request_locks.entry(session).or_default())
            }
            _ => Rc::default(),
        }
    }

    /// The lane of the legacy session whose client posts to this path.
    pub(super) fn lane_for_endpoint(&self, path: &PathAndQuery) -> Option<Lane> {
        self.by_endpoint.get(path).copied()
    }

    /// The path that the client of a legacy session posts to.
    pub(super) fn endpoint_of(&self, lane: Lane) -> Option<PathAndQuery> {
        self.by_endpoint.iter().find(|(_, of)| **of == lane).map(|(path, _)| path.clone())
    }

    /// Remembers the path that the client of a legacy session posts to.
    pub(super) fn bind_endpoint(&mut self, path: PathAndQuery, lane: Lane) {
        make_room(&mut self.by_endpoint, &path);
        self.by_endpoint.insert(path, lane);
    }
}

impl ProxySessions {
    /// Whether the server has named this path to its clients, as an endpoint or by a redirect.
    pub(super) fn is_known_endpoint(&self, path: &PathAndQuery) -> bool {
        self.by_endpoint.contains_key(path) || self.is_announced(path)
    }

    /// Whether the server has redirected clients to this path.
    pub(super) fn is_announced(&self, path: &PathAndQuery) -> bool {
        self.redirects.contains_key(path)
    }

    /// Remembers a redirect target of the server, such as from `/mcp` to `/mcp/`.
    pub(super) fn remember_redirect(&mut self, path: PathAndQuery) {
        make_room(&mut self.redirects, &path);
        self.redirects.insert(path, ());
    }
}

/// Removes an arbitrary entry if the map is full and `key` is new.
fn make_room<K, V, Q>(map: &mut HashMap<K, V>, key: &Q)
where
    K: Clone + Eq + Hash + Borrow<Q>,
    Q: Eq + Hash + ?Sized,
{
    if map.len() >= SESSIONS_MAX
        && !map.contains_key(key)
        && let Some(any) = map.keys().next().cloned()
    {
        map.remove(any.borrow());
    }
}
