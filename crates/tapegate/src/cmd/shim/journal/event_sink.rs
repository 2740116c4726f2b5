//! Where events are written.

use std::sync::{Arc, Mutex, PoisonError};

use tapegate_store::activity::{ActivityError, ActivityLog};
use tokio::sync::Notify;

/// Where events are written.
pub(in crate::cmd::shim) enum EventSink {
    /// The activity log, before the message they describe is sent.
    File(Box<ActivityLog>),
    /// A log on this machine, in the same way, from which they are sent to the hub.
    Shipped(Box<ShippedLog>),
    /// Nowhere, for this reason.
    Nowhere(String),
}

/// A log whose lines are sent to the hub.
pub(in crate::cmd::shim) struct ShippedLog {
    pub(in crate::cmd::shim) log: ActivityLog,
    /// Why the hub did not accept the last lines.
    pub(in crate::cmd::shim) trouble: Arc<Mutex<Option<String>>>,
    /// Notified when there is something to send.
    pub(in crate::cmd::shim) notify: Arc<Notify>,
}

impl EventSink {
    /// Writes to this log.
    pub(in crate::cmd::shim) fn file(log: ActivityLog) -> Self {
        Self::File(Box::new(log))
    }

    /// The log that is written, if any.
    pub(super) fn log(&mut self) -> Option<&mut ActivityLog> {
        match self {
            Self::File(log) => Some(log),
            Self::Shipped(shipped) => Some(&mut shipped.log),
            Self::Nowhere(_) => None,
        }
    }

    /// Writes the appended events.
    pub(super) fn commit(&mut self) -> Result<(), ActivityError> {
        match self {
            Self::File(log) => log.commit(),
            Self::Shipped(shipped) => {
                let written = shipped.log.commit();
                shipped.notify.notify_one();
                written
            }
            // Not an error here: `failure` makes production refuse each call, with the reason.
            Self::Nowhere(_) => Ok(()),
        }
    }

    /// Why events are not being stored, if so.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::File(_) => None,
            Self::Shipped(shipped) => {
                shipped.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
            Self::Nowhere(message) => Some(message.clone()),
        }
    }
}
