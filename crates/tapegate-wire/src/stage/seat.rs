//! One client's session with the actor.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tapegate_core::actor::Cue;
use tapegate_core::lines::Lines;
use tapegate_core::tape::RecordError;
use tapegate_core::time::At;
use tokio::time::{Instant, sleep_until};

use super::Stage;
use super::behind::Behind;
use super::desk::Desk;
use super::handover::Handover;
use crate::deck::Deck;
use crate::port::Port;
use crate::stdio::{Cause, ClientPorts, LAST_WORDS, LOOK_ROUND};

/// How many bytes are gathered before a write, while there is more input.
const WRITE_BYTES: usize = 64 * 1024;
/// How often the actor is woken before other events are handled.
const WAKES_MAX: usize = 64;

/// One client's session with the actor.
pub(super) struct Seat<'d> {
    desk: Desk<'d>,
    behind: Behind,
    /// The client's output; `None` once it has ended or is no longer read.
    input: Option<Port>,
    output: Port,
    handover: Handover,
    lines: Lines,
    /// Whether there may be lines not yet passed to the actor.
    unheard: bool,
    /// Whether the actor knows that the client's output has ended.
    left: bool,
    /// Whether the client has stopped reading.
    gone: bool,
    /// Set once the output is discarded even if it is read: the grace for the passthrough server.
    nobody: Rc<Cell<Option<Duration>>>,
}

impl<'d> Seat<'d> {
    /// Starts a session for a client. The actor learns of its end when the session is dropped.
    pub(super) fn take(stage: &Rc<Stage>, client: ClientPorts, deck: Option<&'d mut Deck>) -> Self {
        Self {
            desk: Desk::new(stage, deck),
            behind: Behind::default(),
            input: Some(client.input),
            output: client.output,
            handover: Handover::default(),
            lines: Lines::new(stage.options.message_bytes_max),
            unheard: false,
            left: false,
            gone: false,
            nobody: Rc::default(),
        }
    }

    /// Adapts the session to a bridge in the same process, which has checked message sizes, may
    /// have streams that end early, and sets `nobody` once output is discarded.
    pub(super) fn within(mut self, nobody: Rc<Cell<Option<Duration>>>, streams: bool) -> Self {
        self.lines = Lines::sparing(usize::MAX);
        (self.desk.inside, self.desk.streams) = (true, streams);
        Self { nobody, ..self }
    }

    /// Serves the client until it has left or the actor wants to end.
    pub(super) async fn run(&mut self, shared: bool) -> Cause {
        let at = self.desk.now();
        // Clients that share a session are distinguished only by their requests.
        self.desk.addresses = shared;
        self.desk.feed(at, Cue::Taken { shared, streams: self.desk.streams });
        loop {
            if let Err(error) = self.work() {
                return Cause::Tape(error);
            }
            if let Some(cause) = self.over() {
                return cause;
            }
            if self.has_more() {
                tokio::task::yield_now().await;
                // Due actions come at once, but a client that writes meanwhile is still read.
                if !self.behind.is_due(&self.desk) {
                    self.wait().await;
                }
            } else {
                self.wait().await;
            }
        }
    }

    /// Writes the remaining output within a time limit, and ends the passthrough server.
    pub(super) async fn close(&mut self, cause: &Cause) {
        let patience = self.desk.stage.options.patience;
        let time = match cause {
            Cause::Signal(_) => patience.grace_on_signal,
            _ => LAST_WORDS,
        };
        let grace = match cause {
            Cause::Client => self.nobody.get().unwrap_or(patience.grace),
            _ => patience.grace_on_signal,
        };
        self.desk.end_line();
        if let Cause::Tape(_) = cause {
            self.desk.give_up(&cause.words());
        }
        // Give up on a client that does not read.
        tokio::time::timeout(time, self.write_all()).await.ok();
        self.behind.close(grace).await;
    }

    /// Does everything that can be done without waiting.
    fn work(&mut self) -> Result<(), RecordError> {
        let at = self.desk.now();
        self.wake(at);
        self.hear(at)?;
        self.behind.work(at, &mut self.desk);
        self.send()
    }

    /// Wakes the actor for everything that is due.
    fn wake(&mut self, at: At) {
        let mut count = 0;
        while count < WAKES_MAX
            && self.desk.has_room()
            && self.desk.due().is_some_and(|due| due <= at.mono_ns)
        {
            self.desk.feed(at, Cue::Due);
            count += 1;
        }
    }

