//! The gate's handle to the journal.

use tapegate_core::activity::EventLevel;
use tapegate_core::gate::GateInput;
use tapegate_core::tape::RecordError;
use tapegate_policy::model::Profile;
use tapegate_policy::note::{Note, NoteSink};

use super::ShimJournal;
use crate::traffic_monitor::TrafficMonitor;

/// The gate's handle to the journal.
pub(crate) struct GateNotes {
    pub(super) journal: ShimJournal,
    /// Which side has sent messages.
    pub(super) traffic: TrafficMonitor,
    /// Whether messages are counted, for the metrics of a hub.
    pub(super) counts: bool,
    /// Why events cannot be logged, as last known.
    pub(super) failure: Option<String>,
}

impl NoteSink for GateNotes {
    fn note(&mut self, note: &Note<'_>) {
        self.journal.inner().log_note(note);
    }

    fn note_message(&mut self, input: &GateInput<'_>) {
        self.traffic.note_message(input);
        if self.counts {
            let method = input.frame.envelope().and_then(|envelope| envelope.method);
            let method = method.map(|method| method.decode());
            self.journal.count(input.from, method.as_deref());
        }
    }

    fn note_own_answer(&mut self) {
        // An answer to a list that the gate itself requested also shows that the server runs.
        self.traffic.note_session_open();
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        let mut inner = self.journal.inner();
        match inner.commit() {
            Ok(()) => {
                // Uploads fail in the background; the gate learns of it here, and denies the next
                // call.
                self.failure = inner.sink.failure();
                Ok(())
            }
            Err(message) if inner.profile == Profile::Development => {
                // Once per failure, not once per call.
                if self.failure.as_ref() != Some(&message) {
                    inner.log.message(
                        EventLevel::Error,
                        &format!("{message}; the session goes on unlogged"),
                    );
                }
                self.failure = Some(message);
                Ok(())
            }
            Err(message) => Err(message.into()),
        }
    }
}
