//! The gate of a live session: inspects, decides about and logs every message.
//!
//! A [`Warden`] reads no clock, opens no file and asks no one itself: its effects go through
//! [`Notes`] and [`People`]. Without a policy it only observes: it logs calls and malformed
//! messages, and everything passes byte for byte. The policy can be replaced at any time through
//! its [`Reins`]; a new one takes effect between two messages.

mod calls;
mod forms;
mod gate;
mod holding;
mod ids;
mod listing;
mod orphans;
mod reins;
mod replies;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame::{self, Envelope, Frame, Kind};
use tapegate_core::gate::{Case, Gate, Verdict};
use tapegate_core::json::Edits;
use tapegate_core::side::Side;

use crate::decide::{Outcome, Principal};
use crate::inspect::Carrier;
use crate::judge::{Arrival, Judge, Judgement, SessionState};
use crate::model::Profile;
use crate::note::{Note, Notes};
use crate::people::People;
use crate::refuse::Subject;
use holding::Held;
use listing::Lists;
use orphans::OrphanCounts;

pub use ids::Ids;
pub use reins::{Regime, Reins};

/// Decides about every message of a session.
pub struct Warden {
    settings: Settings,
    hands: Hands,
    reins: Reins,
    regime: Regime,
    generation: u64,
    state: SessionState,
    lists: Lists,
    tickets: u64,
    held: VecDeque<Held>,
    orphans: OrphanCounts,
}

/// What the gate knows about its session.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The server's name in the policy.
    pub source: String,
    /// The caller, as far as it is known before the first call.
    pub principal: Principal,
    /// How the client's messages arrive.
    pub client: Carrier,
    /// How the server's messages arrive.
    pub server: Carrier,
    /// Whether the gate may ask the server for lists itself, to compare them with what is pinned.
    pub lists: bool,
    /// How long a response may take before its request is logged as an orphan; 0 for no limit.
    pub answer_timeout_ms: u64,
}

/// The side effects of the gate, and its sources of ids and time.
pub struct Hands {
    /// Receives the notes.
    pub notes: Box<dyn Notes>,
    /// Asks approvers.
    pub people: Box<dyn People>,
    /// Generates the ids by which a refusal is found in the log.
    pub ids: Ids,
    /// A monotonic clock, in nanoseconds.
    pub clock: Box<dyn Fn() -> u64 + Send>,
}

/// A message whose judgement is being carried out.
struct Now<'a, 'c> {
    case: &'a Case<'c>,
    frame: &'a Frame<'a>,
    said: &'a Envelope<'a>,
    /// When judging began, if latency is measured.
    begun_ns: Option<u64>,
    /// Whether it is part of a batch, and so cannot wait.
    in_batch: bool,
}

impl Warden {
    /// A gate that follows the policy of `reins`.
    pub fn new(settings: Settings, hands: Hands, reins: Reins) -> Self {
        let mut warden = Self {
            state: SessionState::new(settings.principal.clone()),
            settings,
            hands,
            regime: Regime::default(),
            generation: 0,
            reins,
            lists: Lists::default(),
            tickets: 0,
            held: VecDeque::new(),
            orphans: OrphanCounts::default(),
        };
        warden.refresh();
        warden
    }

    /// Switches to the newest policy, if there is a newer one.
    fn refresh(&mut self) {
        let Some((generation, regime)) = self.reins.newer_than(self.generation) else { return };
        self.generation = generation;
        // Definitions seen so far were compared with the old lock.
        if let Some(policy) = &regime.policy {
            self.state.watch.relock(&policy.pins.lock, &self.settings.source);
        }
        self.lists.repin(regime.policy.as_deref(), &self.settings.source);
        self.regime = regime;
        self.state.forget_decisions();
    }

    fn strict(&self) -> bool {
        self.regime.profile == Profile::Production
    }

