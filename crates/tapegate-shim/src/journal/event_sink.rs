//! Where events are written.

use std::sync::{Arc, Mutex, PoisonError};

use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_store::activity::{ActivityError, ActivityLog, ActivityLogOptions};
use tokio::sync::Notify;

use crate::plan::ShimPlan;

/// Where events are written.
pub(crate) enum EventSink {
    /// The activity log, before the message they describe is sent.
    File(Box<ActivityLog>),
    /// A log on this machine, in the same way, from which they are sent to the hub.
    Shipped(Box<ShippedLog>),
    /// Nowhere, for this reason.
    Nowhere(String),
}

/// A log whose lines are sent to the hub.
pub(crate) struct ShippedLog {
    pub(crate) log: ActivityLog,
    /// Why the hub did not accept the last lines.
    pub(crate) trouble: Arc<Mutex<Option<String>>>,
    /// Notified when there is something to send.
    pub(crate) notify: Arc<Notify>,
}

impl EventSink {
    /// Opens the activity log in the state folder.
    pub(crate) fn open(plan: &ShimPlan, active_policy: &ActivePolicy) -> Result<Self, String> {
        let kept = active_policy.policy.as_ref().map(|policy| policy.activity.clone());
        let options = kept.map_or_else(ActivityLogOptions::default, |kept| ActivityLogOptions {
            rotate_bytes: kept.rotate_bytes,
            retention: kept.retention,
        });
        let opened = ActivityLog::open(&plan.state, options);
        let log = opened.map_err(|error| format!("there is no activity log: {error}"))?;
        Ok(Self::File(Box::new(log)))
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
