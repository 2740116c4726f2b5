//! A governed session: its gate, its tape, and the log events of its start and end.

use serde_json::{Value, json};
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_core::gate::{HoldEnd, HoldId};
use tapegate_core::side::Side;
use tapegate_core::tape::{NullRecorder, Recorder};
use tapegate_core::time::Timestamp;
use tapegate_policy::approval_channel::ApprovalChannel;
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::model::Profile;
use tapegate_policy::policy_gate::{
    ActivePolicy, GateEffects, GateSettings, IdGenerator, PolicyGate, PolicyHandle,
};
use tapegate_policy::request_state::RequestStateKey;
use tapegate_store::OpenError;
use tapegate_store::activity;
use tapegate_store::new_tape::SharedTape;
use tapegate_wire::clock::Clock;
use tapegate_wire::recorded_session::{HoldOutcomeReceiver, OnTapeError, RecordedSession};
use tapegate_wire::stdio::{EndCause, SessionOutcome};

use crate::journal::ShimJournal;
use crate::plan::{ServerDescription, ShimPlan};
use crate::tapes;
use crate::traffic_monitor::TrafficMonitor;

/// A governed session.
pub struct ShimSession<'a> {
    plan: &'a ShimPlan,
    active_policy: &'a ActivePolicy,
    server: ServerDescription,
    policy_handle: PolicyHandle,
    journal: ShimJournal,
    /// The approval channel; taken when the session begins.
    approval_channel: Option<Box<dyn ApprovalChannel>>,
    holds: HoldRegister,
    hold_outcomes: Option<HoldOutcomeReceiver>,
    /// Authenticates what clients carry between a question and its answer.
    states: Option<RequestStateKey>,
    tape: Option<SharedTape>,
    /// Whether messages are counted, for a hub.
    counts: bool,
    /// Which sides have sent messages so far.
    traffic: TrafficMonitor,
    /// Why the server is gone, if it exited before the session was established.
    unheard: Option<String>,
}

impl<'a> ShimSession<'a> {
    pub(crate) fn new(
        plan: &'a ShimPlan,
        active_policy: &'a ActivePolicy,
        server: ServerDescription,
        policy_handle: PolicyHandle,
        journal: ShimJournal,
    ) -> Self {
        Self {
            plan,
            active_policy,
            server,
            policy_handle,
            journal,
            approval_channel: None,
            holds: HoldRegister::default(),
            hold_outcomes: None,
            states: None,
            tape: None,
            counts: false,
            traffic: TrafficMonitor::default(),
            unheard: None,
        }
    }

    /// Sets how approvals are requested, and where decisions arrive.
    pub(crate) fn with_approvals(
        self,
        channel: Box<dyn ApprovalChannel>,
        states: Option<RequestStateKey>,
        (holds, hold_outcomes): (HoldRegister, HoldOutcomeReceiver),
    ) -> Self {
        let (approval_channel, hold_outcomes) = (Some(channel), Some(hold_outcomes));
        Self { approval_channel, states, holds, hold_outcomes, ..self }
    }

    /// Counts messages, for a hub.
    pub(crate) fn with_counts(self) -> Self {
        Self { counts: true, ..self }
    }
}

