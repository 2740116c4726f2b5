//! Records a session's decisions: each note becomes an event in the activity log, and also a line
//! on standard error if it needs attention.
//!
//! An event is logged before the message it describes is sent. Secrets known to the policy are
//! masked in both places. If the log cannot be written, production lets no call pass.

mod event_details;
mod event_sink;
mod event_text;
mod gate_notes;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tapegate_core::activity::{ActivityEvent, EventComponent};
use tapegate_core::gate::HoldId;
use tapegate_core::json;
use tapegate_core::side::{Lane, Side};
use tapegate_policy::model::Profile;
use tapegate_policy::note::{Note, NoteKind};
use tapegate_policy::redact::Redactor;

use self::event_details::details;
pub(super) use self::event_sink::{EventSink, ShippedLog};
use self::gate_notes::GateNotes;
use super::counters::SessionCounters;
use crate::logs::{Logger, VerbosityLevel};

/// The journal of a session. Clones share the same state.
#[derive(Clone)]
pub(super) struct ShimJournal(Arc<Mutex<JournalInner>>);

struct JournalInner {
    log: Logger,
    sink: EventSink,
    server_id: String,
    connection_id: String,
    session_id: String,
    masking: Option<Redactor>,
    profile: Profile,
    /// Whether messages are recorded on a tape and so have sequence numbers.
    taped: bool,
    /// The ids of the approval requests of held calls.
    approvals: HashMap<HoldId, String>,
    counters: SessionCounters,
}

/// The parts that a journal is made of.
pub(super) struct JournalConfig {
    pub(super) log: Logger,
    pub(super) sink: EventSink,
    pub(super) server_id: String,
    pub(super) connection_id: String,
    /// The name of the session's tape.
    pub(super) session_id: String,
}

impl ShimJournal {
    pub(super) fn new(begin: JournalConfig) -> Self {
        let JournalConfig { log, sink, server_id, connection_id, session_id } = begin;
        Self(Arc::new(Mutex::new(JournalInner {
            log,
            sink,
            server_id,
            connection_id,
            session_id,
            masking: None,
            profile: Profile::default(),
            taped: false,
            approvals: HashMap::new(),
            counters: SessionCounters::default(),
        })))
    }

    /// The handle through which the gate writes notes.
    pub(super) fn gate_notes(&self) -> GateNotes {
        let trouble = self.inner().sink.failure();
        GateNotes { journal: self.clone(), trouble }
    }

    /// Sets the redactor and the profile used from now on.
    pub(super) fn mask(&self, masking: Option<Redactor>, profile: Profile) {
        let mut inner = self.inner();
        (inner.masking, inner.profile) = (masking, profile);
    }

    /// From now on, messages are recorded on a tape.
    pub(super) fn enable_tape_numbers(&self) {
        self.inner().taped = true;
    }

    /// Associates a held call with its approval request.
    pub(super) fn set_approval_id(&self, hold_id: HoldId, approval_id: &str) {
        self.inner().approvals.insert(hold_id, approval_id.to_owned());
    }

    /// Drops a held call that was refused and that the gate will write no more notes about.
    pub(super) fn forget_hold(&self, hold_id: HoldId) {
        self.inner().approvals.remove(&hold_id);
    }

    /// Logs an event that is not about a message, immediately. A failure is reported.
    pub(super) fn log_event(&self, event: ActivityEvent<'_>) {
        self.log_event_printed(event, false);
    }

    /// Logs an event that has already been printed.
    pub(super) fn log_event_quietly(&self, event: ActivityEvent<'_>) {
        self.log_event_printed(event, true);
    }

    fn log_event_printed(&self, event: ActivityEvent<'_>, printed: bool) {
        let mut inner = self.inner();
        let mask = |text: &Option<Cow<'_, str>>| {
            let masked = masked(inner.masking.as_ref(), text.as_deref());
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
            inner.log.log(VerbosityLevel::Error, &message);
        }
    }

    /// Masks the secrets in a text.
    pub(super) fn masked(&self, text: &str) -> String {
        masked(self.inner().masking.as_ref(), Some(text)).unwrap_or_default().into_owned()
    }

    /// Prints a message that is not an event.
    pub(super) fn print_message(&self, level: VerbosityLevel, message: &str) {
        let inner = self.inner();
        let message = masked(inner.masking.as_ref(), Some(message)).unwrap_or_default();
        inner.log.log(level, &message);
    }

    /// The counts so far.
    pub(super) fn counters(&self) -> SessionCounters {
        self.inner().counters.clone()
    }

    /// Counts a message.
    pub(super) fn count(&self, from: Side, method: Option<&str>) {
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
        let (mut extra, hold_id, decided_by) = details(&note.kind, self.masking.as_ref());
        // A message that is on a tape need not be in the log too.
        if let Some(raw) = note.raw.as_deref().filter(|raw| !self.taped && !raw.is_empty()) {
            extra =
                format!("{extra},{}", event_details::message_beginning(raw, self.masking.as_ref()));
        }
        let approval_id = hold_id.and_then(|hold_id| match note.kind {
            NoteKind::HoldOpened { .. } => self.approvals.get(&hold_id).cloned(),
            // Every other note about a hold is its last.
            _ => self.approvals.remove(&hold_id),
        });
        let listed = match &note.kind {
            NoteKind::Filter { offer, .. } => Some(offer.list_method()),
            _ => None,
        };
        let connection_id = match connection_of(&self.connection_id, note.lane) {
            // The common id is filled in when the event is appended.
            Cow::Borrowed(_) => Cow::Borrowed(""),
            Cow::Owned(name) => Cow::Owned(name),
        };
        let masked = |text| masked(self.masking.as_ref(), text);
        let event = &note.event;
        let event = ActivityEvent {
            method: masked(event.method.as_deref().or(listed)),
            tool: masked(event.tool.as_deref()),
            message_id: masked(event.message_id.as_deref()),
            policy_reason: masked(event.policy_reason.as_deref()),
            principal: masked(event.principal.as_deref()),
            approval_id: approval_id.as_deref().map(Cow::Borrowed),
            decided_by: decided_by.map(Cow::Borrowed),
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
            event_text::print_event(&self.log, &event);
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
pub(super) fn connection_of(shim: &str, lane: Lane) -> Cow<'_, str> {
    match lane.session {
        0 | 1 => Cow::Borrowed(shim),
        session => Cow::Owned(format!("{shim}.{session}")),
    }
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    json::write_str(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}
