//! Where events go.

use std::sync::{Arc, Mutex, PoisonError};

use tapegate_hub::api::EventLine;
use tapegate_store::activity::ActivityLog;
use tokio::sync::mpsc;

/// Where events go.
pub(in crate::cmd::shim) enum Sink {
    /// To the activity log, before what they tell of is sent.
    File(Box<ActivityLog>),
    /// To the hub, which writes them down.
    Hub(Posted),
    /// Nowhere, for this reason.
    Nowhere(String),
}

/// Events on their way to the hub.
pub(in crate::cmd::shim) struct Posted {
    pub(in crate::cmd::shim) events: mpsc::UnboundedSender<EventLine>,
    /// Why the hub did not take the last ones.
    pub(in crate::cmd::shim) trouble: Arc<Mutex<Option<String>>>,
}

impl Sink {
    /// To this log.
    pub(in crate::cmd::shim) fn file(log: ActivityLog) -> Self {
        Self::File(Box::new(log))
    }

    /// Why nothing is kept, if so it is.
    pub(super) fn trouble(&self) -> Option<String> {
        match self {
            Self::File(_) => None,
            Self::Hub(posted) => {
                posted.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
            Self::Nowhere(words) => Some(words.clone()),
        }
    }
}
