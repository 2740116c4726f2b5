//! The activity log, as the hub writes it.

use std::cell::RefCell;
use std::path::Path;

use tapegate_policy::model::{Policy, Profile};
use tapegate_store::activity::{ActivityError, ActivityLog, Event, Options};

/// The activity log.
pub(super) struct Journal {
    log: RefCell<ActivityLog>,
    /// Why it could not be written the last time, if it could not.
    trouble: RefCell<Option<String>>,
}

impl Journal {
    /// Opens the log in a state folder, to be kept as the policy says.
    pub(super) fn open(state: &Path, policy: Option<&Policy>) -> Result<Self, ActivityError> {
        let options = policy.map_or_else(Options::default, |policy| Options {
            rotate_bytes: policy.activity.rotate_bytes,
            retention: policy.activity.retention,
        });
        let log = RefCell::new(ActivityLog::open(state, options)?);
        Ok(Self { log, trouble: RefCell::default() })
    }

    /// Writes events down, all of them or none.
    pub(super) fn write(&self, events: &[Event]) -> Result<(), String> {
        let mut log = self.log.borrow_mut();
        events.iter().for_each(|event| log.append(event));
        let written = log.commit().map_err(|error| error.to_string());
        self.trouble.replace(written.clone().err());
        written
    }

    /// Why it cannot be written, if it cannot.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }
}

/// Something that the hub itself has done or seen.
pub(super) fn event(
    wall_us: i64,
    level: &'static str,
    kind: &'static str,
    profile: Profile,
) -> Event {
    Event { wall_us, level, kind, component: "hub", profile: profile.name(), ..Event::default() }
}
