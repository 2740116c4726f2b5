//! One client's session with the actor.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::actor::ActorEvent;
use tapegate_core::lines::LineSplitter;
use tapegate_core::tape::RecordError;
use tapegate_core::time::Timestamp;
use tokio::time::{Instant, sleep_until};

use super::ActorHost;
use super::client_io::ClientIo;
use super::client_read_wait::ClientReadWait;
use super::passthrough::PassthroughServers;
use crate::port::StreamPort;
use crate::recorded_session::RecordedSession;
use crate::stdio::{ClientPorts, EndCause, LAST_WORDS, LOOK_ROUND};

/// How many bytes are gathered before a write, while there is more input.
const WRITE_BYTES: usize = 64 * 1024;
/// How often the actor is woken before other events are handled.
const WAKES_MAX: usize = 64;

/// One client's session with the actor.
pub(super) struct ActorSession<'d> {
    client_io: ClientIo<'d>,
    passthrough: PassthroughServers,
    /// The client's output; `None` once it has ended or is no longer read.
    input: Option<StreamPort>,
    output: StreamPort,
    handover: ClientReadWait,
    lines: LineSplitter,
    /// Whether there may be lines not yet passed to the actor.
    unheard: bool,
    /// Whether the actor knows that the client's output has ended.
    left: bool,
    /// Whether the client has stopped reading.
    gone: bool,
    /// Set once the output is discarded even if it is read: the grace for the passthrough server.
    discard_grace: Rc<Cell<Option<Duration>>>,
}

impl<'d> ActorSession<'d> {
    /// Starts a session for a client. The actor learns of its end when the session is dropped.
    pub(super) fn open(
        host: &Rc<ActorHost>,
        client: ClientPorts,
        session: Option<&'d mut RecordedSession>,
    ) -> Self {
        Self {
            client_io: ClientIo::new(host, session),
            passthrough: PassthroughServers::default(),
            input: Some(client.input),
            output: client.output,
            handover: ClientReadWait::default(),
            lines: LineSplitter::new(host.options.message_bytes_max),
            unheard: false,
            left: false,
            gone: false,
            discard_grace: Rc::default(),
        }
    }

    /// Adapts the session to a bridge in the same process, which has checked message sizes, may
    /// have streams that end early, and sets `discard_grace` once output is discarded.
    pub(super) fn in_process(
        mut self,
        discard_grace: Rc<Cell<Option<Duration>>>,
        streams: bool,
    ) -> Self {
        self.lines = LineSplitter::with_small_buffer(usize::MAX);
        (self.client_io.inside, self.client_io.streams) = (true, streams);
        Self { discard_grace, ..self }
    }

