//! Maps the request ids and progress tokens of clients to those used towards one server.
//!
//! Independent clients may use the same id at the same time. An id already in use is renamed
//! towards the server, and the answer gets the client's id back; every other byte is unchanged.
//! With a gate, ids that servers may parse differently, such as `1.0`, are renamed too.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use tapegate_core::frame::{Envelope, MessageKind, same_id};
use tapegate_core::json;
use tapegate_core::pending::IdKey;
use tapegate_core::relay::{IdEdits, PermittedMessage};
use tapegate_core::side::Lane;

use super::super::listener::ConnectionHandle;
use super::exchange::PostExchange;
use super::stream::ClientStream;
use tapegate_core::json::JsonEdits;

/// How many unanswered requests are remembered. Beyond it, those of departed clients are dropped.
const ASKED_MAX: usize = 1 << 16;
/// How many digits every number parser preserves.
const DIGITS_MAX: usize = 15;
/// How many answered requests are remembered.
const RECENT_MAX: usize = 64;

/// The exchanges waiting for answers of one server.
#[derive(Default)]
pub(super) struct IdMap {
    requests: HashMap<IdKey, RenamedId>,
    tokens: HashMap<IdKey, RenamedId>,
    open: BTreeMap<u64, Rc<PostExchange>>,
    renamed: u64,
    /// Whether ambiguous ids are renamed too. Without a gate, no byte is changed unnecessarily.
    renames_odd: bool,
    /// Recently answered requests by their server-side id, with the connection each came from.
    recent: VecDeque<(Box<[u8]>, Rc<ConnectionHandle>)>,
}

/// A client's id or token, and the exchange it belongs to.
struct RenamedId {
    exchange: Rc<PostExchange>,
    /// The raw text the client uses.
    client_id: Box<[u8]>,
    /// The raw text the server sees.
    own_id: Box<[u8]>,
    renamed: bool,
}

/// Where a message from the server belongs.
pub(super) enum MessageRoute {
    /// Answers a request of this exchange.
    Answer(Rc<PostExchange>),
    /// Belongs to this exchange, or can only be meant for it.
    With(Rc<PostExchange>),
    /// Belongs to no particular exchange.
    Anywhere,
    /// Answers no pending request.
    Unasked,
}

impl MessageRoute {
    fn exchange(&self) -> Option<&PostExchange> {
        match self {
            Self::Answer(exchange) | Self::With(exchange) => Some(exchange),
            Self::Anywhere | Self::Unasked => None,
        }
    }

    /// The lane the message is recorded in, if an exchange determines it.
    pub(super) fn lane(&self) -> Option<Lane> {
        self.exchange().map(|exchange| exchange.lane)
    }

    /// Whether the client has to reconnect to receive the message.
    pub(super) fn is_resumption(&self) -> bool {
        self.exchange().is_some_and(|exchange| exchange.parted.get())
    }
}

impl IdMap {
    /// An empty map. With a gate, ambiguous ids are renamed lest a client get another's answer.
    pub(super) fn new(governed: bool) -> Self {
        Self { renames_odd: governed, ..Self::default() }
    }

    /// Checks that another request can be remembered. If necessary, forgets and returns the oldest
    /// exchange whose client has gone.
    pub(super) fn make_room(&mut self) -> Result<Option<Rc<PostExchange>>, ()> {
        if self.requests.len() < ASKED_MAX {
            return Ok(None);
        }
        // Clients that still wait keep their entries; only answers that no client reads are given
        // up.
        let oldest = self.open.values().find(|exchange| exchange.gone.get()).cloned().ok_or(())?;
        for key in oldest.ids.take() {
            self.requests.remove(&key);
        }
        self.close(&oldest);
        Ok(Some(oldest))
    }

