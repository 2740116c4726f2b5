//! The gate of a live session: every message is inspected, decided about and noted.
//!
//! A [`Warden`] knows no clock, no file and no person: it is handed what it needs, notes what it
//! does to [`Notes`] and has people asked by [`People`]. Without a policy it only observes: it logs
//! calls and odd messages, and everything passes byte for byte. What holds may be changed at any time by its
//! [`Reins`]; it takes effect between two messages.

mod calls;
mod holding;
mod ids;
mod listing;
mod orphans;
mod reins;
mod replies;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

use tapegate_core::frame::{self, Envelope, Frame, Kind};
use tapegate_core::gate::{Case, Gate, HoldEnd, ListStep, Ticket, Verdict};
use tapegate_core::json::Edits;
use tapegate_core::pending::Unanswered;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::At;

use crate::decide::{GateName, Outcome, Principal};
use crate::inspect::{Carrier, Fault};
use crate::judge::{Arrival, Judge, Judgement, SessionState, is_plain_answer};
use crate::model::Profile;
use crate::note::{Note, NoteKind, Notes};
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

/// What a warden is told about its session.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The server, by the name it goes by in the policy.
    pub source: String,
    /// Who calls, as far as it is known before anybody has called.
    pub principal: Principal,
    /// How the client's messages arrive.
    pub client: Carrier,
    /// How the server's messages arrive.
    pub server: Carrier,
    /// Whether the gate may ask the server for lists itself, to compare them with what is pinned.
    pub lists: bool,
    /// How long an answer may take before its request is noted as an orphan; 0 for as long as it likes.
    pub answer_timeout_ms: u64,
}

/// What a warden does by others.
pub struct Hands {
    /// Takes what is noted.
    pub notes: Box<dyn Notes>,
    /// Asks people.
    pub people: Box<dyn People>,
    /// Makes up names by which a refusal is found in the log.
    pub ids: Ids,
    /// Tells the time in nanoseconds since some fixed point.
    pub clock: Box<dyn Fn() -> u64 + Send>,
}

/// A message whose judgement is carried out.
struct Now<'a, 'c> {
    case: &'a Case<'c>,
    frame: &'a Frame<'a>,
    said: &'a Envelope<'a>,
    /// When judging began, if that is of interest.
    begun_ns: Option<u64>,
    /// Whether it is part of a batch, and so cannot wait.
    in_batch: bool,
}

impl Warden {
    /// A warden under what `reins` say.
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

