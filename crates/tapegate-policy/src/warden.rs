//! The gate of a live session: every message is inspected, decided about and noted.
//!
//! A [`Warden`] knows no clock, no file and no person: it is handed what it needs, notes what it
//! does to [`Notes`] and has people asked by [`People`]. Without a policy it only observes, and sees
//! to it that messages are written as they must be. What holds may be changed at any time by its
//! [`Reins`]; it takes effect between two messages.

mod calls;
mod holding;
mod ids;
mod known;
mod reins;
mod replies;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

use tapegate_core::frame::{self, Body, Envelope, Frame, Kind};
use tapegate_core::gate::{Case, Gate, HoldEnd, Ticket, Verdict};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::RecordError;
use tapegate_core::time::At;

use crate::decide::{Decision, GateName, Principal};
use crate::gated::Gated;
use crate::inspect::{Carrier, Fault, inspect};
use crate::model::Profile;
use crate::note::{Note, NoteKind, Notes};
use crate::people::People;
use crate::pins::Watch;
use crate::refuse::Subject;
use holding::Held;
use known::Known;

pub use ids::Ids;
pub use reins::{Regime, Reins};

/// Decides about every message of a session.
pub struct Warden {
    settings: Settings,
    hands: Hands,
    reins: Reins,
    regime: Regime,
    /// Whether a rule names methods, and so may be about one that is not gated.
    rules_name_methods: bool,
    generation: u64,
    watch: Watch,
    known: Known,
    tickets: u64,
    held: VecDeque<Held>,
    /// The last decision that holds for every call alike.
    last: Option<Last>,
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

/// A decision that holds for every call of this method and name, under the regime that holds.
struct Last {
    method: &'static str,
    name: String,
    decision: Decision,
}

/// A message that is being judged.
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
            settings,
            hands,
            regime: Regime::default(),
            rules_name_methods: false,
            generation: 0,
            reins,
            watch: Watch::default(),
            known: Known::default(),
            tickets: 0,
            held: VecDeque::new(),
            last: None,
        };
        warden.refresh();
        warden
    }

    /// Takes over what holds by now.
    fn refresh(&mut self) {
        let Some((generation, regime)) = self.reins.newer_than(self.generation) else { return };
        self.generation = generation;
        let rules = regime.policy.iter().flat_map(|policy| &policy.rules);
        self.rules_name_methods = rules.into_iter().any(|rule| !rule.methods.is_empty());
        // What was learned was held against another lock.
        if let Some(policy) = &regime.policy {
            self.watch.relock(&policy.pins.lock, &self.settings.source);
        }
        self.regime = regime;
        self.last = None;
    }

    fn strict(&self) -> bool {
        self.regime.profile == Profile::Production
    }

    fn carrier(&self, from: Side) -> Carrier {
        match from {
            Side::Client => self.settings.client,
            Side::Server => self.settings.server,
        }
    }

    fn message(&mut self, case: &Case<'_>, frame: &Frame<'_>, in_batch: bool) -> Verdict {
        // Answers are looked into only if something may be hidden or masked in them.
        let begun_ns = (case.from == Side::Client).then(|| (self.hands.clock)());
        let faults = inspect(frame, case.from, self.carrier(case.from));
        if let Some(&fault) = faults.first() {
            let refused = self.faulty(case, frame, faults, begun_ns);
            if self.strict() {
                return Verdict::Refuse(Box::new(refused.faulty(fault)));
            }
        }
        let Some(said) = frame.envelope() else { return Verdict::Forward };
        let looks_into = said.lists || self.regime.redactor.is_some();
        let begun_ns = begun_ns.or_else(|| looks_into.then(|| (self.hands.clock)()));
        let now = Now { case, frame, said, begun_ns, in_batch };
        match (case.from, said.kind()) {
            (Side::Client, Kind::Request | Kind::Notification) => self.asked(&now),
            (Side::Server, Kind::Request | Kind::Notification) => self.server_said(&now),
            (Side::Server, Kind::Response | Kind::Error) => self.answered(&now),
            _ => Verdict::Forward,
        }
    }

    /// Several messages in one: each must pass as it is, or none does.
    fn batch(&mut self, case: &Case<'_>) -> Verdict {
        let elements = frame::elements(case.frame.bytes());
        for (index, element) in elements.iter().enumerate() {
            let verdict = match element.body() {
                Body::Message(_) => self.message(case, element, true),
                _ if !self.strict() => Verdict::Forward,
                _ => {
                    let faults = vec![Fault::NotAnObject];
                    let refused = self.faulty(case, element, faults, None);
                    Verdict::Refuse(Box::new(refused.faulty(Fault::NotAnObject)))
                }
            };
            let refusal = match verdict {
                Verdict::Forward => continue,
                Verdict::Refuse(refusal) => refusal,
                Verdict::Rewrite(_) | Verdict::Hold(_) => {
                    Box::new(self.subject("method", "batch").faulty(Fault::Batch))
                }
            };
            self.unsent_with(case, &elements[..index]);
            return Verdict::Refuse(refusal);
        }
        Verdict::Forward
    }

    /// Notes that calls which had passed are not sent, because others in their batch may not be.
    fn unsent_with(&mut self, case: &Case<'_>, before: &[Frame<'_>]) {
        let is_call = |frame: &&Frame<'_>| {
            let method = frame.envelope().and_then(|said| said.method);
            method.and_then(Gated::read).is_some()
        };
        let why = "the batch that it came in was refused, and it was not sent";
        for call in before.iter().filter(is_call) {
            self.unsent(case.at, case.lane, case.from, call, why);
        }
    }

    /// Notes that a message is not written as it must be.
    fn faulty(
        &mut self,
        case: &Case<'_>,
        frame: &Frame<'_>,
        faults: Vec<Fault>,
        begun_ns: Option<u64>,
    ) -> Subject {
        let said = frame.envelope();
        let method = said.and_then(|said| said.method).map(|method| method.decode());
        let name = said.and_then(|said| said.name.or(said.uri)).map(|name| name.decode());
        let subject = self.subject("tool", name.as_deref().unwrap_or_default());
        let first = faults.first().copied().unwrap_or(Fault::NotJson);
        let strict = self.strict();
        let word = match (strict, first.would()) {
            (false, would) => would,
            (true, "WOULD_DROP") => "drop",
            (true, _) => "reject",
        };
        let reasons: Vec<&str> = faults.iter().map(|fault| fault.words()).collect();
        let reason = reasons.join("; ");
        let latency_ns = self.latency(begun_ns);
        let mut note = Note {
            kind: NoteKind::Framing { faults },
            word,
            method: method.as_deref().and_then(Note::text),
            name: name.as_deref().and_then(Note::text),
            id: Note::raw(said.and_then(|said| said.id)),
            reason: Some(Cow::Owned(reason)),
            forwarded: Some(!strict),
            latency_ns,
            correlation_id: Some(Cow::Borrowed(&subject.correlation_id)),
            gate: Some(GateName::Framing),
            ..noted(case)
        };
        self.hands.note(&self.regime, &mut note);
        subject
    }

    fn subject(&mut self, word: &'static str, name: &str) -> Subject {
        Subject { word, name: name.to_owned(), correlation_id: self.hands.ids.next().to_owned() }
    }

    /// How long it took since then.
    fn latency(&self, begun_ns: Option<u64>) -> Option<u64> {
        begun_ns.map(|begun_ns| (self.hands.clock)().saturating_sub(begun_ns))
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
        // What is refused of a server's, or as part of a batch, has no number.
        let says = matches!(self.said.kind(), Kind::Request | Kind::Notification);
        let numbered = !self.in_batch && (says && self.case.from == Side::Client);
        let mut note = noted(self.case);
        note.n = numbered.then_some(self.case.n);
        note
    }
}

