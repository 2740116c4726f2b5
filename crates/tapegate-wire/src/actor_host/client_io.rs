//! Passes a session's events to the actor, and collects the resulting actions.

use std::rc::Rc;

use tapegate_core::actor::{ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::frame::{Frame, own_error};
use tapegate_core::lines::{LineSplitter, OversizeMessage, StreamLine};
use tapegate_core::relay::{CODE_GONE, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{Provenance, RecordError, TOO_LARGE};
use tapegate_core::time::Timestamp;

use super::handler_calls::{ERRANDS_MAX, HandlerCalls};
use super::notification::is_notification;
use super::outbox::LineOutbox;
use super::raw_line::RawLine;
use super::{ActorHost, addressed_line};
use crate::recorded_session::RecordedSession;
use crate::stdio::collect_answered_ids;

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
pub(super) struct ClientIo<'d> {
    pub(super) host: Rc<ActorHost>,
    number: ActorSessionId,
    /// Output for the client.
    pub(super) out: LineOutbox,
    /// Requests for the passthrough server.
    pub(super) ask: LineOutbox,
    /// The recording, if there is one.
    session: Option<&'d mut RecordedSession>,
    /// Whether output names the request it belongs to.
    pub(super) addresses: bool,
    /// Whether the client has streams, which may be ended early.
    pub(super) streams: bool,
    /// Whether the client is a bridge in the same process, which also accepts addressed lines.
    pub(super) inside: bool,
    /// Handler calls made for the actor.
    pub(super) handler_calls: HandlerCalls,
    /// The line on the pipe that is sent in pieces.
    raw: RawLine,
    /// Whether the actor has closed the connection.
    left: bool,
}

impl<'d> ClientIo<'d> {
    pub(super) fn new(host: &Rc<ActorHost>, session: Option<&'d mut RecordedSession>) -> Self {
        let (number, host) = (host.next_session_number(), Rc::clone(host));
        Self {
            host,
            number,
            out: LineOutbox::default(),
            ask: LineOutbox::default(),
            session,
            addresses: false,
            streams: false,
            inside: false,
            handler_calls: HandlerCalls::default(),
            raw: RawLine::default(),
            left: false,
        }
    }

    /// The current time.
    pub(super) fn now(&self) -> Timestamp {
        self.host.clock.now()
    }

    /// When the actor wants to be woken.
    pub(super) fn next_wakeup(&self) -> Option<u64> {
        self.host.actor.borrow().next_wakeup(self.number)
    }

    /// Whether the actor has more output of its own accord.
    pub(super) fn is_busy(&self) -> bool {
        self.host.actor.borrow().is_busy(self.number)
    }

    /// Whether the actor may get more events.
    pub(super) fn has_room(&self) -> bool {
        let bytes_max = if self.raw.is_open() { RAW_BYTES_MAX } else { OUT_BYTES_MAX };
        self.out.unwritten_bytes() < bytes_max && self.ask.unwritten_bytes() < ASK_BYTES_MAX
    }

    /// Whether the actor may get the client's messages. A client that does not read an incomplete
    /// line is not read from, as with any server that writes before it reads.
    pub(super) fn can_receive(&self) -> bool {
        self.has_room()
            && (!self.raw.is_open() || self.out.unwritten_bytes() == 0)
            && self.handler_calls.count() < ERRANDS_MAX
            && !self.left
            && self.host.actor.borrow().backlog_bytes(self.number) < OUT_BYTES_MAX
    }

    /// Whether queued output should be sent before checking for room again.
    pub(super) fn has_pending_output(&self) -> bool {
        self.raw.is_open()
    }

    /// Whether the actor has closed the connection.
    pub(super) fn has_left(&self) -> bool {
        self.left
    }

    /// Whether all consequences of the client's messages are finished.
    pub(super) fn is_done(&self) -> bool {
        self.out.unwritten_bytes() == 0 && self.handler_calls.count() == 0 && !self.is_busy()
    }

    /// Whether the actor may get the passthrough server's output. Reading it may unblock that
    /// server.
    pub(super) fn can_receive_from_passthrough(&self) -> bool {
        self.out.unwritten_bytes() < OUT_BYTES_MAX && self.ask.unwritten_bytes() < ASK_BYTES_UTMOST
    }

    /// Passes an event to the actor.
    pub(super) fn feed(&mut self, at: Timestamp, actor_event: ActorEvent<'_>) {
        let Self { host, number, out, ask, session, addresses, streams, .. } = self;
        let (inside, handler_calls, raw, left) =
            (self.inside, &mut self.handler_calls, &mut self.raw, &mut self.left);
        let mut stop = false;
        host.actor.borrow_mut().handle(at, *number, actor_event, &mut |act| match act {
            // The connection is closed, so nothing that follows in this turn may be sent.
            _ if *left => {}
            ActorAction::Tell { about, parts } if *addresses => {
                addressed_line::add(out, about, parts)
            }
            ActorAction::Play { about, parts, provenance } if inside => {
                let about = about.filter(|_| *addresses);
                let notifies =
                    is_notification(addressed_line::add_played(out, about, parts, provenance));
                // An addressed line has a stream of its own, where order is kept without a wait.
                if about.is_none() {
                    out.mark_notification(notifies);
                }
            }
            ActorAction::Say(parts)
            | ActorAction::Tell { parts, .. }
            | ActorAction::Play { parts, .. } => {
                let bytes = out.add(parts);
                let notifies = is_notification(bytes);
                if let Some(session) = session {
                    // The client sees both as one line; the tape shows where the first was cut.
                    raw.take_line(|line| record(session, at, Side::Server, line, false));
                    match act {
                        ActorAction::Play { provenance, .. } => {
                            record_played(session, at, bytes, provenance)
                        }
                        _ => record(session, at, Side::Server, bytes, true),
                    }
                }
                out.mark_notification(notifies);
                raw.close();
            }
            ActorAction::Part(id) if *streams => addressed_line::add(out, id, &[]),
            ActorAction::Part(_) => {}
            ActorAction::Ask(parts) => drop(ask.add(parts)),
            ActorAction::Raw { about, bytes, ends } if inside => {
                addressed_line::add_raw(out, about, bytes, ends)
            }
            ActorAction::Raw { bytes, ends, .. } => {
                out.add_raw(bytes, ends);
                let bytes_max = host.options.message_bytes_max;
                raw.add(bytes, ends, session.is_some().then_some(bytes_max));
                if let (Some(session), true) = (session.as_mut(), ends) {
                    raw.take_line(|line| record(session, at, Side::Server, line, true));
                }
            }
            ActorAction::Run { call_id: hold_id, handler_call } => {
                handler_calls.run(&host.servers, hold_id, handler_call)
            }
            ActorAction::Leave { about, abrupt } => {
                // Of clients that share a session, the bridge disconnects the one concerned.
                *left = !*addresses;
                if abrupt && *left {
                    out.clear();
                }
                if inside {
                    addressed_line::add_close(out, about, abrupt);
                }
            }
            ActorAction::Stop => stop = true,
        });
        if stop {
            host.stop();
        }
    }

    /// Passes a client's line to the actor.
    pub(super) fn receive_line(&mut self, at: Timestamp, lines: &LineSplitter, cut: StreamLine) {
        let (range, terminated) = match cut {
            StreamLine::Line(range) => (range, true),
            StreamLine::Unterminated(range) => (range, false),
            StreamLine::Oversize(message) => return self.receive_oversize(at, message),
        };
        let bytes = lines.bytes(range);
        // Recorded before the actor sees it, so that its answer comes later on the tape.
        if let Some(session) = &mut self.session {
            record(session, at, Side::Client, bytes, terminated);
        }
        self.feed(at, ActorEvent::Said(bytes));
    }

    fn receive_oversize(&mut self, at: Timestamp, message: OversizeMessage) {
        if let Some(session) = &mut self.session {
            // The actor answers, so the relay is not asked to.
            let (lane, from, bytes) = (Lane::ONLY, Side::Client, &message.head[..]);
            let event =
                RelayEvent::Marked { lane, from, bytes, reason: TOO_LARGE, delivered: true };
            session.feed(at, event, &mut |_| ());
        }
        self.feed(
            at,
            ActorEvent::TooLarge { message, bytes_max: self.host.options.message_bytes_max },
        );
    }

    /// Commits the recorded entries, so that the output may be sent.
    pub(super) fn commit(&mut self) -> Result<(), RecordError> {
        if let Some(session) = &mut self.session {
            // On an error nothing is released, so nothing is sent that is not recorded (invariant
            // 4).
            session.commit()?;
        }
        self.out.release();
        Ok(())
    }

    /// Records the part that was sent of a line that never ended.
    pub(super) fn record_unfinished_line(&mut self) {
        let at = self.now();
        if let Some(session) = &mut self.session {
            self.raw.take_line(|line| record(session, at, Side::Server, line, false));
            // If the tape has failed, the session has ended already.
            session.commit().ok();
        }
    }

    /// Answers with an error every request left unanswered because the tape has failed.
    pub(super) fn fail_unanswered(&mut self, reason: &str) {
        // These lines are not on the tape and must not be sent. Their requests get errors instead.
        let unsent = self.out.take_held_back();
        let mut ids = Vec::new();
        let lines = unsent.split(|byte| *byte == b'\n');
        lines.for_each(|line| collect_answered_ids(&Frame::read(line), &mut ids));
        for id in ids {
            self.out.add(&[&own_error(&id, CODE_GONE, reason)]);
        }
        if let Some(session) = &mut self.session {
            let (at, out) = (self.host.clock.now(), &mut self.out);
            let event = RelayEvent::Gone {
                lane: Some(Lane::ONLY),
                side: Side::Server,
                reason,
                error_type: None,
            };
            session.feed(at, event, &mut |outgoing| {
                if outgoing.to == Side::Client {
                    out.add(&[outgoing.message.bytes()]);
                }
            });
        }
        self.out.release();
    }
}

impl Drop for ClientIo<'_> {
    fn drop(&mut self) {
        // The actor may be borrowed by the code that panics.
        if std::thread::panicking() {
            return;
        }
        // Any further output of the actor is discarded.
        self.session = None;
        let at = self.now();
        self.feed(at, ActorEvent::Empty);
    }
}

fn record_played(
    session: &mut RecordedSession,
    at: Timestamp,
    bytes: &[u8],
    provenance: Provenance,
) {
    let (lane, from, resumed) = (Lane::ONLY, Side::Server, false);
    session.feed(at, RelayEvent::Played { lane, from, bytes, resumed, provenance }, &mut |_| ());
}

fn record(
    session: &mut RecordedSession,
    at: Timestamp,
    from: Side,
    bytes: &[u8],
    terminated: bool,
) {
    let event = RelayEvent::Received { lane: Lane::ONLY, from, bytes, terminated };
    session.feed(at, event, &mut |_| ());
}