    /// Takes over what holds by now.
    fn refresh(&mut self) {
        let Some((generation, regime)) = self.reins.newer_than(self.generation) else { return };
        self.generation = generation;
        // What was learned was held against another lock.
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

    /// Carries out what was judged about one message.
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
            self.note_form(case, frame, &judgement.anomalies, ("warn", sent), begun_ns);
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

    /// Several messages in one: each must pass, or none does.
    fn batch(
        &mut self,
        case: &Case<'_>,
        judgement: &Judgement<'_>,
        begun_ns: Option<u64>,
    ) -> Verdict {
        let refused = self.strict() && judgement.strict() == Outcome::Deny;
        let mut first_refusal = None;
        let mut edits = Edits::new(case.frame.bytes());
        let elements = frame::elements(case.frame.bytes());
        for (frame, judgement) in elements.iter().zip(&judgement.elements) {
            if refused && judgement.strict() != Outcome::Deny {
                let why = "the batch that it came in was refused, and it was not sent";
                if !judgement.calls.is_empty() {
                    self.unsent(case.at, case.lane, case.from, frame, why);
                }
                continue;
            }
            match self.message(case, frame, judgement, begun_ns, true) {
                Verdict::Forward => {}
                Verdict::Rewrite(text) => edits.replace(frame.bytes(), &text),
                Verdict::Refuse(refusal) => drop(first_refusal.get_or_insert(refusal)),
                // The judge denies what cannot wait, so nothing of a batch is ever held.
                Verdict::Hold(_) | Verdict::ListFirst(_) => {
                    let refusal = self.subject("method", "batch").cannot_wait();
                    first_refusal.get_or_insert_with(|| Box::new(refusal));
                }
            }
        }
        match (first_refusal, edits.finish()) {
            (Some(refusal), _) => Verdict::Refuse(refusal),
            (None, Cow::Owned(text)) => Verdict::Rewrite(text),
            (None, Cow::Borrowed(_)) => Verdict::Forward,
        }
    }

    /// Notes faults that stop a message, or would in production.
    fn note_faults(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        faults: &[Fault],
        begun_ns: Option<u64>,
    ) -> Subject {
        let first = faults.first().copied().unwrap_or(Fault::NotJson);
        let strict = self.strict();
        let word = match (strict, first.would()) {
            (false, would) => would,
            (true, "WOULD_DROP") => "drop",
            (true, _) => "reject",
        };
        self.note_form(case, frame, faults, (word, !strict), begun_ns)
    }

    /// Notes what is odd about the form of a message, under this word, and whether it is sent on.
    fn note_form(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        faults: &[Fault],
        (word, sent): (&'static str, bool),
        begun_ns: Option<u64>,
    ) -> Subject {
        let said = frame.envelope();
        let method = said.and_then(|said| said.method).map(|method| method.decode());
        let name = said.and_then(|said| said.name.or(said.uri)).map(|name| name.decode());
        let subject = self.subject("tool", name.as_deref().unwrap_or_default());
        let reasons: Vec<&str> = faults.iter().map(|fault| fault.words()).collect();
        let reason = reasons.join("; ");
        let latency_ns = self.latency(begun_ns);
        let mut note = Note {
            kind: NoteKind::Framing { faults: faults.to_vec() },
            word,
            method: method.as_deref().and_then(Note::text),
            name: name.as_deref().and_then(Note::text),
            id: Note::raw(said.and_then(|said| said.id)),
            reason: Some(Cow::Owned(reason)),
            forwarded: Some(sent),
            latency_ns,
            correlation_id: Some(Cow::Borrowed(&subject.correlation_id)),
            gate: Some(GateName::Framing),
            raw: Note::start(frame.bytes()),
            ..noted(case)
        };
        self.hands.note(&self.regime, &mut note);
        subject
    }

    /// Notes a message that goes nowhere, or would go nowhere, for a reason that is not its form.
    fn note_rejection(&mut self, about: Note<'_>, frame: &Frame<'_>, why: &str, refused: bool) {
        let said = frame.envelope();
        let method = said.and_then(|said| said.method).map(|method| method.decode());
        let name = said.and_then(|said| said.name.or(said.uri)).map(|name| name.decode());
        let Note { at, lane, from, .. } = about;
        let mut note = Note {
            kind: NoteKind::Framing { faults: Vec::new() },
            word: match (refused, self.regime.policy.is_some()) {
                (true, _) => "reject",
                (false, true) => "WOULD_REJECT",
                (false, false) => "warn",
            },
            method: method.as_deref().and_then(Note::text),
            name: name.as_deref().and_then(Note::text),
            id: Note::raw(said.and_then(|said| said.id)),
            reason: Some(Cow::Borrowed(why)),
            forwarded: Some(!refused),
            gate: Some(GateName::Framing),
            raw: Note::start(frame.bytes()),
            ..Note::new(at, lane, from)
        };
        self.hands.note(&self.regime, &mut note);
    }

    fn subject(&mut self, word: &'static str, name: &str) -> Subject {
        Subject { word, name: name.to_owned(), correlation_id: self.hands.ids.next().to_owned() }
    }

    /// How long it took since then.
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
    /// Takes down a note under what holds. What nobody has named yet gets a name.
    fn note<'n>(&'n mut self, regime: &'n Regime, note: &mut Note<'n>) {
        let Self { notes, ids, .. } = self;
        note.policy_version = regime.policy.as_ref().map(|policy| Cow::Borrowed(&*policy.version));
        note.profile = regime.profile;
        note.correlation_id.get_or_insert_with(|| Cow::Borrowed(ids.next()));
        notes.note(note);
    }
}

impl Now<'_, '_> {
    /// A note about the message, of which nothing is said yet.
    fn note<'n>(&self) -> Note<'n> {
        let mut note = noted(self.case);
        note.n = self.number(self.case.from == Side::Client);
        note
    }

    /// Its number on the tape. What is refused of a server's, or is part of a batch, has none.
    fn number(&self, kept: bool) -> Option<u64> {
        let says = matches!(self.said.kind(), Kind::Request | Kind::Notification);
        (kept && says && !self.in_batch).then_some(self.case.n)
    }
}

fn noted<'n>(case: &Case<'_>) -> Note<'n> {
    Note::new(case.at, case.lane, case.from)
}

