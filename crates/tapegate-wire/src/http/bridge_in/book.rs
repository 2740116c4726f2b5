//! Maps the request ids and progress tokens of clients to those used towards one server.
//!
//! Independent clients may use the same id at the same time. An id already in use is renamed
//! towards the server, and the answer gets the client's id back; every other byte is unchanged.
//! With a gate, ids that servers may parse differently, such as `1.0`, are renamed too.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use tapegate_core::frame::{Envelope, Kind, same_id};
use tapegate_core::json;
use tapegate_core::pending::IdKey;
use tapegate_core::relay::{IdEdits, Permitted};
use tapegate_core::side::Lane;

use super::super::listen::Cord;
use super::exchange::Exchange;
use super::stream::Stream;
use tapegate_core::json::Edits;

/// How many unanswered requests are remembered. Beyond it, those of departed clients are dropped.
const ASKED_MAX: usize = 1 << 16;
/// How many digits every number parser preserves.
const DIGITS_MAX: usize = 15;
/// How many answered requests are remembered.
const RECENT_MAX: usize = 64;

/// The exchanges waiting for answers of one server.
#[derive(Default)]
pub(super) struct Book {
    asked: HashMap<IdKey, Name>,
    tokens: HashMap<IdKey, Name>,
    open: BTreeMap<u64, Rc<Exchange>>,
    renamed: u64,
    /// Whether ambiguous ids are renamed too. Without a gate, no byte is changed unnecessarily.
    renames_odd: bool,
    /// Recently answered requests by their server-side id, with the connection each came from.
    recent: VecDeque<(Box<[u8]>, Rc<Cord>)>,
}

/// A client's id or token, and the exchange it belongs to.
struct Name {
    exchange: Rc<Exchange>,
    /// The raw text the client uses.
    theirs: Box<[u8]>,
    /// The raw text the server sees.
    ours: Box<[u8]>,
    renamed: bool,
}

/// Where a message from the server belongs.
pub(super) enum Place {
    /// Answers a request of this exchange.
    Answer(Rc<Exchange>),
    /// Belongs to this exchange, or can only be meant for it.
    With(Rc<Exchange>),
    /// Belongs to no particular exchange.
    Anywhere,
    /// Answers no pending request.
    Unasked,
}

impl Place {
    fn exchange(&self) -> Option<&Exchange> {
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
    pub(super) fn is_parted(&self) -> bool {
        self.exchange().is_some_and(|exchange| exchange.parted.get())
    }
}

impl Book {
    /// An empty map. With a gate, ambiguous ids are renamed lest a client get another's answer.
    pub(super) fn new(governed: bool) -> Self {
        Self { renames_odd: governed, ..Self::default() }
    }

    /// Checks that another request can be remembered. If necessary, forgets and returns the oldest
    /// exchange whose client has gone.
    pub(super) fn make_room(&mut self) -> Result<Option<Rc<Exchange>>, ()> {
        if self.asked.len() < ASKED_MAX {
            return Ok(None);
        }
        let oldest = self.open.values().find(|exchange| exchange.gone.get()).cloned().ok_or(())?;
        for key in oldest.ids.take() {
            self.asked.remove(&key);
        }
        self.close(&oldest);
        Ok(Some(oldest))
    }

