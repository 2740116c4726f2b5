//! A tape in the role of the server.
//!
//! The player answers each request of a client with the recorded answer, and sends the server's
//! unprompted messages where the tape has them. It never gives one call's answer to another: a
//! request that is not on the tape is a divergence, which is answered with an error, reported and
//! counted.

mod cancellable_requests;
mod client_replies;
mod era;
mod error_relevance;
mod first_difference;
mod fuzzy;
mod likeness;
mod live_session;
mod order;
mod passthrough;
mod player_turn;
mod repeatable_reads;
mod repeated_lists;
mod replay_stats;
mod report;
mod scene;
mod tape;
mod tape_match;
mod tape_run;

use std::collections::HashMap;
use std::io;

use crate::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use crate::signature::Signer;
use crate::tape::Mask;
use crate::tape::index::{BodySource, Index, IndexEntry, NONE};
use crate::time::Timestamp;
pub use client_replies::{ChangedReply, ReplyChange};
use live_session::LiveSession;
use player_turn::PlayerTurn;
use replay_stats::ReplayStats;
pub use report::{
    DifferingRequest, Divergence, DivergenceReason, ExtraRead, NearMatch, ReplayNotice,
    ReplaySummary, UnusedRequest,
};
use tape::PlayerTape;
use tape_run::{RunScope, TapeRun};

/// The threshold of fuzzy matching, unless another one is chosen.
pub const FUZZY_THRESHOLD_DEFAULT: f64 = 0.7;

/// How a request is matched to the tape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MatchMode {
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
pub struct PlayerOptions {
    /// How a request is matched to the tape.
    pub mode: MatchMode,
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

impl PlayerOptions {
    /// Whether there are no delays and only the order of the tape is kept.
    fn is_instant(&self) -> bool {
        self.pace == 0.0
    }
}

impl MatchMode {
    /// The name of the mode on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::ByRequest => "by-request",
            Self::Fuzzy { .. } => "fuzzy",
        }
    }
}

/// A tape in the role of the server.
pub struct Player {
    tape: PlayerTape,
    options: PlayerOptions,
    stats: ReplayStats,
    live_sessions: HashMap<ActorSessionId, LiveSession, foldhash::fast::RandomState>,
    /// The position on the tape that all sessions share, if they do.
    shared_run: Option<TapeRun>,
    /// How many live sessions have played each recorded session.
    played: Vec<u32>,
    sessions: u32,
    failed: Option<io::Error>,
}

/// What a scene needs to continue.
struct PlayContext<'a> {
    tape: &'a mut PlayerTape,
    options: &'a PlayerOptions,
}

impl Player {
    /// A player for the tape of `index` and `bodies`. It reports what happens to `notice`.
    pub fn new(
        index: Index,
        bodies: Box<dyn BodySource>,
        mut options: PlayerOptions,
        notice: Box<dyn FnMut(ReplayNotice<'_>)>,
    ) -> Self {
        let played = vec![0; index.sessions().len()];
        let global = options.scope == StateScope::Global;
        let mask = options.mask.take();
        let tape = PlayerTape::new(index, bodies, options.signer.clone(), mask, global);
        Self {
            tape,
            options,
            stats: ReplayStats::new(notice),
            live_sessions: HashMap::default(),
            shared_run: global.then(|| TapeRun::new(0, RunScope::Whole)),
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
    pub fn summary(&mut self) -> ReplaySummary {
        let (mut summary, read) = self.stats.summary(&mut self.tape);
        self.store_failure(read);
        summary.sessions = self.sessions;
        summary
    }

    /// Passes every recorded request that no client made, with the messages that belong to it, to
    /// `take`, as far as the tape can be read.
    pub fn each_unused(&mut self, take: &mut dyn FnMut(&IndexEntry, &[u8])) {
        if self.failed.is_none() {
            let read = self.read_unused(take);
            self.store_failure(read);
        }
    }

    fn store_failure(&mut self, read: io::Result<()>) {
        // The first error is kept: later ones are likely its consequence.
        self.failed = self.failed.take().or(read.err());
    }

    fn read_unused(&mut self, take: &mut dyn FnMut(&IndexEntry, &[u8])) -> io::Result<()> {
        for request_number in 0..self.tape.request_count() {
            if self.stats.is_unused(&self.tape, request_number) {
                // `next` leads through the whole scene, so the messages stay in the order of the
                // tape.
                let mut number = self.tape.index.request(request_number).entry_number;
                while number != NONE {
                    let entry = self.tape.index.entry(number);
                    take(&entry, &self.tape.line(&entry)?);
                    number = entry.next;
                }
            }
        }
        Ok(())
    }

    fn handle_event(
        &mut self,
        at: Timestamp,
        session: ActorSessionId,
        event: ActorEvent<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) -> io::Result<()> {
        if let ActorEvent::Taken { shared, .. } = event {
            self.sessions += 1;
            self.live_sessions.insert(session, LiveSession::new(self.sessions, shared));
            return Ok(());
        }
        let Some(live) = self.live_sessions.get_mut(&session) else { return Ok(()) };
        let mut turn = PlayerTurn {
            context: PlayContext { tape: &mut self.tape, options: &self.options },
            stats: &mut self.stats,
            live,
            shared_run: self.shared_run.as_mut(),
            played: &mut self.played,
            at,
            act,
        };
        match event {
            // A player calls no external handlers.
            ActorEvent::Taken { .. } | ActorEvent::Done { .. } => Ok(()),
            ActorEvent::Said(line) => turn.handle_line(line),
            ActorEvent::TooLarge { message, bytes_max } => {
                turn.handle_oversize(&message, bytes_max)
            }
            ActorEvent::Behind(line) => {
                turn.live.handle_passthrough_line(line, turn.act);
                turn.report_passthrough_failures();
                Ok(())
            }
            ActorEvent::BehindGone { reason } => {
                turn.stats.warn(format!("the live server is unavailable: {reason}"));
                turn.live.handle_passthrough_gone(reason, turn.act);
                turn.report_passthrough_failures();
                Ok(())
            }
            ActorEvent::Due => turn.advance_due(),
            ActorEvent::Left => turn.handle_client_end(),
            ActorEvent::Empty => {
                self.live_sessions.remove(&session);
                Ok(())
            }
        }
    }
}

impl Actor for Player {
    fn handle(
        &mut self,
        at: Timestamp,
        session: ActorSessionId,
        event: ActorEvent<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        // Sessions may still report events until the host has stopped them.
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.handle_event(at, session, event, act) {
            // Without the tape no request can be answered correctly any more.
            self.failed = Some(error);
            act(ActorAction::Stop);
        }
    }

    fn next_wakeup(&self, session: ActorSessionId) -> Option<u64> {
        self.live_sessions.get(&session)?.next_deadline()
    }

    fn is_busy(&self, session: ActorSessionId) -> bool {
        // After a failure no answer will come, so the host must not wait for one.
        self.failed.is_none() && self.live_sessions.get(&session).is_some_and(LiveSession::is_busy)
    }
}
