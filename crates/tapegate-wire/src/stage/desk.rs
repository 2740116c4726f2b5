//! Passes a session's events to the actor, and collects the resulting actions.

use std::rc::Rc;

use tapegate_core::actor::{Act, Cue, Seat as Number};
use tapegate_core::frame::{Frame, error_reply};
use tapegate_core::lines::{Cut, Lines, Oversize};
use tapegate_core::relay::{CODE_GONE, Event};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{Provenance, RecordError, TOO_LARGE};
use tapegate_core::time::At;

use super::errands::{ERRANDS_MAX, Errands};
use super::notification::is_notification;
use super::outbox::Outbox;
use super::raw_line::RawLine;
use super::{Stage, address};
use crate::deck::Deck;
use crate::stdio::answered;

/// How much output may be queued for a client that does not read before the actor gets no more
/// events. A few small requests may cause large answers, so this is checked after every line.
const OUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How much may be queued for a passthrough server before the actor gets no more events.
const ASK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How much may be queued before the server's own output is not read either.
const ASK_BYTES_UTMOST: usize = 4 * ASK_BYTES_MAX;
/// How much of an incomplete line may be queued. Such lines are produced as they are read.
const RAW_BYTES_MAX: usize = 64 * 1024;

/// The actor's side of one session.
pub(super) struct Desk<'d> {
    pub(super) stage: Rc<Stage>,
    number: Number,
    /// Output for the client.
    pub(super) out: Outbox,
    /// Requests for the passthrough server.
    pub(super) ask: Outbox,
    /// The recording, if there is one.
    deck: Option<&'d mut Deck>,
    /// Whether output names the request it belongs to.
    pub(super) addresses: bool,
    /// Whether the client has streams, which may be ended early.
    pub(super) streams: bool,
    /// Whether the client is a bridge in the same process, which also accepts addressed lines.
    pub(super) inside: bool,
    /// Handler calls made for the actor.
    pub(super) errands: Errands,
    /// The line on the pipe that is sent in pieces.
    raw: RawLine,
    /// Whether the actor has closed the connection.
    left: bool,
}

impl<'d> Desk<'d> {
    pub(super) fn new(stage: &Rc<Stage>, deck: Option<&'d mut Deck>) -> Self {
        let (number, stage) = (stage.next_seat(), Rc::clone(stage));
        Self {
            stage,
            number,
            out: Outbox::default(),
            ask: Outbox::default(),
            deck,
            addresses: false,
            streams: false,
            inside: false,
            errands: Errands::default(),
            raw: RawLine::default(),
            left: false,
        }
    }

    /// The current time.
    pub(super) fn now(&self) -> At {
        self.stage.clock.now()
    }

    /// When the actor wants to be woken.
    pub(super) fn due(&self) -> Option<u64> {
        self.stage.actor.borrow().due(self.number)
    }

    /// Whether the actor has more output of its own accord.
    pub(super) fn is_busy(&self) -> bool {
        self.stage.actor.borrow().busy(self.number)
    }

    /// Whether the actor may get more events.
    pub(super) fn has_room(&self) -> bool {
        let bytes_max = if self.raw.is_open() { RAW_BYTES_MAX } else { OUT_BYTES_MAX };
        self.out.left() < bytes_max && self.ask.left() < ASK_BYTES_MAX
    }

    /// Whether the actor may get the client's messages. A client that does not read an incomplete
    /// line is not read from, as with any server that writes before it reads.
    pub(super) fn may_hear(&self) -> bool {
        self.has_room()
            && (!self.raw.is_open() || self.out.left() == 0)
            && self.errands.count() < ERRANDS_MAX
            && !self.left
            && self.stage.actor.borrow().backlog(self.number) < OUT_BYTES_MAX
    }

    /// Whether queued output should be sent before checking for room again.
    pub(super) fn is_in_line(&self) -> bool {
        self.raw.is_open()
    }

    /// Whether the actor has closed the connection.
    pub(super) fn has_left(&self) -> bool {
        self.left
    }

    /// Whether all consequences of the client's messages are finished.
    pub(super) fn is_done(&self) -> bool {
        self.out.left() == 0 && self.errands.count() == 0 && !self.is_busy()
    }

    /// Whether the actor may get the passthrough server's output. Reading it may unblock that
    /// server.
    pub(super) fn has_room_behind(&self) -> bool {
        self.out.left() < OUT_BYTES_MAX && self.ask.left() < ASK_BYTES_UTMOST
    }

