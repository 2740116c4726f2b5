//! Passes a session's events to the actor, and carries out the resulting actions.

use std::rc::Rc;

use tapegate_core::actor::{ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::time::Timestamp;

use super::ActorHost;
use super::client_end::{ClientEnd, OUT_BYTES_MAX};
use super::handler_calls::{ERRANDS_MAX, HandlerCalls};
use super::outbox::LineOutbox;
use crate::port::ReceivedLine;

/// How much may be queued for a passthrough server before the actor gets no more events.
const ASK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How much may be queued before the server's own output is not read either.
const ASK_BYTES_UTMOST: usize = 4 * ASK_BYTES_MAX;

/// The actor's side of one session.
pub(super) struct ClientIo<C: ClientEnd> {
    pub(super) host: Rc<ActorHost>,
    number: ActorSessionId,
    /// Where output for the client goes.
    pub(super) client: C,
    /// Requests for the passthrough server.
    pub(super) ask: LineOutbox,
    /// Handler calls made for the actor.
    pub(super) handler_calls: HandlerCalls,
    /// Whether the actor has closed the connection.
    left: bool,
}

impl<C: ClientEnd> ClientIo<C> {
    pub(super) fn new(host: &Rc<ActorHost>, client: C) -> Self {
        Self {
            host: Rc::clone(host),
            number: host.next_session_number(),
            client,
            ask: LineOutbox::default(),
            handler_calls: HandlerCalls::default(),
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
        self.client.has_room() && self.ask.unwritten_bytes() < ASK_BYTES_MAX
    }

    /// Whether the actor may get the client's messages. A client that does not read an incomplete
    /// line is not read from, as with any server that writes before it reads.
    pub(super) fn can_receive(&self) -> bool {
        self.has_room()
            && !self.client.blocks_input()
            && self.handler_calls.count() < ERRANDS_MAX
            && !self.left
            && self.host.actor.borrow().backlog_bytes(self.number) < OUT_BYTES_MAX
    }

    /// Whether the actor has closed the connection.
    pub(super) fn has_left(&self) -> bool {
        self.left
    }

    /// Whether all consequences of the client's messages are finished.
    pub(super) fn is_done(&self) -> bool {
        self.client.unread_bytes() == 0 && self.handler_calls.count() == 0 && !self.is_busy()
    }

    /// Whether the actor may get the passthrough server's output. Reading it may unblock that
    /// server.
    pub(super) fn can_receive_from_passthrough(&self) -> bool {
        self.client.unread_bytes() < OUT_BYTES_MAX && self.ask.unwritten_bytes() < ASK_BYTES_UTMOST
    }

    /// Passes an event to the actor.
    pub(super) fn feed(&mut self, at: Timestamp, actor_event: ActorEvent<'_>) {
        let Self { host, number, client, ask, handler_calls, left } = self;
        let mut stop = false;
        host.actor.borrow_mut().handle(at, *number, actor_event, &mut |act| match act {
            // The connection is closed, so nothing that follows in this turn may be sent.
            _ if *left => {}
            ActorAction::Say(parts) => client.add_message(at, None, parts, None),
            ActorAction::Tell { about, parts } => client.add_message(at, Some(about), parts, None),
            ActorAction::Play { about, parts, provenance } => {
                client.add_message(at, about, parts, Some(provenance))
            }
            ActorAction::Part(about) => client.end_stream(about),
            ActorAction::Ask(parts) => drop(ask.add(parts)),
            ActorAction::Raw { about, bytes, ends } => client.add_piece(at, about, bytes, ends),
            ActorAction::Run { call_id, handler_call } => {
                handler_calls.run(&host.servers, call_id, handler_call)
            }
            ActorAction::Leave { about, abrupt } => *left = client.disconnect(about, abrupt),
            ActorAction::Stop => stop = true,
        });
        if stop {
            host.stop();
        }
    }

    /// Passes a client's message to the actor.
    pub(super) fn receive(&mut self, at: Timestamp, line: ReceivedLine<'_>) {
        // Recorded before the actor sees it, so that its answer comes later on the tape.
        self.client.record_received(at, &line);
        let bytes_max = self.host.options.message_bytes_max;
        match line {
            ReceivedLine::Line(bytes, _) => self.feed(at, ActorEvent::Said(bytes)),
            ReceivedLine::Oversize(message) => {
                self.feed(at, ActorEvent::TooLarge { message, bytes_max })
            }
        }
    }
}

impl<C: ClientEnd> Drop for ClientIo<C> {
    fn drop(&mut self) {
        // The actor may be borrowed by the code that panics.
        if std::thread::panicking() {
            return;
        }
        // Any further output of the actor is discarded.
        self.client.close();
        let at = self.now();
        self.feed(at, ActorEvent::Empty);
    }
}
