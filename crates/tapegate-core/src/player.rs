//! A tape in the role of the server.
//!
//! The player answers each request of a client with what the tape has for it, and says what the
//! server said of its own accord at the place it said it. It never gives one call's answer to
//! another: what the tape does not have is a divergence, which is answered with an error, said
//! aloud and counted.

mod behind;
mod cancelling;
mod desk;
mod era;
mod find;
mod fuzzy;
mod likeness;
mod live;
mod order;
mod reads;
mod relists;
mod replies;
mod report;
mod run;
mod scene;
mod tape;
mod terms;
mod turn;

use std::collections::HashMap;
use std::io;

use crate::actor::{Act, Actor, Cue, Seat};
use crate::signature::Signer;
use crate::tape::Mask;
use crate::tape::index::{Bodies, Index, NONE, Slot};
use crate::time::At;
use desk::Desk;
use live::Live;
pub use replies::{ChangedReply, ReplyChange};
pub use report::{Differing, Divergence, ExtraRead, Near, Notice, Reason, Summary, Unused};
use run::{Part, Run};
use tape::Tape;
use turn::Turn;

/// How a request is found on the tape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Requests come in the order of the tape.
    Sequential,
    /// Requests come in any order and ask for exactly what was asked.
    ByRequest,
    /// Requests come in any order and may differ a little.
    Fuzzy {
        /// The least share of equal leaves, from 0 to 1.
        threshold: f64,
    },
}

/// What happens to a request that is not on the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnmatched {
    /// It is answered with an error, and replay ends.
    Error,
    /// It is answered with an error, and replay goes on.
    Warn,
    /// It is passed to the server behind.
    Passthrough,
}

/// What happens to a request that was asked more often than the tape has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExhausted {
    /// It counts as not recorded.
    Error,
    /// The last answer is given again.
    Last,
    /// The answers begin again.
    Cycle,
}

/// Whose requests use up the tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateScope {
    /// Each session plays the tape from its start.
    Session,
    /// All sessions share one place on the tape.
    Global,
}

/// What is said of what the server said of its own accord.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerMessages {
    /// Everything.
    All,
    /// Notifications, but no requests.
    Notifications,
    /// Nothing.
    None,
}

/// How a tape is played.
pub struct Options {
    /// How a request is found.
    pub mode: Mode,
    /// By what recorded delays are multiplied; 0 for none.
    pub pace: f64,
    /// What happens to a request that is not on the tape.
    pub on_unmatched: OnUnmatched,
    /// What happens to a request that was asked too often.
    pub on_exhausted: OnExhausted,
    /// Whose requests use up the tape.
    pub scope: StateScope,
    /// What is said of the server's own messages.
    pub server_messages: ServerMessages,
    /// Whether a call whose params differ from the next one on the tape is no match, in order.
    pub strict_params: bool,
    /// Whether lists and the like must come as often as they were recorded.
    pub strict_reads: bool,
    /// Whether every answer of the client must be as it was recorded.
    pub strict_replies: bool,
    /// What the tape was redacted with.
    pub mask: Option<Box<dyn Mask>>,
    /// What the index was signed with.
    pub signer: Signer,
}

impl Options {
    /// Whether nothing takes time, and only the order of the tape is kept.
    fn is_instant(&self) -> bool {
        self.pace == 0.0
    }
}

impl Mode {
    /// The mode as it is called on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::ByRequest => "by-request",
            Self::Fuzzy { .. } => "fuzzy",
        }
    }
}

/// A tape in the role of the server.
pub struct Player {
    tape: Tape,
    options: Options,
    desk: Desk,
    seats: HashMap<Seat, Live, foldhash::fast::RandomState>,
    /// The one place on the tape, where all sessions share it.
    shared_run: Option<Run>,
    /// How often each session of the tape is being played or was.
    played: Vec<u32>,
    sessions: u32,
    failed: Option<io::Error>,
}

/// What a scene needs to go on.
struct Context<'a> {
    tape: &'a mut Tape,
    options: &'a Options,
}

