//! One request or notification of a live client, and what the recorded server sends in response.
//!
//! A scene follows the tape from message to message: it sends the server's own messages, waits for
//! an answer of the client where the tape has one, answers the request, and sends what came after.
//! Ids and progress tokens are replaced by the live ones.

mod output;

use std::io;

use super::PlayContext;
use super::cancellable_requests::CancellableRequest;
use super::live_session::LiveSession;
use super::order::OrderGroup;
use super::tape::PlayerTape;
use crate::actor::ActorAction;
use crate::frame::{Envelope, Frame};
use crate::pending::SmallId;
use crate::side::Side;
use crate::tape::index::{IndexEntry, NONE};
use crate::time::Timestamp;

/// How long to wait for an answer of the client.
const REPLY_NS_MAX: u64 = 60_000_000_000;

#[derive(Debug)]
pub(super) struct ActiveScene {
    /// Its number in the session.
    pub(super) number: u32,
    /// The run that it belongs to.
    run: u32,
    /// The scenes with the same group are kept in order.
    pub(super) group: OrderGroup,
    /// The client's recorded message.
    pub(super) anchor: u32,
    /// The client's recorded request, if the message is one.
    pub(super) ask: u32,
    /// The next message to play.
    pub(super) next: u32,
    /// Recorded requests before this one that are still awaited; computed when first needed.
    pub(super) earlier: Option<Vec<u32>>,
    /// No request after this one and before this number is still awaited.
    pub(super) asked_until: u32,
    /// The live request's id; a notification has none.
    pub(super) id: Option<SmallId>,
    /// The batch that the answer belongs to, if any.
    pub(super) batch: Option<u32>,
    /// The recorded progress token and the live one.
    names: TokenNames,
    /// The time from which delays count, live and on the tape.
    base: (u64, u64),
    /// Whether that time is still the time of the request.
    from_request: bool,
    /// Requests sent to the client in this scene, and whether each is answered or needs no answer.
    client_requests: Vec<(u32, bool)>,
    /// The live request, if the recorded client cancelled it.
    pub(super) cancellable: Option<Box<CancellableRequest>>,
    pub(super) wait: SceneWait,
    pub(super) answered: bool,
    /// Whether the stream of the request was ended before its answer.
    parted: bool,
}

/// The progress token of the recorded request, and the live one that replaces it.
#[derive(Debug, Default)]
struct TokenNames {
    token: Option<Box<[u8]>>,
    live_token: Option<Box<[u8]>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SceneWait {
    /// Nothing.
    No,
    /// A point in time.
    Until(u64),
    /// The client's answer to this recorded request, up to a deadline.
    Reply(u32, u64),
    /// Messages that precede it on the tape.
    Turn,
    /// The client to cancel the request, up to a deadline.
    Cancel(u64),
    /// Nothing more follows, but the request stays open: it was never answered.
    Open,
}

impl ActiveScene {
    /// A scene that begins with a message of the client.
    pub(super) fn new(
        (number, run): (u32, u32),
        anchor: u32,
        entry: &IndexEntry,
        at: Timestamp,
    ) -> Self {
        Self {
            number,
            run,
            group: (run, entry.session),
            anchor,
            ask: NONE,
            next: entry.next,
            earlier: None,
            asked_until: NONE,
            id: None,
            batch: None,
            names: TokenNames::default(),
            base: (at.mono_ns, entry.at_us),
            from_request: true,
            client_requests: Vec::new(),
            cancellable: None,
            wait: SceneWait::No,
            answered: false,
            parted: false,
        }
    }

    /// Connects the scene to a live request and the recorded one.
    pub(super) fn bind_to_request(
        mut self,
        envelope: &Envelope<'_>,
        batch: Option<u32>,
        request_number: u32,
        tape: &mut PlayerTape,
    ) -> io::Result<Self> {
        (self.ask, self.asked_until) = (request_number, request_number.saturating_add(1));
        self.id = envelope.id.map(SmallId::new);
        self.batch = batch;
        let entry = tape.index.entry(self.anchor);
        // If only the answer follows, nothing in it refers to the request's token.
        let bare = entry.pair != NONE && entry.next == entry.pair;
        if !bare || tape.index.entry(entry.pair).next != NONE {
            let frame = Frame::read(tape.text(&entry)?);
            let recorded = frame.envelope();
            self.names = TokenNames {
                token: recorded.and_then(|recorded| recorded.progress_token).map(Into::into),
                live_token: envelope.progress_token.map(Into::into),
            };
        }
        Ok(self)
    }

