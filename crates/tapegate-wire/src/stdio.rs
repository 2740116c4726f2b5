//! The driver loop between a client and a server on pipes.
//!
//! A single loop on one thread reads from whichever side is ready, records what it sent and then
//! forwards it, before it handles anything else. Neither direction waits for the other, and a side
//! that does not read is not read from, so only one read is buffered in memory.

mod answered;
mod cause;
mod ending;
mod pump;

use std::process::ExitStatus;
use std::time::Duration;

use tapegate_core::relay::{CODE_GONE, Event, OwnMessage, Permitted};
use tapegate_core::side::{Lane, Side};

use crate::child::{Child, Pipes};
use crate::deck::Deck;
use crate::port::Port;
use crate::signals::Signals;
pub(crate) use answered::answered;
pub use cause::{Cause, Outcome, Patience};
use ending::Ending;
pub(crate) use ending::{SERVER_ENDED, server_ended};
use pump::{Pump, Turn};

/// Receives our own messages for the side that a line came from.
type Answer<'a> = dyn FnMut(Permitted<'_>) + 'a;

/// The client's ports.
#[derive(Debug)]
pub struct ClientPorts {
    /// The client's output, from which we read.
    pub input: Port,
    /// The client's input, to which we write.
    pub output: Port,
}

/// How long a server that exited may keep its output open through other processes.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// How long an exit may be reported after the end of the output.
pub(crate) const EXIT_NEWS: Duration = Duration::from_millis(100);
/// How often to check whether a client that closed one end has closed the other too.
pub(crate) const LOOK_ROUND: Duration = Duration::from_millis(100);
/// The reason for ending held calls when the client leaves.
pub(crate) const LEFT: &str = "the client disconnected before the call was decided";
/// How long to wait at the end for a client that does not read.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs a session until it ends, and leaves no process behind.
pub async fn run(
    deck: &mut Deck,
    client: ClientPorts,
    server: (Child, Pipes),
    mut signals: Signals,
    message_bytes_max: usize,
    patience: Patience,
) -> Outcome {
    let (mut child, pipes) = server;
    let mut session = Session {
        up: Pump::new(Side::Client, client.input, pipes.input, message_bytes_max),
        down: Pump::new(Side::Server, pipes.output, client.output, message_bytes_max),
        deck,
        ending: Ending::new(patience),
    };
    while !session.is_over() {
        session.turn(&mut child, &mut signals).await;
    }
    // If the server exits right after closing its output, its status makes a better reason.
    drop(tokio::time::timeout(EXIT_NEWS, child.exited()).await);
    let unanswered = session.deck.wanted(Side::Client);
    session.last_words(child.status()).await;
    let (grace, after_term) = session.ending.rest();
    let cause = session.ending.cause();
    session.deck.close_books(&cause);
    drop((session.up, session.down));
    let status = tokio::select! {
        status = child.end(grace, after_term) => status,
        _ = signals.next() => child.end(Duration::ZERO, after_term).await,
    };
    let stderr_tail = child.stderr_tail().await;
    Outcome { cause, status: status.ok(), unanswered, stderr_tail }
}

/// A running session.
struct Session<'d> {
    /// From the client to the server.
    up: Pump,
    /// From the server to the client.
    down: Pump,
    deck: &'d mut Deck,
    ending: Ending,
}

