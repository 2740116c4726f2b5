//! Where events go.

use std::sync::{Arc, Mutex, PoisonError};

use tapegate_store::activity::{ActivityError, ActivityLog};
use tokio::sync::Notify;

/// Where events go.
pub(in crate::cmd::shim) enum Sink {
    /// To the activity log, before what they tell of is sent.
    File(Box<ActivityLog>),
    /// To a log on this machine, in the same way, from which they go to the hub.
    Shipped(Box<ShippedLog>),
    /// Nowhere, for this reason.
    Nowhere(String),
}

/// A log whose lines go to the hub.
pub(in crate::cmd::shim) struct ShippedLog {
    pub(in crate::cmd::shim) log: ActivityLog,
    /// Why the hub did not take the last ones.
    pub(in crate::cmd::shim) trouble: Arc<Mutex<Option<String>>>,
    /// Is told that there is something to send.
    pub(in crate::cmd::shim) news: Arc<Notify>,
}

impl Sink {
    /// To this log.
    pub(in crate::cmd::shim) fn file(log: ActivityLog) -> Self {
        Self::File(Box::new(log))
    }

    /// The log that is written.
    pub(super) fn log(&mut self) -> Option<&mut ActivityLog> {
        match self {
            Self::File(log) => Some(log),
            Self::Shipped(shipped) => Some(&mut shipped.log),
            Self::Nowhere(_) => None,
        }
    }

    /// Writes what was noted.
    pub(super) fn commit(&mut self) -> Result<(), ActivityError> {
        match self {
            Self::File(log) => log.commit(),
            Self::Shipped(shipped) => {
                let written = shipped.log.commit();
                shipped.news.notify_one();
                written
            }
            Self::Nowhere(_) => Ok(()),
        }
    }

    /// Why nothing is kept, if so it is.
    pub(super) fn trouble(&self) -> Option<String> {
        match self {
            Self::File(_) => None,
            Self::Shipped(shipped) => {
                shipped.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
            Self::Nowhere(words) => Some(words.clone()),
        }
    }
}