impl ShimSession<'_> {
    /// The journal of the session.
    pub fn journal(&self) -> &ShimJournal {
        &self.journal
    }

    /// Takes the reason why the session was never established, if its server exited too early.
    pub fn take_startup_failure(&mut self) -> Option<String> {
        self.unheard.take()
    }

    /// Opens the session: its tape, its gate and its first log event.
    pub fn open(&mut self) -> Result<RecordedSession, OpenError> {
        let recorder = self.recorder()?;
        let on_tape_error = match self.active_policy.profile {
            Profile::Production => OnTapeError::Stop,
            Profile::Development => OnTapeError::Continue,
        };
        let gate = Box::new(self.build_gate());
        let upstream = tapegate_policy::redact::mask_upstream(&self.server.text);
        let about = json!({ "upstream": upstream, "pid": std::process::id() });
        let log = self.session_log();
        // Before the first message, so that a session that is killed at once is in the log too.
        log.log_event("started", "the session started".to_owned(), about);
        let no_outcomes = || tokio::sync::mpsc::channel(1).1;
        let hold_outcomes = self.hold_outcomes.take().unwrap_or_else(no_outcomes);
        let clock = self.plan.clock;
        let mut session =
            RecordedSession::with_gate(recorder, gate, hold_outcomes, clock, on_tape_error);
        // `ended` is logged when the session begins to end, not in `finish`. Codex kills us 0.1 s
        // after it leaves, and the server may take seconds to exit.
        session.set_end_callback(Box::new(move |reason| {
            let about = json!({ "cause": cause(reason) });
            log.log_event("ended", "the session ended".to_owned(), about);
        }));
        Ok(session)
    }

    /// Deletes the tape, since the session did not start.
    pub fn discard(&mut self) {
        if let Some(tape) = self.tape.take() {
            tape.discard();
        }
    }

    /// Closes the session and logs its end. Fails with the reason if it was not recorded to its end
    /// and the user has not been told.
    pub fn finish(
        &mut self,
        session: &mut RecordedSession,
        outcome: &SessionOutcome,
    ) -> Result<(), String> {
        let closed = session.close();
        if let Some(error) = session.tape_error() {
            let message = format!("the session was not recorded to its end: {error}");
            self.journal.print_message(EventLevel::Warn, &message);
        }
        // A separate event, because a client may kill us before the server has exited.
        if let Some(status) = outcome.status {
            let about = json!({ "server": status.to_string() });
            let message = format!("the server ended ({status})");
            self.session_log().log_event("server_ended", message, about);
        }
        self.unheard = self.startup_failure(outcome);
        let silent =
            matches!(outcome.cause, EndCause::Server) && !self.traffic.has_sent(Side::Server);
        if silent && self.unheard.is_none() {
            self.journal
                .print_message(EventLevel::Error, "the MCP server ended before its first message");
        }
        if let EndCause::Tape(error) = &outcome.cause {
            return Err(format!("the session was stopped: {error}"));
        }
        // A tape that was lost earlier has been reported above.
        match (closed, session.tape_error()) {
            (Err(error), None) => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    fn recorder(&mut self) -> Result<Box<dyn Recorder>, OpenError> {
        if !self.plan.is_recording(self.active_policy) {
            return Ok(Box::new(NullRecorder));
        }
        match tapes::open(self.plan, self.active_policy, &self.server) {
            Ok(tape) => {
                let tape = SharedTape::new(tape);
                self.tape = Some(tape.clone());
                // Without a tape, a number in the log would refer to nothing.
                self.journal.enable_tape_numbers();
                Ok(Box::new(tape))
            }
            // Development only observes, so it must not stop a session that production would
            // refuse.
            Err(error) if self.active_policy.profile == Profile::Development => {
                let message = format!("{error}; the session continues without a tape");
                self.journal.print_message(EventLevel::Error, &message);
                Ok(Box::new(NullRecorder))
            }
            Err(error) => Err(error),
        }
    }

    fn build_gate(&mut self) -> PolicyGate {
        let settings = GateSettings {
            source: self.plan.server_id.clone(),
            principal: self.plan.principal(self.active_policy),
            client: self.plan.client,
            server: self.server.transport,
            lists: true,
            answer_timeout_ms: self.plan.answer_timeout_ms,
        };
        let clock = self.plan.clock;
        let effects = GateEffects {
            notes: Box::new(self.journal.gate_notes(self.traffic.clone(), self.counts)),
            approval_channel: self
                .approval_channel
                .take()
                .unwrap_or_else(|| Box::new(NoApprovalChannel)),
            holds: self.holds.clone(),
            ids: IdGenerator::new(&self.plan.connection_id),
            states: self.states.clone(),
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
            tape,
            policy_version: self.active_policy.version().to_owned(),
        }
    }
}

/// Logs how a session begins and ends.
struct SessionLog {
    journal: ShimJournal,
    clock: Clock,
    /// The path of the tape, if there is one.
    tape: Option<String>,
    policy_version: String,
}

impl SessionLog {
    /// Logs an event with what there is to say about it.
    fn log_event(&self, event: &str, message: String, about: Value) {
        let version = &self.policy_version;
        let mut members = json!({ "event": event });
        if let Some(tape) = &self.tape {
            members["tape"] = json!(tape);
        }
        if let (Value::Object(members), Value::Object(about)) = (&mut members, about) {
            members.extend(about);
        }
        self.journal.log_event(ActivityEvent {
            wall_us: self.clock.now().wall_us,
            level: EventLevel::Info,
            kind: ActivityKind::Session,
            policy_reason: Some(message.into()),
            policy_version: (!version.is_empty()).then(|| version.into()),
            extra: activity::extra(&members),
            ..ActivityEvent::default()
        });
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