    /// Passes an event to the actor.
    pub(super) fn feed(&mut self, at: At, cue: Cue<'_>) {
        let Self { stage, number, out, ask, deck, addresses, streams, .. } = self;
        let (inside, errands, raw, left) =
            (self.inside, &mut self.errands, &mut self.raw, &mut self.left);
        let mut stop = false;
        stage.actor.borrow_mut().handle(at, *number, cue, &mut |act| match act {
            _ if *left => {}
            Act::Tell { about, parts } if *addresses => address::add(out, about, parts),
            Act::Play { about, parts, provenance } if inside => {
                let about = about.filter(|_| *addresses);
                let notifies = is_notification(address::add_played(out, about, parts, provenance));
                if about.is_none() {
                    out.mark(notifies);
                }
            }
            Act::Say(parts) | Act::Tell { parts, .. } | Act::Play { parts, .. } => {
                let bytes = out.add(parts);
                let notifies = is_notification(bytes);
                if let Some(deck) = deck {
                    raw.cut(|line| record(deck, at, Side::Server, line, false));
                    match act {
                        Act::Play { provenance, .. } => play(deck, at, bytes, provenance),
                        _ => record(deck, at, Side::Server, bytes, true),
                    }
                }
                out.mark(notifies);
                raw.close();
            }
            Act::Part(id) if *streams => address::add(out, id, &[]),
            Act::Part(_) => {}
            Act::Ask(parts) => drop(ask.add(parts)),
            Act::Raw { about, bytes, ends } if inside => address::add_raw(out, about, bytes, ends),
            Act::Raw { bytes, ends, .. } => {
                out.add_raw(bytes, ends);
                let bytes_max = stage.options.message_bytes_max;
                raw.add(bytes, ends, deck.is_some().then_some(bytes_max));
                if let (Some(deck), true) = (deck.as_mut(), ends) {
                    raw.cut(|line| record(deck, at, Side::Server, line, true));
                }
            }
            Act::Run { ticket, errand } => errands.run(&stage.servers, ticket, errand),
            Act::Leave { about, abrupt } => {
                // Of clients that share a session, the bridge disconnects the one concerned.
                *left = !*addresses;
                if abrupt && *left {
                    out.clear();
                }
                if inside {
                    address::add_leave(out, about, abrupt);
                }
            }
            Act::Stop => stop = true,
        });
        if stop {
            stage.stop();
        }
    }

    /// Passes a client's line to the actor.
    pub(super) fn hear(&mut self, at: At, lines: &Lines, cut: Cut) {
        let (range, terminated) = match cut {
            Cut::Line(range) => (range, true),
            Cut::Unterminated(range) => (range, false),
            Cut::Oversize(message) => return self.hear_much(at, message),
        };
        let bytes = lines.bytes(range);
        if let Some(deck) = &mut self.deck {
            record(deck, at, Side::Client, bytes, terminated);
        }
        self.feed(at, Cue::Said(bytes));
    }

    fn hear_much(&mut self, at: At, message: Oversize) {
        if let Some(deck) = &mut self.deck {
            // The actor answers, so the relay is not asked to.
            let (lane, from, bytes) = (Lane::ONLY, Side::Client, &message.head[..]);
            let event = Event::Marked { lane, from, bytes, why: TOO_LARGE, delivered: true };
            deck.feed(at, event, &mut |_| ());
        }
        self.feed(at, Cue::TooLarge { message, bytes_max: self.stage.options.message_bytes_max });
    }

    /// Commits the recorded entries, so that the output may be sent.
    pub(super) fn commit(&mut self) -> Result<(), RecordError> {
        if let Some(deck) = &mut self.deck {
            deck.commit()?;
        }
        self.out.release();
        Ok(())
    }

    /// Records the part that was sent of a line that never ended.
    pub(super) fn end_line(&mut self) {
        let at = self.now();
        if let Some(deck) = &mut self.deck {
            self.raw.cut(|line| record(deck, at, Side::Server, line, false));
            // If the tape has failed, the session has ended already.
            deck.commit().ok();
        }
    }

    /// Answers with an error every request left unanswered because the tape has failed.
    pub(super) fn give_up(&mut self, why: &str) {
        let unsent = self.out.take_unsure();
        let mut ids = Vec::new();
        let lines = unsent.split(|byte| *byte == b'\n');
        lines.for_each(|line| answered(&Frame::read(line), &mut ids));
        for id in ids {
            self.out.add(&[&error_reply(&id, CODE_GONE, why, "{\"by\":\"tapegate\"}")]);
        }
        if let Some(deck) = &mut self.deck {
            let (at, out) = (self.stage.clock.now(), &mut self.out);
            let event =
                Event::Gone { lane: Some(Lane::ONLY), side: Side::Server, why, error_type: None };
            deck.feed(at, event, &mut |outgoing| {
                if outgoing.to == Side::Client {
                    out.add(&[outgoing.message.bytes()]);
                }
            });
        }
        self.out.release();
    }
}

impl Drop for Desk<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // Any further output of the actor is discarded.
        self.deck = None;
        let at = self.now();
        self.feed(at, Cue::Empty);
    }
}

fn play(deck: &mut Deck, at: At, bytes: &[u8], provenance: Provenance) {
    let (lane, from, resumed) = (Lane::ONLY, Side::Server, false);
    deck.feed(at, Event::Played { lane, from, bytes, resumed, provenance }, &mut |_| ());
}

fn record(deck: &mut Deck, at: At, from: Side, bytes: &[u8], terminated: bool) {
    let event = Event::Received { lane: Lane::ONLY, from, bytes, terminated };
    deck.feed(at, event, &mut |_| ());
}