impl Gate for Warden {
    fn judge(&mut self, case: &Case<'_>) -> Verdict {
        self.refresh();
        self.before_judging(case);
        // What is neither noted nor masked need not be carried out.
        if self.regime.redactor.is_none()
            && is_plain_answer(case.frame, self.settings.arrival(case))
        {
            return Verdict::Forward;
        }
        // Answers are looked into only if something may be hidden or masked in them.
        let lists = || case.frame.envelope().is_none_or(|said| said.lists);
        let timed = case.from == Side::Client || self.regime.redactor.is_some() || lists();
        let begun_ns = timed.then(|| (self.hands.clock)());
        let mut judgement = self.judged(case);
        match self.list_first(case, &judgement) {
            Ok(Some(first)) => return Verdict::ListFirst(first),
            Ok(None) => {}
            Err(why) => {
                self.state.set_drift(Some(why));
                judgement = self.judged(case);
            }
        }
        if judgement.elements.is_empty() {
            return self.message(case, case.frame, &judgement, begun_ns, false);
        }
        if !judgement.faults.is_empty() {
            self.note_faults(case, case.frame, &judgement.faults, begun_ns);
        }
        let verdict = self.batch(case, &judgement, begun_ns);
        if !judgement.anomalies.is_empty() {
            let sent = matches!(verdict, Verdict::Forward | Verdict::Rewrite(_));
            self.note_form(case, case.frame, &judgement.anomalies, ("warn", sent), begun_ns);
        }
        verdict
    }

    fn ended(&mut self, at: At, ticket: Ticket, how: HoldEnd) {
        self.lists.forget(ticket);
        self.unheld(at, ticket, how);
    }

    fn own_answer(&mut self, at: At, ticket: Ticket, answer: &Frame<'_>) -> ListStep {
        self.refresh();
        self.own_listed(at, ticket, answer)
    }

    fn own_failed(&mut self, _: At, ticket: Ticket, why: &str) {
        self.own_list_failed(ticket, why);
    }

    fn oversized(&mut self, at: At, lane: Lane, from: Side, bytes_total: u64, head: &[u8]) {
        let reason = format!("a message of {bytes_total} bytes is over the limit");
        let mut note = Note {
            kind: NoteKind::Oversized { bytes_total },
            word: "reject",
            reason: Some(Cow::Owned(reason)),
            forwarded: Some(false),
            gate: Some(GateName::Framing),
            raw: Note::start(head),
            ..Note::new(at, lane, from)
        };
        self.hands.note(&self.regime, &mut note);
    }

    fn orphan_reply(&mut self, at: At, lane: Lane, from: Side, id: &[u8]) {
        self.note_orphan_reply(at, lane, from, id);
    }

    fn orphan_request(&mut self, at: At, asker: Side, request: &Unanswered) {
        self.note_orphan_request(at, asker, request);
    }

    fn answer_timeout_ns(&self) -> Option<u64> {
        let timeout_ms = self.settings.answer_timeout_ms;
        (timeout_ms > 0).then(|| timeout_ms.saturating_mul(1_000_000))
    }

    fn unsent(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>, why: &str) {
        self.note_rejection(Note::new(at, lane, from), frame, why, true);
    }

    fn rejects(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>, why: &str) -> bool {
        // Without a policy nothing is refused that the server would take.
        let refused = self.enforces();
        self.note_rejection(Note::new(at, lane, from), frame, why, refused);
        refused
    }

    fn plain_exchange(&mut self, at: At, lane: Lane, what: &str) {
        let mut note = Note {
            kind: NoteKind::Http,
            reason: Note::text(what),
            forwarded: Some(true),
            ..Note::new(at, lane, Side::Client)
        };
        self.hands.note(&self.regime, &mut note);
    }

    fn masks(&mut self) -> bool {
        self.refresh();
        self.regime.redactor.is_some()
    }

    fn mask_text(&mut self, at: At, lane: Lane, what: &str, text: &[u8]) -> Option<Vec<u8>> {
        self.refresh();
        self.masked_text((at, lane), what, text)
    }

    fn enforces(&mut self) -> bool {
        self.refresh();
        self.strict() && self.regime.policy.is_some()
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        self.hands.notes.commit()
    }
}

impl fmt::Debug for Warden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, held, .. } = self;
        f.debug_struct("Warden").field("settings", settings).field("held", held).finish()
    }
}
