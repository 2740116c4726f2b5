//! Where a session writes what people should read: standard error, in the form that the user chose.

use std::fmt;

use tapegate_core::activity::{ActivityEvent, EventLevel};

/// Prints messages and events for people.
pub trait MessageLog: fmt::Debug + Send + Sync {
    /// Prints a message that is not an event.
    fn message(&self, level: EventLevel, text: &str);
    /// Prints an event of the activity log, if its level is printed.
    fn event(&self, event: &ActivityEvent<'_>);
}