    /// Enters the requests of a message, and returns it with the ids that the server will see.
    pub(super) fn add_requests<'a>(
        &mut self,
        exchange: &Rc<PostExchange>,
        message: PermittedMessage<'a>,
    ) -> PermittedMessage<'a> {
        self.open.insert(exchange.number, Rc::clone(exchange));
        let renames_odd = self.renames_odd;
        message.with_ids(|envelope, edits| {
            if let (MessageKind::Request, Some(id)) = (envelope.kind(), envelope.id) {
                let keeps = |id: &[u8]| !renames_odd || is_unambiguous(id);
                exchange.listens.set(envelope.is_method("subscriptions/listen"));
                exchange.lists.set(envelope.is_method("tools/list"));
                let key =
                    name(&mut self.requests, &mut self.renamed, exchange, (id, keeps(id)), edits);
                exchange.ids.borrow_mut().push(key);
                if let Some(token) = envelope.progress_token {
                    let (tokens, renamed) = (&mut self.tokens, &mut self.renamed);
                    let key = name(tokens, renamed, exchange, (token, keeps(token)), edits);
                    exchange.tokens.borrow_mut().push(key);
                }
            }
        })
    }

    /// Translates the request id of a client's cancellation to the one the server knows.
    pub(super) fn cancel<'a>(
        &self,
        lane: Lane,
        message: PermittedMessage<'a>,
    ) -> PermittedMessage<'a> {
        message.with_ids(|envelope, edits| {
            let Some(id) = envelope.request_id else { return };
            if envelope.is_method("notifications/cancelled")
                && let Some(found) = self.find(lane, id)
            {
                found.exchange.cancelled.set(true);
                if found.renamed {
                    edits.replace(id, &found.own_id);
                }
            }
        })
    }

    /// The request that a client in `lane` knows as `id`.
    fn find(&self, lane: Lane, id: &[u8]) -> Option<&RenamedId> {
        let is_it = |name: &&RenamedId| name.exchange.lane == lane && same_id(&name.client_id, id);
        let by_itself = self.requests.get(&IdKey::new(id)).filter(is_it);
        by_itself.or_else(|| self.requests.values().find(|name| name.renamed && is_it(name)))
    }

    /// Removes the request that a client in `lane` knows as `id`, and returns its exchange.
    pub(super) fn take_request(&mut self, lane: Lane, id: &[u8]) -> Option<Rc<PostExchange>> {
        let ours = self.find(lane, id)?.own_id.clone();
        self.take_answered(&ours).map(|name| name.exchange)
    }

    /// The unanswered requests of `exchange`, as pairs of server-side and client-side id.
    pub(super) fn unanswered(&self, exchange: &PostExchange) -> Vec<(Vec<u8>, Vec<u8>)> {
        let keys = exchange.ids.borrow();
        let known = keys.iter().filter_map(|key| self.requests.get(key));
        known.map(|name| (name.own_id.to_vec(), name.client_id.to_vec())).collect()
    }

    /// Finds where a message from the server belongs, and restores the client's ids. `about` is the
    /// request the server has named for it, if any.
    pub(super) fn route(
        &mut self,
        envelope: &Envelope<'_>,
        about: Option<&[u8]>,
        edits: &mut JsonEdits<'_>,
    ) -> MessageRoute {
        match (envelope.kind(), envelope.id) {
            (MessageKind::Response | MessageKind::Error, Some(id)) => {
                match self.take_answered(id) {
                    Some(name) => {
                        if name.renamed {
                            // Without its own id, the client could not match the answer.
                            edits.replace(id, &name.client_id);
                            if let Some(id) = envelope.result.and_then(subscription_of_result) {
                                edits.replace(id, &name.client_id);
                            }
                        }
                        MessageRoute::Answer(name.exchange)
                    }
                    None => MessageRoute::Unasked,
                }
            }
            (MessageKind::Response | MessageKind::Error, None) | (MessageKind::Other, _) => {
                MessageRoute::Unasked
            }
            (MessageKind::Request, _) => {
                // A server on stdio does not say for which client a request is. If only one waits,
                // it is meant.
                self.exchange_of(about).unwrap_or_else(|| self.sole_exchange())
            }
            (MessageKind::Notification, _) => self.route_notification(envelope, about, edits),
        }
    }

    fn route_notification(
        &self,
        envelope: &Envelope<'_>,
        about: Option<&[u8]>,
        edits: &mut JsonEdits<'_>,
    ) -> MessageRoute {
        let named = match (envelope.subscription_id, envelope.progress_token) {
            // A subscription id is the id of the request that opened it, so `asked` knows it.
            (Some(id), _) => self.requests.get(&IdKey::new(id)).map(|name| (id, name)),
            (None, Some(token)) => self.tokens.get(&IdKey::new(token)).map(|name| (token, name)),
            (None, None) => None,
        };
        if let Some((text, name)) = named {
            if name.renamed {
                edits.replace(text, &name.client_id);
            }
            return MessageRoute::With(Rc::clone(&name.exchange));
        }
        if let Some(route) = self.exchange_of(about) {
            return route;
        }
        // These concern a request. Other notifications, such as changed lists, concern the whole
        // session.
        if envelope.is_method("notifications/message")
            || envelope.is_method("notifications/cancelled")
        {
            return self.sole_exchange();
        }
        MessageRoute::Anywhere
    }

    /// The exchange of the pending request that the server knows as `about`.
    fn exchange_of(&self, about: Option<&[u8]>) -> Option<MessageRoute> {
        let name = self.requests.get(&IdKey::new(about?))?;
        Some(MessageRoute::With(Rc::clone(&name.exchange)))
    }

    /// The only live exchange that is not a subscription, if there is exactly one.
    fn sole_exchange(&self) -> MessageRoute {
        // A subscription stays open and would make every server request ambiguous.
        let mut live = self.open.values().filter(|one| one.is_live() && !one.listens.get());
        match (live.next(), live.next()) {
            (Some(only), None) => MessageRoute::With(Rc::clone(only)),
            _ => MessageRoute::Anywhere,
        }
    }

    /// The newest exchange that accepts messages other than answers.
    pub(super) fn any_listener(&self) -> Option<Rc<PostExchange>> {
        let can_listen = |one: &&Rc<PostExchange>| one.is_live() && one.accepts_notifications();
        self.open.values().rev().find(can_listen).cloned()
    }

    /// The client's lane and id for the request that the server knows as `id`.
    pub(super) fn client_id_of(&self, id: &[u8]) -> Option<(Lane, Vec<u8>)> {
        self.requests.get(&IdKey::new(id)).map(|name| (name.exchange.lane, name.client_id.to_vec()))
    }

    /// Removes the request that the server knows as `id`, because it has been answered.
    pub(super) fn close_server_request(&mut self, id: &[u8]) {
        drop(self.take_answered(id));
    }

    /// The connection on which the request arrived that the server knows as `id`.
    pub(super) fn connection_of(&self, id: &[u8]) -> Option<Rc<ConnectionHandle>> {
        if let Some(name) = self.requests.get(&IdKey::new(id)) {
            return name.exchange.client_connection.borrow().clone();
        }
        // A server may close a connection just after its answer, which has removed the request.
        let mut recent = self.recent.iter().rev();
        recent
            .find(|(ours, _)| same_id(ours, id))
            .map(|(_, client_connection)| Rc::clone(client_connection))
    }

    /// The exchange of the request that the server knows as `id`.
    pub(super) fn exchange_for(&self, id: &[u8]) -> Option<Rc<PostExchange>> {
        self.requests.get(&IdKey::new(id)).map(|name| Rc::clone(&name.exchange))
    }

    /// The open exchange whose stream has this number.
    pub(super) fn with_stream(&self, number: u64) -> Option<(Rc<PostExchange>, Rc<ClientStream>)> {
        let streams =
            self.open.values().filter_map(|one| Some((Rc::clone(one), one.event_stream()?)));
        streams.into_iter().find(|(_, stream)| stream.number() == number)
    }

    /// Whether a client waits for an answer.
    pub(super) fn is_live(&self) -> bool {
        self.open.values().any(|exchange| exchange.is_live())
    }

    /// All exchanges, oldest first.
    pub(super) fn exchanges(&self) -> Vec<Rc<PostExchange>> {
        self.open.values().cloned().collect()
    }

    fn take_answered(&mut self, id: &[u8]) -> Option<RenamedId> {
        let key = IdKey::new(id);
        let name = self.requests.remove(&key)?;
        name.exchange.ids.borrow_mut().retain(|held| *held != key);
        if let Some(client_connection) = name.exchange.client_connection.borrow().clone() {
            if self.recent.len() >= RECENT_MAX {
                self.recent.pop_front();
            }
            self.recent.push_back((name.own_id.clone(), client_connection));
        }
        if name.exchange.ids.borrow().is_empty() {
            self.close(&name.exchange);
        }
        Some(name)
    }

    fn close(&mut self, exchange: &PostExchange) {
        self.open.remove(&exchange.number);
        for token in exchange.tokens.take() {
            self.tokens.remove(&token);
        }
    }
}

