//! A governed session: its gate, its tape, and the log events of its start and end.

use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_core::frame::Frame;
use tapegate_core::gate::{Gate, GateInput, HoldEnd, HoldId, ListStep, Verdict};
use tapegate_core::pending::UnansweredRequest;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{RecordError, Recorder};
use tapegate_core::time::Timestamp;
use tapegate_policy::approval_channel::ApprovalChannel;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::Profile;
use tapegate_policy::policy_gate::{
    GateEffects, GateSettings, IdGenerator, PolicyGate, PolicyHandle,
};
use tapegate_wire::clock::Clock;
use tapegate_wire::recorded_session::{HoldOutcomeReceiver, OnTapeError, RecordedSession};
use tapegate_wire::stdio::{EndCause, SessionOutcome};

use super::journal::{ShimJournal, quoted};
use super::plan::ShimPlan;
use super::shim_policy::ShimPolicy;
use super::tapes::{self, DisabledTape};
use super::traffic_monitor::TrafficMonitor;
use crate::exit::{Exit, Failure};
use crate::logs::VerbosityLevel;
use crate::session::{self, SessionHandler};
use crate::tape_writer::SharedTape;
use crate::terminal_output;
use crate::upstream::UpstreamTarget;

/// A governed session.
pub(super) struct ShimSession<'a> {
    pub(super) plan: &'a ShimPlan,
    pub(super) rule: &'a ShimPolicy,
    pub(super) upstream: &'a UpstreamTarget,
    pub(super) policy_handle: PolicyHandle,
    pub(super) journal: ShimJournal,
    /// The approval channel; taken when the session begins.
    pub(super) approval_channel: Option<Box<dyn ApprovalChannel>>,
    pub(super) hold_outcomes: Option<HoldOutcomeReceiver>,
    pub(super) tape: Option<SharedTape>,
    /// Whether messages are counted, for a hub.
    pub(super) counts: bool,
    /// Which sides have sent messages so far.
    pub(super) traffic: TrafficMonitor,
    /// Why the server is gone, if it exited before the session was established.
    pub(super) unheard: Option<String>,
}

impl ShimSession<'_> {
    fn recorder(&mut self) -> anyhow::Result<Box<dyn Recorder>> {
        let recorded =
            self.rule.active_policy.policy.as_ref().is_none_or(|policy| policy.recording.enabled);
        if !recorded {
            return Ok(Box::new(DisabledTape));
        }
        match tapes::open(self.plan, self.rule, self.upstream) {
            Ok(tape) => {
                let tape = SharedTape::new(tape);
                self.tape = Some(tape.clone());
                // Without a tape, a number in the log would refer to nothing.
                self.journal.enable_tape_numbers();
                Ok(Box::new(tape))
            }
            // Development only observes, so it must not stop a session that production would
            // refuse.
            Err(error) if self.rule.active_policy.profile == Profile::Development => {
                let message = format!("{error}; the session continues without a tape");
                self.journal.print_message(VerbosityLevel::Error, &message);
                Ok(Box::new(DisabledTape))
            }
            Err(error) => Err(Failure::new(Exit::Io, &error)
                .hint("nothing passes unrecorded; `recording: { enabled: false }` turns tapes off")
                .into()),
        }
    }

    fn build_gate(&mut self) -> PolicyGate {
        let carrier = |lines: bool| if lines { TransportKind::Lines } else { TransportKind::Http };
        let settings = GateSettings {
            source: self.plan.server_id.clone(),
            principal: self.plan.principal(self.rule),
            client: carrier(self.plan.args.http.is_none()),
            server: carrier(matches!(self.upstream, UpstreamTarget::Command(_))),
            lists: true,
            answer_timeout_ms: self.plan.args.answer_timeout.saturating_mul(1000),
        };
        let clock = self.plan.clock;
        let effects = GateEffects {
            notes: Box::new(self.journal.gate_notes()),
            approval_channel: self
                .approval_channel
                .take()
                .unwrap_or_else(|| Box::new(NoApprovalChannel)),
            ids: IdGenerator::new(&self.plan.connection_id),
            clock: Box::new(move || clock.mono_ns()),
        };
        PolicyGate::new(settings, effects, self.policy_handle.clone())
    }

    /// Why the session was never established, if its server exited before it answered anything.
    ///
    /// Most servers that cannot run (a missing module, an unset token) take longer to find out than
    /// a client takes to send its first request. Clients that send two, `server/discover` and then
    /// `initialize`, show only the second error.
    fn startup_failure(&self, outcome: &SessionOutcome) -> Option<String> {
        if !matches!(outcome.cause, EndCause::Server) || self.traffic.is_session_open() {
            return None;
        }
        let status = outcome.status.map_or("it closed its output".to_owned(), |s| s.to_string());
        if self.traffic.has_sent(Side::Client) {
            return Some(format!("the MCP server ended before it answered anything ({status})"));
        }
        let failed = outcome.status.is_some_and(|status| !status.success());
        let early = failed || !self.traffic.has_sent(Side::Server);
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
    journal: ShimJournal,
    clock: Clock,
    tape: String,
    policy_version: String,
}