    /// Enters the requests of a message, and returns it with the ids that the server will see.
    pub(super) fn enter<'a>(
        &mut self,
        exchange: &Rc<Exchange>,
        message: Permitted<'a>,
    ) -> Permitted<'a> {
        self.open.insert(exchange.number, Rc::clone(exchange));
        let renames_odd = self.renames_odd;
        message.with_ids(|said, edits| {
            if let (Kind::Request, Some(id)) = (said.kind(), said.id) {
                let keeps = |id: &[u8]| !renames_odd || has_one_reading(id);
                exchange.listens.set(said.is_method("subscriptions/listen"));
                exchange.lists.set(said.is_method("tools/list"));
                let key =
                    name(&mut self.asked, &mut self.renamed, exchange, (id, keeps(id)), edits);
                exchange.ids.borrow_mut().push(key);
                if let Some(token) = said.progress_token {
                    let (tokens, renamed) = (&mut self.tokens, &mut self.renamed);
                    let key = name(tokens, renamed, exchange, (token, keeps(token)), edits);
                    exchange.tokens.borrow_mut().push(key);
                }
            }
        })
    }

    /// Translates the request id of a client's cancellation to the one the server knows.
    pub(super) fn cancel<'a>(&self, lane: Lane, message: Permitted<'a>) -> Permitted<'a> {
        message.with_ids(|said, edits| {
            let Some(id) = said.request_id else { return };
            if said.is_method("notifications/cancelled")
                && let Some(found) = self.find(lane, id)
            {
                found.exchange.cancelled.set(true);
                if found.renamed {
                    edits.replace(id, &found.ours);
                }
            }
        })
    }

    /// The request that a client in `lane` knows as `id`.
    fn find(&self, lane: Lane, id: &[u8]) -> Option<&Name> {
        let is_it = |name: &&Name| name.exchange.lane == lane && same_id(&name.theirs, id);
        let by_itself = self.asked.get(&IdKey::new(id)).filter(is_it);
        by_itself.or_else(|| self.asked.values().find(|name| name.renamed && is_it(name)))
    }

    /// Removes the request that a client in `lane` knows as `id`, and returns its exchange.
    pub(super) fn take(&mut self, lane: Lane, id: &[u8]) -> Option<Rc<Exchange>> {
        let ours = self.find(lane, id)?.ours.clone();
        self.answered(&ours).map(|name| name.exchange)
    }

    /// The unanswered requests of `exchange`, as pairs of server-side and client-side id.
    pub(super) fn unanswered(&self, exchange: &Exchange) -> Vec<(Vec<u8>, Vec<u8>)> {
        let asked = exchange.ids.borrow();
        let known = asked.iter().filter_map(|key| self.asked.get(key));
        known.map(|name| (name.ours.to_vec(), name.theirs.to_vec())).collect()
    }

    /// Finds where a message from the server belongs, and restores the client's ids. `about` is the
    /// request the server has named for it, if any.
    pub(super) fn place(
        &mut self,
        said: &Envelope<'_>,
        about: Option<&[u8]>,
        edits: &mut Edits<'_>,
    ) -> Place {
        match (said.kind(), said.id) {
            (Kind::Response | Kind::Error, Some(id)) => match self.answered(id) {
                Some(name) => {
                    if name.renamed {
                        edits.replace(id, &name.theirs);
                        if let Some(id) = said.result.and_then(subscription_of_result) {
                            edits.replace(id, &name.theirs);
                        }
                    }
                    Place::Answer(name.exchange)
                }
                None => Place::Unasked,
            },
            (Kind::Response | Kind::Error, None) | (Kind::Other, _) => Place::Unasked,
            (Kind::Request, _) => self.meant(about).unwrap_or_else(|| self.only_one()),
            (Kind::Notification, _) => self.place_notification(said, about, edits),
        }
    }

    fn place_notification(
        &self,
        said: &Envelope<'_>,
        about: Option<&[u8]>,
        edits: &mut Edits<'_>,
    ) -> Place {
        let named = match (said.subscription_id, said.progress_token) {
            (Some(id), _) => self.asked.get(&IdKey::new(id)).map(|name| (id, name)),
            (None, Some(token)) => self.tokens.get(&IdKey::new(token)).map(|name| (token, name)),
            (None, None) => None,
        };
        if let Some((text, name)) = named {
            if name.renamed {
                edits.replace(text, &name.theirs);
            }
            return Place::With(Rc::clone(&name.exchange));
        }
        if let Some(place) = self.meant(about) {
            return place;
        }
        if said.is_method("notifications/message") || said.is_method("notifications/cancelled") {
            return self.only_one();
        }
        Place::Anywhere
    }

    /// The exchange of the pending request that the server knows as `about`.
    fn meant(&self, about: Option<&[u8]>) -> Option<Place> {
        let name = self.asked.get(&IdKey::new(about?))?;
        Some(Place::With(Rc::clone(&name.exchange)))
    }

    /// The only live exchange that is not a subscription, if there is exactly one.
    fn only_one(&self) -> Place {
        let mut live = self.open.values().filter(|one| one.is_live() && !one.listens.get());
        match (live.next(), live.next()) {
            (Some(only), None) => Place::With(Rc::clone(only)),
            _ => Place::Anywhere,
        }
    }

    /// The newest exchange that accepts messages other than answers.
    pub(super) fn any_listener(&self) -> Option<Rc<Exchange>> {
        let can_listen = |one: &&Rc<Exchange>| one.is_live() && one.can_be_told();
        self.open.values().rev().find(can_listen).cloned()
    }

    /// The client's lane and id for the request that the server knows as `id`.
    pub(super) fn theirs(&self, id: &[u8]) -> Option<(Lane, Vec<u8>)> {
        self.asked.get(&IdKey::new(id)).map(|name| (name.exchange.lane, name.theirs.to_vec()))
    }

    /// Removes the request that the server knows as `id`, because it has been answered.
    pub(super) fn close_asked(&mut self, id: &[u8]) {
        drop(self.answered(id));
    }

    /// The connection on which the request arrived that the server knows as `id`.
    pub(super) fn cord(&self, id: &[u8]) -> Option<Rc<Cord>> {
        if let Some(name) = self.asked.get(&IdKey::new(id)) {
            return name.exchange.cord.borrow().clone();
        }
        let mut recent = self.recent.iter().rev();
        recent.find(|(ours, _)| same_id(ours, id)).map(|(_, cord)| Rc::clone(cord))
    }

    /// The exchange of the request that the server knows as `id`.
    pub(super) fn asker(&self, id: &[u8]) -> Option<Rc<Exchange>> {
        self.asked.get(&IdKey::new(id)).map(|name| Rc::clone(&name.exchange))
    }

    /// The open exchange whose stream has this number.
    pub(super) fn with_stream(&self, number: u64) -> Option<(Rc<Exchange>, Rc<Stream>)> {
        let streams = self.open.values().filter_map(|one| Some((Rc::clone(one), one.stream()?)));
        streams.into_iter().find(|(_, stream)| stream.number() == number)
    }

    /// Whether a client waits for an answer.
    pub(super) fn is_live(&self) -> bool {
        self.open.values().any(|exchange| exchange.is_live())
    }

    /// All exchanges, oldest first.
    pub(super) fn exchanges(&self) -> Vec<Rc<Exchange>> {
        self.open.values().cloned().collect()
    }

    fn answered(&mut self, id: &[u8]) -> Option<Name> {
        let key = IdKey::new(id);
        let name = self.asked.remove(&key)?;
        name.exchange.ids.borrow_mut().retain(|held| *held != key);
        if let Some(cord) = name.exchange.cord.borrow().clone() {
            if self.recent.len() >= RECENT_MAX {
                self.recent.pop_front();
            }
            self.recent.push_back((name.ours.clone(), cord));
        }
        if name.exchange.ids.borrow().is_empty() {
            self.close(&name.exchange);
        }
        Some(name)
    }

    fn close(&mut self, exchange: &Exchange) {
        self.open.remove(&exchange.number);
        for token in exchange.tokens.take() {
            self.tokens.remove(&token);
        }
    }
}

/// Enters `theirs` unchanged, or under a new id if it is in use or ambiguous.
fn name(
    names: &mut HashMap<IdKey, Name>,
    count: &mut u64,
    exchange: &Rc<Exchange>,
    (theirs, mut is_good): (&[u8], bool),
    edits: &mut IdEdits<'_>,
) -> IdKey {
    let mut ours = Cow::Borrowed(theirs);
    while !is_good || names.contains_key(&IdKey::new(&ours)) {
        is_good = true;
        *count += 1;
        ours = Cow::Owned(format!("\"tapegate-{count}\"").into_bytes());
    }
    let renamed = matches!(ours, Cow::Owned(_));
    if renamed {
        edits.replace(theirs, &ours);
    }
    let key = IdKey::new(&ours);
    let (exchange, ours) = (Rc::clone(exchange), ours.into());
    names.insert(key.clone(), Name { exchange, theirs: theirs.into(), ours, renamed });
    key
}

/// Whether every server parses this id the same way: a string without escapes, or an integer that a
/// double represents exactly. Some parsers treat `1.0`, `1e0` and `-0` as other numbers. Other JSON
/// values are not valid ids; the server is left to refuse them.
fn has_one_reading(id: &[u8]) -> bool {
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
