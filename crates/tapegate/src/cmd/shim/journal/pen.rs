//! The gate's handle to the journal.

use tapegate_core::tape::RecordError;
use tapegate_policy::model::Profile;
use tapegate_policy::note::{Note, Notes};

use super::Journal;
use crate::logs::Level;

/// The gate's handle to the journal.
pub(in crate::cmd::shim) struct Pen {
    pub(super) journal: Journal,
    /// Why events cannot be logged, as last known.
    pub(super) trouble: Option<String>,
}

impl Notes for Pen {
    fn note(&mut self, note: &Note<'_>) {
        self.journal.inner().note(note);
    }

    fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    fn commit(&mut self) -> Result<(), RecordError> {
        let mut inner = self.journal.inner();
        match inner.commit() {
            Ok(()) => {
                self.trouble = inner.sink.trouble();
                Ok(())
            }
            Err(words) if inner.profile == Profile::Development => {
                if self.trouble.as_ref() != Some(&words) {
                    inner.log.say(Level::Error, &format!("{words}; the session goes on unlogged"));
                }
                self.trouble = Some(words);
                Ok(())
            }
            Err(words) => Err(words.into()),
        }
    }
}