impl Player {
    /// A player of the tape that `index` and `bodies` are of. It tells `notice` what happens.
    pub fn new(
        index: Index,
        bodies: Box<dyn Bodies>,
        mut options: Options,
        notice: Box<dyn FnMut(Notice<'_>)>,
    ) -> Self {
        let played = vec![0; index.sessions().len()];
        let global = options.scope == StateScope::Global;
        let mask = options.mask.take();
        let tape = Tape::new(index, bodies, options.signer.clone(), mask, global);
        Self {
            tape,
            options,
            desk: Desk::new(notice),
            seats: HashMap::default(),
            shared_run: global.then(|| Run::new(0, Part::Whole)),
            played,
            sessions: 0,
            failed: None,
        }
    }

    /// Why the tape could not be read on, if it could not.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// What has come of the replay. Of a tape that cannot be read on, [`Player::failure`] tells,
    /// and the numbers are right all the same.
    pub fn summary(&mut self) -> Summary {
        let (mut summary, read) = self.desk.summary(&mut self.tape);
        self.fail(read);
        summary.sessions = self.sessions;
        summary
    }

    /// Hands over the messages of every request that nobody asked for, with what belongs to it, as
    /// long as the tape can be read.
    pub fn each_unused(&mut self, take: &mut dyn FnMut(&Slot, &[u8])) {
        if self.failed.is_none() {
            let read = self.read_unused(take);
            self.fail(read);
        }
    }

    fn fail(&mut self, read: io::Result<()>) {
        self.failed = self.failed.take().or(read.err());
    }

    fn read_unused(&mut self, take: &mut dyn FnMut(&Slot, &[u8])) -> io::Result<()> {
        for ask in 0..self.tape.asks() {
            if self.desk.is_unused(&self.tape, ask) {
                let mut number = self.tape.index.ask(ask).slot;
                while number != NONE {
                    let slot = self.tape.index.slot(number);
                    take(&slot, &self.tape.line(&slot)?);
                    number = slot.next;
                }
            }
        }
        Ok(())
    }

    fn cue(
        &mut self,
        at: At,
        seat: Seat,
        cue: Cue<'_>,
        act: &mut dyn FnMut(Act<'_>),
    ) -> io::Result<()> {
        if let Cue::Taken { shared, .. } = cue {
            self.sessions += 1;
            self.seats.insert(seat, Live::new(self.sessions, shared));
            return Ok(());
        }
        let Some(live) = self.seats.get_mut(&seat) else { return Ok(()) };
        let mut turn = Turn {
            context: Context { tape: &mut self.tape, options: &self.options },
            desk: &mut self.desk,
            live,
            shared_run: self.shared_run.as_mut(),
            played: &mut self.played,
            at,
            act,
        };
        match cue {
            // A player runs no errands.
            Cue::Taken { .. } | Cue::Done { .. } => Ok(()),
            Cue::Said(line) => turn.said(line),
            Cue::TooLarge { message, bytes_max } => turn.too_large(&message, bytes_max),
            Cue::Behind(line) => {
                turn.live.hear_behind(line, turn.act);
                turn.live
                    .behind
                    .take_failed()
                    .into_iter()
                    .for_each(|it| turn.desk.server_failed(it));
                Ok(())
            }
            Cue::BehindGone { why } => {
                turn.desk.warn(format!("the server behind the tape cannot be asked: {why}"));
                turn.live.behind_gone(why, turn.act);
                turn.live
                    .behind
                    .take_failed()
                    .into_iter()
                    .for_each(|it| turn.desk.server_failed(it));
                Ok(())
            }
            Cue::Due => turn.due(),
            Cue::Left => turn.left(),
            Cue::Empty => {
                self.seats.remove(&seat);
                Ok(())
            }
        }
    }
}

impl Actor for Player {
    fn handle(&mut self, at: At, seat: Seat, cue: Cue<'_>, act: &mut dyn FnMut(Act<'_>)) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.cue(at, seat, cue, act) {
            // Without the tape nothing can be answered truthfully any more.
            self.failed = Some(error);
            act(Act::Stop);
        }
    }

    fn due(&self, seat: Seat) -> Option<u64> {
        self.seats.get(&seat)?.due()
    }

    fn busy(&self, seat: Seat) -> bool {
        self.failed.is_none() && self.seats.get(&seat).is_some_and(Live::is_busy)
    }
}
