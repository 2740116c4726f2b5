//! One client's session with the actor.

use std::rc::Rc;

use tapegate_core::actor::ActorEvent;
use tapegate_core::tape::RecordError;
use tapegate_core::time::Timestamp;
use tokio::time::{Instant, sleep_until};

use super::ActorHost;
use super::client_end::ClientEnd;
use super::client_input::ClientInput;
use super::client_io::ClientIo;
use super::passthrough::PassthroughServers;
use crate::stdio::{EndCause, FINAL_WRITE_TIMEOUT, HANGUP_CHECK_INTERVAL};

/// How often the actor is woken before other events are handled.
const WAKES_MAX: usize = 64;

/// One client's session with the actor.
pub(super) struct ActorSession<C: ClientEnd> {
    client_io: ClientIo<C>,
    passthrough: PassthroughServers,
    /// The client's output; `None` once it is no longer read.
    input: Option<ClientInput>,
    /// Whether the client's output has ended.
    input_ended: bool,
    /// Whether there may be messages not yet passed to the actor.
    unheard: bool,
    /// Whether the actor knows that the client's output has ended.
    left: bool,
    /// Whether messages may have waited for room.
    starved: bool,
}

impl<C: ClientEnd> ActorSession<C> {
    /// Starts a session for a client. The actor learns of its end when the session is dropped.
    pub(super) fn open(host: &Rc<ActorHost>, input: ClientInput, client: C) -> Self {
        Self {
            client_io: ClientIo::new(host, client),
            passthrough: PassthroughServers::default(),
            input: Some(input),
            input_ended: false,
            unheard: false,
            left: false,
            starved: false,
        }
    }

    /// Serves the client until it has left or the actor wants to end.
    pub(super) async fn run(&mut self, shared: bool, streams: bool) -> EndCause {
        self.client_io.feed(self.client_io.now(), ActorEvent::Taken { shared, streams });
        loop {
            if let Err(error) = self.process_ready() {
                return EndCause::Tape(error);
            }
            if let Some(cause) = self.end_cause() {
                return cause;
            }
            if self.has_more() {
                tokio::task::yield_now().await;
                // Due actions come at once, but a client that writes meanwhile is still read.
                if !self.passthrough.is_due(&self.client_io) {
                    self.wait().await;
                }
            } else {
                self.wait().await;
            }
        }
    }

    /// Writes the remaining output within a time limit, and ends the passthrough server.
    pub(super) async fn close(&mut self, cause: &EndCause) {
        let patience = self.client_io.host.options.patience;
        let time = match cause {
            // The sender of a signal may kill us soon.
            EndCause::Signal(_) => patience.grace_on_signal,
            _ => FINAL_WRITE_TIMEOUT,
        };
        let grace = match cause {
            // A bridge has set its own grace; on pipes the client has left and nothing hurries.
            EndCause::Client => self.client_io.client.discard_grace().unwrap_or(patience.grace),
            _ => patience.grace_on_signal,
        };
        let at = self.client_io.now();
        self.client_io.client.finish(at, cause, time).await;
        self.passthrough.close(grace).await;
    }

    /// Does everything that can be done without waiting.
    fn process_ready(&mut self) -> Result<(), RecordError> {
        let at = self.client_io.now();
        self.starved |= !self.client_io.has_room();
        if !self.yields_to_input() {
            self.wake_actor(at);
        }
        self.read_client(at)?;
        self.passthrough.process_ready(at, &mut self.client_io);
        self.client_io.client.send(true)
    }

    /// Whether the actor waits for messages that waited for room: what it does by itself would take
    /// that room again, and a bridge counts on its messages being read.
    fn yields_to_input(&mut self) -> bool {
        self.starved &= self.input.as_ref().is_some_and(ClientInput::has_waiting);
        self.starved && self.client_io.can_receive()
    }

    /// Wakes the actor for every due wake-up.
    fn wake_actor(&mut self, at: Timestamp) {
        let mut count = 0;
        // Bounded, so that an actor with constant deadlines does not starve the client.
        while count < WAKES_MAX
            && self.client_io.has_room()
            && self.client_io.next_wakeup().is_some_and(|due| due <= at.mono_ns)
        {
            self.client_io.feed(at, ActorEvent::Due);
            count += 1;
        }
    }