    /// The recorded progress token and its live replacement.
    pub(super) fn token(&self) -> Option<(&[u8], &[u8])> {
        self.names.token.as_deref().zip(self.names.live_token.as_deref())
    }

    /// Notes an answer of the client; returns true if the scene was waiting for it.
    pub(super) fn note_reply(&mut self, request: u32, at: Timestamp, tape: &PlayerTape) -> bool {
        self.client_requests
            .iter_mut()
            .filter(|(entry_number, _)| *entry_number == request)
            .for_each(|client_request| client_request.1 = true);
        let waited = matches!(self.wait, SceneWait::Reply(slot, _) if slot == request);
        if waited {
            self.wait = SceneWait::No;
            // Delays count from the client's answer now, because the server waited for it too.
            self.rebase(at, tape.index.entry(self.next).at_us);
        }
        waited
    }

    fn rebase(&mut self, at: Timestamp, recorded_us: u64) {
        self.base = (at.mono_ns, recorded_us);
        self.from_request = false;
    }

    /// When to send a recorded message.
    fn entry_due_ns(&self, entry: &IndexEntry, pace: f64) -> u64 {
        let recorded_us = match entry.latency_us {
            // The latency was measured by the monotonic clock; the times of lines were not.
            Some(latency) if self.from_request => latency,
            _ => entry.at_us.saturating_sub(self.base.1),
        };
        self.base.0.saturating_add((recorded_us as f64 * 1000.0 * pace) as u64)
    }

    /// Plays until it has to wait, or up to the entry `limit`. Returns false when the scene is over.
    pub(super) fn advance(
        &mut self,
        context: &mut PlayContext<'_>,
        live: &mut LiveSession,
        (at, limit): (Timestamp, u32),
        act: &mut dyn FnMut(ActorAction<'_>),
    ) -> io::Result<bool> {
        self.wait = SceneWait::No;
        while self.next != NONE {
            let entry = context.tape.index.entry(self.next);
            // A message of the client: wait for the live one only if it was asked and has not
            // answered.
            if entry.from == Side::Client {
                let asked = self.client_requests.iter().find(|asked| asked.0 == entry.pair);
                if asked.is_some_and(|asked| !asked.1) && !live.has_left() {
                    self.wait =
                        SceneWait::Reply(entry.pair, at.mono_ns.saturating_add(REPLY_NS_MAX));
                    return Ok(true);
                }
                self.next = entry.next;
                continue;
            }
            if self.next >= limit {
                self.wait = SceneWait::Turn;
                return Ok(true);
            }
            // Before the delay: the recorded client reconnected while the server was still working.
            self.close_for_resumption(context.tape, &entry, act);
            let due = live.clamp_due(self.entry_due_ns(&entry, context.options.pace));
            if due > at.mono_ns {
                self.wait = SceneWait::Until(due);
                return Ok(true);
            }
            self.send_entry(context, live, &entry, act)?;
            self.next = entry.next;
        }
        // The request stays open, so that a cancellation still finds it.
        let open = self.id.is_some() && !self.answered;
        if open {
            let cancel = self.cancellable.as_ref().map(|kept| SceneWait::Cancel(kept.due_ns));
            self.wait = cancel.unwrap_or(SceneWait::Open);
        }
        Ok(open)
    }

    /// Ends the stream of the request where the recorded client reconnected for the rest. Other
    /// messages on a resumed stream belong to the session, whose stream it was.
    fn close_for_resumption(
        &mut self,
        tape: &PlayerTape,
        entry: &IndexEntry,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        if !entry.resumed || self.parted || self.answered {
            return;
        }
        let answer = tape.index.entry(self.anchor).pair;
        if let Some(id) = self.id.as_ref().filter(|_| answer != NONE)
            && tape.index.entry(answer).resumed
        {
            self.parted = true;
            act(ActorAction::Part(id.bytes()));
        }
    }

    /// Stops waiting for an answer of the client.
    pub(super) fn stop_waiting(&mut self, at: Timestamp, tape: &PlayerTape) {
        if let SceneWait::Reply(request, _) = self.wait {
            self.note_reply(request, at, tape);
        }
    }
}