    /// Passes the client's lines to the actor while there is room for answers.
    fn hear(&mut self, at: At) -> Result<(), RecordError> {
        while !self.is_stopping() {
            if self.desk.out.left() >= WRITE_BYTES || self.desk.is_in_line() {
                self.send()?;
            }
            self.unheard = !self.desk.may_hear();
            if self.unheard || self.gone {
                return Ok(());
            }
            let Some(cut) = self.lines.cut() else {
                self.lines.release();
                self.hear_end(at);
                return Ok(());
            };
            self.desk.hear(at, &self.lines, cut);
        }
        Ok(())
    }

    /// Tells the actor that the client's output has ended, if it has.
    fn hear_end(&mut self, at: At) {
        if self.input.is_some() || self.left {
            return;
        }
        if let Some(cut) = self.lines.finish() {
            self.desk.hear(at, &self.lines, cut);
        }
        if !self.is_stopping() {
            self.left = true;
            self.desk.feed(at, Cue::Left);
        }
    }

    /// Commits the recorded output, and writes it as far as possible without waiting.
    fn send(&mut self) -> Result<(), RecordError> {
        self.desk.commit()?;
        while !self.gone
            && self.handover.pass(&mut self.desk.out, &self.output)
            && !self.desk.out.due().is_empty()
        {
            match self.output.write_now(self.desk.out.due()) {
                Ok(0) => return Ok(()),
                Ok(count) => self.desk.out.wrote(count),
                Err(_) => self.gone = true,
            }
        }
        Ok(())
    }

    /// Whether the session is over, and why.
    fn over(&mut self) -> Option<Cause> {
        if self.gone {
            return Some(Cause::Client);
        }
        if let Some(deadline) = self.desk.stage.stop.get() {
            self.input = None;
            let over = !self.desk.is_busy() || deadline <= Instant::now();
            return over.then_some(Cause::Actor);
        }
        if self.desk.has_left() {
            return Some(Cause::Actor);
        }
        (self.left && (self.nobody.get().is_some() || self.desk.is_done())).then_some(Cause::Client)
    }

    /// Whether there is work that can be done at once.
    fn has_more(&self) -> bool {
        let is_past = |due: u64| due <= self.desk.now().mono_ns;
        (self.desk.has_room() && self.desk.due().is_some_and(is_past))
            || self.behind.is_due(&self.desk)
    }

    /// Waits until there is something to do.
    async fn wait(&mut self) {
        let stage = Rc::clone(&self.desk.stage);
        let reads = self.input.is_some() && !self.unheard && self.desk.may_hear();
        let alarm = self.alarm(!reads);
        let Self { desk, behind, input, output, lines, gone, .. } = self;
        let has_room = desk.has_room();
        tokio::select! {
            count = read(input.as_ref(), lines), if reads => match count {
                Some(count) => lines.filled(count),
                None => *input = None,
            },
            written = output.write(desk.out.due()), if !desk.out.due().is_empty() => match written {
                Ok(count) => desk.out.wrote(count),
                Err(_) => *gone = true,
            },
            turn = behind.turn(&desk.ask, desk.has_room_behind()) => behind.moved(turn, &mut desk.ask),
            (ticket, outcome) = desk.errands.next(), if has_room && desk.errands.count() > 0 => {
                let outcome = outcome.as_deref().map_err(String::as_str);
                desk.feed(desk.now(), Cue::Done { ticket, outcome });
            }
            () = sleep(alarm), if alarm.is_some() => {
                // A client that is not being read from may have left unnoticed.
                *gone = !reads && output.has_hung_up();
            }
            () = stage.news.notified(), if stage.stop.get().is_none() => {}
        }
    }

    /// When to wake up even if nothing happens.
    fn alarm(&self, look_round: bool) -> Option<Instant> {
        let stage = &self.desk.stage;
        let due = self.desk.due().filter(|_| self.desk.has_room());
        let due = due.map(|due| Instant::from_std(stage.clock.moment(due)));
        let look = look_round.then(|| Instant::now() + LOOK_ROUND);
        let held = self.handover.next_look();
        due.into_iter().chain(stage.stop.get()).chain(look).chain(held).min()
    }

    /// Writes all remaining output.
    async fn write_all(&mut self) {
        self.handover.hurry();
        while !self.gone {
            if !self.handover.pass(&mut self.desk.out, &self.output) {
                sleep(self.handover.next_look()).await;
                continue;
            }
            if self.desk.out.due().is_empty() {
                return;
            }
            match self.output.write(self.desk.out.due()).await {
                Ok(count) => self.desk.out.wrote(count),
                Err(_) => self.gone = true,
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.desk.stage.stop.get().is_some()
    }
}

/// Reads available input; `None` means the end.
async fn read(input: Option<&Port>, lines: &mut Lines) -> Option<usize> {
    // A hung-up terminal or socket reads as an error; treat it as end of input.
    input?.read(lines.room()).await.ok().filter(|count| *count > 0)
}

async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