    /// Serves the client until it has left or the actor wants to end.
    pub(super) async fn run(&mut self, shared: bool) -> EndCause {
        let at = self.client_io.now();
        // Clients that share a session are distinguished only by their requests.
        self.client_io.addresses = shared;
        self.client_io.feed(at, ActorEvent::Taken { shared, streams: self.client_io.streams });
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
            _ => LAST_WORDS,
        };
        let grace = match cause {
            // A bridge has set its own grace; on pipes the client has left and nothing hurries.
            EndCause::Client => self.discard_grace.get().unwrap_or(patience.grace),
            _ => patience.grace_on_signal,
        };
        // First, so that the tape is complete before anything is waited for.
        self.client_io.record_unfinished_line();
        if let EndCause::Tape(_) = cause {
            self.client_io.fail_unanswered(&cause.client_message());
        }
        // Give up on a client that does not read.
        tokio::time::timeout(time, self.write_all()).await.ok();
        self.passthrough.close(grace).await;
    }

    /// Does everything that can be done without waiting.
    fn process_ready(&mut self) -> Result<(), RecordError> {
        let at = self.client_io.now();
        self.wake_actor(at);
        self.read_client(at)?;
        self.passthrough.process_ready(at, &mut self.client_io);
        self.send()
    }

    /// Wakes the actor for everything that is due.
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

    /// Passes the client's lines to the actor while there is room for answers.
    fn read_client(&mut self, at: Timestamp) -> Result<(), RecordError> {
        while !self.is_stopping() {
            // Written in between, so that a burst of requests does not gather all answers in
            // memory.
            if self.client_io.out.unwritten_bytes() >= WRITE_BYTES
                || self.client_io.has_pending_output()
            {
                self.send()?;
            }
            self.unheard = !self.client_io.can_receive();
            if self.unheard || self.gone {
                return Ok(());
            }
            let Some(cut) = self.lines.next_line() else {
                self.lines.release();
                self.report_client_end(at);
                return Ok(());
            };
            self.client_io.receive_line(at, &self.lines, cut);
        }
        Ok(())
    }

    /// Tells the actor that the client's output has ended, if it has.
    fn report_client_end(&mut self, at: Timestamp) {
        if self.input.is_some() || self.left {
            return;
        }
        if let Some(cut) = self.lines.take_rest() {
            self.client_io.receive_line(at, &self.lines, cut);
        }
        if !self.is_stopping() {
            self.left = true;
            self.client_io.feed(at, ActorEvent::Left);
        }
    }

    /// Commits the recorded output, and writes it as far as possible without waiting.
    fn send(&mut self) -> Result<(), RecordError> {
        // Before any byte is written (invariant 4).
        self.client_io.commit()?;
        // Lines of different kinds must be read apart (see `outbox`), so a held line may end the
        // loop.
        while !self.gone
            && self.handover.release_if_read(&mut self.client_io.out, &self.output)
            && !self.client_io.out.writable().is_empty()
        {
            match self.output.write_now(self.client_io.out.writable()) {
                Ok(0) => return Ok(()),
                Ok(count) => self.client_io.out.mark_written(count),
                Err(_) => self.gone = true,
            }
        }
        Ok(())
    }

    /// Whether the session is over, and why.
    fn end_cause(&mut self) -> Option<EndCause> {
        if self.gone {
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
        // The bridge discards the output, so there is no reason to finish it.
        (self.left && (self.discard_grace.get().is_some() || self.client_io.is_done()))
            .then_some(EndCause::Client)
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
        let reads = self.input.is_some() && !self.unheard && self.client_io.can_receive();
        let alarm = self.next_deadline(!reads);
        let Self { client_io, passthrough: behind, input, output, lines, gone, .. } = self;
        let has_room = client_io.has_room();
        tokio::select! {
            count = read(input.as_ref(), lines), if reads => match count {
                Some(count) => lines.filled(count),
                None => *input = None,
            },
            written = output.write(client_io.out.writable()), if !client_io.out.writable().is_empty() => match written {
                Ok(count) => client_io.out.mark_written(count),
                Err(_) => *gone = true,
            },
            turn = behind.next_event(&client_io.ask, client_io.can_receive_from_passthrough()) => behind.handle_event(turn, &mut client_io.ask),
            // Without room, the handler's result waits, because the actor's reaction may be large.
            (call_id, outcome) = client_io.handler_calls.next(), if has_room && client_io.handler_calls.count() > 0 => {
                let outcome = outcome.as_deref().map_err(String::as_str);
                client_io.feed(client_io.now(), ActorEvent::Done { call_id, outcome });
            }
            () = sleep(alarm), if alarm.is_some() => {
                // A client that is not being read from may have left unnoticed.
                *gone = !reads && output.has_hung_up();
            }
            () = host.notify.notified(), if host.stop.get().is_none() => {}
        }
    }

    /// When to wake up even if nothing happens.
    fn next_deadline(&self, look_round: bool) -> Option<Instant> {
        let host = &self.client_io.host;
        let due = self.client_io.next_wakeup().filter(|_| self.client_io.has_room());
        let due = due.map(|due| Instant::from_std(host.clock.instant_at(due)));
        let look = look_round.then(|| Instant::now() + LOOK_ROUND);
        let held = self.handover.next_check();
        due.into_iter().chain(host.stop.get()).chain(look).chain(held).min()
    }

    /// Writes all remaining output.
    async fn write_all(&mut self) {
        self.handover.expedite();
        while !self.gone {
            if !self.handover.release_if_read(&mut self.client_io.out, &self.output) {
                sleep(self.handover.next_check()).await;
                continue;
            }
            if self.client_io.out.writable().is_empty() {
                return;
            }
            match self.output.write(self.client_io.out.writable()).await {
                Ok(count) => self.client_io.out.mark_written(count),
                Err(_) => self.gone = true,
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.client_io.host.stop.get().is_some()
    }
}

/// Reads available input; `None` means the end.
async fn read(input: Option<&StreamPort>, lines: &mut LineSplitter) -> Option<usize> {
    // A hung-up terminal or socket reads as an error; treat it as end of input.
    input?.read(lines.read_buffer()).await.ok().filter(|count| *count > 0)
}

async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
