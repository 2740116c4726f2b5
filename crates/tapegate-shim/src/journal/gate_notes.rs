//! The gate's handle to the journal.

use tapegate_core::activity::EventLevel;
use tapegate_core::tape::RecordError;
use tapegate_policy::model::Profile;
use tapegate_policy::note::{Note, NoteSink};

use super::ShimJournal;

/// The gate's handle to the journal.
pub(crate) struct GateNotes {
    pub(super) journal: ShimJournal,
    /// Why events cannot be logged, as last known.
    pub(super) trouble: Option<String>,
}

impl NoteSink for GateNotes {
    fn note(&mut self, note: &Note<'_>) {
        self.journal.inner().log_note(note);
    }

    fn failure(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        let mut inner = self.journal.inner();
        match inner.commit() {
            Ok(()) => {
                // Uploads fail in the background; the gate learns of it here, and denies the next
                // call.
                self.trouble = inner.sink.failure();
                Ok(())
            }
            Err(message) if inner.profile == Profile::Development => {
                // Once per failure, not once per call.
                if self.trouble.as_ref() != Some(&message) {
                    inner.log.message(
                        EventLevel::Error,
                        &format!("{message}; the session goes on unlogged"),
                    );
                }
                self.trouble = Some(message);
                Ok(())
            }
            Err(message) => Err(message.into()),
        }
    }
}