impl SessionLog {
    fn log_event(&self, event: &str, message: String, extra: &str) {
        let version = &self.policy_version;
        self.journal.log_event(ActivityEvent {
            wall_us: self.clock.now().wall_us,
            level: EventLevel::Info,
            kind: ActivityKind::Session,
            policy_reason: Some(message.into()),
            policy_version: (!version.is_empty()).then(|| version.into()),
            extra: format!("\"event\":{}{}{extra}", quoted(event), self.tape).into(),
            ..ActivityEvent::default()
        });
    }
}

impl SessionHandler for ShimSession<'_> {
    fn open(&mut self) -> anyhow::Result<RecordedSession> {
        let recorder = self.recorder()?;
        let on_tape_error = match self.rule.active_policy.profile {
            Profile::Production => OnTapeError::Stop,
            Profile::Development => OnTapeError::Continue,
        };
        let policy_gate = self.build_gate();
        let journal = self.counts.then(|| self.journal.clone());
        let gate =
            Box::new(CountingGate { gate: policy_gate, traffic: self.traffic.clone(), journal });
        let upstream = tapegate_policy::redact::mask_upstream(&self.upstream.header_text());
        let extra = format!(",\"upstream\":{},\"pid\":{}", quoted(&upstream), std::process::id());
        let log = self.session_log();
        // Before the first message, so that a session that is killed at once is in the log too.
        log.log_event("started", "the session started".to_owned(), &extra);
        let no_outcomes = || tokio::sync::mpsc::channel(1).1;
        let hold_outcomes = self.hold_outcomes.take().unwrap_or_else(no_outcomes);
        let clock = self.plan.clock;
        let mut session =
            RecordedSession::with_gate(recorder, gate, hold_outcomes, clock, on_tape_error);
        // `ended` is logged when the session begins to end, not in `finish`. Codex kills us 0.1 s
        // after it leaves, and the server may take seconds to exit.
        session.set_end_callback(Box::new(move |reason| {
            let extra = format!(",\"cause\":{}", quoted(&cause(reason)));
            log.log_event("ended", "the session ended".to_owned(), &extra);
        }));
        Ok(session)
    }

    fn discard(&mut self) {
        if let Some(tape) = self.tape.take() {
            tape.discard();
        }
    }

    fn finish(&mut self, session: &mut RecordedSession, outcome: SessionOutcome) -> Exit {
        let closed = session.close();
        if let Some(error) = session.tape_error() {
            let message = format!("the session was not recorded to its end: {error}");
            self.journal.print_message(VerbosityLevel::Warn, &message);
        }
        // A separate event, because a client may kill us before the server has exited.
        if let Some(status) = outcome.status {
            let extra = format!(",\"server\":{}", quoted(&status.to_string()));
            self.session_log().log_event(
                "server_ended",
                format!("the server ended ({status})"),
                &extra,
            );
        }
        self.unheard = self.startup_failure(&outcome);
        let silent =
            matches!(outcome.cause, EndCause::Server) && !self.traffic.has_sent(Side::Server);
        if silent && self.unheard.is_none() {
            self.journal.print_message(
                VerbosityLevel::Error,
                "the MCP server ended before its first message",
            );
        }
        if let EndCause::Tape(error) = &outcome.cause {
            terminal_output::error(&format!("the session was stopped: {error}"), None);
            return Exit::Io;
        }
        // A tape that was lost earlier has been reported above.
        if let (Err(error), None) = (closed, session.tape_error()) {
            terminal_output::error(&error.to_string(), None);
            return Exit::Io;
        }
        session::exit_of(&outcome)
    }
}

