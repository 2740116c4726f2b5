//! The driver loop between a client and a server on pipes.
//!
//! A single loop on one thread reads from whichever side is ready, records what it sent and then
//! forwards it, before it handles anything else. Neither direction waits for the other, and a side
//! that does not read is not read from, so only one read is buffered in memory.

mod answered_ids;
mod end_cause;
mod pump;
mod session_ending;

use std::process::ExitStatus;
use std::time::Duration;

use tapegate_core::relay::{CODE_GONE, HoldsEndedCause, OwnMessage, PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tracing::debug;

use crate::child::{ServerPipes, ServerProcess};
use crate::port::StreamPort;
use crate::recorded_session::RecordedSession;
use crate::signals::Signals;
pub(crate) use answered_ids::{answered_id, collect_answered_ids};
pub use end_cause::{EndCause, SessionOutcome, ShutdownTimeouts};
use pump::{Pump, PumpEvent};
use session_ending::SessionEnding;
pub(crate) use session_ending::{SERVER_ENDED, server_end_message};

/// Receives our own messages for the side that a line came from.
type AnswerSink<'a> = dyn FnMut(PermittedMessage<'_>) + 'a;

#[derive(Debug)]
pub struct ClientPorts {
    /// The client's output, from which we read.
    pub input: StreamPort,
    /// The client's input, to which we write.
    pub output: StreamPort,
}

/// How long a server that exited may keep its output open through other processes.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// How long an exit may be reported after the end of the output.
pub(crate) const EXIT_STATUS_WAIT: Duration = Duration::from_millis(100);
/// How often to check whether a client that closed one end has closed the other too.
pub(crate) const HANGUP_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The reason for ending held calls when the client leaves.
pub(crate) const CLIENT_LEFT_REASON: &str = "the client disconnected before the call was decided";
/// How long to wait at the end for a client that does not read.
pub(crate) const FINAL_WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a server may take to answer a client that has closed its end before that is reported.
const ANSWER_NOTICE_DELAY: Duration = Duration::from_secs(3);

/// Runs a session until it ends, and leaves no process behind. `on_wait` is called, once, if the
/// session has waited for a while for answers (their number) after the end of the client's input.
pub async fn run(
    recording: &mut RecordedSession,
    client: ClientPorts,
    server: (ServerProcess, ServerPipes),
    mut signals: Signals,
    message_bytes_max: usize,
    patience: ShutdownTimeouts,
    on_wait: &dyn Fn(usize),
) -> SessionOutcome {
    let (mut child, pipes) = server;
    let mut session = StdioSession {
        up: Pump::new(Side::Client, client.input, pipes.input, message_bytes_max),
        down: Pump::new(Side::Server, pipes.output, client.output, message_bytes_max),
        recording,
        ending: SessionEnding::new(patience),
        on_wait,
    };
    while !session.is_finished() {
        session.step(&mut child, &mut signals).await;
    }
    // If the server exits right after closing its output, its status makes a better reason.
    drop(tokio::time::timeout(EXIT_STATUS_WAIT, child.exited()).await);
    // Counted before they are answered below, because answers of ours end them.
    let unanswered = session.recording.unanswered_requests(Side::Client);
    session.answer_unanswered(child.status()).await;
    let (grace, after_term) = session.ending.remaining_times();
    let cause = session.ending.cause();
    debug!(?cause, unanswered, "session ended");
    // Before the wait for the server: the client may kill us while the server takes its time.
    session.recording.end_session(&cause);
    // Closes the server's input, which asks it to exit by itself.
    drop((session.up, session.down));
    let status = tokio::select! {
        status = child.shutdown(grace, after_term) => status,
        // A second signal ends the grace. SIGTERM and its wait remain, so that the server can clean
        // up.
        _ = signals.next() => child.shutdown(Duration::ZERO, after_term).await,
    };
    let stderr_tail = child.stderr_tail().await;
    let was_terminated = child.was_terminated();
    SessionOutcome { cause, status: status.ok(), was_terminated, unanswered, stderr_tail }
}

/// A running session.
struct StdioSession<'d> {
    /// From the client to the server.
    up: Pump,
    /// From the server to the client.
    down: Pump,
    recording: &'d mut RecordedSession,
    ending: SessionEnding,
    on_wait: &'d dyn Fn(usize),
}