/// Enters `theirs` unchanged, or under a new id if it is in use or ambiguous.
fn name(
    names: &mut HashMap<IdKey, RenamedId>,
    count: &mut u64,
    exchange: &Rc<PostExchange>,
    (theirs, mut is_good): (&[u8], bool),
    edits: &mut IdEdits<'_>,
) -> IdKey {
    let mut ours = Cow::Borrowed(theirs);
    // A loop, because a client may itself use an id of our form.
    while !is_good || names.contains_key(&IdKey::new(&ours)) {
        is_good = true;
        *count += 1;
        ours = Cow::Owned(json::quoted(&format!("tapegate-{count}")));
    }
    let renamed = matches!(ours, Cow::Owned(_));
    if renamed {
        edits.replace(theirs, &ours);
    }
    let key = IdKey::new(&ours);
    let (exchange, ours) = (Rc::clone(exchange), ours.into());
    names.insert(
        key.clone(),
        RenamedId { exchange, client_id: theirs.into(), own_id: ours, renamed },
    );
    key
}

/// Whether every server parses this id the same way: a string without escapes, or an integer that a
/// double represents exactly. Some parsers treat `1.0`, `1e0` and `-0` as other numbers. Other JSON
/// values are not valid ids; the server is left to refuse them.
fn is_unambiguous(id: &[u8]) -> bool {
    match id {
        [b't' | b'f' | b'n' | b'{' | b'[', ..] => true,
        [b'"', inside @ .., b'"'] => !inside.contains(&b'\\'),
        b"-0" => false,
        [b'-', digits @ ..] | digits => {
            !digits.is_empty()
                && digits.len() <= DIGITS_MAX
                && digits.iter().all(|byte| byte.is_ascii_digit())
        }
    }
}

/// The subscription named by a result, which is the id of the request it answers.
fn subscription_of_result(result: &[u8]) -> Option<&[u8]> {
    json::member(json::member(result, "_meta")?, "io.modelcontextprotocol/subscriptionId")
}

#[cfg(test)]
mod tests;
