//! Who asked what: the ids and tokens that are in use towards one server.
//!
//! Clients that do not know of each other may use the same id at the same time. An id that is in
//! use gets another name towards the server, and the answer gets the client's name back; every
//! other byte stays as it was. With a gate, so does an id that servers may read as another one, such
//! as `1.0`.

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

/// How many unanswered requests are remembered. Beyond it those go whose client has gone.
const ASKED_MAX: usize = 1 << 16;
/// How many digits every reader of numbers keeps.
const DIGITS_MAX: usize = 15;
/// How many are remembered that were answered.
const RECENT_MAX: usize = 64;

/// The exchanges that wait for a server.
#[derive(Default)]
pub(super) struct Book {
    asked: HashMap<IdKey, Name>,
    tokens: HashMap<IdKey, Name>,
    open: BTreeMap<u64, Rc<Exchange>>,
    renamed: u64,
    /// Whether ids with several readings get other names too. A recorder changes no byte that it need not.
    renames_odd: bool,
    /// Who was answered lately, by what the server calls the request, and the connection it came by.
    recent: VecDeque<(Box<[u8]>, Rc<Cord>)>,
}

/// What a client calls something, and which exchange it belongs to.
struct Name {
    exchange: Rc<Exchange>,
    /// The raw text by which the client knows it.
    theirs: Box<[u8]>,
    /// The raw text by which the server knows it.
    ours: Box<[u8]>,
    renamed: bool,
}

/// Where a message of the server belongs.
pub(super) enum Place {
    /// It answers a request of this exchange.
    Answer(Rc<Exchange>),
    /// It belongs to this exchange, or can only be meant for it.
    With(Rc<Exchange>),
    /// It belongs to no exchange in particular.
    Anywhere,
    /// It answers something that nobody asked.
    Unasked,
}

impl Place {
    fn exchange(&self) -> Option<&Exchange> {
        match self {
            Self::Answer(exchange) | Self::With(exchange) => Some(exchange),
            Self::Anywhere | Self::Unasked => None,
        }
    }

    /// Where the message stands on the tape, if an exchange decides it.
    pub(super) fn lane(&self) -> Option<Lane> {
        self.exchange().map(|exchange| exchange.lane)
    }

    /// Whether the message is for a client that has to come back for it.
    pub(super) fn is_parted(&self) -> bool {
        self.exchange().is_some_and(|exchange| exchange.parted.get())
    }
}

impl Book {
    /// A book in which nothing is entered. With a gate nobody may get another's answer by an odd id.
    pub(super) fn new(governed: bool) -> Self {
        Self { renames_odd: governed, ..Self::default() }
    }

    /// Whether another request can be remembered. If need be, the oldest is forgotten whose
    /// client has gone; it is returned.
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

    /// Enters the requests of a message, and returns it with the names that are good for the server.
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

    /// A cancellation by the client, with the name the server knows the request by.
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

    /// The request that a client of `lane` calls `id`.
    fn find(&self, lane: Lane, id: &[u8]) -> Option<&Name> {
        let is_it = |name: &&Name| name.exchange.lane == lane && same_id(&name.theirs, id);
        let by_itself = self.asked.get(&IdKey::new(id)).filter(is_it);
        by_itself.or_else(|| self.asked.values().find(|name| name.renamed && is_it(name)))
    }

    /// Takes the request that a client of `lane` calls `id`, and returns who asked.
    pub(super) fn take(&mut self, lane: Lane, id: &[u8]) -> Option<Rc<Exchange>> {
        let ours = self.find(lane, id)?.ours.clone();
        self.answered(&ours).map(|name| name.exchange)
    }

    /// What `exchange` still waits for, as the server and as the client calls it.
    pub(super) fn unanswered(&self, exchange: &Exchange) -> Vec<(Vec<u8>, Vec<u8>)> {
        let asked = exchange.ids.borrow();
        let known = asked.iter().filter_map(|key| self.asked.get(key));
        known.map(|name| (name.ours.to_vec(), name.theirs.to_vec())).collect()
    }

    /// Finds where a message of the server belongs, and gives things the client's names back. The
    /// server may have said which request it is `about`.
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

    /// The exchange of the request that the server calls `about`, while it waits.
    fn meant(&self, about: Option<&[u8]>) -> Option<Place> {
        let name = self.asked.get(&IdKey::new(about?))?;
        Some(Place::With(Rc::clone(&name.exchange)))
    }

    /// The one exchange that can be meant, if there is one.
    fn only_one(&self) -> Place {
        let mut live = self.open.values().filter(|one| one.is_live() && !one.listens.get());
        match (live.next(), live.next()) {
            (Some(only), None) => Place::With(Rc::clone(only)),
            _ => Place::Anywhere,
        }
    }

    /// The newest exchange that takes messages which are no answers.
    pub(super) fn any_listener(&self) -> Option<Rc<Exchange>> {
        let can_listen = |one: &&Rc<Exchange>| one.is_live() && one.can_be_told();
        self.open.values().rev().find(can_listen).cloned()
    }

    /// What the client calls the request the server calls `id`.
    pub(super) fn theirs(&self, id: &[u8]) -> Option<(Lane, Vec<u8>)> {
        self.asked.get(&IdKey::new(id)).map(|name| (name.exchange.lane, name.theirs.to_vec()))
    }

    /// Takes the request that the server calls `id`, which is answered.
    pub(super) fn close_asked(&mut self, id: &[u8]) {
        drop(self.answered(id));
    }

    /// What the connection hangs on that the request came by which the server calls `id`.
    pub(super) fn cord(&self, id: &[u8]) -> Option<Rc<Cord>> {
        if let Some(name) = self.asked.get(&IdKey::new(id)) {
            return name.exchange.cord.borrow().clone();
        }
        let mut recent = self.recent.iter().rev();
        recent.find(|(ours, _)| same_id(ours, id)).map(|(_, cord)| Rc::clone(cord))
    }

    /// Who asked what the server calls `id`.
    pub(super) fn asker(&self, id: &[u8]) -> Option<Rc<Exchange>> {
        self.asked.get(&IdKey::new(id)).map(|name| Rc::clone(&name.exchange))
    }

    /// The exchange whose stream has this number, while it waits.
    pub(super) fn with_stream(&self, number: u64) -> Option<(Rc<Exchange>, Rc<Stream>)> {
        let streams = self.open.values().filter_map(|one| Some((Rc::clone(one), one.stream()?)));
        streams.into_iter().find(|(_, stream)| stream.number() == number)
    }

    /// Whether somebody waits for an answer.
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

/// Enters `theirs` under itself, or under a new name if it is in use or cannot be kept.
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

/// Whether every server reads an id as this one: a string without escapes, or a whole number that
/// floating point can tell from its neighbours. `1.0`, `1e0` and `-0` are other numbers to some. What is
/// neither is no id, and is left for the server to refuse.
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

/// The subscription that a result names, which is the id of the request it answers.
fn subscription_of_result(result: &[u8]) -> Option<&[u8]> {
    json::member(json::member(result, "_meta")?, "io.modelcontextprotocol/subscriptionId")
}

#[cfg(test)]
mod tests;