impl StdioSession<'_> {
    fn is_finished(&self) -> bool {
        self.down.is_finished() || self.ending.is_abrupt()
    }

    /// Waits for the next event and handles it.
    async fn step(&mut self, child: &mut ServerProcess, signals: &mut Signals) {
        // While the server does not read, neither do we, and may miss that the client has left.
        let deaf = self.up.is_ended() || self.up.has_unwritten() || self.up.has_waiting_lines();
        let checks_hangup = deaf || self.down.has_large_backlog();
        let (down_moves, up_moves) =
            (self.down.can_progress(&self.up), self.up.can_progress(&self.down));
        let governed = self.recording.is_governed();
        tokio::select! {
            turn = self.down.step(), if down_moves => {
                // The client may kill us as soon as it has seen output (invariant 8).
                child.wait_for_reaper();
                self.handle_pump_event(Side::Server, turn);
            }
            turn = self.up.step(), if up_moves => self.handle_pump_event(Side::Client, turn),
            number = signals.next() => {
                debug!(number, "signal received");
                // Calls that arrive after the signal would be sent to a server that is about to
                // end.
                self.up.stop_reading();
                let cause = EndCause::Signal(number);
                let reason = cause.client_message();
                // Even calls that wait for a list are refused: after a signal, no further request
                // is sent.
                self.end_holds(cause.unheld_cause(), &cause.held_message(), false);
                self.refuse_waiting_lines(&reason);
                if self.ending.signal_received(number, self.recording.unanswered_requests(Side::Client), child) {
                    self.stop_waiting_for_server();
                }
            }
            _ = child.exited(), if !self.ending.child_exited() => self.ending.server_exited(LINGER),
            () = self.ending.deadline() => self.handle_deadline(child),
            () = self.ending.wait_notice_due() => {
                self.ending.wait_noticed();
                (self.on_wait)(self.recording.unanswered_requests(Side::Client));
            }
            event = self.recording.next_hold_event(), if governed => self.handle_hold_event(event),
            () = tokio::time::sleep(HANGUP_CHECK_INTERVAL), if checks_hangup => {
                if self.down.has_lost_reader() {
                    self.handle_pump_event(Side::Server, PumpEvent::Broken);
                } else if self.up.has_waiting_lines() && self.up.has_lost_writer() {
                    // End of input follows lines that stay unread while this many calls are held.
                    self.end_holds_of_client();
                    self.process_lines(Side::Client, Pump::process_lines);
                }
            }
        }
        if self.up.is_ended() {
            // Calls must not be approved and run for a client that has left. Calls that wait for a
            // tool list need no approver unless the list shows otherwise.
            self.end_holds_of_client();
        }
        // A held call may still be sent, so the server's input stays open for it.
        if self.recording.held_calls() == 0 {
            self.up.close_if_done();
        }
        if self.up.is_ended() && self.ending.may_change() {
            self.ending.client_left(self.recording.unanswered_requests(Side::Client));
        }
        self.checkpoint_on_end();
    }

    /// Completes the tape and the log as soon as the session begins to end: some clients kill us 40
    /// ms after they have closed our input, and a server may take longer to exit.
    fn checkpoint_on_end(&mut self) {
        match self.ending.cause_so_far() {
            Some(cause) if self.ending.is_signalled() || !self.ending.may_change() => {
                self.recording.end_session(cause);
            }
            // Answers are still expected, and are recorded when they arrive.
            Some(_) => self.recording.checkpoint(),
            None => {}
        }
    }

    /// Handles a step of the shutdown that took too long.
    fn handle_deadline(&mut self, child: &ServerProcess) {
        if self.down.has_unwritten() && self.ending.extend_deadline(LINGER) {
            // The client is slow to read; the server cannot exit before its output is read.
            return;
        }
        // The server has had its time to read. Lines that are still queued would keep its input
        // open.
        self.up.close();
        if self.ending.deadline_passed(child) {
            self.stop_waiting_for_server();
        }
    }

    /// Stops waiting for the server, but not for a slow client to read what is already there.
    fn stop_waiting_for_server(&mut self) {
        if !self.down.has_more() || !self.ending.extend_deadline(LINGER) {
            self.down.stop_reading();
        }
    }

    /// Handles what the pump of `side` has done.
    fn handle_pump_event(&mut self, side: Side, turn: PumpEvent) {
        if matches!(turn, PumpEvent::Ended | PumpEvent::Broken) {
            debug!(from = ?side, event = ?turn, "pipe closed");
        }
        match (turn, side) {
            (PumpEvent::Wrote, _) => {}
            (PumpEvent::Read, _) => self.process_lines(side, Pump::process_lines),
            (PumpEvent::Ended, Side::Server) => self.process_lines(side, Pump::process_rest),
            (PumpEvent::Ended, Side::Client) => {
                self.process_lines(side, Pump::process_rest);
                self.end_holds_of_client();
            }
            (PumpEvent::Broken, Side::Server) => {
                // The server's output has no reader: the client is gone.
                self.down.close();
                self.up.stop_reading();
                // A client that cannot read needs no answers, so the shutdown waits for none.
                self.ending.client_left(0);
            }
            (PumpEvent::Broken, Side::Client) => {
                // Only its input is closed. Its output may still hold answers, so reading goes on.
                self.up.close();
                self.ending.server_left();
            }
        }
    }

    /// Records what a side has sent, and only then forwards it.
    fn process_lines(
        &mut self,
        side: Side,
        cut: fn(&mut Pump, &mut RecordedSession, &mut AnswerSink<'_>),
    ) {
        let (pump, other) = match side {
            Side::Client => (&mut self.up, &mut self.down),
            Side::Server => (&mut self.down, &mut self.up),
        };
        cut(pump, self.recording, &mut |answer| other.enqueue(answer));
        self.send(side);
    }

    /// Commits the recorded entries, and only then sends what is queued by the pump of `side`.
    fn send(&mut self, side: Side) {
        let pump = match side {
            Side::Client => &mut self.up,
            Side::Server => &mut self.down,
        };
        if let Err(error) = self.recording.commit() {
            // These lines are not on the tape, so they must not be sent (invariant 4).
            let unsent = pump.drop_unsent();
            self.up.stop_reading();
            self.ending.tape_failed(error);
            if side == Side::Server {
                // The relay regards these requests as answered, so the final errors would leave
                // them out.
                self.answer_unsent(&unsent);
            }
        } else if pump.write_now() == PumpEvent::Broken {
            self.handle_pump_event(side, PumpEvent::Broken);
        }
    }

    /// Handles an event about held calls.
    fn handle_hold_event(&mut self, event: RelayEvent<'_>) {
        self.feed(event);
        // Fewer calls may be held now, so lines that waited can be judged.
        if !self.ending.is_abrupt() && self.up.has_waiting_lines() {
            self.process_lines(Side::Client, Pump::process_lines);
        }
    }

    /// Answers held calls, because their decisions are no longer awaited.
    fn end_holds(&mut self, cause: HoldsEndedCause, reason: &str, keeps_lists: bool) {
        if self.recording.held_calls() > 0 {
            self.feed(RelayEvent::HoldsEnded { lane: None, reason, cause, keeps_lists });
        }
    }

    /// The same for a client that has left.
    fn end_holds_of_client(&mut self) {
        self.end_holds(HoldsEndedCause::SessionEnded, CLIENT_LEFT_REASON, true);
    }

    /// Answers lines that wait for fewer calls to be held, because they will not be sent.
    fn refuse_waiting_lines(&mut self, reason: &str) {
        if self.up.has_waiting_lines() {
            let down = &mut self.down;
            self.up
                .refuse_waiting_lines(self.recording, reason, &mut |answer| down.enqueue(answer));
            self.send(Side::Client);
        }
    }

    /// Feeds an event that is not a message, and sends the resulting messages.
    fn feed(&mut self, event: RelayEvent<'_>) {
        let at = self.recording.now();
        let (up, down) = (&mut self.up, &mut self.down);
        self.recording.feed(at, event, &mut |outgoing| match outgoing.to {
            Side::Client => down.enqueue(outgoing.message),
            Side::Server => up.enqueue(outgoing.message),
        });
        // One commit covers both directions. If it failed, nothing is sent to the client either.
        self.send(Side::Client);
        if !self.ending.is_abrupt() {
            self.send(Side::Server);
        }
    }

    /// Sends errors in place of server answers that were not recorded and so may not be sent.
    fn answer_unsent(&mut self, unsent: &[Vec<u8>]) {
        let reason = self.ending.client_message(None);
        for id in unsent {
            self.down.enqueue(OwnMessage::error(id, CODE_GONE, &reason).into());
        }
    }

    /// Sends a client that still reads an error for each unanswered request, if there is a gate or
    /// the tape failed. A mere recorder does not invent answers.
    async fn answer_unanswered(&mut self, status: Option<ExitStatus>) {
        // Lines that were never judged get their errors first, because `Gone` knows only pending
        // requests.
        self.refuse_waiting_lines(&self.ending.client_message(status));
        if !self.down.has_reader() {
            if self.recording.held_calls() > 0 {
                // The client is not told, but approvers no longer need to decide.
                let (lane, asker) = (Lane::ONLY, Side::Client);
                let event = RelayEvent::RequestsDropped { lane, asker, ids: None, reason: None };
                self.recording.feed(self.recording.now(), event, &mut |_| {});
                drop(self.recording.commit());
            }
            return;
        }
        if !self.recording.is_governed() && !self.ending.is_tape_failure() {
            // Without us, the client would see only the end of its input.
            return self.write_final().await;
        }
        let reason = self.ending.client_message(status);
        let error_type = self.ending.error_type();
        let answers = self.recording.answer_for_server(Lane::ONLY, &reason, error_type);
        answers.into_iter().for_each(|message| self.down.enqueue(message));
        self.write_final().await;
    }

    /// Writes queued messages to a client that still reads.
    async fn write_final(&mut self) {
        let written = self.down.write_all();
        drop(tokio::time::timeout(FINAL_WRITE_TIMEOUT, written).await);
    }
}