impl Session<'_> {
    fn is_over(&self) -> bool {
        self.down.is_finished() || self.ending.is_abrupt()
    }

    /// Waits for the next event and handles it.
    async fn turn(&mut self, child: &mut Child, signals: &mut Signals) {
        // While the server does not read, neither do we, and may miss that the client has left.
        let deaf = self.up.is_ended() || self.up.is_stuck() || self.up.waits();
        let look_round = deaf || self.down.owes_much();
        let (down_moves, up_moves) = (self.down.moves(&self.up), self.up.moves(&self.down));
        let governed = self.deck.is_governed();
        tokio::select! {
            turn = self.down.turn(), if down_moves => {
                child.guarded();
                self.moved(Side::Server, turn);
            }
            turn = self.up.turn(), if up_moves => self.moved(Side::Client, turn),
            number = signals.next() => {
                self.up.stop_reading();
                let why = Cause::Signal(number).words();
                self.unhold(&why, false);
                self.turn_away(&why);
                if self.ending.signalled(number, self.deck.wanted(Side::Client), child) {
                    self.let_go();
                }
            }
            _ = child.exited(), if !self.ending.child_exited() => self.ending.exited(LINGER),
            () = self.ending.deadline() => self.late(child),
            event = self.deck.stirred(), if governed => self.stir(event),
            () = tokio::time::sleep(LOOK_ROUND), if look_round => {
                if self.down.is_abandoned() {
                    self.moved(Side::Server, Turn::Broken);
                } else if self.up.waits() && self.up.is_left() {
                    // End of input follows lines that stay unread while this many calls are held.
                    self.unhold(LEFT, true);
                    self.pass(Side::Client, Pump::pass);
                }
            }
        }
        if self.up.is_ended() {
            // Calls must not be approved and run for a client that has left. Calls that wait for a
            // tool list need no approver unless the list shows otherwise.
            self.unhold(LEFT, true);
        }
        if self.deck.held() == 0 {
            self.up.close_if_done();
        }
        if self.up.is_ended() && self.ending.may_change() {
            self.ending.client_left(self.deck.wanted(Side::Client));
        }
        self.close_books();
    }

    /// Completes the tape and the log as soon as the session begins to end: some clients kill us 40
    /// ms after they have closed our input, and a server may take longer to exit.
    fn close_books(&mut self) {
        match self.ending.begun() {
            Some(cause) if self.ending.is_signalled() || !self.ending.may_change() => {
                self.deck.close_books(cause);
            }
            // Answers are still expected, and are recorded when they arrive.
            Some(_) => self.deck.settle(),
            None => {}
        }
    }

    /// Handles a step of the shutdown that took too long.
    fn late(&mut self, child: &Child) {
        if self.down.is_stuck() && self.ending.wait_on(LINGER) {
            // The client is slow to read; the server cannot exit before its output is read.
            return;
        }
        self.up.close();
        if self.ending.deadline_passed(child) {
            self.let_go();
        }
    }

    /// Stops waiting for the server, but not for a slow client to read what is already there.
    fn let_go(&mut self) {
        if !self.down.has_more() || !self.ending.wait_on(LINGER) {
            self.down.stop_reading();
        }
    }

    /// Handles what the pump of `side` has done.
    fn moved(&mut self, side: Side, turn: Turn) {
        match (turn, side) {
            (Turn::Wrote, _) => {}
            (Turn::Read, _) => self.pass(side, Pump::pass),
            (Turn::Ended, Side::Server) => self.pass(side, Pump::finish),
            (Turn::Ended, Side::Client) => {
                self.pass(side, Pump::finish);
                self.unhold(LEFT, true);
            }
            (Turn::Broken, Side::Server) => {
                // The server's output has no reader: the client is gone.
                self.down.close();
                self.up.stop_reading();
                self.ending.client_left(0);
            }
            (Turn::Broken, Side::Client) => {
                self.up.close();
                self.ending.server_left();
            }
        }
    }

    /// Records what a side has sent, and only then forwards it.
    fn pass(&mut self, side: Side, cut: fn(&mut Pump, &mut Deck, &mut Answer<'_>)) {
        let (pump, other) = match side {
            Side::Client => (&mut self.up, &mut self.down),
            Side::Server => (&mut self.down, &mut self.up),
        };
        cut(pump, self.deck, &mut |answer| other.say(answer));
        self.send(side);
    }

    /// Commits the recorded entries, and only then sends what is queued by the pump of `side`.
    fn send(&mut self, side: Side) {
        let pump = match side {
            Side::Client => &mut self.up,
            Side::Server => &mut self.down,
        };
        if let Err(error) = self.deck.commit() {
            let unsent = pump.drop_unsent();
            self.up.stop_reading();
            self.ending.tape_failed(error);
            if side == Side::Server {
                self.owe(&unsent);
            }
        } else if pump.write_now() == Turn::Broken {
            self.moved(side, Turn::Broken);
        }
    }

    /// Handles an event about held calls.
    fn stir(&mut self, event: Event<'_>) {
        self.feed(event);
        if !self.ending.is_abrupt() && self.up.waits() {
            self.pass(Side::Client, Pump::pass);
        }
    }

    /// Answers held calls, because their decisions are no longer awaited.
    fn unhold(&mut self, why: &str, keeps_lists: bool) {
        if self.deck.held() > 0 {
            self.feed(Event::Unheld { lane: None, why, keeps_lists });
        }
    }

    /// Answers lines that wait for fewer calls to be held, because they will not be sent.
    fn turn_away(&mut self, why: &str) {
        if self.up.waits() {
            let down = &mut self.down;
            self.up.turn_away(self.deck, why, &mut |answer| down.say(answer));
            self.send(Side::Client);
        }
    }

    /// Feeds an event that is not a message, and sends the resulting messages.
    fn feed(&mut self, event: Event<'_>) {
        let at = self.deck.now();
        let (up, down) = (&mut self.up, &mut self.down);
        self.deck.feed(at, event, &mut |outgoing| match outgoing.to {
            Side::Client => down.say(outgoing.message),
            Side::Server => up.say(outgoing.message),
        });
        self.send(Side::Client);
        if !self.ending.is_abrupt() {
            self.send(Side::Server);
        }
    }

    /// Sends errors in place of server answers that were not recorded and so may not be sent.
    fn owe(&mut self, unsent: &[Vec<u8>]) {
        let why = self.ending.words(None);
        for id in unsent {
            self.down.say(OwnMessage::error(id, CODE_GONE, &why).into());
        }
    }

    /// Sends a client that still reads an error for each unanswered request, if there is a gate or
    /// the tape failed. A mere recorder does not invent answers.
    async fn last_words(&mut self, status: Option<ExitStatus>) {
        self.turn_away(&self.ending.words(status));
        if !self.down.is_heard() {
            if self.deck.held() > 0 {
                // The client is not told, but approvers no longer need to decide.
                let (lane, asker) = (Lane::ONLY, Side::Client);
                let event = Event::Dismissed { lane, asker, bytes: None, why: None };
                self.deck.feed(self.deck.now(), event, &mut |_| {});
                drop(self.deck.commit());
            }
            return;
        }
        if !self.deck.is_governed() && !self.ending.is_ours() {
            // Without us, the client would see only the end of its input.
            return self.write_last().await;
        }
        let why = self.ending.words(status);
        let error_type = self.ending.error_type();
        let event =
            Event::Gone { lane: Some(Lane::ONLY), side: Side::Server, why: &why, error_type };
        let at = self.deck.now();
        let mut answers = Vec::new();
        self.deck.feed(at, event, &mut |outgoing| answers.push(outgoing.message));
        // Even if the tape is what failed, the client gets its errors.
        drop(self.deck.commit());
        answers.into_iter().for_each(|message| self.down.say(message));
        self.write_last().await;
    }

    /// Writes queued messages to a client that still reads.
    async fn write_last(&mut self) {
        let written = self.down.write_all();
        drop(tokio::time::timeout(LAST_WORDS, written).await);
    }
}
