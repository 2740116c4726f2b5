//! One request or notification of a live client, and what the recorded server sends in response.
//!
//! A scene follows the tape from message to message: it sends the server's own messages, waits for
//! an answer of the client where the tape has one, answers the request, and sends what came after.
//! Ids and progress tokens are replaced by the live ones.

mod saying;

use std::io;

use super::Context;
use super::cancelling::Cancellable;
use super::live::Live;
use super::order::Group;
use super::tape::Tape;
use crate::actor::Act;
use crate::frame::{Envelope, Frame};
use crate::pending::Small;
use crate::side::Side;
use crate::tape::index::{NONE, Slot};
use crate::time::At;

/// How long to wait for an answer of the client.
const REPLY_NS_MAX: u64 = 60_000_000_000;

/// An active scene.
#[derive(Debug)]
pub(super) struct Scene {
    /// Its number in the session.
    pub(super) number: u32,
    /// The run that it belongs to.
    run: u32,
    /// The scenes with the same group are kept in order.
    pub(super) group: Group,
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
    pub(super) id: Option<Small>,
    /// The batch that the answer belongs to, if any.
    pub(super) batch: Option<u32>,
    /// The recorded progress token and the live one.
    names: Names,
    /// The time from which delays count, live and on the tape.
    base: (u64, u64),
    /// Whether that time is still the time of the request.
    from_request: bool,
    /// Requests sent to the client in this scene, and whether each is answered or needs no answer.
    asked: Vec<(u32, bool)>,
    /// The live request, if the recorded client cancelled it.
    pub(super) cancellable: Option<Box<Cancellable>>,
    /// What the scene waits for.
    pub(super) wait: Wait,
    pub(super) answered: bool,
    /// Whether the stream of the request was ended before its answer.
    parted: bool,
}

/// The progress token of the recorded request, and the live one that replaces it.
#[derive(Debug, Default)]
struct Names {
    token: Option<Box<[u8]>>,
    live_token: Option<Box<[u8]>>,
}

/// What a scene waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
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

impl Scene {
    /// A scene that begins with a message of the client.
    pub(super) fn new((number, run): (u32, u32), anchor: u32, slot: &Slot, at: At) -> Self {
        Self {
            number,
            run,
            group: (run, slot.session),
            anchor,
            ask: NONE,
            next: slot.next,
            earlier: None,
            asked_until: NONE,
            id: None,
            batch: None,
            names: Names::default(),
            base: (at.mono_ns, slot.at_us),
            from_request: true,
            asked: Vec::new(),
            cancellable: None,
            wait: Wait::No,
            answered: false,
            parted: false,
        }
    }

    /// Connects the scene to a live request and the recorded one.
    pub(super) fn answering(
        mut self,
        said: &Envelope<'_>,
        batch: Option<u32>,
        ask: u32,
        tape: &mut Tape,
    ) -> io::Result<Self> {
        (self.ask, self.asked_until) = (ask, ask.saturating_add(1));
        self.id = said.id.map(Small::new);
        self.batch = batch;
        let slot = tape.index.slot(self.anchor);
        // If only the answer follows, nothing in it refers to the request's token.
        let bare = slot.pair != NONE && slot.next == slot.pair;
        if !bare || tape.index.slot(slot.pair).next != NONE {
            let frame = Frame::read(tape.text(&slot)?);
            let recorded = frame.envelope();
            self.names = Names {
                token: recorded.and_then(|recorded| recorded.progress_token).map(Into::into),
                live_token: said.progress_token.map(Into::into),
            };
        }
        Ok(self)
    }

    /// The recorded progress token and its live replacement.
    pub(super) fn token(&self) -> Option<(&[u8], &[u8])> {
        self.names.token.as_deref().zip(self.names.live_token.as_deref())
    }

    /// Notes an answer of the client; returns true if the scene was waiting for it.
    pub(super) fn replied(&mut self, request: u32, at: At, tape: &Tape) -> bool {
        self.asked.iter_mut().filter(|(slot, _)| *slot == request).for_each(|asked| asked.1 = true);
        let waited = matches!(self.wait, Wait::Reply(slot, _) if slot == request);
        if waited {
            self.wait = Wait::No;
            self.rebase(at, tape.index.slot(self.next).at_us);
        }
        waited
    }

    fn rebase(&mut self, at: At, recorded_us: u64) {
        self.base = (at.mono_ns, recorded_us);
        self.from_request = false;
    }

    /// When to send a recorded message.
    fn due(&self, slot: &Slot, pace: f64) -> u64 {
        let recorded_us = match slot.latency_us {
            Some(latency) if self.from_request => latency,
            _ => slot.at_us.saturating_sub(self.base.1),
        };
        self.base.0.saturating_add((recorded_us as f64 * 1000.0 * pace) as u64)
    }

    /// Plays until it has to wait, or up to the slot `limit`. Returns false when the scene is over.
    pub(super) fn play(
        &mut self,
        context: &mut Context<'_>,
        live: &mut Live,
        (at, limit): (At, u32),
        act: &mut dyn FnMut(Act<'_>),
    ) -> io::Result<bool> {
        self.wait = Wait::No;
        while self.next != NONE {
            let slot = context.tape.index.slot(self.next);
            if slot.from == Side::Client {
                let asked = self.asked.iter().find(|asked| asked.0 == slot.pair);
                if asked.is_some_and(|asked| !asked.1) && !live.has_left() {
                    self.wait = Wait::Reply(slot.pair, at.mono_ns.saturating_add(REPLY_NS_MAX));
                    return Ok(true);
                }
                self.next = slot.next;
                continue;
            }
            if self.next >= limit {
                self.wait = Wait::Turn;
                return Ok(true);
            }
            self.part(context.tape, &slot, act);
            let due = live.moment(self.due(&slot, context.options.pace));
            if due > at.mono_ns {
                self.wait = Wait::Until(due);
                return Ok(true);
            }
            self.say(context, live, &slot, act)?;
            self.next = slot.next;
        }
        let open = self.id.is_some() && !self.answered;
        if open {
            let cancel = self.cancellable.as_ref().map(|kept| Wait::Cancel(kept.due_ns));
            self.wait = cancel.unwrap_or(Wait::Open);
        }
        Ok(open)
    }

    /// Ends the stream of the request where the recorded client reconnected for the rest. Other
    /// messages on a resumed stream belong to the session, whose stream it was.
    fn part(&mut self, tape: &Tape, slot: &Slot, act: &mut dyn FnMut(Act<'_>)) {
        if !slot.resumed || self.parted || self.answered {
            return;
        }
        let answer = tape.index.slot(self.anchor).pair;
        if let Some(id) = self.id.as_ref().filter(|_| answer != NONE)
            && tape.index.slot(answer).resumed
        {
            self.parted = true;
            act(Act::Part(id.bytes()));
        }
    }

    /// Stops waiting for an answer of the client.
    pub(super) fn wait_no_longer(&mut self, at: At, tape: &Tape) {
        if let Wait::Reply(request, _) = self.wait {
            self.replied(request, at, tape);
        }
    }
}
