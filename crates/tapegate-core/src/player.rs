//! A tape in the role of the server.
//!
//! The player answers each request of a client with the recorded answer, and sends the server's
//! unprompted messages where the tape has them. It never gives one call's answer to another: a
//! request that is not on the tape is a divergence, which is answered with an error, reported and
//! counted.

mod behind;
mod cancelling;
mod desk;
mod differing;
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

/// How a request is matched to the tape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Requests arrive in the order of the tape.
    Sequential,
    /// Requests arrive in any order and must ask for exactly what was recorded.
    ByRequest,
    /// Requests arrive in any order and may differ slightly.
    Fuzzy {
        /// The minimum share of equal leaves, from 0 to 1.
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
    /// It is passed to the live server behind the player.
    Passthrough,
}

/// What happens to a request that is made more often than it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExhausted {
    /// It counts as not on the tape.
    Error,
    /// The last recorded answer is repeated.
    Last,
    /// The recorded answers start over.
    Cycle,
}

/// Which sessions consume the tape together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateScope {
    /// Each session plays the tape from its start.
    Session,
    /// All sessions share one position on the tape.
    Global,
}

/// Which of the server's unprompted messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerMessages {
    /// Everything.
    All,
    /// Notifications, but not requests.
    Notifications,
    /// Nothing.
    None,
}

/// How a tape is played.
pub struct Options {
    /// How a request is matched to the tape.
    pub mode: Mode,
    /// The factor for recorded delays; 0 for no delays.
    pub pace: f64,
    /// What happens to a request that is not on the tape.
    pub on_unmatched: OnUnmatched,
    /// What happens to a request that is made more often than it was recorded.
    pub on_exhausted: OnExhausted,
    /// Which sessions consume the tape together.
    pub scope: StateScope,
    /// Which of the server's unprompted messages are sent.
    pub server_messages: ServerMessages,
    /// In sequential mode, whether a call must have the params of the next recorded call to match.
    pub strict_params: bool,
    /// Whether lists and other reads must occur as often as they were recorded.
    pub strict_reads: bool,
    /// Whether every answer of the client must equal the recorded one.
    pub strict_replies: bool,
    /// The redaction that was applied to the tape.
    pub mask: Option<Box<dyn Mask>>,
    /// The signer that the index was built with.
    pub signer: Signer,
}

impl Options {
    /// Whether there are no delays and only the order of the tape is kept.
    fn is_instant(&self) -> bool {
        self.pace == 0.0
    }
}

impl Mode {
    /// The name of the mode on the command line.
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
    /// The position on the tape that all sessions share, if they do.
    shared_run: Option<Run>,
    /// How many live sessions have played each recorded session.
    played: Vec<u32>,
    sessions: u32,
    failed: Option<io::Error>,
}

/// What a scene needs to continue.
struct Context<'a> {
    tape: &'a mut Tape,
    options: &'a Options,
}

impl Player {
    /// A player for the tape of `index` and `bodies`. It reports what happens to `notice`.
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

    /// Why reading the tape failed, if it did.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// The outcome of the replay. If reading the tape failed, [`Player::failure`] says why; the
    /// counts are correct even so.
    pub fn summary(&mut self) -> Summary {
        let (mut summary, read) = self.desk.summary(&mut self.tape);
        self.fail(read);
        summary.sessions = self.sessions;
        summary
    }

    /// Passes every recorded request that no client made, with the messages that belong to it, to
    /// `take`, as far as the tape can be read.
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
            // A player calls no external handlers.
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
                turn.desk.warn(format!("the live server is unavailable: {why}"));
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
            // Without the tape no request can be answered correctly any more.
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