    /// Passes the client's messages to the actor while there is room for answers.
    fn read_client(&mut self, at: Timestamp) -> Result<(), RecordError> {
        while !self.is_stopping()
            && let Some(input) = &mut self.input
        {
            self.client_io.client.send(false)?;
            self.unheard = !self.client_io.can_receive();
            if self.unheard || self.client_io.client.is_gone() {
                return Ok(());
            }
            let Some(line) = input.next_line(self.input_ended) else {
                // All is read, so the actor may learn that nothing more follows.
                if self.input_ended && !self.left {
                    self.left = true;
                    self.client_io.feed(at, ActorEvent::Left);
                }
                return Ok(());
            };
            self.client_io.receive(at, line);
        }
        Ok(())
    }

    /// Whether the session is over, and why.
    fn end_cause(&mut self) -> Option<EndCause> {
        if self.client_io.client.is_gone() {
            return Some(EndCause::Client);
        }
        if let Some(deadline) = self.client_io.host.stop.get() {
            // Nothing more is read, but what the actor has begun is finished within its time.
            self.input = None;
            let over = !self.client_io.is_busy() || deadline <= Instant::now();
            return over.then_some(EndCause::Actor);
        }
        if self.client_io.has_left() {
            return Some(EndCause::Actor);
        }
        // If the bridge discards the output, there is no reason to finish it.
        let discards = self.client_io.client.discard_grace().is_some();
        (self.left && (discards || self.client_io.is_done())).then_some(EndCause::Client)
    }

    /// Whether there is work that can be done at once.
    fn has_more(&self) -> bool {
        let is_past = |due: u64| due <= self.client_io.now().mono_ns;
        (self.client_io.has_room() && self.client_io.next_wakeup().is_some_and(is_past))
            || self.passthrough.is_due(&self.client_io)
    }

    /// Waits until there is something to do.
    async fn wait(&mut self) {
        let host = Rc::clone(&self.client_io.host);
        // A client that does not read is not read from (invariant 6).
        let is_open = self.input.is_some() && !self.input_ended;
        let reads = is_open && !self.unheard && self.client_io.can_receive();
        let alarm = self.next_deadline(!reads);
        let has_room = self.client_io.has_room();
        let reads_behind = self.client_io.can_receive_from_passthrough();
        let Self { client_io, passthrough: behind, input, input_ended, .. } = self;
        let read = async {
            match input {
                Some(input) => input.read().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            is_more = read, if reads => *input_ended = !is_more,
            () = client_io.client.progress(), if client_io.client.can_progress() => {}
            turn = behind.next_event(&client_io.ask, reads_behind) => behind.handle_event(turn, &mut client_io.ask),
            // Without room, the handler's result waits, because the actor's reaction may be large.
            (call_id, outcome) = client_io.handler_calls.next(), if has_room && client_io.handler_calls.count() > 0 => {
                let outcome = outcome.as_deref().map_err(String::as_str);
                client_io.feed(client_io.now(), ActorEvent::Done { call_id, outcome });
            }
            () = sleep_until(alarm.unwrap_or_else(Instant::now)), if alarm.is_some() => {
                if !reads {
                    client_io.client.check_hangup();
                }
            }
            () = host.notify.notified(), if host.stop.get().is_none() => {}
        }
    }

    /// When to wake up even if nothing happens.
    fn next_deadline(&self, checks_hangup: bool) -> Option<Instant> {
        let host = &self.client_io.host;
        let due = self.client_io.next_wakeup().filter(|_| self.client_io.has_room());
        let due = due.map(|due| Instant::from_std(host.clock.instant_at(due)));
        let look = checks_hangup.then(|| Instant::now() + HANGUP_CHECK_INTERVAL);
        let held = self.client_io.client.next_check();
        due.into_iter().chain(host.stop.get()).chain(look).chain(held).min()
    }

    fn is_stopping(&self) -> bool {
        self.client_io.host.stop.get().is_some()
    }
}
