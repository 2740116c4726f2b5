//! The driver loop between a client and a server on pipes.
//!
//! One thread, one loop: whichever side is ready is read, what it sent is recorded, then sent on,
//! before anything else is looked at. Neither direction waits for the other, and a side that does
//! not read is not read from: nothing gathers in memory but one read.

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

/// Takes messages for the side that a line came from.
type Answer<'a> = dyn FnMut(Permitted<'_>) + 'a;

/// The client's end of the wire.
#[derive(Debug)]
pub struct ClientPorts {
    /// What the client writes to.
    pub input: Port,
    /// What the client reads from.
    pub output: Port,
}

/// How long a server that exited may keep its output open through others.
pub(crate) const LINGER: Duration = Duration::from_secs(1);
/// How long the news of an exit may come after the end of the output.
pub(crate) const EXIT_NEWS: Duration = Duration::from_millis(100);
/// How often it is looked whether a client that has closed one end has closed the other too.
pub(crate) const LOOK_ROUND: Duration = Duration::from_millis(100);
/// Why what is held ends when the client leaves.
pub(crate) const LEFT: &str = "the client left before a person had decided";
/// How long a client that does not read is waited for at the end.
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
    // An exit that came with the end of the output makes a better reason than the end alone.
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

/// A session under way.
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

    /// Waits for the next thing to happen and deals with it.
    async fn turn(&mut self, child: &mut Child, signals: &mut Signals) {
        // While the server does not read, we do not, and would not hear that the client is gone.
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
                    // Its end lies behind lines that are not read while so many calls are held.
                    self.unhold(LEFT, true);
                    self.pass(Side::Client, Pump::pass);
                }
            }
        }
        if self.up.is_ended() {
            // A client that has left must not have calls approved and run for nobody. What waits for a
            // list of ours needs no person, until the list shows that it does.
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

    /// Sees to it that the tape and the log are whole from the moment on at which the session begins to
    /// end: some clients kill us 40 ms after they have closed our input, and a server may take longer.
    fn close_books(&mut self) {
        match self.ending.begun() {
            Some(cause) if self.ending.is_signalled() || !self.ending.may_change() => {
                self.deck.close_books(cause);
            }
            // Answers are still wanted, and are recorded when they come.
            Some(_) => self.deck.settle(),
            None => {}
        }
    }

    /// Deals with a step of the ending that took too long.
    fn late(&mut self, child: &Child) {
        if self.down.is_stuck() && self.ending.wait_on(LINGER) {
            // It is the client who takes its time; the server cannot end before it is heard.
            return;
        }
        self.up.close();
        if self.ending.deadline_passed(child) {
            self.let_go();
        }
    }

    /// Waits for the server no longer, but for a client that is slow to take what is there already.
    fn let_go(&mut self) {
        if !self.down.has_more() || !self.ending.wait_on(LINGER) {
            self.down.stop_reading();
        }
    }

    /// Deals with what the pump of `side` has done.
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
                // Nobody reads what the server says: the client is gone.
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

    /// Records what a side has sent, and only then sends it on.
    fn pass(&mut self, side: Side, cut: fn(&mut Pump, &mut Deck, &mut Answer<'_>)) {
        let (pump, other) = match side {
            Side::Client => (&mut self.up, &mut self.down),
            Side::Server => (&mut self.down, &mut self.up),
        };
        cut(pump, self.deck, &mut |answer| other.say(answer));
        self.send(side);
    }

    /// Has kept what was fed, and only then sends what is due to the other side of `side`.
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

    /// Deals with what has happened to held calls.
    fn stir(&mut self, event: Event<'_>) {
        self.feed(event);
        if !self.ending.is_abrupt() && self.up.waits() {
            self.pass(Side::Client, Pump::pass);
        }
    }

    /// Answers what is held, because nobody's decision is waited for any longer.
    fn unhold(&mut self, why: &str, keeps_lists: bool) {
        if self.deck.held() > 0 {
            self.feed(Event::Unheld { lane: None, why, keeps_lists });
        }
    }

    /// Answers what was read and waits until fewer calls are held, because it will not be sent.
    fn turn_away(&mut self, why: &str) {
        if self.up.waits() {
            let down = &mut self.down;
            self.up.turn_away(self.deck, why, &mut |answer| down.say(answer));
            self.send(Side::Client);
        }
    }

    /// Feeds an event that is no message, and sends what comes of it.
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

    /// Answers for answers of the server that may not be sent, because they are not on the tape.
    fn owe(&mut self, unsent: &[Vec<u8>]) {
        let why = self.ending.words(None);
        for id in unsent {
            self.down.say(OwnMessage::error(id, CODE_GONE, &why).into());
        }
    }

    /// Tells a client that still listens that its requests will not be answered, if a gate or the tape
    /// stands between it and the server. What only records does not invent answers.
    async fn last_words(&mut self, status: Option<ExitStatus>) {
        self.turn_away(&self.ending.words(status));
        if !self.down.is_heard() {
            if self.deck.held() > 0 {
                // Nobody is told, but whoever was asked to decide need not any more.
                let (lane, asker) = (Lane::ONLY, Side::Client);
                let event = Event::Dismissed { lane, asker, bytes: None, why: None };
                self.deck.feed(self.deck.now(), event, &mut |_| {});
                drop(self.deck.commit());
            }
            return;
        }
        if !self.deck.is_governed() && !self.ending.is_ours() {
            // A client without us would see the end of its input, and nothing else.
            return self.write_last().await;
        }
        let why = self.ending.words(status);
        let error_type = self.ending.error_type();
        let event =
            Event::Gone { lane: Some(Lane::ONLY), side: Side::Server, why: &why, error_type };
        let at = self.deck.now();
        let mut answers = Vec::new();
        self.deck.feed(at, event, &mut |outgoing| answers.push(outgoing.message));
        // The tape may be what failed; the client is told all the same.
        drop(self.deck.commit());
        answers.into_iter().for_each(|message| self.down.say(message));
        self.write_last().await;
    }

    /// Writes what is due to a client that still listens.
    async fn write_last(&mut self) {
        let written = self.down.write_all();
        drop(tokio::time::timeout(LAST_WORDS, written).await);
    }
}
