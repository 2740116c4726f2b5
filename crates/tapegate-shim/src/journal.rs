//! Records a session's decisions: each note becomes an event in the activity log, and also a line
//! on standard error if it needs attention.
//!
//! An event is logged before the message it describes is sent. Secrets known to the policy are
//! masked in both places. If the log cannot be written, production lets no call pass.

mod event_details;
mod event_sink;
mod gate_notes;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tapegate_core::activity::{ActivityEvent, EventComponent, EventLevel};
use tapegate_core::side::{Lane, Side};
use tapegate_policy::model::Profile;
use tapegate_policy::note::{Note, NoteKind};
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_policy::redact::Redactor;
use tapegate_store::activity;

use self::event_details::details;
pub(crate) use self::event_sink::{EventSink, ShippedLog};
use self::gate_notes::GateNotes;
use crate::counters::SessionCounters;
use crate::message_log::MessageLog;
use crate::plan::ShimPlan;
use crate::traffic_monitor::TrafficMonitor;

/// The journal of a session. Clones share the same state.
#[derive(Clone)]
pub struct ShimJournal(Arc<Mutex<JournalInner>>);

struct JournalInner {
    log: Arc<dyn MessageLog>,
    sink: EventSink,
    server_id: String,
    connection_id: String,
    session_id: String,
    masking: Option<Arc<Redactor>>,
    profile: Profile,
    /// Whether messages are recorded on a tape and so have sequence numbers.
    taped: bool,
    counters: SessionCounters,
}

impl ShimJournal {
    /// Opens the journal of a session. If events cannot be logged, that is reported immediately.
    pub(crate) fn open(plan: &ShimPlan, active_policy: &ActivePolicy, sink: EventSink) -> Self {
        if let EventSink::Nowhere(message) = &sink {
            plan.log.message(EventLevel::Error, message);
        }
        Self(Arc::new(Mutex::new(JournalInner {
            log: Arc::clone(&plan.log),
            sink,
            server_id: plan.server_id.clone(),
            connection_id: plan.connection_id.clone(),
            session_id: plan.session_id.clone(),
            masking: active_policy.masking.clone(),
            profile: active_policy.profile,
            taped: false,
            counters: SessionCounters::default(),
        })))
    }

    /// The handle through which the gate writes notes. It tells `traffic` of each message, and
    /// counts it if `counts`.
    pub(crate) fn gate_notes(&self, traffic: TrafficMonitor, counts: bool) -> GateNotes {
        let failure = self.inner().sink.failure();
        GateNotes { journal: self.clone(), traffic, counts, failure }
    }

    /// Sets the redactor and the profile used from now on.
    pub(crate) fn mask(&self, masking: Option<Arc<Redactor>>, profile: Profile) {
        let mut inner = self.inner();
        (inner.masking, inner.profile) = (masking, profile);
    }

    /// From now on, messages are recorded on a tape.
    pub(crate) fn enable_tape_numbers(&self) {
        self.inner().taped = true;
    }

    /// Logs an event that is not about a message, immediately. A failure is reported.
    pub(crate) fn log_event(&self, event: ActivityEvent<'_>) {
        self.log_event_printed(event, false);
    }

    /// Logs an event that has already been printed.
    pub(crate) fn log_event_quietly(&self, event: ActivityEvent<'_>) {
        self.log_event_printed(event, true);
    }