fn cause(cause: &EndCause) -> String {
    match cause {
        EndCause::Server | EndCause::Actor => "the server ended".to_owned(),
        EndCause::Client => "the client left".to_owned(),
        EndCause::Signal(tapegate_wire::signals::ASKED) => {
            "the hub requested the shutdown".to_owned()
        }
        EndCause::Signal(number) => format!("signal {number}"),
        EndCause::Unreachable(reason) => format!("the server was never reached: {reason}"),
        EndCause::Tape(error) => format!("nothing can be recorded: {error}"),
    }
}

/// An approval channel that ignores every request.
struct NoApprovalChannel;

impl ApprovalChannel for NoApprovalChannel {
    fn request_approval(
        &mut self,
        _: HoldId,
        _: &tapegate_policy::approval_channel::ApprovalRequest<'_>,
    ) {
    }

    fn withdraw_request(&mut self, _: Timestamp, _: HoldId, _: HoldEnd) {}
}

/// A gate that notes which side has sent messages, and counts messages for the hub's metrics.
#[derive(Debug)]
struct CountingGate {
    gate: PolicyGate,
    traffic: TrafficMonitor,
    journal: Option<ShimJournal>,
}

impl Gate for CountingGate {
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict {
        self.traffic.note_message(case);
        if let Some(journal) = &self.journal {
            let method = case.frame.envelope().and_then(|envelope| envelope.method);
            let method = method.map(|method| method.decode());
            journal.count(case.from, method.as_deref());
        }
        self.gate.judge(case)
    }

    fn hold_ended(&mut self, at: Timestamp, hold_id: HoldId, how: HoldEnd) {
        self.gate.hold_ended(at, hold_id, how);
    }

    fn own_request_answered(
        &mut self,
        at: Timestamp,
        hold_id: HoldId,
        answer: &Frame<'_>,
    ) -> ListStep {
        // An answer to a list that the gate itself requested also shows that the server runs.
        self.traffic.note_session_open();
        self.gate.own_request_answered(at, hold_id, answer)
    }

    fn own_request_failed(&mut self, at: Timestamp, hold_id: HoldId, reason: &str) {
        self.gate.own_request_failed(at, hold_id, reason);
    }

    fn note_oversize(
        &mut self,
        at: Timestamp,
        lane: Lane,
        from: Side,
        bytes_total: u64,
        head: &[u8],
    ) {
        self.gate.note_oversize(at, lane, from, bytes_total, head);
    }

    fn note_orphan_reply(&mut self, at: Timestamp, lane: Lane, from: Side, id: &[u8]) {
        self.gate.note_orphan_reply(at, lane, from, id);
    }

    fn note_orphan_request(&mut self, at: Timestamp, asker: Side, request: &UnansweredRequest) {
        self.gate.note_orphan_request(at, asker, request);
    }

    fn answer_timeout_ns(&self) -> Option<u64> {
        self.gate.answer_timeout_ns()
    }

    fn note_unsent(
        &mut self,
        at: Timestamp,
        lane: Lane,
        from: Side,
        frame: &Frame<'_>,
        reason: &str,
    ) {
        self.gate.note_unsent(at, lane, from, frame, reason);
    }

    fn reject_ambiguous(
        &mut self,
        at: Timestamp,
        lane: Lane,
        from: Side,
        frame: &Frame<'_>,
        reason: &str,
    ) -> bool {
        self.gate.reject_ambiguous(at, lane, from, frame, reason)
    }

    fn note_plain_exchange(&mut self, at: Timestamp, lane: Lane, what: &str) {
        self.gate.note_plain_exchange(at, lane, what);
    }

    fn masks(&mut self) -> bool {
        self.gate.masks()
    }

    fn mask_text(&mut self, at: Timestamp, lane: Lane, what: &str, text: &[u8]) -> Option<Vec<u8>> {
        self.gate.mask_text(at, lane, what, text)
    }

    fn is_enforcing(&mut self) -> bool {
        self.gate.is_enforcing()
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        self.gate.commit()
    }
}