    /// Judges a message, a batch included.
    fn judged<'m>(&mut self, case: &Case<'m>) -> Judgement<'m> {
        let judge = Judge {
            policy: self.regime.policy.as_deref(),
            profile: self.regime.profile,
            source: &self.settings.source,
            explains: false,
        };
        judge.judge(case.frame, self.settings.arrival(case), &mut self.state)
    }

    /// Carries out the judgement of one message.
    fn message(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        judgement: &Judgement<'_>,
        begun_ns: Option<u64>,
        in_batch: bool,
    ) -> Verdict {
        let verdict = self.carry_out_message(case, frame, judgement, begun_ns, in_batch);
        if !judgement.anomalies.is_empty() {
            let sent = matches!(verdict, Verdict::Forward | Verdict::Rewrite(_));
            self.note_form(
                case,
                frame,
                &judgement.anomalies,
                (LoggedDecision::Warn, sent),
                begun_ns,
            );
        }
        verdict
    }

    fn carry_out_message(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        judgement: &Judgement<'_>,
        begun_ns: Option<u64>,
        in_batch: bool,
    ) -> Verdict {
        if let Some(&fault) = judgement.faults.first() {
            let refused = self.note_faults(case, frame, &judgement.faults, begun_ns);
            if self.strict() {
                return Verdict::Refuse(Box::new(refused.faulty(fault)));
            }
        }
        let Some(said) = frame.envelope() else { return Verdict::Forward };
        let now = Now { case, frame, said, begun_ns, in_batch };
        match self.requested(&now, judgement) {
            Verdict::Forward => self.answered(&now, judgement),
            stopped => stopped,
        }
    }

    /// Carries out the judgements of a batch: if one element is refused, all are.
    fn batch(
        &mut self,
        case: &Case<'_>,
        judgement: &Judgement<'_>,
        begun_ns: Option<u64>,
    ) -> Verdict {
        let refused = self.strict() && judgement.strict() == Outcome::Deny;
        let (mut first_refusal, mut strays) = (None, None);
        let mut edits = Edits::new(case.frame.bytes());
        let frames = frame::each_element(case.frame.bytes());
        for (frame, judgement) in frames.zip(&judgement.elements) {
            let (frame, quiet) = (&frame, judgement.without_form());
            if judgement.is_stray() {
                let is_first = first_refusal.is_none();
                strays.get_or_insert_with(|| (frame.clone(), judgement, is_first, 0)).3 += 1;
                // All strays share one log line. In a batch that is sent, each must still be
                // redacted.
                if refused {
                    continue;
                }
            }
            let judgement = quiet.as_ref().unwrap_or(judgement);
            if refused && judgement.strict() != Outcome::Deny {
                let why = "it was not sent, because its batch was refused";
                if !judgement.calls.is_empty() {
                    self.unsent(case.at, case.lane, case.from, frame, why);
                }
                continue;
            }
            match self.message(case, frame, judgement, begun_ns, true) {
                Verdict::Forward => {}
                Verdict::Rewrite(text) => edits.replace(frame.bytes(), &text),
                Verdict::Refuse(refusal) => drop(first_refusal.get_or_insert(refusal)),
                // The judge denies calls in a batch that would have to wait, so none is ever held.
                Verdict::Hold(_) | Verdict::ListFirst(_) => {
                    let refusal = self.subject("method", "batch").cannot_wait();
                    first_refusal.get_or_insert_with(|| Box::new(refusal));
                }
            }
        }
        if let Some((frame, judgement, is_first, count)) = strays {
            let sent = !refused && first_refusal.is_none();
            let subject = self.note_strays(case, &frame, judgement, (count, sent), begun_ns);
            // The answer is about the first element that is refused, as the judge has it.
            if let Some(&fault) = judgement.faults.first().filter(|_| refused && is_first) {
                first_refusal = Some(Box::new(subject.faulty(fault)));
            }
        }
        match (first_refusal, edits.finish()) {
            (Some(refusal), _) => Verdict::Refuse(refusal),
            (None, Cow::Owned(text)) => Verdict::Rewrite(text),
            (None, Cow::Borrowed(_)) => Verdict::Forward,
        }
    }

    fn subject(&mut self, word: &'static str, name: &str) -> Subject {
        Subject { word, name: name.to_owned(), correlation_id: self.hands.ids.next().to_owned() }
    }

    /// The time since `begun_ns`.
    fn latency(&self, begun_ns: Option<u64>) -> Option<u64> {
        begun_ns.map(|begun_ns| (self.hands.clock)().saturating_sub(begun_ns))
    }
}

impl Settings {
    fn arrival(&self, case: &Case<'_>) -> Arrival {
        let carrier = match case.from {
            Side::Client => self.client,
            Side::Server => self.server,
        };
        let (session, wall_us) = (case.lane.session, case.at.wall_us);
        Arrival { from: case.from, carrier, session, wall_us }
    }
}

impl Hands {
    /// Adds the policy, the profile and, if it has none, a correlation id to a note, and logs it.
    fn note<'n>(&'n mut self, regime: &'n Regime, note: &mut Note<'n>) {
        let Self { notes, ids, .. } = self;
        note.policy_version = regime.policy.as_ref().map(|policy| Cow::Borrowed(&*policy.version));
        note.profile = regime.profile;
        note.correlation_id.get_or_insert_with(|| Cow::Borrowed(ids.next()));
        notes.note(note);
    }
}

impl Now<'_, '_> {
    /// An empty note about the message.
    fn note<'n>(&self) -> Note<'n> {
        let mut note = noted(self.case);
        note.n = self.number(self.case.from == Side::Client);
        note
    }

    /// Its number on the tape. Refused messages of a server and elements of a batch have none.
    fn number(&self, kept: bool) -> Option<u64> {
        let says = matches!(self.said.kind(), Kind::Request | Kind::Notification);
        (kept && says && !self.in_batch).then_some(self.case.n)
    }
}

fn noted<'n>(case: &Case<'_>) -> Note<'n> {
    Note::new(case.at, case.lane, case.from)
}

impl fmt::Debug for Warden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, held, .. } = self;
        f.debug_struct("Warden").field("settings", settings).field("held", held).finish()
    }
}