fn noted<'n>(case: &Case<'_>) -> Note<'n> {
    Note::new(case.at, case.lane, case.from)
}

impl Gate for Warden {
    fn judge(&mut self, case: &Case<'_>) -> Verdict {
        self.refresh();
        let batch = matches!(case.frame.body(), Body::Batch);
        if batch && self.carrier(case.from) == Carrier::Http {
            return self.batch(case);
        }
        self.message(case, case.frame, false)
    }

    fn ended(&mut self, at: At, ticket: Ticket, how: HoldEnd) {
        self.unheld(at, ticket, how);
    }

    fn oversized(&mut self, at: At, lane: Lane, from: Side, bytes_total: u64) {
        let reason = format!("a message of {bytes_total} bytes is over the limit");
        let mut note = Note {
            kind: NoteKind::Oversized { bytes_total },
            word: "reject",
            reason: Some(Cow::Owned(reason)),
            forwarded: Some(false),
            gate: Some(GateName::Framing),
            ..Note::new(at, lane, from)
        };
        self.hands.note(&self.regime, &mut note);
    }

    fn unsent(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>, why: &str) {
        let said = frame.envelope();
        let method = said.and_then(|said| said.method).map(|method| method.decode());
        let name = said.and_then(|said| said.name.or(said.uri)).map(|name| name.decode());
        let mut note = Note {
            kind: NoteKind::Framing { faults: Vec::new() },
            word: "reject",
            method: method.as_deref().and_then(Note::text),
            name: name.as_deref().and_then(Note::text),
            id: Note::raw(said.and_then(|said| said.id)),
            reason: Some(Cow::Borrowed(why)),
            forwarded: Some(false),
            gate: Some(GateName::Framing),
            ..Note::new(at, lane, from)
        };
        self.hands.note(&self.regime, &mut note);
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
