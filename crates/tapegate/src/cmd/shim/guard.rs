//! A governed session: its gate, its tape, and the log events of its start and end.

use tapegate_core::frame::Frame;
use tapegate_core::gate::{Case, Gate, HoldEnd, ListStep, Ticket, Verdict};
use tapegate_core::pending::Unanswered;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{RecordError, Recorder};
use tapegate_core::time::At;
use tapegate_policy::inspect::Carrier;
use tapegate_policy::model::Profile;
use tapegate_policy::people::People;
use tapegate_policy::warden::{Hands, Ids, Reins, Settings, Warden};
use tapegate_store::activity::Event;
use tapegate_wire::clock::Clock;
use tapegate_wire::deck::{Deck, OnTapeError, Settlements};
use tapegate_wire::stdio::{Cause, Outcome};

use super::heard::Heard;
use super::journal::{Journal, quoted};
use super::plan::Plan;
use super::rulebook::Rule;
use super::tapes::{self, Untaped};
use crate::exit::{Exit, Failure};
use crate::logs::Level;
use crate::session::{self, Keeper};
use crate::talk;
use crate::taping::SharedTape;
use crate::upstream::Upstream;

/// A governed session.
pub(super) struct Guard<'a> {
    pub(super) plan: &'a Plan,
    pub(super) rule: &'a Rule,
    pub(super) upstream: &'a Upstream,
    pub(super) reins: Reins,
    pub(super) journal: Journal,
    /// The approval channel; taken when the session begins.
    pub(super) people: Option<Box<dyn People>>,
    pub(super) settlements: Option<Settlements>,
    pub(super) tape: Option<SharedTape>,
    /// Whether messages are counted, for a hub.
    pub(super) counts: bool,
    /// Which sides have sent messages so far.
    pub(super) heard: Heard,
    /// Why the server is gone, if it exited before the session was established.
    pub(super) unheard: Option<String>,
}

impl Guard<'_> {
    fn recorder(&mut self) -> anyhow::Result<Box<dyn Recorder>> {
        let recorded =
            self.rule.regime.policy.as_ref().is_none_or(|policy| policy.recording.enabled);
        if !recorded {
            return Ok(Box::new(Untaped));
        }
        match tapes::open(self.plan, self.rule, self.upstream) {
            Ok(tape) => {
                let tape = SharedTape::new(tape);
                self.tape = Some(tape.clone());
                self.journal.taped();
                Ok(Box::new(tape))
            }
            Err(error) if self.rule.regime.profile == Profile::Development => {
                let words = format!("{error}; the session continues without a tape");
                self.journal.say(Level::Error, &words);
                Ok(Box::new(Untaped))
            }
            Err(error) => Err(Failure::new(Exit::Io, &error)
                .hint("nothing passes unrecorded; `recording: { enabled: false }` turns tapes off")
                .into()),
        }
    }

    fn warden(&mut self) -> Warden {
        let carrier = |lines: bool| if lines { Carrier::Lines } else { Carrier::Http };
        let settings = Settings {
            source: self.plan.server_id.clone(),
            principal: self.plan.principal(self.rule),
            client: carrier(self.plan.args.http.is_none()),
            server: carrier(matches!(self.upstream, Upstream::Command(_))),
            lists: true,
            answer_timeout_ms: self.plan.args.answer_timeout.saturating_mul(1000),
        };
        let clock = self.plan.clock;
        let hands = Hands {
            notes: Box::new(self.journal.pen()),
            people: self.people.take().unwrap_or_else(|| Box::new(Nobody)),
            ids: Ids::new(&self.plan.connection_id),
            clock: Box::new(move || clock.mono_ns()),
        };
        Warden::new(settings, hands, self.reins.clone())
    }

    /// Why the session was never established, if its server exited before it answered anything.
    ///
    /// Most servers that cannot run (a missing module, an unset token) take longer to find out than
    /// a client takes to send its first request. Clients that send two, `server/discover` and then
    /// `initialize`, show only the second error.
    fn never_opened(&self, outcome: &Outcome) -> Option<String> {
        if !matches!(outcome.cause, Cause::Server) || self.heard.is_opened() {
            return None;
        }
        let status = outcome.status.map_or("it closed its output".to_owned(), |s| s.to_string());
        if self.heard.has(Side::Client) {
            return Some(format!("the MCP server ended before it answered anything ({status})"));
        }
        let failed = outcome.status.is_some_and(|status| !status.success());
        let early = failed || !self.heard.has(Side::Server);
        early.then(|| format!("the MCP server ended at once ({status})"))
    }

    fn session_log(&self) -> SessionLog {
        let tape = self.tape.as_ref().map(|tape| tape.0.borrow().path().display().to_string());
        SessionLog {
            journal: self.journal.clone(),
            clock: self.plan.clock,
            tape: tape.map(|path| format!(",\"tape\":{}", quoted(&path))).unwrap_or_default(),
            policy_version: self.rule.version().to_owned(),
        }
    }
}

/// Logs how a session begins and ends.
struct SessionLog {
    journal: Journal,
    clock: Clock,
    tape: String,
    policy_version: String,
}

impl SessionLog {
    fn keep(&self, event: &str, words: String, extra: &str) {
        let version = &self.policy_version;
        self.journal.keep(Event {
            wall_us: self.clock.now().wall_us,
            level: "info",
            kind: "session",
            policy_reason: Some(words.into()),
            policy_version: (!version.is_empty()).then(|| version.into()),
            extra: format!("\"event\":{}{}{extra}", quoted(event), self.tape).into(),
            ..Event::default()
        });
    }
}