    fn log_event_printed(&self, event: ActivityEvent<'_>, printed: bool) {
        let mut inner = self.inner();
        let mask = |text: &Option<Cow<'_, str>>| {
            let masked = masked(inner.masking.as_deref(), text.as_deref());
            masked.map(|text| Cow::Owned(text.into_owned()))
        };
        let event = ActivityEvent {
            profile: Some(inner.profile),
            method: mask(&event.method),
            tool: mask(&event.tool),
            policy_reason: mask(&event.policy_reason),
            ..event
        };
        inner.append(event, printed);
        // Commit now: there may be no further message whose commit would write it.
        if let Err(message) = inner.commit() {
            inner.log.message(EventLevel::Error, &message);
        }
    }

    /// Masks the secrets in a text.
    pub(crate) fn masked(&self, text: &str) -> String {
        masked(self.inner().masking.as_deref(), Some(text)).unwrap_or_default().into_owned()
    }

    /// Prints a message that is not an event.
    pub fn print_message(&self, level: EventLevel, message: &str) {
        let inner = self.inner();
        let message = masked(inner.masking.as_deref(), Some(message)).unwrap_or_default();
        inner.log.message(level, &message);
    }

    /// The counts so far.
    pub(crate) fn counters(&self) -> SessionCounters {
        self.inner().counters.clone()
    }

    /// Counts a message.
    pub(crate) fn count(&self, from: Side, method: Option<&str>) {
        self.inner().counters.message(from, method);
    }

    fn inner(&self) -> MutexGuard<'_, JournalInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ShimJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl JournalInner {
    /// Logs a note. Every call comes through here, so copying is avoided.
    fn log_note(&mut self, note: &Note<'_>) {
        self.counters.note(note);
        let mut members = details(&note.kind, self.masking.as_deref());
        // A message that is on a tape need not be in the log too.
        if let Some(raw) = note.raw.as_deref().filter(|raw| !self.taped && !raw.is_empty()) {
            let (key, beginning) = event_details::message_beginning(raw, self.masking.as_deref());
            members[key] = beginning.into();
        }
        let listed = match &note.kind {
            NoteKind::Filter { offer, .. } => Some(offer.list_method()),
            _ => None,
        };
        let connection_id = match connection_of(&self.connection_id, note.lane) {
            // The common id is filled in when the event is appended.
            Cow::Borrowed(_) => Cow::Borrowed(""),
            Cow::Owned(name) => Cow::Owned(name),
        };
        let masked = |text| masked(self.masking.as_deref(), text);
        let extra = activity::extra(&members);
        let event = &note.event;
        let event = ActivityEvent {
            method: masked(event.method.as_deref().or(listed)),
            tool: masked(event.tool.as_deref()),
            message_id: masked(event.message_id.as_deref()),
            policy_reason: masked(event.policy_reason.as_deref()),
            principal: masked(event.principal.as_deref()),
            decided_by: note.kind.decided_by().map(Cow::Borrowed),
            connection_id,
            tape_seq: event.tape_seq.filter(|_| self.taped),
            extra: masked(Some(&extra)).unwrap_or_default(),
            ..event.clone()
        };
        self.append(event, false);
    }

    /// Appends an event, and prints it unless that has already been done.
    fn append(&mut self, event: ActivityEvent<'_>, printed: bool) {
        let mut event = event;
        event.component = Some(EventComponent::Shim);
        event.server_id = Cow::Borrowed(&self.server_id);
        event.tape_session_id = Some(Cow::Borrowed(&self.session_id));
        if event.connection_id.is_empty() {
            event.connection_id = Cow::Borrowed(&self.connection_id);
        }
        if !printed {
            self.log.event(&event);
        }
        if let Some(log) = self.sink.log() {
            log.append(&event);
        }
    }

    fn commit(&mut self) -> Result<(), String> {
        self.sink.commit().map_err(|error| format!("the activity log cannot be written: {error}"))
    }
}

/// Masks the secrets in a text, if there is a redactor.
fn masked<'t>(masking: Option<&Redactor>, text: Option<&'t str>) -> Option<Cow<'t, str>> {
    match masking {
        Some(masking) => text.map(|text| masking.text(text)),
        None => text.map(Cow::Borrowed),
    }
}

/// The id of a connection: that of the shim, with the session's number from the second one on.
pub(crate) fn connection_of(shim: &str, lane: Lane) -> Cow<'_, str> {
    match lane.session {
        0 | 1 => Cow::Borrowed(shim),
        session => Cow::Owned(format!("{shim}.{session}")),
    }
}