impl Keeper for Guard<'_> {
    fn open(&mut self) -> anyhow::Result<Deck> {
        let recorder = self.recorder()?;
        let on_tape_error = match self.rule.regime.profile {
            Profile::Production => OnTapeError::Stop,
            Profile::Development => OnTapeError::Continue,
        };
        let warden = self.warden();
        let journal = self.counts.then(|| self.journal.clone());
        let gate = Box::new(Counted { gate: warden, heard: self.heard.clone(), journal });
        let upstream = tapegate_policy::redact::mask_upstream(&self.upstream.words());
        let extra = format!(",\"upstream\":{},\"pid\":{}", quoted(&upstream), std::process::id());
        let log = self.session_log();
        log.keep("started", "the session started".to_owned(), &extra);
        let nobody = || tokio::sync::mpsc::channel(1).1;
        let settlements = self.settlements.take().unwrap_or_else(nobody);
        let clock = self.plan.clock;
        let mut deck = Deck::governed(recorder, gate, settlements, clock, on_tape_error);
        deck.on_end(Box::new(move |why| {
            let extra = format!(",\"cause\":{}", quoted(&cause(why)));
            log.keep("ended", "the session ended".to_owned(), &extra);
        }));
        Ok(deck)
    }

    fn discard(&mut self) {
        if let Some(tape) = self.tape.take() {
            tape.discard();
        }
    }

    fn conclude(&mut self, deck: &mut Deck, outcome: Outcome) -> Exit {
        let closed = deck.close();
        if let Some(error) = deck.lost() {
            let words = format!("the session was not recorded to its end: {error}");
            self.journal.say(Level::Warn, &words);
        }
        if let Some(status) = outcome.status {
            let extra = format!(",\"server\":{}", quoted(&status.to_string()));
            self.session_log().keep("server_ended", format!("the server ended ({status})"), &extra);
        }
        self.unheard = self.never_opened(&outcome);
        let silent = matches!(outcome.cause, Cause::Server) && !self.heard.has(Side::Server);
        if silent && self.unheard.is_none() {
            self.journal.say(Level::Error, "the MCP server ended before its first message");
        }
        if let Cause::Tape(error) = &outcome.cause {
            talk::error(&format!("the session was stopped: {error}"), None);
            return Exit::Io;
        }
        if let (Err(error), None) = (closed, deck.lost()) {
            talk::error(&error.to_string(), None);
            return Exit::Io;
        }
        session::exit_of(&outcome)
    }
}

fn cause(cause: &Cause) -> String {
    match cause {
        Cause::Server | Cause::Actor => "the server ended".to_owned(),
        Cause::Client => "the client left".to_owned(),
        Cause::Signal(tapegate_wire::signals::ASKED) => "the hub requested the shutdown".to_owned(),
        Cause::Signal(number) => format!("signal {number}"),
        Cause::Unreachable(why) => format!("the server was never reached: {why}"),
        Cause::Tape(error) => format!("nothing can be recorded: {error}"),
    }
}

/// An approval channel that ignores every request.
struct Nobody;

impl People for Nobody {
    fn ask(&mut self, _: Ticket, _: &tapegate_policy::people::Asking<'_>) {}

    fn withdraw(&mut self, _: At, _: Ticket, _: HoldEnd) {}
}

/// A gate that notes which side has sent messages, and counts messages for the hub's metrics.
#[derive(Debug)]
struct Counted {
    gate: Warden,
    heard: Heard,
    journal: Option<Journal>,
}

impl Gate for Counted {
    fn judge(&mut self, case: &Case<'_>) -> Verdict {
        self.heard.note(case);
        if let Some(journal) = &self.journal {
            let method = case.frame.envelope().and_then(|said| said.method);
            let method = method.map(|method| method.decode());
            journal.count(case.from, method.as_deref());
        }
        self.gate.judge(case)
    }

    fn ended(&mut self, at: At, ticket: Ticket, how: HoldEnd) {
        self.gate.ended(at, ticket, how);
    }

    fn own_answer(&mut self, at: At, ticket: Ticket, answer: &Frame<'_>) -> ListStep {
        self.heard.note_opened();
        self.gate.own_answer(at, ticket, answer)
    }

    fn own_failed(&mut self, at: At, ticket: Ticket, why: &str) {
        self.gate.own_failed(at, ticket, why);
    }

    fn oversized(&mut self, at: At, lane: Lane, from: Side, bytes_total: u64, head: &[u8]) {
        self.gate.oversized(at, lane, from, bytes_total, head);
    }

    fn orphan_reply(&mut self, at: At, lane: Lane, from: Side, id: &[u8]) {
        self.gate.orphan_reply(at, lane, from, id);
    }

    fn orphan_request(&mut self, at: At, asker: Side, request: &Unanswered) {
        self.gate.orphan_request(at, asker, request);
    }

    fn answer_timeout_ns(&self) -> Option<u64> {
        self.gate.answer_timeout_ns()
    }

    fn unsent(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>, why: &str) {
        self.gate.unsent(at, lane, from, frame, why);
    }

    fn rejects(&mut self, at: At, lane: Lane, from: Side, frame: &Frame<'_>, why: &str) -> bool {
        self.gate.rejects(at, lane, from, frame, why)
    }

    fn plain_exchange(&mut self, at: At, lane: Lane, what: &str) {
        self.gate.plain_exchange(at, lane, what);
    }

    fn masks(&mut self) -> bool {
        self.gate.masks()
    }

    fn mask_text(&mut self, at: At, lane: Lane, what: &str, text: &[u8]) -> Option<Vec<u8>> {
        self.gate.mask_text(at, lane, what, text)
    }

    fn enforces(&mut self) -> bool {
        self.gate.enforces()
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        self.gate.commit()
    }
}
